"""Every bad thing an agent can do. Afterwards nothing is done without its proof and its commit, what people had is
there or in a rescue ref, nothing outside of the workspace has changed, nobody is left alive, and the next run works.

An attempt costs a fraction of a second, a run ten times as much: so most of these are attempts at one story in one run,
each of which is looked at in the journal. `Den.check` then looks at everything else.
"""

from __future__ import annotations

import shutil
import signal
import sys
from pathlib import Path
from shlex import quote

import pytest

from ralph.core.verdict import Kind
from support.cli import ralph_here
from support.hostile import BAD, CONFIG, PLAN, Action, Actions, Den, edit_plan, good, shell, work
from support.processes import wait_for
from support.repositories import listing

Table = dict[str, tuple[Actions, Kind]]

DONE = "passes=True, notes='all done'"
ALL_DONE = edit_plan(f"[story.update({DONE}) for story in s]")


def rejected(table: dict[str, Actions]) -> Table:
    return {name: (actions, Kind.REJECTED) for name, actions in table.items()}


def play(den: Den, table: Table, *, goes_on: bool = True) -> None:
    """All of these, one after the other; then another run, with honest work."""
    done = den.run({"US-001": [actions for actions, _ in table.values()]}, "--max-iterations", str(len(table)))
    assert (done.code, den.reason()) == (1, "iteration-cap"), done.out + done.err
    den.check_each(table)
    den.check()
    if goes_on:
        assert den.run().code == 0
        den.check()


@pytest.fixture
def den(tmp_path: Path) -> Den:
    return Den(tmp_path)


# Claims and the plan


def test_claims_without_work_are_not_believed(den: Den) -> None:
    play(
        den,
        rejected(
            {
                "a claim": ["claim"],
                "every claim there is": ["lie"],
                "the promise": ["promise"],
                "the file COMPLETE": ["complete"],
                "claimed as already satisfied": [{"claim": "already-satisfied"}],
                "marked by command": [{"mark": {"note": "done"}}],
                "marked by hand": [edit_plan(f"s[0].update({DONE})")],
                "another story marked": [edit_plan(f"s[1].update({DONE})"), "claim"],
                "all of them marked": [ALL_DONE, "lie", "complete"],
                "marked, and bad work": [ALL_DONE, BAD, "claim"],
            }
        ),
        goes_on=False,
    )


def test_an_agent_cannot_change_what_it_is_measured_by(den: Den) -> None:
    table: dict[str, Actions] = {
        "criteria": [edit_plan("s[0]['acceptanceCriteria'] = ['anything']"), "claim"],
        "its own check": [edit_plan("s[0]['verify'] = ['true']"), BAD, "claim"],
        "everybody's checks": [edit_plan("d['verifyCommands'] = ['true']"), BAD, "claim"],
        "no checks at all": [edit_plan("d['verifyCommands'] = []; s[0]['verify'] = []"), BAD, "claim"],
        "a story removed": [edit_plan("del s[1]"), "claim"],
        "all of them removed": [edit_plan("s.clear()"), "claim"],
        "its own renamed": [edit_plan("s[0]['id'] = 'US-777'"), "claim"],
        "a done one added": [edit_plan(f"s.append(dict(s[0], id='US-009', {DONE}))"), "claim"],
        "one twice": [edit_plan("s.append(s[0])"), "claim"],
        "dependencies": [edit_plan("s[1]['dependsOn'] = ['US-001']; s[0]['dependsOn'] = ['US-002']"), "claim"],
        "settings": [shell("printf 'agent: {name: command, command: [evil]}\\n' > .ralph/config.yaml"), BAD, "claim"],
        "no settings": [shell("rm .ralph/config.yaml"), BAD, "claim"],
        "the script of the check": [shell("echo exit 0 > check.sh"), BAD, "claim"],
    }
    play(den, rejected(table))


def test_what_is_put_back_in_a_plan_is_said(den: Den) -> None:
    stories = edit_plan("s[0]['title'] = 'easy'; s[0]['verify'] = ['true']; del s[1]; d['verifyCommands'] = ['true']")
    den.run({"US-001": [[stories, shell("echo x: 1 >> .ralph/config.yaml"), *good("US-001")]]}, "--once")
    told = "\n".join(den.ended()[0].notices)
    for what in ("title", "check commands"):
        assert f"{what} of story US-001 changed; restored" in told
    assert "story US-002 was removed" in told
    assert "the plan's check commands" in told
    assert "restored .ralph/config.yaml: agents do not change the rules; the changed version is in " in told


