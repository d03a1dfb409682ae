"""A run in every state a repository can be in: it works, or it says what is in the way and touches nothing."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ralph.core.verdict import Kind
from support import stunts
from support.cli import Completed
from support.hostile import BAD, CONFIG, PLAN, Action, Den, good, plan_text, shell, work
from support.processes import wait_for
from support.repositories import IDENTITY, as_nobody, listing

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user, which only root can")


@pytest.fixture
def den(tmp_path: Path) -> Den:
    return Den(tmp_path)


@contextmanager
def untouched(den: Den) -> Iterator[None]:
    """Nothing in the workspace changes meanwhile, nor in git."""
    before = _everything(den)
    yield
    now = _everything(den)
    assert now.keys() == before.keys(), now.keys() ^ before.keys()
    assert not [name for name in now if now[name] != before[name]]


def _everything(den: Den) -> dict[str, object]:
    found: dict[str, object] = {f"file {name}": content for name, content in listing(den.root).items()}
    return found | {
        "refs": den.git("for-each-ref"),
        "HEAD": (den.root / ".git/HEAD").read_text() if (den.root / ".git").is_dir() else "",
        "status": den.git("status", "--porcelain"),
    }


def refused(den: Den, *words: str, arguments: tuple[str, ...] = ()) -> Completed:
    with untouched(den):
        done = den.run(None, *arguments)
    assert done.code == 78, done.out
    assert not den.runs
    assert "hint:" in done.err
    for word in words:
        assert word in done.err
    return done


# Uncommitted work


def _make_dirty(den: Den) -> dict[str, tuple[str, bytes]]:
    den.write("src/base.txt", "changed\n")
    den.write("staged.txt", "staged\n")
    den.git("add", "staged.txt")
    den.write("staged.txt", "staged, then changed\n")
    den.write("new folder/new.txt", "new\n")
    (den.root / "old.txt").unlink()
    (den.root / "link").symlink_to("tool.sh")
    return listing(den.root)


def test_uncommitted_work_is_listed_with_three_ways_out(den: Den) -> None:
    _make_dirty(den)
    done = refused(den, "commit them", "--stash", "--worktree", "src/base.txt", "staged.txt", "new folder/new.txt")
    assert "staged     staged.txt" in done.err
    assert "untracked  link" in done.err


def test_edits_of_the_plan_itself_are_no_reason_to_refuse(den: Den) -> None:
    den.write(PLAN, (den.root / PLAN).read_text().replace("As a user", "As an admin"))
    den.write(".ralph/feat/notes.md", "my notes\n")
    assert den.run().code == 0
    assert (den.root / ".ralph/feat/notes.md").read_text() == "my notes\n"


def test_stashed_work_comes_back_as_it_was(den: Den) -> None:
    dirty = _make_dirty(den)
    status = den.git("status", "--porcelain")
    done = den.run(None, "--stash")
    assert done.code == 0, done.err
    assert done.err.count("git stash pop") == 2, "before the run and after it"
    assert (den.root / "src/base.txt").read_text() == "base\n"
    den.git("stash", "pop", "--index", "-q")
    now = listing(den.root)
    assert {name: now.get(name) for name in dirty if name not in (PLAN,)} == {
        name: content for name, content in dirty.items() if name not in (PLAN,)
    }
    assert [line for line in den.git("status", "--porcelain").splitlines() if ".ralph" not in line] == [
        line for line in status.splitlines() if ".ralph" not in line
    ]


def test_a_worktree_of_its_own_leaves_uncommitted_work_alone(den: Den) -> None:
    _make_dirty(den)
    with _same_files(den):
        done = den.run(None, "--worktree")
    assert done.code == 0, done.err
    branch = _own_branch(den)
    assert branch in done.err
    subjects = den.git("log", "--format=%s", f"main..{branch}").splitlines()
    assert subjects[-2:] == ["feat(US-002): Write US-002", "feat(US-001): Write US-001"]
    assert den.git("show", f"{branch}:src/base.txt") == "base"
    assert "staged.txt" not in den.git("ls-tree", "-r", "--name-only", branch)


def _own_branch(den: Den) -> str:
    """The one branch that a run with --worktree has made."""
    return den.git("branch", "--list", "ralph/feat-*", "--format=%(refname:short)")


@contextmanager
def _same_files(den: Den) -> Iterator[None]:
    before, status = listing(den.root), den.git("status", "--porcelain")
    yield
    assert listing(den.root) == before
    assert den.git("status", "--porcelain") == status


def test_rejected_work_in_a_worktree_does_not_reach_the_dirty_tree(den: Den) -> None:
    _make_dirty(den)
    with _same_files(den):
        den.run(
            {"US-001": [[BAD, "stash", "claim"], [shell("rm -rf src; git stash drop -q"), "claim"]]},
            "--worktree",
            "-n",
            "2",
        )
    assert den.git("stash", "list", "--format=%H") == den.refs["stashes"]


# Half-done operations and other states


def _conflict(den: Den) -> None:
    den.git("switch", "-qc", "side", "HEAD~1")
    den.write("old.txt", "side\n")
    den.git("commit", "-qam", "side")
    den.git("switch", "-q", "main")
    den.write("old.txt", "main\n")
    den.git("commit", "-qam", "main")


OPERATIONS = {
    "merge": ("merge", "side"),
    "rebase": ("rebase", "side"),
    "cherry-pick": ("cherry-pick", "side"),
    "revert": ("revert", "--no-edit", "HEAD~1"),
    "bisect": ("bisect", "start", "HEAD", "HEAD~1"),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_in_progress_is_finished_first(den: Den, name: str) -> None:
    _conflict(den)
    if name == "revert":
        den.write("src/base.txt", "one\n")
        den.git("commit", "-qam", "one")
        den.write("src/base.txt", "two\n")
        den.git("commit", "-qam", "two")
    subprocess.run(["git", *IDENTITY, *OPERATIONS[name]], cwd=den.root, capture_output=True, check=False)
    for arguments in ((), ("--stash",)):
        refused(den, f"a {name} is in progress", arguments=arguments)


def test_a_detached_head_belongs_to_no_branch(den: Den) -> None:
    den.git("checkout", "-q", "--detach")
    refused(den, "HEAD is detached", "git switch -c")
    den.write("new.txt", "new\n")
    refused(den, "HEAD is detached", arguments=("--stash",))
    assert den.run(None, "--worktree").code == 0


def test_a_branch_without_a_commit_gets_its_first_one(tmp_path: Path) -> None:
    root = tmp_path / "fresh"
    (root / ".ralph/feat").mkdir(parents=True)
    (root / PLAN).write_text(plan_text(["US-001"]).replace("sh check.sh", "true"))
    (root / ".ralph/config.yaml").write_text(CONFIG)
    subprocess.run(["git", "init", "-q", "-b", "main", root], check=True)
    done = _run(root, tmp_path, {"US-001": [[BAD], good("US-001")]})
    assert done.code == 0, done.err
    assert _git(root, "log", "--format=%s").splitlines()[-1] == "feat(US-001): Write US-001"
    assert _git(root, "status", "--porcelain", "src") == ""
    assert not (root / "src/x.txt").exists()


def test_a_branch_without_a_commit_and_files_of_the_user_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "fresh"
    (root / ".ralph/feat").mkdir(parents=True)
    (root / PLAN).write_text(plan_text(["US-001"]))
    (root / ".ralph/config.yaml").write_text(CONFIG)
    (root / "mine.txt").write_text("mine\n")
    subprocess.run(["git", "init", "-q", "-b", "main", root], check=True)
    for arguments, word in (((), "mine.txt"), (("--stash",), "commit"), (("--worktree",), "commit")):
        done = _run(root, tmp_path, {}, *arguments)
        assert done.code == 78
        assert word in done.err, done.err
        assert "hint:" in done.err
        assert (root / "mine.txt").read_text() == "mine\n"


def test_no_repository_at_all(tmp_path: Path) -> None:
    root = tmp_path / "plain"
    (root / ".ralph/feat").mkdir(parents=True)
    (root / PLAN).write_text(plan_text(["US-001"]))
    (root / ".ralph/config.yaml").write_text(CONFIG)
    done = _run(root, tmp_path, {})
    assert done.code == 78
    assert f"git -C '{root}' init" in done.err


def test_a_bare_repository_has_no_files_to_work_on(tmp_path: Path) -> None:
    root = tmp_path / "bare.git"
    subprocess.run(["git", "init", "-q", "--bare", root], check=True)
    (root / ".ralph/feat").mkdir(parents=True)
    (root / PLAN).write_text(plan_text(["US-001"]))
    (root / ".ralph/config.yaml").write_text(CONFIG)
    done = _run(root, tmp_path, {})
    assert done.code == 78
    assert "bare" in done.err or "not in a git repository" in done.err


def _run(root: Path, folder: Path, stories: dict[str, object], *arguments: str) -> Completed:
    """`ralph run` in a folder that is no `Den`."""
    script = folder / "script.yaml"
    script.write_text(json.dumps({"acts": stunts.__file__, "stories": stories or {"*": [["claim"]]}}))
    done = subprocess.run(
        [sys.executable, "-m", "ralph", "run", "--plain", "--trust", "--agent-script", script, *arguments],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert done.returncode != 70, done.stderr
    return Completed(done.returncode, done.stdout, done.stderr)


def _git(root: Path, *args: str) -> str:
    done = subprocess.run(["git", *IDENTITY, *args], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.rstrip("\n")


@AS_ROOT
def test_a_repository_of_somebody_else_is_not_trusted(den: Den) -> None:
    for where, folders, files in os.walk(den.root):
        for name in (".", *folders, *files):
            os.chown(Path(where) / name, 65534, 65534)
    done = den.run()
    assert done.code == 78
    assert "another user owns it" in done.err
    assert "safe.directory" in done.err


@AS_ROOT
def test_a_git_folder_that_cannot_be_written_is_said() -> None:
    with as_nobody() as folder:
        if not os.access(sys.executable, os.X_OK):
            pytest.skip("only root can use this Python")
        den = Den(folder)
        (den.root / ".git").chmod(0o555)
        done = den.run(env={"RALPH_STATE_HOME": str(folder / "state")})
        (den.root / ".git").chmod(0o755)
    assert done.code == 78
    assert "Permission denied" in done.err


# Repositories around, inside and beside each other


def test_submodules_stay_what_they_are(den: Den) -> None:
    den.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(den.outside / "repo"), "sub")
    den.git("commit", "-qam", "a submodule")
    head = den.git("rev-parse", "HEAD:sub")
    trick = shell("cd sub && git commit -q --allow-empty -m moved && echo x > file")
    assert den.run({"US-001": [[trick, BAD, "claim"], good("US-001")]}).code == 0
    assert den.git("rev-parse", "HEAD:sub") == head
    assert den.git("rev-parse", "HEAD", cwd=den.root / "sub") == head
    assert not (den.root / "sub/file").exists()
    assert den.status() == {"US-001": "done", "US-002": "done"}
    den.check_surroundings()


def test_edits_inside_a_submodule_that_no_commit_has_are_rejected(den: Den) -> None:
    den.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(den.outside / "repo"), "sub")
    den.git("commit", "-qam", "a submodule")
    edit = shell("echo x > sub/file")
    commit = shell("cd sub && git add file && git -c user.name=A -c user.email=a@b commit -qm file")
    attempts = [[work("US-001"), edit, "claim"], [work("US-001"), edit, commit, "claim"]]
    assert den.run({"US-001": attempts}).code == 0
    first, second = den.ended()[:2]
    assert "changes inside the submodule sub are not committed" in first.headline
    assert second.completes
    assert any("none of its remotes has" in notice for notice in second.notices)
    assert den.git("rev-parse", "HEAD:sub") == den.git("rev-parse", "HEAD", cwd=den.root / "sub")


def test_a_repository_inside_of_the_workspace_is_not_looked_into(den: Den) -> None:
    inner = den.root / "vendor/inner"
    inner.mkdir(parents=True)
    den.git("init", "-q", cwd=inner)
    (inner / "file.txt").write_text("inner\n")
    assert den.run({"US-001": [[BAD, "claim"], good("US-001")]}).code == 0
    assert (inner / "file.txt").read_text() == "inner\n"
    assert den.git("ls-files", "vendor") == ""


def test_a_workspace_in_a_folder_of_a_larger_repository(tmp_path: Path) -> None:
    """The others' files are in the same tree: they are neither lost nor swept into a commit."""
    top = tmp_path / "mono"
    root = top / "services/shop"
    (root / ".ralph/feat").mkdir(parents=True)
    (root / "src").mkdir()
    (root / "src/base.txt").write_text("base\n")
    (root / "check.sh").write_text("! grep -rqs bad src\n")
    (root / PLAN).write_text(plan_text(["US-001"]))
    (root / ".ralph/config.yaml").write_text(CONFIG)
    (top / "other").mkdir()
    (top / "other/code.txt").write_text("theirs\n")
    (top / ".gitignore").write_text("*.log\n")
    subprocess.run(["git", "init", "-q", "-b", "main", top], check=True)
    _git(top, "add", "-A")
    _git(top, "commit", "-qm", "first")
    (top / "other/own.log").write_text("a log\n")

    (top / "other/new.txt").write_text("not yet committed\n")
    done = _run(root, tmp_path, {})
    assert (done.code, "other/new.txt" in done.err) == (78, True)
    (top / "other/new.txt").unlink()

    hostile = [shell("rm -r ../../other; echo x > ../../stray"), "claim"]
    done = _run(root, tmp_path, {"US-001": [hostile, good("US-001")]})
    assert done.code == 0, done.out + done.err
    assert (top / "other/code.txt").read_text() == "theirs\n"
    assert not (top / "stray").exists()
    assert _git(top, "status", "--porcelain") == ""
    changed = _git(top, "show", "--name-only", "--format=", "HEAD~1").splitlines()
    assert sorted(changed) == [f"services/shop/{PLAN}", "services/shop/src/US-001.txt"]


