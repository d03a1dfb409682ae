from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ralph.host.git.checkout import Checkout, remove_abandoned
from ralph.host.git.checkpoint import take
from ralph.host.git.commits import candidate_tree, commit_story
from ralph.host.git.snapshot import snapshot_tree
from support.repositories import Project, killed_after, listing


@pytest.fixture
def project(tmp_path: Path, git_identity: tuple[str, str]) -> Project:
    return Project(tmp_path)


@pytest.fixture
def checkout(project: Project, tmp_path: Path) -> Checkout:
    return Checkout(project.repo, tmp_path / "cache" / "0123456789ab")


def _git(checkout: Checkout, *args: str) -> str:
    done = subprocess.run(["git", *args], cwd=checkout.path, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode("utf-8", "surrogateescape").rstrip("\n")


def _tree(project: Project, message: str = "next") -> str:
    project.git("add", "-A")
    project.git("commit", "-qm", message, "--allow-empty")
    return project.git("rev-parse", "HEAD^{tree}")


def _candidate(project: Project, work: Callable[[], object]) -> str:
    checkpoint = take(project.repo, project.index)
    work()
    tree = snapshot_tree(project.repo, project.index)
    return candidate_tree(project.repo, checkpoint=checkpoint, tree=tree, index_file=project.index)


def test_a_checkout_of_a_repository_that_is_gone_is_removed(project: Project, checkout: Checkout) -> None:
    checkout.move(_tree(project))
    others = checkout.folder.with_name("not-a-checkout")
    others.mkdir()

    remove_abandoned(checkout.folder.parent)
    assert checkout.path.is_dir()
    project.repo.root.rename(project.repo.root.with_name("moved"))
    remove_abandoned(checkout.folder.parent)

    assert not checkout.folder.exists()
    assert others.is_dir()


def test_the_candidate_is_the_tree_that_is_committed(project: Project) -> None:
    project.write(".gitattributes", "*.txt text eol=lf\n")
    _tree(project)
    project.write("staged", "by the user\n")
    project.git("add", "staged")
    checkpoint = take(project.repo, project.index)
    before = project.head(), project.index_bytes()
    project.write("a.txt", "dos\r\nlines\r\n")
    project.write("ignored.log", "x")
    (project.root / "src/b.py").unlink()
    tree = snapshot_tree(project.repo, project.index)
    candidate = candidate_tree(project.repo, checkpoint=checkpoint, tree=tree, index_file=project.index)
    assert (project.head(), project.index_bytes()) == before
    assert project.git("cat-file", "blob", f"{candidate}:a.txt") == "dos\nlines"
    assert project.git("ls-tree", "-r", "--name-only", candidate).split() == [".gitattributes", ".gitignore", "a.txt"]
    made = commit_story(project.repo, checkpoint=checkpoint, tree=tree, message="done", index_file=project.index)
    assert made is not None
    assert project.git("rev-parse", "HEAD^{tree}") == candidate


def test_commits_of_the_agent_are_part_of_the_candidate(project: Project) -> None:
    def work() -> None:
        project.write("one", "1")
        _tree(project)
        project.write("two", "2")

    head = project.head()
    candidate = _candidate(project, work)
    assert {"one", "two"} <= set(project.git("ls-tree", "--name-only", candidate).split())
    assert project.git("rev-parse", "HEAD^") == head


def test_a_second_candidate_has_nothing_of_the_first(project: Project) -> None:
    _candidate(project, lambda: project.write("first", "1"))
    (project.root / "first").unlink()
    candidate = _candidate(project, lambda: project.write("second", "2"))
    assert "first" not in project.git("ls-tree", "--name-only", candidate).split()


def test_the_folder_equals_the_tree_and_git_works_in_it(project: Project, checkout: Checkout) -> None:
    project.write("run", "#!/bin/sh\n", 0o755)
    (project.root / "out").symlink_to("/etc/hostname")
    project.write(b"odd \xff\n name", "x")
    tree = _tree(project)
    project.git("tag", "-a", "v1.2", "-m", "one")
    project.write("ignored.log", "x")
    checkout = Checkout(project.repo, checkout.folder)
    checkout.move(tree)
    project.git("clean", "-fdxq")
    assert listing(checkout.path) == project.listing()
    assert checkout.path.name == "project"
    assert (checkout.path / ".git").is_dir()
    assert _git(checkout, "status", "--porcelain", "--ignored") == ""
    assert _git(checkout, "describe") == "v1.2"
    assert _git(checkout, "rev-parse", "--abbrev-ref", "HEAD") == "main"
    assert _git(checkout, "rev-parse", "HEAD") == project.head()
    assert _git(checkout, "ls-files") == project.git("ls-files")
    composed = checkout.compose(tree, {"a.txt": b"two\n"})
    checkout.move(composed)
    assert _git(checkout, "describe").startswith("v1.2-1-g")
    assert _git(checkout, "status", "--porcelain") == ""


def test_nothing_is_written_into_the_repository_of_the_user(project: Project, checkout: Checkout) -> None:
    before = listing(project.root / ".git")
    checkout.move(checkout.compose(project.git("rev-parse", "HEAD^{tree}"), {"a.txt": b"new", "n/m.py": b"x = 1\n"}))
    assert (checkout.path / "n/m.py").read_text() == "x = 1\n"
    assert listing(project.root / ".git") == before
    subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@y", "commit", "-qam", "y", "--allow-empty"],
                   cwd=checkout.path, check=True)  # fmt: skip
    _git(checkout, "gc", "-q")
    assert listing(project.root / ".git") == before


