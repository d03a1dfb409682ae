"""What an agent can do to refs, reflogs and objects, and what git itself can refuse.

None of it loses anything, and each of it is a verdict on one attempt, not the end of this run and of all later ones.
"""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from ralph.core.verdict import Kind
from support.hostile import BAD, CONFIG, Den, good, shell, work
from support.processes import wait_for

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
    assert done.code == 1, done.out + done.err
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