def test_a_linked_worktree_can_be_the_workspace(den: Den) -> None:
    elsewhere = den.folder / "linked"
    den.git("worktree", "add", "-q", "-b", "feature", str(elsewhere), "main")
    main = listing(den.root)
    done = _run(elsewhere, den.folder, {"US-001": [[BAD, "claim"], good("US-001")], "US-002": [good("US-002")]})
    assert done.code == 0, done.out + done.err
    assert listing(den.root) == main
    assert den.git("rev-parse", "main") == den.git("rev-parse", "v1")
    assert "feat(US-002): Write US-002" in den.git("log", "--format=%s", "feature")
    assert _git(elsewhere, "status", "--porcelain") == ""


def test_two_plans_of_one_repository_do_not_run_at_once(den: Den) -> None:
    other = den.root / ".ralph/other/prd.json"
    other.parent.mkdir()
    other.write_text(plan_text(den.stories))
    started = den.start({"US-001": [[shell("touch here; sleep 2; rm here"), *good("US-001")]]}, "-f", "feat")
    wait_for((den.root / "here").exists, 20)
    second = den.run(None, "-f", "other")
    assert second.code == 73
    assert "lock held since " in second.err
    assert den.finish(started).code == 0


# Commits


def test_without_an_identity_the_commits_are_by_ralph_and_that_is_said_once(den: Den) -> None:
    den.git("config", "--unset", "user.name")
    den.git("config", "--unset", "user.email")
    done = den.run()
    assert done.code == 0
    assert set(den.git("log", "--format=%an <%ae>", "v1..HEAD").splitlines()) == {"Ralph Loop <ralph@localhost>"}
    assert (done.out + done.err).count("git has no user.name") == 1


