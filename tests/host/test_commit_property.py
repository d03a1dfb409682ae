"""Whatever an agent does to the files: the commit has exactly that, and the user's own work stays the user's."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from ralph.host.git.checkpoint import take
from ralph.host.git.commits import commit_story
from ralph.host.git.objects import changes
from ralph.host.git.snapshot import snapshot_tree
from support.agent_doings import by_a_user, do, to_files
from support.repositories import Project


def _entries(project: Project, *command: str) -> dict[str, str]:
    items = project.git(*command).split("\0")
    return {path: " ".join(head.split()[:3]) for head, _, path in (item.partition("\t") for item in items) if path}


def _index(project: Project) -> dict[str, str]:
    found = _entries(project, "ls-files", "-z", "--stage")
    return {path: " ".join(head.split()[:2]) for path, head in found.items()}


def _head(project: Project) -> dict[str, str]:
    found = _entries(project, "ls-tree", "-r", "-z", "HEAD")
    return {path: f"{head.split()[0]} {head.split()[2]}" for path, head in found.items()}


@settings(max_examples=25)
@example([("stage", "src/deep/c.py", "")], [("rename", "src/deep/c.py", "a.txt")], True)
@example([("write", "new.py", "one\n")], [("write", ".gitignore", "*.py\n")], False)
@given(by_a_user, st.lists(to_files, min_size=1, max_size=6), st.booleans())
def test_a_commit_has_the_agents_changes_and_nothing_else(
    prepared: list[tuple[str, str, str]], done: list[tuple[str, str, str]], stages_all: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder))
        for doing in prepared:
            do(project, *doing)
        repo, checkpoint = project.repo, take(project.repo, project.index)
        head, index = _head(project), _index(project)
        for doing in done:
            do(project, *doing)
        if stages_all:
            project.git("add", "-A")
        tree = snapshot_tree(repo, project.index)
        found = {
            change.raw.decode("utf-8", "surrogateescape"): change for change in changes(repo, checkpoint.tree, tree)
        }
        changed = set(found)
        ignored = project.git("ls-files", "-z", "--others", "--ignored", "--exclude-standard").split("\0")
        files = project.listing()

        made = commit_story(repo, checkpoint=checkpoint, tree=tree, message="story\n", index_file=project.index)

        assert project.listing() == files
        after, staged = _head(project), _index(project)
        for path in changed:
            content = files[path][1] if path in files and files[path][0] != "folder" else None
            if found[path].status == "D" and path in ignored:
                content = None  # hidden by a new rule of the agent: it stays on disk and is in no commit
            assert project.in_commit("HEAD", path) == content, path
        if made is not None:
            for path in changed:
                assert staged.get(path) == after.get(path), path
        below = {path for path in head if any(other.startswith(f"{path}/") for other in changed)}
        for path in (head.keys() | after.keys()) - changed - below:
            assert after.get(path) == head.get(path), f"swept in: {path}"
        if made is not None:
            for path in (index.keys() | staged.keys()) - changed - below:
                if not any(path.startswith(f"{other}/") for other in changed):
                    assert staged.get(path) == index.get(path), f"the user's index changed: {path}"
        project.check_health()