def test_compose_replaces_adds_and_removes(project: Project, checkout: Checkout) -> None:
    project.write("run.sh", "old", 0o755)
    project.write("folder/inside", "x")
    project.write("ünï", "x")
    tree = checkout.compose(_tree(project), {
        "run.sh": b"new", "src/b.py": None, "folder/inside": None, "folder": b"file now", "missing": None, "ünï": b"y",
    })  # fmt: skip
    checkout.move(tree)
    found = listing(checkout.path)
    assert found["run.sh"] == ("program", b"new")
    assert found["folder"] == ("file", b"file now")
    assert found["ünï"] == ("file", b"y")
    assert "src/b.py" not in found
    assert "missing" not in found


def test_a_file_can_become_a_folder_and_back(project: Project, checkout: Checkout) -> None:
    base = _tree(project)
    other = checkout.compose(base, {"a.txt/deep/er": b"x"})
    checkout.move(base)
    checkout.move(other)
    assert (checkout.path / "a.txt/deep/er").read_text() == "x"
    checkout.move(base)
    assert (checkout.path / "a.txt").read_text() == "one\n"


def test_what_checks_did_is_undone_and_caches_stay(project: Project, checkout: Checkout, tmp_path: Path) -> None:
    tree = project.git("rev-parse", "HEAD^{tree}")
    checkout.move(tree)
    before = listing(checkout.path)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "keep").write_text("x")
    (checkout.path / "a.txt").write_text("two\n")
    (checkout.path / "src/b.py").unlink()
    (checkout.path / "src").rmdir()
    (checkout.path / "src").symlink_to(outside)
    (checkout.path / "new/deep").mkdir(parents=True)
    (checkout.path / "new/deep/file").write_text("x")
    subprocess.run(["git", "init", "-q", "inner"], cwd=checkout.path, check=True)
    (checkout.path / "build").mkdir()
    (checkout.path / "build/cache").write_text("warm")
    _git(checkout, "config", "core.fsmonitor", "touch /tmp/never")
    _git(checkout, "update-index", "--assume-unchanged", "a.txt")
    (checkout.path / ".git/hooks").mkdir()
    (checkout.path / ".git/hooks/post-checkout").write_text("#!/bin/sh\n")
    checkout.move(tree)
    assert listing(checkout.path) == before | {"build/cache": ("file", b"warm")}
    assert (outside / "keep").exists()
    assert not (checkout.path / ".git/hooks").exists()
    assert _git(checkout, "status", "--porcelain") == ""
    checkout.scrub(keep=["build"])
    assert (checkout.path / "build/cache").exists()
    checkout.kept = ("build/cache",)
    (checkout.path / "build/other").write_text("forged")
    checkout.scrub()
    assert listing(checkout.path) == before | {"build/cache": ("file", b"warm")}
    checkout.move(checkout.compose(tree, {".gitignore": b""}))
    assert (checkout.path / "build/cache").exists()
    checkout.kept = ()
    checkout.move(tree)
    checkout.scrub()
    assert listing(checkout.path) == before