def _hook(den: Den, name: str, body: str) -> None:
    path = den.root / ".git/hooks" / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def test_a_pre_commit_hook_that_fails_is_a_failed_check(den: Den) -> None:
    _hook(den, "pre-commit", "grep -q polished src/US-001.txt || { echo 'not polished'; exit 1; }")
    polished: Action = {"append": {"path": "src/US-001.txt", "text": "polished\n"}}
    done = den.run(
        {"US-001": [good("US-001"), [{"prompt": "p.txt"}, work("US-001"), polished, shell("mv p.txt ../"), "claim"]]}
    )
    assert done.code == 0, done.out
    kinds = [ended.kind for ended in den.ended()]
    assert kinds == [Kind.REJECTED, Kind.ACCEPTED, Kind.ACCEPTED]
    assert "pre-commit hook" in den.ended()[0].headline
    assert "not polished" in (den.folder / "p.txt").read_text()
    assert den.git("log", "--format=%s", "v1..HEAD").count("feat(US-001)") == 1
    den.check_views()


def test_a_pre_commit_hook_that_rewrites_files_is_taken_in(den: Den) -> None:
    _hook(
        den,
        "pre-commit",
        "for f in $(git diff --cached --name-only -- src); do sed -i 's/work/WORK/' $f; git add $f; done",
    )
    assert den.run().code == 0
    assert den.git("show", "HEAD:src/US-001.txt") == "good WORK on US-001"
    assert den.git("status", "--porcelain") == ""
    assert {ended.kind for ended in den.ended()} == {Kind.ACCEPTED}
    assert "the pre-commit hook changed src/US-001.txt: the result is checked and judged again" in den.notes()


