"""What an agent can do to refs, reflogs and objects, and what git itself can refuse.

None of it loses anything, and each of it is a verdict on one attempt, not the end of this run and of all later ones.
"""

from __future__ import annotations

import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from ralph.core.verdict import Kind
from support.cli import ralph_here
from support.hostile import BAD, CONFIG, Den, good, shell, work
from support.processes import wait_for
from support.repositories import IDENTITY, listing

CLEAN = "git reflog expire --expire=now --all; git gc -q --prune=now"


@pytest.fixture
def den(tmp_path: Path) -> Den:
    """With a branch that nothing else reaches, a remote-tracking one, an annotated tag, and two stashes."""
    made = Den(tmp_path)
    tree = made.git("write-tree")
    precious = made.git("commit-tree", tree, "-p", "HEAD", "-m", "precious")
    made.git("update-ref", "-m", "made", "--create-reflog", "refs/heads/precious", precious)
    theirs = made.git("commit-tree", tree, "-p", "HEAD", "-m", "theirs")
    made.git("update-ref", "refs/remotes/origin/main", theirs)
    made.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    made.git("tag", "-a", "-m", "annotated", "v2", made.git("commit-tree", tree, "-m", "tagged"))
    made.write("src/base.txt", "another idea\n")
    made.git("stash", "push", "-q", "-m", "the second idea")
    made.refs = made._refs()
    return made


def messages(den: Den) -> list[str]:
    return den.git("stash", "list", "--format=%H %gs").splitlines()


DAMAGE = {
    "a branch moved": "git branch -f precious HEAD",
    "everything moved": (
        "git branch -f precious HEAD; git tag -f v2 HEAD; git update-ref refs/remotes/origin/main HEAD;"
        " git symbolic-ref refs/remotes/origin/HEAD refs/heads/main"
    ),
    "everything deleted": (
        "git for-each-ref --format='delete %(refname)' refs/heads/precious refs/heads/other refs/tags refs/remotes"
        " refs/ralph | git update-ref --stdin; git stash clear"
    ),
    "the stash dropped": "git stash drop -q stash@{1}",
}


@pytest.mark.parametrize("what", DAMAGE)
@pytest.mark.parametrize("accepted", [False, True])
def test_refs_stashes_and_reflogs_survive_an_agent_that_cleans_up(den: Den, what: str, accepted: bool) -> None:
    stashes, reflog = messages(den), den.git("reflog", "show", "--format=%H %gs", "precious")
    head_log = den.git("reflog", "show", "--format=%H %gs", "HEAD").splitlines()
    actions = [work("US-001") if accepted else BAD, shell(f"{DAMAGE[what]}; {CLEAN}"), "claim"]
    done = den.run({"US-001": [actions, good("US-001")]})
    assert done.code == 0, done.out + done.err
    assert den.ended()[0].completes is accepted
    assert messages(den) == stashes
    assert den.git("reflog", "show", "--format=%H %gs", "precious").endswith(reflog)
    assert den.git("reflog", "show", "--format=%H %gs", "HEAD").splitlines()[-len(head_log) :] == head_log
    assert "could not be restored" not in "\n".join((*den.ended()[0].notices, *den.notes()))
    for entry in den.git("reflog", "show", "--format=%H", "--all").splitlines():
        den.git("cat-file", "-e", entry)
    den.check()


def test_an_accepted_story_says_which_refs_were_restored_and_where_the_agents_version_is(den: Den) -> None:
    made = "git branch -f precious $(git commit-tree HEAD^{tree} -p HEAD -m mine)"
    assert den.run({"US-001": [[work("US-001"), shell(made), "claim"]]}).code == 0
    notices = den.ended()[0].notices
    assert "refs/heads/precious was restored" in notices
    kept = next(notice for notice in notices if "refs/ralph/keep/" in notice).rpartition(" ")[2]
    assert den.git("log", "-1", "--format=%s", kept) == "mine"
    den.check()