def test_the_next_run_has_no_commands_that_an_agent_has_written(den: Den) -> None:
    before = (den.root / ".ralph/config.yaml").read_bytes()
    script = shell("printf 'agent: {name: command, command: [evil]}\\n' > .ralph/config.yaml")
    assert den.run({"US-001": [[script, *good("US-001")]]}).code == 0
    assert (den.root / ".ralph/config.yaml").read_bytes() == before
    assert den.run(env={"RALPH_TRUST": "0"}).code == 0


def test_good_work_with_a_forged_plan_is_accepted_without_the_forgery(den: Den) -> None:
    forged = [work("US-001"), ALL_DONE, "commit", "claim"]
    assert den.run({"US-001": [forged]}, "--once").code == 0
    assert den.status() == {"US-001": "done", "US-002": "todo"}
    assert den.git("show", f"HEAD:{PLAN}").count('"passes": true') == 1
    den.check()
    assert den.run().code == 0
    den.check()


DAMAGE = ("truncate", "empty", "invalid", "binary", "delete", "fifo", "folder", "unreadable")


def _tricks(outside: Path) -> dict[str, Action]:
    """Ways to put something else where the plan is."""
    return {how: {"corrupt": how} for how in DAMAGE} | {
        "a link to the outside": {"corrupt": {"how": "symlink", "to": str(outside / "data/file.txt")}},
        "a link to another file": {"corrupt": {"how": "symlink", "to": "../../src/base.txt"}},
        "a device": {"corrupt": {"how": "symlink", "to": "/dev/zero"}},
        "a full folder": shell(f"rm {PLAN}; mkdir {PLAN}; echo hi > {PLAN}/file"),
        "no folder at all": shell("rm -rf .ralph"),
        "a link for its folder": shell(f"rm -rf .ralph/feat; ln -s {outside}/data .ralph/feat"),
        "a link for .ralph": shell(f"rm -rf .ralph; ln -s {outside}/data .ralph"),
        "a file for .ralph": shell("rm -rf .ralph; touch .ralph"),
        "a pipe for .ralph": shell("rm -rf .ralph; mkfifo .ralph"),
    }


@pytest.mark.slow
def test_a_damaged_plan_is_put_back(den: Den) -> None:
    play(den, rejected({name: [trick, BAD] for name, trick in _tricks(den.outside).items()}))


@pytest.mark.slow
def test_good_work_is_kept_although_the_plan_was_damaged(tmp_path: Path) -> None:
    """Nothing is written through a link, and no damage is committed. What replaces the folder costs an attempt."""
    tricks = _tricks(tmp_path / "outside")
    tricks |= {
        "a link for the progress": shell(
            f"rm -f .ralph/feat/progress.txt; ln -s {tmp_path}/outside/data/file.txt .ralph/feat/progress.txt"
        ),
        "a pipe for the progress": shell("rm -f .ralph/feat/progress.txt; mkfifo .ralph/feat/progress.txt"),
    }
    keeps_settings = {name: trick for name, trick in tricks.items() if name != "no folder at all"}
    den = Den(tmp_path, stories=len(keeps_settings))
    plays = {
        story: [[work(story), trick, "promise"], good(story)]
        for story, trick in zip(den.stories, keeps_settings.values(), strict=True)
    }
    done = den.run(plays)
    assert done.code == 0, done.out + done.err
    refused = {e.headline for e in den.ended() if e.kind is Kind.REJECTED}
    assert refused == {".ralph is now a link", ".ralph/feat is now a link", ".ralph is no longer a folder"}
    for aside in (den.root / ".ralph/feat").glob("prd.json.moved-*"):
        assert (aside / "file").read_text() == "hi\n"  # what was in the way is not destroyed
        shutil.rmtree(aside)
    (den.root / ".ralph/feat/progress.txt").unlink()  # still the agent's pipe
    den.check()


# The repository