def test_what_a_hook_makes_of_the_work_has_to_pass_the_checks(den: Den) -> None:
    """It calls a script of the agent's, which breaks the work after the checks have passed."""
    _hook(den, "pre-commit", "sh src/format.sh")
    script: Action = {
        "write": {"path": "src/format.sh", "text": "grep -q bad src/US-001.txt || echo bad >> src/US-001.txt"}
    }
    den.run({"US-001": [[work("US-001"), script, "claim"]]}, "--once")
    (only,) = den.ended()
    assert only.kind is Kind.REJECTED
    assert den.git("log", "--format=%s", "v1..HEAD").count("feat(US-001)") == 0
    den.check_views()


def test_a_hook_that_changes_the_work_each_time_is_named_with_the_files(den: Den) -> None:
    _hook(den, "pre-commit", "date +%N >> src/US-001.txt")
    den.run(None, "--once")
    (only,) = den.ended()
    assert only.kind is Kind.REJECTED
    assert only.headline.startswith("the pre-commit hook changed src/US-001.txt again")
    assert den.git("log", "--format=%s", "v1..HEAD").count("feat(US-001)") == 0


def test_a_hook_cannot_mark_stories_done(den: Den) -> None:
    plan = next(path for path in (den.root / ".ralph").rglob("*.json") if "userStories" in path.read_text())
    name = plan.relative_to(den.root)
    _hook(den, "pre-commit", f'sed -i \'s/"passes": false/"passes": true/\' {name}; git add {name}')
    den.run(None, "--once")
    assert [ended.kind for ended in den.ended()] == [Kind.ACCEPTED]
    passes = [story["passes"] for story in json.loads(den.git("show", f"HEAD:{name}"))["userStories"]]
    assert passes.count(True) == 1
    assert f"a commit hook changed {name}; restored" in den.notes()