def test_a_folder_that_a_check_locked(project: Project, checkout: Checkout) -> None:
    tree = project.git("rev-parse", "HEAD^{tree}")
    checkout.move(tree)
    (checkout.path / "src/b.py").write_text("edited")
    (checkout.path / "src").chmod(0o500)
    checkout.move(tree)
    assert (checkout.path / "src/b.py").read_text() == "print(1)\n"


def test_files_that_become_unignored_are_removed(project: Project, checkout: Checkout) -> None:
    tree = project.git("rev-parse", "HEAD^{tree}")
    checkout.move(tree)
    (checkout.path / "forged.log").write_text("x")
    checkout.move(checkout.compose(tree, {".gitignore": b"build/\n"}))
    assert not (checkout.path / "forged.log").exists()


def test_bytecode_never_hides_a_change(project: Project, checkout: Checkout) -> None:
    project.write(".gitignore", "__pycache__/\n")
    project.write("mod.py", "VALUE = 1\n")
    base = _tree(project)
    trees = [base, *(checkout.compose(base, {"mod.py": b"VALUE = %d\n" % number}) for number in (2, 3, 4))]
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}

    def value() -> str:
        command = [sys.executable, "-c", "import mod; print(mod.VALUE)"]
        return subprocess.run(command, cwd=checkout.path, env=env, capture_output=True, check=True).stdout.decode()

    for number in (1, 2, 3, 4, 1, 3):
        checkout.move(trees[number - 1])
        assert value() == f"{number}\n"
        if number == 3:  # a check edits a file and compiles it
            (checkout.path / "mod.py").write_text("VALUE = 9\n")
            value()
    assert list((checkout.path / "__pycache__").iterdir())
    checkout.move(checkout.compose(base, {"mod.py": None}))
    assert not (checkout.path / "__pycache__").exists()


def test_what_was_built_before_a_change_is_older_than_the_change(project: Project, checkout: Checkout) -> None:
    """Build tools such as make and cargo do not rebuild otherwise."""
    checkout.move(_tree(project))
    long_ago = time.time() - 60
    os.utime(checkout.path / "a.txt", (long_ago, long_ago))
    (checkout.git_dir / "stamp").write_text(str(long_ago))
    project.write("a.txt", "another\n")
    tree = _tree(project)
    built = time.time_ns()
    checkout.move(tree)
    assert (checkout.path / "a.txt").stat().st_mtime_ns > built


def test_line_endings_and_filters_are_those_of_the_user(project: Project, checkout: Checkout) -> None:
    project.git("config", "core.autocrlf", "true")
    project.git("config", "filter.shout.smudge", "tr a-z A-Z")
    project.git("config", "filter.shout.clean", "tr A-Z a-z")
    project.write(".gitattributes", "*.loud filter=shout\n*.evil filter=evil\n")
    project.write("x.loud", "hello\n")
    project.write("x.evil", "hello\n")
    checkout = Checkout(project.repo, checkout.folder)
    # Whatever an agent configures later does not count.
    tree = _tree(project)
    project.git("config", "filter.evil.smudge", "touch ../pwned; cat")
    project.git("config", "filter.shout.smudge", "cat")
    checkout.move(tree)
    assert (checkout.path / "a.txt").read_bytes() == b"one\r\n"
    assert (checkout.path / "x.loud").read_bytes().rstrip() == b"HELLO"
    assert not list(checkout.folder.glob("pwned"))
    assert _git(checkout, "status", "--porcelain") == ""


def test_a_submodule_is_cloned_at_its_commit(project: Project, checkout: Checkout, tmp_path: Path) -> None:
    library = Project(tmp_path / "library")
    allowed = ("-c", "protocol.file.allow=always")
    project.git(*allowed, "submodule", "add", "-q", str(library.root), "lib")
    first = _tree(project)
    checkout = Checkout(project.repo, checkout.folder)
    project.git("config", "user.name", "x", cwd=project.root / "lib")
    project.git("config", "user.email", "x@y", cwd=project.root / "lib")
    (project.root / "lib/a.txt").write_text("newer\n")
    project.git("commit", "-qam", "newer", cwd=project.root / "lib")
    second = _tree(project)
    for tree, text in ((first, "one\n"), (second, "newer\n"), (first, "one\n")):
        checkout.move(tree)
        assert (checkout.path / "lib/a.txt").read_text() == text
        assert _git(checkout, "status", "--porcelain") == ""