@pytest.mark.slow
def test_what_an_agent_does_to_git_is_undone(den: Den) -> None:
    bad_commit = shell("git add -A; git commit -qm bad")
    table: dict[str, Actions] = {
        "bad commits": [BAD, bad_commit, "claim"],
        "good and bad commits": [work("US-001"), "commit", BAD, "commit", "claim"],
        "another branch": [work("US-001"), {"switch": "evil"}, "claim"],
        "commits on another branch": [work("US-001"), {"switch": "evil"}, "commit", "claim"],
        "the user's other branch": [
            work("US-001"),
            {"switch": {"branch": "other", "create": False}},
            "commit",
            "claim",
        ],
        "a detached HEAD": [shell("git checkout -q --detach"), work("US-001"), "commit", "claim"],
        "reset --hard": [work("US-001"), "reset", "claim"],
        "reset --mixed": [work("US-001"), {"reset": {"hard": False}}, "claim"],
        "amend": [work("US-001"), "amend", "claim"],
        "stash": [work("US-001"), "stash", "claim"],
        "the stash dropped": [shell("git stash drop"), "claim"],
        "tags and branches removed": [shell("git tag -d v1; git branch -D other"), "claim"],
        "a tag moved": [shell("git tag -f v1 HEAD~1"), "claim"],
        "the branch renamed": [shell("git branch -m main trunk"), "claim"],
        "a merge left open": [
            shell("git checkout -q -b side HEAD~1; mkdir src; echo other > src/US-001.txt; git add -A"),
            shell("git commit -qm side; git checkout -q main; echo mine > src/US-001.txt; git add -A"),
            shell("git commit -qm mine; git merge side; echo good > src/US-001.txt"),
            "claim",
        ],
        "a rebase left open": [
            shell(
                "git checkout -q -b side HEAD~1; echo x > check.sh; git add -A; git commit -qm side; git rebase main"
            ),
            "claim",
        ],
        "a bisect left open": [shell("git bisect start; git bisect bad; git bisect good HEAD~1"), "claim"],
        "locks": [shell("touch .git/index.lock .git/HEAD.lock .git/refs/heads/main.lock"), BAD, "claim"],
        "no index": [shell("rm .git/index"), BAD, "claim"],
        "a broken index": [shell("echo garbage > .git/index"), BAD, "claim"],
        "a broken HEAD": [shell("echo garbage > .git/HEAD"), BAD, "claim"],
        "no HEAD": [shell("rm .git/HEAD"), BAD, "claim"],
        "no branch": [shell("git update-ref -d refs/heads/main"), BAD, "claim"],
        "no refs": [shell("rm -r .git/refs/heads/* .git/refs/tags/*; rm -f .git/packed-refs"), BAD, "claim"],
        "replaced history": [shell("git replace HEAD HEAD~1"), BAD, "claim"],
        "hidden changes": [
            shell("git update-index --skip-worktree src/base.txt; echo bad > src/base.txt"),
            "claim",
        ],
        "assumed unchanged": [
            shell("git update-index --assume-unchanged src/base.txt; echo bad > src/base.txt"),
            "claim",
        ],
        "a sparse tree": [shell("git sparse-checkout set docs"), "claim"],
    }
    play(den, rejected(table))


def test_a_checkpoint_survives_the_cleaning_of_the_repository(den: Den) -> None:
    prune = shell("git reflog expire --expire=now --all; git gc -q --prune=now")
    assert den.run({"US-001": [[BAD, prune, "claim"], good("US-001")]}).code == 0
    assert den.ended()[0].kind is Kind.REJECTED
    den.check()


def test_work_is_not_accepted_at_the_price_of_branches_tags_and_stashes(den: Den) -> None:
    thief = shell("git stash drop -q; git tag -d v1; git branch -D other; git update-ref -d refs/ralph/rescue/x")
    assert den.run({"US-001": [[BAD, "claim"], [work("US-001"), thief, "claim"]]}).code == 0
    told = "\n".join(den.ended()[1].notices)
    assert all(f"{name} was restored" in told for name in ("refs/heads/other", "refs/tags/v1", "refs/stash"))
    den.check()


@pytest.mark.slow
def test_nothing_that_an_agent_puts_into_git_is_run(den: Den) -> None:
    trap = f"touch {den.outside}/trapped"
    hook: Action = {"git_hook": {"name": "pre-commit", "script": f"#!/bin/sh\n{trap}\n"}}
    every = ["post-checkout", "post-commit", "reference-transaction", "post-index-change", "commit-msg", "pre-push"]
    table: dict[str, Actions] = {
        "a hook": [hook, "claim"],
        "all hooks": [shell("; ".join(_hook(name, trap) for name in every)), BAD, "claim"],
        "hooks elsewhere": [shell(f"mkdir h; {_hook('pre-commit', trap, 'h')}; git config core.hooksPath h"), "claim"],
        "an include": [shell("printf '[core]\\nfsmonitor = false\\n' > i; git config include.path ../i"), "claim"],
        "attributes": [shell(f"git config filter.x.clean '{trap}'; echo '* filter=x' > .gitattributes"), BAD, "claim"],
        "hidden attributes": [
            shell(f"git config filter.x.smudge '{trap}'; echo '* filter=x' > .git/info/attributes"),
            BAD,
            "claim",
        ],
        "another work tree": [shell(f"git config core.worktree {den.outside}/data"), BAD, "claim"],
        "a bare repository": [shell("git config core.bare true"), BAD, "claim"],
        "another repository": [shell(f"echo {den.outside}/repo/.git > .git/commondir"), BAD, "claim"],
        "other objects": [
            shell(f"mkdir -p .git/objects/info; echo {den.outside}/repo/.git/objects > .git/objects/info/alternates"),
            BAD,
            "claim",
        ],
    }
    for key in ("core.fsmonitor", "core.sshCommand", "core.pager", "core.editor", "diff.external", "gpg.program"):
        table[key] = [{"git_config": {"key": key, "value": trap}}, BAD, "claim"]
    config = (den.root / ".git/config").read_bytes()
    play(den, {name: (acts, Kind.REJECTED) for name, acts in table.items()})
    assert (den.root / ".git/config").read_bytes() == config
    assert not [path for path in (den.root / ".git/hooks").iterdir() if path.suffix != ".sample"]