def test_deleted_rescue_refs_come_back_with_their_objects(den: Den) -> None:
    thief = shell(f"git for-each-ref --format='delete %(refname)' refs/ralph | git update-ref --stdin; {CLEAN}")
    assert den.run({"US-001": [[BAD, "claim"], [work("US-001"), thief, "claim"]]}).code == 0
    assert den.rescued(1, "src/x.txt") == b"bad\n"
    assert f"refs/ralph/rescue/{den.runs[-1]}/1 was restored" in den.ended()[1].notices
    den.check()


def test_a_check_that_deletes_rescue_refs_is_no_error(tmp_path: Path) -> None:
    den = Den(tmp_path, config=CONFIG + "checks:\n  - {name: thief, command: sh thief.sh}\nproof: {where: in-place}\n")
    den.write("thief.sh", "git for-each-ref --format='delete %(refname)' refs/ralph/rescue | git update-ref --stdin\n")
    den.git("add", "-A")
    den.git("commit", "-qm", "a check")
    den.before["thief.sh"] = ("file", (den.root / "thief.sh").read_bytes())
    done = den.run({"US-001": [[BAD, "claim"], good("US-001")]})
    assert done.code == 0, done.out + done.err
    assert "unknown rescue" not in done.out + done.err


@pytest.mark.parametrize(
    "what",
    [
        "git checkout -q --detach; git branch -D main; git branch main/x; git checkout -q main/x",
        "git branch -D precious; git branch precious/x",
        ": > .git/refs/heads/precious",
        "git pack-refs --all; echo garbage >> .git/packed-refs",
        "git pack-refs --all; printf 'half a li' >> .git/packed-refs",
        "mkdir -p .git/refs/heads/precious.lock .git/refs/heads/main.lock/deep .git/index.lock",
        "rm -rf .git/refs/heads; echo x > .git/refs/heads",
        "echo ref: refs/heads/nowhere > .git/refs/heads/precious",
        "git update-ref refs/ralph/rescue/$RALPH_RUN HEAD",
        "rm -r .git/refs/ralph/checkpoint; echo x > .git/refs/ralph/checkpoint",
        "rm .git/refs/heads/precious; mkdir -p .git/refs/heads/precious/deep; echo x > .git/refs/heads/precious/deep/y",
    ],
)
def test_refs_that_git_cannot_read_or_write_are_put_right(den: Den, what: str) -> None:
    done = den.run({"US-001": [[BAD, shell(what), "claim"], good("US-001")]})
    assert done.code == 0, done.out + done.err
    assert [ended.kind for ended in den.ended()] == [Kind.REJECTED, Kind.ACCEPTED, Kind.ACCEPTED]
    den.check()