def test_files_that_are_left_uncommitted_are_in_the_summary(den: Den) -> None:
    config = den.root / ".ralph/config.yaml"
    config.write_text(config.read_text() + "tamper: off  # dirty before the run, which Ralph's own files may be\n")
    late: Action = {"append": {"path": "check.sh", "text": "echo x > src/late.txt\n"}}
    stories = {"US-001": [[work("US-001"), late, "claim"]]}
    done = den.run(stories)
    assert "not committed, changed during the run: src/late.txt" in done.out
    assert done.code == 0
    assert "config.yaml" not in done.out.rpartition("not committed")[2]


def test_a_commit_msg_hook_may_change_the_message_or_refuse_it(den: Den) -> None:
    _hook(den, "commit-msg", "grep -q US-002 $1 && exit 1; echo 'Signed-off-by: Ada' >> $1")
    den.run(None, "-n", "2")
    message = den.git("log", "-1", "--format=%B", "--grep", "US-001")
    assert "Ralph-Story: US-001" in message
    assert "Signed-off-by: Ada" in message
    assert den.ended()[1].kind is Kind.REJECTED


def test_a_hook_that_hangs_does_not_keep_a_run_from_stopping(den: Den) -> None:
    _hook(den, "pre-commit", "touch ../hanging; sleep 100")
    process = den.start()
    wait_for((den.folder / "hanging").exists, 30)
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    done = den.finish(process)
    assert done.code == 130
    assert time.monotonic() - begun < 15
    (den.root / ".git/hooks/pre-commit").unlink()
    assert den.run().code == 0
    den.check()


@pytest.mark.parametrize("value", ["true", "input"])
def test_line_endings_are_the_projects_business(den: Den, value: str) -> None:
    den.git("config", "core.autocrlf", value)
    crlf: list[Action] = [{"write": {"path": "src/US-001.txt", "text": "good\r\nwork\r\n"}}, "claim"]
    assert den.run({"US-001": [[BAD, "claim"], crlf]}).code == 0
    assert (den.root / "src/US-001.txt").read_bytes() == b"good\r\nwork\r\n"
    assert den.git("cat-file", "blob", "HEAD:src/US-001.txt") == "good\nwork"
    assert den.git("status", "--porcelain") == ""
    assert (den.root / "src/base.txt").read_text() == "base\n"


def test_what_the_user_has_staged_before_is_not_swept_in(den: Den) -> None:
    """Staged edits of the plan's folder are no reason to refuse, so they are there during a run."""
    den.write(".ralph/feat/notes.md", "staged notes\n")
    den.git("add", ".ralph/feat/notes.md")
    assert den.run().code == 0
    assert ".ralph/feat/notes.md" not in den.git("log", "--name-only", "--format=", "v1..HEAD")
    assert den.git("diff", "--cached", "--name-only") == ".ralph/feat/notes.md"