def _hook(name: str, trap: str, folder: str = ".git/hooks") -> str:
    return f"printf '#!/bin/sh\\n{trap}\\n' > {folder}/{name}; chmod +x {folder}/{name}"


def test_a_hook_that_comes_with_good_work_is_not_run(den: Den) -> None:
    hook: Action = {"git_hook": {"name": "pre-commit", "script": f"#!/bin/sh\ntouch {den.outside}/trapped\n"}}
    assert den.run({"US-001": [[work("US-001"), hook, "claim"]]}).code == 0
    den.check()


GONE = {
    "deleted": shell("rm -rf .git"),
    "another repository": "replace_git",
    "a file that points elsewhere": shell("rm -rf .git; echo 'gitdir: ../outside/repo/.git' > .git"),
    "a link elsewhere": shell("rm -rf .git; ln -s ../outside/repo/.git .git"),
    "without objects": shell("rm -rf .git/objects"),
    "moved away": shell("mv .git ../git-elsewhere"),
}


@pytest.mark.parametrize("how", GONE)
def test_a_run_stops_when_its_repository_is_gone(den: Den, how: str) -> None:
    """The plan is put back, since it says what is done; everything else stays as it is for a person to look at."""
    done = den.run({"US-001": [[*good("US-001"), BAD, ALL_DONE, GONE[how]]]})
    assert (done.code, den.reason()) == (78, "repository")
    assert set(den.status().values()) == {"todo"}
    assert (den.root / "src/x.txt").exists()
    den.check_surroundings()


def test_a_repository_brought_back_from_a_copy_is_not_taken_for_the_old_one(den: Den) -> None:
    kept = den.folder / "kept.git"
    shutil.copytree(den.root / ".git", kept, symlinks=True)
    den.run({"US-001": [[*good("US-001"), BAD, ALL_DONE, GONE["another repository"]]]})
    shutil.rmtree(den.root / ".git")
    shutil.copytree(kept, den.root / ".git", symlinks=True)
    again = den.run()
    assert again.code == 78
    assert "cannot be rolled back" in again.err
    assert all(name in again.err for name in ("src/US-001.txt", "src/x.txt", "--stash", "--worktree"))
    assert set(den.status().values()) == {"todo"}
    assert den.run(None, "--stash").code == 0
    den.git("stash", "drop", "-q")
    den.check()


def test_a_repository_that_comes_back_is_rolled_back(den: Den) -> None:
    den.run({"US-001": [[*good("US-001"), BAD, ALL_DONE, GONE["moved away"]]]})
    (den.folder / "git-elsewhere").rename(den.root / ".git")
    assert den.run().code == 0
    den.check()


@pytest.mark.parametrize("how", ["a link", "another folder"])
def test_a_run_stops_when_its_workspace_is_somewhere_else(den: Den, how: str) -> None:
    swap = shell("cp -a . ../copy; mv ../project ../project.moved; mv ../copy ../project")
    trick: Action = "link_workspace" if how == "a link" else swap
    done = den.run({"US-001": [[*good("US-001"), BAD, ALL_DONE, trick]]})
    assert done.code == 78
    assert "workspace" in done.out
    den.check_surroundings()
    if how == "a link":
        den.root.unlink()
    else:
        shutil.rmtree(den.root)
    (den.folder / "project.moved").rename(den.root)
    assert den.run().code == 0
    den.check()


def test_a_check_that_removes_the_repository_proves_nothing(den: Den) -> None:
    """Tests are code of the agent's: what they do while they are run counts as well."""
    once = "[ -e ../once ] || { touch ../once; mv .git ../git-elsewhere; }\n"
    trap: Action = {"append": {"path": "check.sh", "text": once}}
    done = den.run({"US-001": [[work("US-001"), trap, "claim"]]})
    assert done.code == 78
    assert set(den.status().values()) == {"todo"}
    (den.folder / "git-elsewhere").rename(den.root / ".git")
    assert den.run().code == 0
    den.before["check.sh"] = ("file", (den.root / "check.sh").read_bytes())
    den.check()


