"""What the loop does without a git process has the same result as what git makes of the same files."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from subprocess import Popen

import pytest

from ralph.core.errors import SetupError
from ralph.host.git import command as door
from ralph.host.git import commits, snapshot
from ralph.host.git.checkpoint import take
from ralph.host.git.commits import candidate_tree, commit_story
from ralph.host.git.ignored import KeepIgnored
from ralph.host.git.loose import NotLoose
from support.repositories import Project

NAMES = ["a.txt", "src/b.py", "src/deep/c", "new", "dir/x", "dir/y", "kept.log", "build/o", "src/.gitignore", "\u00e4"]
KEEP = KeepIgnored(largest=1000, total=10_000, is_ours=lambda path: False)


@pytest.fixture
def project(tmp_path: Path, git_identity: tuple[str, str]) -> Project:
    return Project(tmp_path)


@contextmanager
def _only_git(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def refuse(*_: object) -> None:
        raise NotLoose

    with monkeypatch.context() as patch:
        patch.setattr(snapshot, "_with_changes", refuse)
        patch.setattr(commits, "_prepared_plainly", refuse)
        patch.setattr(snapshot, "_KNOWN", {})
        yield


def _change(project: Project, chance: random.Random) -> None:
    path = project.root / chance.choice(NAMES)
    match chance.randrange(8):
        case 0 if path.exists():
            path.unlink()
        case 1 if not path.exists():
            path.parent.mkdir(exist_ok=True, parents=True)
            path.symlink_to("a.txt")
        case 2 if path.is_file():
            path.chmod(chance.choice((0o644, 0o755)))
        case 3 if path.is_file():
            project.git("add", "-f", str(path))
        case 4 if path.is_file():
            project.git("rm", "-q", "--cached", "--ignore-unmatch", "-f", str(path))
        case 5 if path.name == ".gitignore":
            project.write("src/.gitignore", chance.choice(("", "deep/\n", "*\n")))
        case _ if not path.is_symlink() and not path.is_dir():
            project.write(str(path.relative_to(project.root)), chance.choice(("one\n", "two\n", "x" * 100)))


@pytest.mark.parametrize("seed", range(8))
def test_trees_and_commits_are_those_of_git(
    project: Project, seed: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    chance = random.Random(seed)
    repo, fresh = project.repo, tmp_path / "state" / "fresh"
    for number in range(6):
        checkpoint = take(repo, project.index, ignored=KEEP)
        with _only_git(monkeypatch):
            assert take(repo, fresh, ignored=KEEP).tree == checkpoint.tree
        for _ in range(chance.randrange(4)):
            _change(project, chance)
        tree = snapshot.snapshot_tree(repo, project.index)
        candidate = candidate_tree(repo, checkpoint=checkpoint, tree=tree, index_file=project.index)
        with _only_git(monkeypatch):
            assert snapshot.snapshot_tree(repo, fresh) == tree
            made = candidate_tree(repo, checkpoint=checkpoint, tree=tree, index_file=project.index)
            assert made == candidate
        if chance.random() < 0.7:
            done = commit_story(repo, checkpoint=checkpoint, tree=tree, message=f"{number}\n", index_file=project.index)
            if done is not None:
                assert project.git("rev-parse", "HEAD^{tree}") == candidate
    project.check_health()


def _counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    calls: list[str] = []
    real = door._started

    def started(call: door.Call, *, keep_stderr: bool = True) -> AbstractContextManager[Popen[bytes]]:
        calls.append(next(str(arg) for arg in call.args if str(arg) != "-c" and "=" not in str(arg)))
        return real(call, keep_stderr=keep_stderr)

    monkeypatch.setattr(door, "_started", started)
    return calls


def test_an_iteration_starts_few_processes(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    for number in range(3):
        repo = project.repo
        with monkeypatch.context() as patch:
            calls = _counted(patch)
            checkpoint = take(repo, project.index, ignored=KEEP)
            project.write("a.txt", f"{number}\n")
            tree = snapshot.snapshot_tree(repo, project.index)
            candidate_tree(repo, checkpoint=checkpoint, tree=tree, index_file=project.index)
            assert commit_story(repo, checkpoint=checkpoint, tree=tree, message="x\n", index_file=project.index)
    assert calls == ["ls-files", "ls-files", "ls-files", "update-index", "commit-tree", "update-ref"]


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (".gitattributes", "*.txt text eol=crlf\n"),
        ("src/.gitattributes", "* text eol=crlf\n"),
        (".git/info/attributes", "* text eol=crlf\n"),
    ],
)
def test_files_with_attributes_are_converted(project: Project, place: str, text: str) -> None:
    project.write(place, text)
    project.git("add", "-A")
    project.git("commit", "-q", "--allow-empty", "-m", "attributes")
    checkpoint = take(project.repo, project.index)
    project.write("src/crlf.txt", b"a\r\nb\r\n")
    tree = snapshot.snapshot_tree(project.repo, project.index)
    made = candidate_tree(project.repo, checkpoint=checkpoint, tree=tree, index_file=project.index)
    assert project.in_commit(made, "src/crlf.txt") == b"a\nb\n"


def test_attributes_that_were_deleted_count_while_they_are_in_the_index(project: Project) -> None:
    project.write("src/.gitattributes", "* text\n")
    project.git("add", "-A")
    project.git("commit", "-qm", "attributes")
    checkpoint = take(project.repo, project.index)
    (project.root / "src/.gitattributes").unlink()
    project.write("src/crlf.txt", b"a\r\n")
    tree = snapshot.snapshot_tree(project.repo, project.index)
    with pytest.MonkeyPatch.context() as patch, _only_git(patch):
        by_git = candidate_tree(project.repo, checkpoint=checkpoint, tree=tree, index_file=project.index)
    assert candidate_tree(project.repo, checkpoint=checkpoint, tree=tree, index_file=project.index) == by_git


def test_a_name_that_git_refuses_is_refused(project: Project) -> None:
    checkpoint = take(project.repo, project.index)
    project.write("git~1", "x")
    tree = snapshot.snapshot_tree(project.repo, project.index)
    with pytest.raises(SetupError, match="does not accept these file names"):
        candidate_tree(project.repo, checkpoint=checkpoint, tree=tree, index_file=project.index)


@pytest.mark.parametrize("how", ["changed", "deleted", "mode", "folder"])
def test_a_file_that_changed_after_it_was_judged_is_noticed(project: Project, how: str) -> None:
    checkpoint = take(project.repo, project.index)
    path = project.write("src/b.py", "judged\n")
    tree = snapshot.snapshot_tree(project.repo, project.index)
    match how:
        case "changed":
            path.write_text("later!\n")
        case "deleted":
            path.unlink()
        case "mode":
            path.chmod(0o755)
        case "folder":
            path.parent.rename(project.root / "moved")
            path.parent.symlink_to("moved")
    made = commit_story(project.repo, checkpoint=checkpoint, tree=tree, message="x\n", index_file=project.index)
    assert made is not None
    assert (made.commit, made.changed) == ("", ("src/b.py",))