REFUSED = {
    "safecrlf": (
        "git config core.autocrlf input; git config core.safecrlf true",
        r"printf 'a\r\nb\r\n' > src/crlf.txt",
    ),
    "encoding": ("", "echo '*.enc working-tree-encoding=no-such' > .gitattributes; echo x > src/a.enc"),
    "filter": (
        "git config filter.lfs.clean no-such-program; git config filter.lfs.required true",
        "echo '*.bin filter=lfs' > .gitattributes; echo x > src/a.bin",
    ),
    "a name": ("", "echo x > src/git~1"),
    "a carriage return": (
        "",
        r"mkdir new; git init -q new; touch new/odd; mv new/odd $(printf 'new/odd\r'); echo bad > src/x.txt",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_git_refuses_to_commit_is_a_rejected_attempt(den: Den, what: str) -> None:
    setup, does = REFUSED[what]
    subprocess.run(["sh", "-c", setup], cwd=den.root, check=True)
    done = den.run({"US-001": [[work("US-001"), shell(does), "claim"], good("US-001")]})
    assert done.code == 0, done.out + done.err
    first = den.ended()[0]
    assert (first.kind, first.attempts) == (Kind.REJECTED, 1), first
    if what != "a carriage return":
        assert any(word in first.headline for word in ("git ", "src/git~1")), first.headline
    if what != "a name":  # its rescue has the name, which `git fsck` does not like
        den.check()


def test_an_attempt_that_git_refuses_again_and_again_fails_the_story_and_not_the_run(tmp_path: Path) -> None:
    den = Den(tmp_path, config=CONFIG.replace("max_loops_per_task: 0", "max_loops_per_task: 2"))
    bad = [work("US-001"), shell("echo '*.enc working-tree-encoding=no-such' > .gitattributes; echo x > src/a.enc")]
    done = den.run({"US-001": [[*bad, "claim"]] * 3})
    assert done.code == 5, done.out + done.err
    assert den.status() == {"US-001": "failed", "US-002": "done"}


def test_a_checks_folder_that_became_a_link_is_a_failed_check(tmp_path: Path) -> None:
    config = CONFIG + "checks:\n  - {name: inner, command: ls, cwd: docs}\nproof: {where: in-place}\n"
    den = Den(tmp_path, config=config)
    trick = shell(f"rm -r docs; ln -s {den.outside} docs")
    done = den.run({"US-001": [[work("US-001"), trick, "claim"], good("US-001")]})
    assert done.code == 0, done.out + done.err
    assert den.ended()[0].headline == "check 'inner' failed with exit code 126"
    den.check()


PLAN_MD = """# Plan: words

## Stories

- [ ] US-001: One
- [ ] US-002: Two

## Details

### US-001: One

### US-002: Two
"""


def test_a_new_story_after_one_that_was_marked_done_is_added_where_it_belongs(tmp_path: Path) -> None:
    den = Den(tmp_path)
    (den.root / ".ralph/feat/prd.json").unlink()
    plan = den.write(".ralph/PRD-1/plan.md", PLAN_MD)
    den.git("add", "-A")
    den.git("commit", "-qm", "another plan")
    line = r"s/^- \[ \] US-002.*/&\n- [x] US-003: Three\n- [ ] US-004: Four/"
    script = {"US-001": [[work("US-001"), shell(f"sed -i '{line}' .ralph/PRD-1/plan.md"), "claim"]]}
    done = den.run(script | {"US-004": [good("US-004")]}, "--no-review")
    assert "no story US-003" not in done.out + done.err
    assert "US-003" not in plan.read_text()
    assert "- [x] US-004: Four" in plan.read_text(), done.out + done.err


def test_an_iteration_that_cannot_be_undone_is_closed_with_a_record(den: Den) -> None:
    """The loop is killed, and a part of its checkpoint is damaged before the next run."""
    process = den.start({"US-001": [[BAD, shell("touch started; sleep 60")]]})
    wait_for((den.root / "started").exists, 20)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    pin = den.git("for-each-ref", "--format=%(refname)", "refs/ralph/checkpoint").splitlines()[-1]
    inner = den.git("rev-parse", f"{pin}:src")
    path = den.root / ".git/objects" / inner[:2] / inner[2:]
    path.chmod(0o644)
    path.write_bytes(b"")
    first = den.run()
    assert "cannot be rolled back" in first.out + first.err, first
    assert den.ended()[-1].kind is Kind.INTERRUPTED
    again = den.run()
    assert "cannot be rolled back" not in again.out + again.err


# What a person has, and what a run must not do to it


@pytest.mark.parametrize("bit", ["--skip-worktree", "--assume-unchanged"])
def test_files_that_git_is_told_to_skip_are_not_committed(den: Den, bit: str) -> None:
    den.git("update-index", bit, "docs/read me.txt")
    den.write("docs/read me.txt", "password: hunter2\n")
    append = shell("echo 'more by the agent' >> 'docs/read me.txt'")
    done = den.run({"US-001": [[work("US-001"), append, "claim"]]})
    assert done.code == 0, done.out + done.err
    assert den.git("show", "HEAD:docs/read me.txt") == "read me"
    assert (den.root / "docs/read me.txt").read_text() == "password: hunter2\nmore by the agent\n"
    assert any("docs/read me.txt" in note and "not committed" in note for note in den.notes())


def test_a_repository_inside_a_new_repository_is_removed_with_it(den: Den) -> None:
    made = "mkdir -p one/two; git init -q one; echo a > one/a; git init -q one/two; echo b > one/two/b"
    assert den.run({"US-001": [[BAD, shell(made), "claim"], good("US-001")]}).code == 0
    assert not (den.root / "one").exists()
    assert den.rescued(1, "one/two/b") == b"b\n"
    den.check()


def test_rescued_work_is_restored_although_the_plan_and_the_log_changed(den: Den) -> None:
    assert den.run({"US-001": [[BAD, "claim"], good("US-001")]}).code == 0
    name = f"{den.runs[-1]}/1"
    den.write(".ralph/feat/progress.txt", "a note of mine\n")
    plan = den.root / ".ralph/feat/prd.json"
    plan.write_text(plan.read_text().replace('"description": "d"', '"description": "e"'))
    done = ralph_here("rescue", "restore", name, cwd=den.root)
    assert done.code == 0, done.err
    assert (den.root / "src/x.txt").read_text() == "bad\n"
    assert '"description": "e"' in plan.read_text()
    den.write("src/base.txt", "mine\n")
    assert "there are uncommitted changes" in ralph_here("rescue", "restore", name, cwd=den.root).err


def test_hooks_of_a_commit_by_command_find_the_environment_git_gives_them(den: Den) -> None:
    hook = den.root / ".git/hooks/pre-commit"
    hook.write_text(f"#!/bin/sh\nenv > '{den.folder}/hook-env'\ngit add -- '*.txt'\n")
    hook.chmod(0o755)
    assert den.run().code == 0
    done = ralph_here("archive", cwd=den.root)
    assert done.code == 0, done.out + done.err
    names = {text.partition("=")[0] for text in (den.folder / "hook-env").read_text().splitlines()}
    ours = {"GIT_LITERAL_PATHSPECS", "GIT_NO_REPLACE_OBJECTS", "GIT_CONFIG_PARAMETERS", "GIT_OPTIONAL_LOCKS", "GIT_DIR"}
    assert not names & ours


def test_a_stop_does_not_wait_for_a_push(tmp_path: Path) -> None:
    den = Den(tmp_path, config=CONFIG + "push: after-story\n")
    den.git("remote", "add", "origin", "ssh://nowhere.invalid/x")
    den.git("config", "core.sshCommand", f"touch '{tmp_path}/pushing'; sleep 60; :")
    process = den.start()
    wait_for((tmp_path / "pushing").exists, 30)
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    done = den.finish(process)
    assert time.monotonic() - begun < 4, "the summary and the clean-up take less than two seconds"
    assert done.code == 130, done.out + done.err
    assert "did not finish pushing US-001: the run was stopped" in done.err


def test_a_failed_push_shows_why_the_server_refused_it(tmp_path: Path) -> None:
    den = Den(tmp_path, config=CONFIG + "push: after-story\n")
    den.git("init", "-q", "--bare", str(tmp_path / "server"))
    hook = tmp_path / "server/hooks/pre-receive"
    hook.write_text("#!/bin/sh\necho 'main is protected: open a pull request' >&2\nexit 1\n")
    hook.chmod(0o755)
    den.git("remote", "add", "origin", str(tmp_path / "server"))
    done = den.run()
    line = next(line for line in done.err.splitlines() if "could not push US-001" in line)
    assert "pre-receive hook declined" in line
    assert "main is protected: open a pull request" in line


# Remedies


def _patch(den: Den) -> str:
    den.git("switch", "-qc", "side", "HEAD~1")
    den.write("old.txt", "side\n")
    den.git("commit", "-qam", "side")
    den.git("switch", "-q", "main")
    den.write("old.txt", "main\n")
    den.git("commit", "-qam", "main")
    den.git("format-patch", "-q", "-1", "-o", str(den.folder), "side")
    return str(next(den.folder.glob("*.patch")))


def _git(den: Den, *args: str) -> None:
    subprocess.run(["git", *IDENTITY, *args], cwd=den.root, capture_output=True, check=False)


@pytest.mark.parametrize("what", ["am", "bisect", "cherry-pick", "revert"])
def test_the_command_that_ends_an_operation_is_the_right_one(den: Den, what: str) -> None:
    patch = _patch(den)
    if what == "am":
        _git(den, "am", patch)
    elif what == "bisect":
        _git(den, "bisect", "start", "HEAD", "HEAD~1")
    elif what == "cherry-pick":
        _git(den, "cherry-pick", "side", "precious")
    else:
        den.write("old.txt", "later\n")
        den.git("commit", "-qam", "later")
        _git(den, "revert", "--no-edit", "HEAD~1", "HEAD")
    done = den.run()
    assert done.code == 78, done
    commands = re.findall(r"`(git [^`]*)`", done.err)
    command = next(command for command in commands if command.startswith(f"git {what}"))
    subprocess.run(command.split(), cwd=den.root, check=True, capture_output=True)
    assert "is in progress" not in den.run().err


def test_a_damaged_index_is_rebuilt_with_the_command_in_the_message(den: Den) -> None:
    index = den.root / ".git/index"
    index.write_bytes(index.read_bytes()[:40])
    done = den.run()
    assert done.code == 78, done
    command = re.search(r"`(rm [^`]*)`", done.err)
    assert command, done.err
    subprocess.run(command[1], shell=True, cwd=den.root, check=True, capture_output=True)
    assert den.run().code == 0


def test_an_empty_commit_object_is_for_git_fsck(den: Den) -> None:
    head = den.git("rev-parse", "HEAD")
    path = den.root / ".git/objects" / head[:2] / head[2:]
    path.chmod(0o644)
    path.write_bytes(b"")
    done = den.run()
    assert done.code == 78, done
    assert "git fsck" in done.err, done.err


# Others at work in the same repository


def test_a_git_status_and_a_gc_of_somebody_else_do_not_end_a_run(tmp_path: Path) -> None:
    den = Den(tmp_path, stories=3)
    stop = tmp_path / "stop"
    loop = (
        f"while [ ! -e '{stop}' ]; do git reflog expire --expire=now --all; git gc -q --prune=now;"
        " touch -d '1 minute ago' check.sh; git status > /dev/null; sleep 1; done"
    )
    other = subprocess.Popen(["sh", "-c", loop], cwd=den.root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        done = den.run({story: [good(story)] * 5 for story in den.stories})
    finally:
        stop.touch()
        other.wait(60)
    assert done.code == 0, done.out + done.err
    assert set(den.status().values()) == {"done"}


def test_an_index_lock_of_an_ide_is_waited_for(den: Den) -> None:
    lock = den.root / ".git/index.lock"
    wait = f"while [ ! -e '{den.root}/src/US-001.txt' ]; do sleep 0.02; done"
    touch = f"{wait}; touch '{lock}'; sleep 2; rm '{lock}' && touch '{den.folder}/mine'"
    editor = subprocess.Popen(["sh", "-c", touch])
    done = den.run()
    editor.wait(30)
    assert done.code == 0, done.out + done.err
    assert (den.folder / "mine").exists(), "the lock of another program was removed"


# Ignored files


def test_an_ignored_file_comes_back_with_a_rollback_and_a_large_one_is_in_the_report(tmp_path: Path) -> None:
    den = Den(tmp_path, config=CONFIG + "keep_ignored: {file_kb: 1}\n")
    den.write("private/big.db", "x" * 2000)
    den.before = listing(den.root)
    clean = shell("rm -r private; echo mine > user.log")
    done = den.run({"US-001": [[BAD, clean, "claim"], [work("US-001"), shell("rm user.log"), "claim"]]})
    assert done.code == 0, done.out + done.err
    assert (den.root / "private/notes.txt").read_text() == "private notes\n"
    assert any("restored ignored files: private/notes.txt, user.log" in note for note in den.notes()), den.notes()
    assert any("without a copy to restore: private/big.db" in note for note in den.notes())
    [notice] = [notice for notice in den.ended()[1].notices if "that git ignores: user.log; a copy is " in notice]
    assert Path(notice.rpartition(" ")[2]).read_text() == "a log of the user's\n"
    report = ralph_here("report", cwd=den.root)
    assert "US-001: the agent deleted a file that git ignores: user.log" in report.out
    assert "private/big.db" in report.out, report.out


def test_an_ignored_file_that_accepted_work_overwrites_is_kept_and_reported(tmp_path: Path) -> None:
    den = Den(tmp_path, config=CONFIG + "keep_ignored: {file_kb: 1}\n")
    den.write("private/.env", "KEY=mine\n")
    den.write("private/big.db", "x" * 2000)
    den.before = listing(den.root)
    spoil = shell("echo KEY=theirs > private/.env; echo more >> user.log; rm private/big.db")
    assert den.run({"US-001": [[work("US-001"), spoil, "claim"]]}).code == 0
    notices = [notice for notice in den.ended()[0].notices if "git ignores" in notice]
    assert [notice.partition(";")[0].rpartition(" ")[2] for notice in notices] == ["private/big.db", "private/.env"]
    assert notices[0].endswith("it was too large for a copy")
    assert Path(notices[1].rpartition(" ")[2]).read_text() == "KEY=mine\n"
    report = ralph_here("report", cwd=den.root).out
    assert "US-001: a file that git ignores was overwritten: private/.env; a copy is " in report
    assert "private/big.db" in report


# Work on another branch


def test_a_done_story_whose_commit_is_not_on_this_branch_is_worked_on_again(den: Den) -> None:
    (den.root / ".git/info/exclude").write_text(".ralph/\n")
    den.git("rm", "-rq", "--cached", ".ralph")
    den.git("commit", "-qm", "the plan is not tracked")
    den.git("switch", "-qc", "elsewhere")
    assert den.run().code == 0
    assert set(den.status().values()) == {"done"}
    den.git("switch", "-q", "main")
    assert set(den.status().values()) == {"todo"}
    shown = ralph_here("status", cwd=den.root)
    assert "0/2" in shown.out
    assert "US-001 is not done here: its commit" in shown.err
    done = den.run()
    assert done.code == 0, done.out + done.err
    assert "US-001 is open again: its commit" in done.out + done.err
    assert (den.root / "src/US-001.txt").exists()
    assert den.git("log", "-1", "--format=%s", "--", "src/US-001.txt") == "feat(US-001): Write US-001"


@pytest.mark.parametrize("how", ["squash", "rebase"])
def test_a_squash_or_a_rebase_keeps_stories_done(den: Den, how: str) -> None:
    (den.root / ".git/info/exclude").write_text(".ralph/\n")
    den.git("rm", "-rq", "--cached", ".ralph")
    den.git("commit", "-qm", "the plan is not tracked")
    den.git("switch", "-qc", "elsewhere")
    assert den.run().code == 0
    den.git("switch", "-q", "main")
    den.git("commit", "-q", "--allow-empty", "-m", "other work")
    if how == "squash":
        den.git("merge", "-q", "--squash", "elsewhere")
        den.git("commit", "-qm", "all of it")
    else:
        den.git("rebase", "-q", "main", "elsewhere")
    assert "is open again" not in den.run().out
    assert set(den.status().values()) == {"done"}


# All at once, and a kill


def test_an_agent_that_destroys_everything_and_a_kill_lose_nothing(den: Den) -> None:
    stashes = messages(den)
    destroy = (
        "git commit -qam mine; git for-each-ref --format='delete %(refname)' | git update-ref --stdin;"
        f" {CLEAN}; rm -rf .git/logs; echo garbage > .git/packed-refs; : > .git/refs/heads/precious"
    )
    process = den.start({"US-001": [[BAD, shell(destroy), shell("touch src/started; sleep 60")]]})
    wait_for((den.root / "src/started").exists, 60)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    done = den.run()
    assert done.code == 0, done.out + done.err
    assert "could not be restored" not in done.out + done.err
    assert messages(den) == stashes
    den.check()


@pytest.mark.parametrize("accepted", [False, True])
def test_files_without_a_commit_survive_an_agent_that_cleans_up(den: Den, accepted: bool) -> None:
    den.write(".ralph/ideas.txt", "half an idea\n")
    actions = [work("US-001") if accepted else BAD, shell("rm .ralph/ideas.txt"), "claim"]
    done = den.run({"US-001": [actions, good("US-001")]})
    assert done.code == 0, done.out + done.err
    if not accepted:
        assert (den.root / ".ralph/ideas.txt").read_text() == "half an idea\n"
        return
    told = re.search(r"files that were not committed; (refs/ralph/keep/\w+) has them: .ralph/ideas.txt", done.out)
    assert told, done.out
    assert den.git("show", f"{told[1]}:.ralph/ideas.txt") == "half an idea"


def test_a_kill_after_an_agent_removed_the_objects_of_the_checkpoint(den: Den) -> None:
    """Nothing but the hard links has them then."""
    stashes = messages(den)
    destroy = (
        f"git for-each-ref --format='delete %(refname)' refs/ralph | git update-ref --stdin; git stash clear; {CLEAN}"
    )
    den.write(".ralph/ideas.txt", "half an idea\n")
    process = den.start({"US-001": [[BAD, shell(destroy), shell("touch src/started; sleep 60")]]})
    wait_for((den.root / "src/started").exists, 60)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    done = den.run()
    assert done.code == 0, done.out + done.err
    assert "cannot be rolled back" not in done.out + done.err
    assert messages(den) == stashes
    assert (den.root / ".ralph/ideas.txt").read_text() == "half an idea\n"


def test_an_agent_that_destroys_everything_again_and_again_costs_only_attempts(den: Den) -> None:
    destroy = f"git for-each-ref --format='delete %(refname)' | git update-ref --stdin; {CLEAN}; rm -rf .git/logs"
    attempts = [[BAD, shell(destroy), "claim"], [work("US-001"), shell(destroy), "claim"], good("US-001")]
    done = den.run({"US-001": attempts})
    assert done.code == 0, done.out + done.err
    den.check()


BUG = """
import os, ralph.engine.evidence as evidence
real = evidence.note_checks
def note_checks(*arguments):
    if not os.path.exists(os.environ["BUG_SEEN"]):
        open(os.environ["BUG_SEEN"], "w").close()
        raise TypeError("nobody foresaw this")
    return real(*arguments)
evidence.note_checks = note_checks
"""


def test_a_bug_of_ours_costs_an_iteration_and_is_kept(den: Den, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(BUG)
    env = {"PYTHONPATH": str(tmp_path), "BUG_SEEN": str(tmp_path / "seen")}
    done = den.run({"US-001": [good("US-001"), good("US-001")]}, env=env)
    assert done.code == 0, done.out + done.err
    assert [end.completes for end in den.ended()][:2] == [False, True]
    log = den.state / "runs" / den.runs[-1] / "internal-error.log"
    assert f"an error inside Ralph (TypeError: nobody foresaw this); please report it with {log}" in done.out
    assert "Traceback" in log.read_text()
    den.check()


@pytest.mark.parametrize("path", [".gitignore", "src/.gitignore", ".gitattributes", ".git/info/exclude", ".mailmap"])
def test_a_pipe_that_git_would_wait_for_costs_an_iteration(den: Den, path: str) -> None:
    actions = [BAD, shell(f"rm -f {path}; mkfifo {path}"), "claim"]
    done = den.run({"US-001": [actions, good("US-001")]})
    assert done.code == 0, done.out + done.err
    assert [end.completes for end in den.ended()][:2] == [False, True]
    assert not (den.root / path).is_fifo()
    den.check()