def test_checks_that_change_the_work_each_time_prove_nothing(den: Den) -> None:
    trap: Action = {"append": {"path": "check.sh", "text": "echo late >> src/US-001.txt\n"}}
    den.run({"US-001": [[work("US-001"), trap, "claim"]]}, "--once")
    assert den.notes()[1:] == ["running the checks changed src/US-001.txt: the result is checked and judged again"]
    (only,) = den.ended()
    assert only.kind is Kind.REJECTED
    assert "running the checks changed src/US-001.txt again" in only.headline


def test_a_check_that_formats_the_work_is_accepted_with_the_formatted_file(den: Den) -> None:
    trap: Action = {"append": {"path": "check.sh", "text": "sed -i 's/ *$//' src/US-001.txt\n"}}
    loose: Action = {"write": {"path": "src/US-001.txt", "text": "good work on US-001   \n"}}
    den.run({"US-001": [[loose, trap, "claim"]]}, "--once")
    assert [ended.kind for ended in den.ended()] == [Kind.ACCEPTED]
    assert den.git("show", "HEAD:src/US-001.txt") == "good work on US-001"


# Files


@pytest.mark.slow
def test_whatever_an_agent_does_to_files_is_undone(den: Den) -> None:
    out = den.outside
    long = "/".join(["a" * 48] * 60)
    table: dict[str, Actions] = {
        "deleted": [shell("rm -rf src docs tool.sh old.txt check.sh .gitignore"), "claim"],
        "a folder becomes a link": [shell(f"rm -rf src; ln -s {out}/data src"), "claim"],
        "a file becomes a folder": [shell("rm src/base.txt; mkdir src/base.txt; echo x > src/base.txt/in"), "claim"],
        "a folder becomes a file": [shell("rm -r docs; echo x > docs"), BAD, "claim"],
        "rights": [shell("chmod -x tool.sh; chmod 000 src/deep docs; chmod 666 check.sh"), BAD, "claim"],
        "closed folders": [shell("mkdir closed; echo x > closed/f; chmod 000 closed/f closed"), BAD, "claim"],
        "a repository inside": [
            shell("git init -q inner; cd inner; echo i > f; git add f; git commit -qm i; echo j > g"),
            BAD,
            "claim",
        ],
        "a repository in a folder": [shell("git init -q src/deep; echo z > src/deep/z"), BAD, "claim"],
        "names": [
            shell("touch \"$(printf 'a\\nb')\" \"$(printf 'x\\377')\" ' lead' -dash 'q\"uote' '*'"),
            BAD,
            "claim",
        ],
        "hidden by ignore rules": [shell("echo '*' > .gitignore; echo bad > hidden.txt"), "claim"],
        "hidden tracked files": [shell("echo 'src/' > .gitignore; echo bad > src/base.txt"), "claim"],
        "nothing ignored": [shell("echo '!*' > .gitignore"), BAD, "claim"],
        "excluded": [shell("echo '*' >> .git/info/exclude; echo hidden > hidden.txt"), BAD, "claim"],
        "pipes and links": [shell("mkfifo src/pipe pipe; ln -s loop src/loop; ln -s /etc/passwd etc"), BAD, "claim"],
        "case": [shell("mv src/base.txt src/Base.txt"), BAD, "claim"],
        "folders": [shell("mkdir -p a/b/c empty/folder; touch a/b/c/d"), BAD, "claim"],
        "very deep": [shell(f"mkdir -p {long} && echo deep > {long}/f"), BAD, "claim"],
        "many": [shell("mkdir many; cd many; seq 500 | xargs touch"), BAD, "claim"],
        "the same size and time": [
            shell("cp -p check.sh keep; printf 'bose\\n' > src/base.txt; touch -r keep src/base.txt; rm keep"),
            BAD,
            "claim",
        ],
    }
    play(den, rejected(table))


def test_what_was_undone_can_be_read_in_its_rescue(den: Den) -> None:
    name = "src/ünïcode name.txt"
    trap = shell("rm -r docs; git init -q inner; echo i > inner/f")
    den.run({"US-001": [[BAD, {"write": {"path": name, "text": "saved\n"}}, trap, "claim"]]}, "--once")
    assert den.rescued(1, name) == b"saved\n"
    assert den.rescued(1, "src/x.txt") == b"bad\n"
    assert den.rescued(1, "inner/f") == b"i\n"
    assert den.rescued(1, "docs/read me.txt") is None
    assert den.rescued(1, "src/base.txt") == b"base\n"
    shown = ralph_here("rescue", "list", "--json", cwd=den.root)
    assert [rescue["name"] for rescue in shown.json] == [f"{den.runs[-1]}/1"]
    den.check()