def test_a_repository_with_thousands_of_files(den: Den) -> None:
    for number in range(2000):
        den.write(f"many/{number % 40}/{number}.txt", f"{number}\n")
    den.git("add", "-A")
    den.git("commit", "-qm", "many")
    den.before = listing(den.root)
    begun = time.monotonic()
    assert den.run({"US-001": [[shell("rm -r many"), BAD, "claim"], good("US-001")]}).code == 0
    assert time.monotonic() - begun < 30
    den.check()


# A repository nested in its workspace


def test_a_project_nested_in_its_workspace(tmp_path: Path) -> None:
    """`project/.ralph` beside `project/project/.git`: the plan is not in the repository at all."""
    root = tmp_path / "shop"
    code = root / "shop"
    code.mkdir(parents=True)
    (root / ".ralph/configs").mkdir(parents=True)
    (root / ".ralph/prompts").mkdir()
    tasks = [
        {"id": f"US-{n:03}", "title": f"Task {n}", "description": "d", "acceptanceCriteria": ["a"], "priority": n,
         "status": "todo", "attempts": 0} for n in (1, 2)
    ]  # fmt: skip
    plan = root / ".ralph/prd.json"
    plan.write_text(json.dumps({"project": "shop", "tasks": tasks}, indent=2))
    steps = [
        {"name": "work", "type": "agent", "config": {"prompt_file": ".ralph/prompts/LOOP_PROMPT.md"}},
        {"name": "test", "type": "command", "config": {"command": "! grep -qs bad shop/*.txt"}},
        {"name": "git-commit", "type": "git-commit", "enabled": True},
    ]
    config = {"name": "default", "agent": {"name": "scripted"}, "steps": steps, "max_loops_per_task": 3}
    (root / ".ralph/configs/default.json").write_text(json.dumps(config))
    (root / ".ralph/prompts/LOOP_PROMPT.md").write_text("Do the next task.\n")
    subprocess.run(["git", "init", "-q", "-b", "main", code], check=True)
    (code / "app.py").write_text("app\n")
    _git(code, "add", "-A")
    _git(code, "commit", "-qm", "first")
    mark = {"mark": {"by": "hand"}}
    bad = {"write": {"path": "shop/bad.txt", "text": "bad\n"}}
    plays = {
        "US-001": [[bad, shell("rm shop/app.py"), mark], [{"write": {"path": "shop/one.py", "text": "one\n"}}, mark]],
        "US-002": [[{"write": {"path": "shop/two.py", "text": "two\n"}}, mark]],
    }
    done = _run(root, tmp_path, plays)
    assert done.code == 0, done.out + done.err
    assert "the checks pass on the final tree" in done.out
    assert [task["status"] for task in json.loads(plan.read_text())["tasks"]] == ["done", "done"]
    assert _git(code, "log", "--format=%s").splitlines() == ["feat(US-002): Task 2", "feat(US-001): Task 1", "first"]
    assert sorted(path.name for path in code.iterdir()) == [".git", "app.py", "one.py", "two.py"]
    assert _git(code, "status", "--porcelain") == ""
    assert json.loads((root / ".ralph/aggregate.json").read_text())
    refused = _run(root, tmp_path, {}, "--worktree")
    assert (refused.code, "hint:" in refused.err) == (78, True)


def test_the_copy_of_a_plan_in_a_worktree_is_the_one_that_is_marked(den: Den) -> None:
    assert den.run(None, "--worktree").code == 0
    branch = _own_branch(den)
    assert den.git("show", f"{branch}:{PLAN}").count('"passes": true') == 2
    assert den.status() == {"US-001": "todo", "US-002": "todo"}
    listed = den.git("worktree", "list", "--porcelain").splitlines()
    shutil.rmtree([line.partition(" ")[2] for line in listed if line.startswith("worktree ")][1])
    den.git("worktree", "prune")
    assert den.run().code == 0


def test_the_files_of_a_git_gc_do_not_stop_a_run(den: Den) -> None:
    """A background gc after a large commit, seen as its files and a git process that is alive in the repository."""
    files = [den.root / ".git" / name for name in ("gc.pid", "gc.log.lock", "objects/maintenance.lock")]
    for path in files:
        path.write_bytes(b"")
    command = ["git", "cat-file", "--batch-check"]
    with subprocess.Popen(command, cwd=den.root, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as alive:
        done = den.run()
        assert alive.poll() is None
        alive.communicate(b"")
    assert done.code == 0, done.err
    assert all(path.exists() for path in files)