def test_a_repository_that_an_agent_made_is_an_empty_folder(project: Project, checkout: Checkout) -> None:
    project.git("init", "-q", "inner")
    project.write("inner/code.py", "x = 1\n")
    project.git("add", "-A", cwd=project.root / "inner")
    project.git("commit", "-qm", "inner", cwd=project.root / "inner")
    tree = _tree(project)
    assert "160000 commit" in project.git("ls-tree", tree)
    checkout.move(tree)
    assert list((checkout.path / "inner").iterdir()) == []
    assert _git(checkout, "status", "--porcelain") == ""


@pytest.mark.parametrize(
    "name", ["a\\b", "-rf", "tab\there", "new\nline", "*", ":(top)x", "ü", "CASE", "case", "x" * 200]
)
def test_odd_names(project: Project, checkout: Checkout, name: str) -> None:
    base = project.git("rev-parse", "HEAD^{tree}")
    project.write(name, "in the workspace\n")
    tree = _tree(project)
    checkout.move(tree)
    assert listing(checkout.path) == project.listing()
    (checkout.path / name).write_text("by a check\n")
    checkout.move(checkout.compose(tree, {name: b"composed\n"}))
    assert (checkout.path / name).read_text() == "composed\n"
    checkout.move(base)
    assert not (checkout.path / name).exists()
    (checkout.path / name).write_text("untracked\n")
    checkout.move(base)
    assert not (checkout.path / name).exists()


def test_attributes_of_an_agent_start_no_program(project: Project, checkout: Checkout, tmp_path: Path) -> None:
    """Settings in the tree name no program, and an encoding that does not fit only fails to convert."""
    project.write(".gitattributes", "*.x filter=evil diff=evil merge=evil ident working-tree-encoding=UTF-16\n")
    project.write(".gitconfig", f'[filter "evil"]\n\tsmudge = touch {tmp_path}/pwned\n')
    project.write("code.py", "x = 1\n")
    tree = checkout.compose(_tree(project), {"bad.x": b"\xff\xfe\xfd $Id$\n"})
    checkout.move(tree)
    assert (checkout.path / "bad.x").exists()
    assert not (tmp_path / "pwned").exists()


def test_a_kill_at_any_moment_leaves_a_folder_that_can_be_moved(project: Project, checkout: Checkout) -> None:
    base = project.git("rev-parse", "HEAD^{tree}")
    project.write("new/file", "x")
    tree = _tree(project)
    calls = 0
    while killed_after(calls, lambda: (checkout.move(base), checkout.move(tree))):
        again = Checkout(project.repo, checkout.folder)
        again.move(tree)
        assert listing(again.path) == project.listing(), calls
        again.move(base)
        if calls % 2:
            (again.git_dir / "complete").unlink()
        calls += 1
    assert calls > 5


def test_a_repository_without_commits_and_with_sha256(tmp_path: Path, git_identity: tuple[str, str]) -> None:
    project = Project(tmp_path, commit=False, extra=("--object-format=sha256",))
    project.write("a", "1")
    project.git("add", "a")
    checkout = Checkout(project.repo, tmp_path / "c")
    checkout.move(checkout.compose(project.git("write-tree"), {"b": b"2"}))
    assert {name: data for name, (_, data) in listing(checkout.path).items()} == {"a": b"1", "b": b"2"}
    assert _git(checkout, "status", "--porcelain") == ""


@pytest.mark.slow
def test_moving_one_file_among_ten_thousand_costs_a_few_times_git_status(project: Project, checkout: Checkout) -> None:
    for number in range(10_000):
        project.write(f"many/{number % 100}/{number}.py", f"{number}\n")
    tree = _tree(project)
    checkout.move(tree)
    other = checkout.compose(tree, {"many/1/1.py": b"changed\n"})
    ratios = []
    for target in (other, tree, other):
        start = time.perf_counter()
        _git(checkout, "status", "--porcelain")
        middle = time.perf_counter()
        checkout.move(target)
        ratios.append((time.perf_counter() - middle) / (middle - start))
    sys.stdout.write(f"move / git status: {ratios}\n")
    assert min(ratios) < 12