def test_a_file_too_large_to_save_stays_and_is_named(den: Den) -> None:
    den.run({"US-001": [[shell("truncate -s 150M huge.bin"), BAD, "claim"], good("US-001")]})
    assert "huge.bin is over 100 MB" in "\n".join(den.ended()[0].notices)
    assert den.git("ls-files", "huge.bin") == ""
    (den.root / "huge.bin").unlink()
    den.check()


def test_what_an_agent_writes_elsewhere_is_left_alone(den: Den) -> None:
    """Nothing keeps it from doing so here; but what is outside is not Ralph's to clean up."""
    notes = den.home / "notes.txt"
    notes.write_text("mine\n")
    write = shell(f"echo hers > {den.home}/hers.txt; echo more >> {notes}; echo x > {den.outside}/data/new.txt")
    den.run({"US-001": [[write, BAD, "claim"], good("US-001")]})
    assert (den.home / "hers.txt").read_text() == "hers\n"
    assert notes.read_text() == "mine\nmore\n"
    (den.outside / "data/new.txt").unlink()
    den.check()


# The process


@pytest.mark.slow
def test_however_an_agent_ends_the_next_attempt_is_a_fresh_one(den: Den) -> None:
    crashes: dict[str, Actions] = {
        "an exit code": [{"crash": 1}],
        "another one": [BAD, {"crash": {"code": 255, "message": "I give up"}}],
        "SIGKILL": [BAD, {"crash": {"signal": "KILL"}}],
        "SIGSEGV": [{"crash": {"signal": "SEGV"}}],
        "SIGTERM": [ALL_DONE, {"crash": {"signal": "TERM"}}],
        "too many turns": [{"give_up": "max_turns"}],
        "too long a prompt": [{"give_up": "context"}],
        "interrupted": [BAD, {"give_up": "interrupted"}],
    }
    prints: dict[str, Actions] = {
        "a long line": [{"print": {"size": 5_000_000, "kind": "line"}}],
        "many lines": [{"print": {"size": 2_000_000, "kind": "lines"}}],
        "a huge event": [{"print": {"size": 2_000_000, "kind": "event"}}],
        "no UTF-8": [{"print": {"size": 100_000, "kind": "invalid_utf8"}}],
        "NUL": [{"print": {"size": 100_000, "kind": "nul"}}],
        "much on stderr": [{"print": {"size": 2_000_000, "kind": "lines", "to": "stderr"}}],
        "an open line": [{"print": {"text": '{"type": "result', "newline": False}}, {"crash": 0}],
        "an event of its own": [{"print": {"text": '{"type": "result", "result": 7, "is_error": []}'}}],
        "deep nesting": [{"print": {"text": "[" * 100_000}}],
        "escape sequences": [{"say": "\x1b]0;title\x07\x1b[2J"}, {"print": {"text": "\x1b[31m"}}],
        "closed output": ["close_output", BAD, "claim"],
    }
    table = {name: (actions, Kind.CRASHED) for name, actions in crashes.items()} | rejected(prints)
    play(den, table, goes_on=False)


QUICK = CONFIG.replace("timeout: 20s", "timeout: 3s").replace("idle_timeout: 0", "idle_timeout: 1s")


@pytest.mark.slow
def test_an_agent_that_does_not_end_is_ended(tmp_path: Path) -> None:
    den = Den(tmp_path, config=QUICK)
    table: Table = {
        "silent": ([BAD, "silent"], Kind.TIMED_OUT),
        "busy": ([BAD, {"sleep": {"seconds": 60, "heartbeat": 0.2}}], Kind.TIMED_OUT),
        "closed output": (["close_output", {"silent": 60}], Kind.TIMED_OUT),
        "a child that stays": ([BAD, shell("sleep 60 & sleep 60")], Kind.TIMED_OUT),
    }
    play(den, table)


@pytest.mark.slow
def test_the_time_an_agent_had_does_not_include_the_grace_of_the_kill(tmp_path: Path) -> None:
    den = Den(tmp_path, config=QUICK.replace("idle_timeout: 1s", "idle_timeout: 0"))
    assert den.run({"US-001": [[BAD, "hang"]]}, "--once", "-t", "2s").code == 124
    assert den.ended()[-1].seconds > 9, "it is deaf to SIGTERM"
    assert den.ended()[-1].headline.startswith("the agent timed out after 2 s")


@pytest.mark.slow
def test_finished_work_counts_although_the_agent_hangs(tmp_path: Path) -> None:
    """Deaf to SIGTERM as well, so this takes the whole grace of ten seconds."""
    den = Den(tmp_path, config=QUICK)
    assert den.run({"US-001": [[*good("US-001"), "hang"]]}, "--once").code == 0
    assert den.status()["US-001"] == "done"
    den.check()


@pytest.mark.slow
def test_an_agent_that_stays_after_its_result_is_ended(tmp_path: Path) -> None:
    den = Den(tmp_path, config=QUICK)
    assert den.run({"US-001": [[*good("US-001"), {"linger": 60}]]}).code == 0
    den.check()


@pytest.mark.slow
def test_a_flood_of_output_is_no_trouble(den: Den) -> None:
    flood: Action = {"print": {"size": 200_000_000, "kind": "line"}}
    play(den, {"200 MB on one line": ([flood], Kind.REJECTED)}, goes_on=False)
    kept = sum(path.stat().st_size for path in (den.state / "runs").rglob("raw/*"))
    assert kept < 100_000_000


def test_nothing_that_an_agent_leaves_behind_outlives_its_iteration(den: Den) -> None:
    mark = f"98765.{id(den)}"  # in the command line of those that have no environment
    late = f"sleep 0.7; echo late > src/late.txt; sleep {mark}"
    table = rejected(
        {
            "a daemon": [BAD, {"daemon": {"path": "src/late.txt", "after": 0.7}}, "claim"],
            "a daemon with the output": [{"daemon": {"path": "src/late.txt", "after": 0.7, "keep_output": True}}],
            "in the background": [BAD, shell(f"({late}) >/dev/null 2>&1 &"), "claim"],
            "in a session of its own": [BAD, shell(f"setsid sh -c '{late}' >/dev/null 2>&1 &"), "claim"],
            "without an environment": [BAD, shell(f"env -i setsid sh -c '{late}' >/dev/null 2>&1 &"), "claim"],
            "a grandchild": [BAD, shell(f"(setsid sh -c '(setsid sh -c \"{late}\" &) &' >/dev/null 2>&1 &)"), "claim"],
        }
    )
    play(den, table)
    assert not _running(mark)


def _running(mark: str) -> list[str]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if mark.encode() in command:
            found.append(command.decode())
    return found


@pytest.mark.slow
def test_a_daemon_deaf_to_signals_is_killed(den: Den) -> None:
    deaf: Action = {"daemon": {"path": "src/late.txt", "after": 5, "ignore_term": True}}
    play(den, {"a deaf daemon": ([BAD, deaf, "claim"], Kind.REJECTED)})


@pytest.mark.parametrize(("name", "code"), [("INT", 130), ("TERM", 143), ("HUP", 143)])
def test_an_agent_that_signals_the_loop_stops_it_cleanly(den: Den, name: str, code: int) -> None:
    # `sh`, the player, the loop
    kill = shell(f"kill -{name} $(awk '{{print $4}}' /proc/$PPID/stat); sleep 2")
    done = den.run({"US-001": [[work("US-001"), ALL_DONE, kill]]})
    assert done.code == code
    assert den.ended()[-1].kind is Kind.INTERRUPTED
    assert den.rescued(1, "src/US-001.txt") is not None
    den.check()


def test_an_agent_that_kills_the_loop_is_ended_by_the_next_run(den: Den) -> None:
    kill = shell("kill -KILL $(awk '{print $4}' /proc/$PPID/stat); sleep 60")
    process = den.start({"US-001": [[work("US-001"), ALL_DONE, kill]]})
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    done = den.run()
    assert done.code == 0
    assert "recovered run" in done.out
    den.check()


def test_an_agent_cannot_start_a_loop_of_its_own(den: Den) -> None:
    again = f"{quote(sys.executable)} -m ralph run --plain --trust; {quote(sys.executable)} -m ralph answer US-001 yes"
    play(den, {"a loop in the loop": ([shell(again), BAD, "claim"], Kind.REJECTED)})
    assert len(den.runs) == 2  # those of the test


# The model, requests and sentinels


@pytest.mark.parametrize("status", [401, 403, 404])
def test_an_agent_that_cannot_work_stops_the_run_at_once(den: Den, status: int) -> None:
    done = den.run({"US-001": [[BAD, {"api_error": status}]]})
    assert (done.code, den.reason()) == (78, "misconfigured")
    assert f"API Error: {status}" in done.out
    den.check()


@pytest.mark.slow
def test_a_model_out_of_reach_costs_no_attempt(den: Den) -> None:
    """And neither does its usage limit. Each of these waits two seconds."""
    overloaded: Action = {"api_error": {"status": 529, "retries": 1}}
    plays: dict[str, list[Actions]] = {
        "US-001": [[overloaded], good("US-001")],
        "US-002": [["empty"], [{"limit": 1}], good("US-002")],
    }
    assert den.run(plays).code == 0
    kinds = [Kind.TRANSPORT, Kind.ACCEPTED, Kind.TRANSPORT, Kind.LIMIT, Kind.ACCEPTED]
    assert [ended.kind for ended in den.ended()] == kinds
    assert all(ended.attempts == 0 for ended in den.ended())
    den.check()


def test_a_request_that_cannot_be_read_is_no_request(den: Den) -> None:
    file = '"$RALPH_REQUEST_FILE"'
    table: dict[str, Actions] = {
        "garbage": [shell(f"echo garbage > {file}"), BAD],
        "no text": [shell(f"printf '\\377\\376' > {file}"), BAD],
        "a list": [shell(f"echo '[]' > {file}"), BAD],
        "other types": [shell(f"""echo '{{"claim": {{"done": 1}}, "ask": 7}}' > {file}"""), BAD],
        "another claim": [shell(f"""echo '{{"claim": "finished"}}' > {file}"""), work("US-001"), BAD],
        "huge": [shell(f"head -c 3000000 /dev/zero > {file}"), BAD],
        "a pipe": [shell(f"mkfifo {file}"), BAD],
        "a folder": [shell(f"mkdir {file}; touch {file}/x"), BAD],
        "a link to a device": [shell(f"ln -s /dev/zero {file}"), BAD],
        "a link to the outside": [shell(f"ln -s {den.outside}/data/file.txt {file}"), BAD],
        "a pipe for WAITING": [shell("mkfifo .ralph/WAITING"), BAD],
        "a folder for WAITING": [shell("mkdir .ralph/WAITING"), BAD],
        "a pipe for COMPLETE": [shell("mkfifo .ralph/COMPLETE"), BAD],
    }
    play(den, rejected(table), goes_on=False)


@pytest.mark.parametrize("kept", [False, True])
def test_waiting_stops_the_run_and_is_never_committed(den: Den, kept: bool) -> None:
    first: list[Action] = [work("US-001"), "claim"] if kept else [BAD]
    done = den.run({"US-001": [[*first, {"waiting": "Which database?"}]]})
    assert (done.code, den.reason()) == (3, "waiting")
    assert "Which database?" in done.out
    assert (den.root / ".ralph/WAITING").read_text() == "Which database?\n"
    assert ".ralph/WAITING" not in den.git("log", "--all", "--name-only", "--format=", "--", ".ralph")
    den.check()
    assert den.run().code == 3
    story = "-" if kept else "US-001"
    assert ralph_here("answer", story, "The usual one", cwd=den.root).code == 0
    assert den.run().code == 0
    den.check()


# Ralph's own records


SABOTAGE = {
    "copies and plans": "find $RALPH_STATE_HOME \\( -name 'index*' -o -name 'plan.*' \\) -prune -exec rm -rf {} +",
    "everything": "rm -rf $RALPH_STATE_HOME",
}


@pytest.mark.parametrize("what", SABOTAGE)
def test_a_lost_state_folder_loses_no_work(den: Den, what: str) -> None:
    """Nothing can be undone without it; so the run stops, the plan is right, and the next run names what is there."""
    done = den.run({"US-001": [[BAD, ALL_DONE, shell(SABOTAGE[what]), "claim"]]})
    assert done.code == 78
    assert set(den.status().values()) == {"todo"}
    again = den.run()
    assert again.code == 78
    assert "src/x.txt" in again.err
    (den.root / "src/x.txt").unlink()
    assert den.run().code == 0
    assert set(den.status().values()) == {"done"}
    den.check_repository()


def test_damaged_records_are_kept_aside(den: Den) -> None:
    garbage = 'for f in $(find $RALPH_STATE_HOME -name "*.json*" -o -name run.lock); do echo garbage >> $f; done'
    assert den.run({"US-001": [[BAD, "claim"], [shell(garbage), BAD, "claim"], good("US-001")]}).code == 0
    again = den.run()
    assert again.code == 0
    assert "the journal is damaged" in again.out
    assert list((den.state / "runs").glob("*/events.jsonl.corrupt-*"))
    den.check_repository()
    den.check_files()


def test_a_removed_lock_file_does_not_let_two_runs_meet(den: Den) -> None:
    remove = shell("find $RALPH_STATE_HOME -name run.lock -delete; touch gone; sleep 2; rm gone")
    started = den.start({"US-001": [[remove, *good("US-001")]]})
    wait_for((den.root / "gone").exists, 20)
    second = den.run()
    assert second.code == 73
    assert "lock held since " in second.err
    assert den.finish(started).code == 0
    den.check()


def test_a_listing_sees_what_a_test_would_miss(den: Den) -> None:
    """The look at the files is only as good as this: it must tell rights, links and contents apart."""
    before = listing(den.root)
    (den.root / "tool.sh").chmod(0o644)
    (den.root / "old.txt").unlink()
    (den.root / "old.txt").symlink_to("tool.sh")
    now = listing(den.root)
    assert {name for name in before if now.get(name) != before[name]} == {"tool.sh", "old.txt"}
