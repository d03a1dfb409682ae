"""Whatever an agent does to the files, branches and index: all of it is saved, and all of it is undone."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import example, given, settings

from ralph.host.git.checkpoint import take
from ralph.host.git.rescue import roll_back
from support.agent_doings import by_a_user, by_an_agent, do
from support.repositories import Project, listing


def visible(project: Project) -> set[str]:
    """What git does not ignore, by a look of its own at the same rules."""
    out = project.git("ls-files", "-z", "-c", "-o", "--exclude-standard")
    empty = [name for name in project.listing() if name.endswith("/")]
    shown = {name for name in empty if not project.git("check-ignore", "--no-index", "--", name, check=False)}
    return {name for name in out.split("\0") if name} | shown


def _outside(project: Project) -> dict[str, dict[str, tuple[str, bytes]]]:
    return {
        folder.name: listing(folder) for folder in project.root.parent.iterdir() if folder.name[:3] in ("out", "mov")
    }


@settings(max_examples=30)
@example([("folder", "src/deep/c.py", "")], [("rename", "src/deep/c.py", "new.py")])
@example([("write", "x.log", "mine\n")], [("write", ".gitignore", "!*.log\n"), ("write", "new.py", "two\n")])
@example([], [("swap", "src", ""), ("delete", "src", ""), ("folder", "src/b.py", ""), ("init", "src", "")])
@example([("write", "src/.gitignore", "")], [("delete", "src/b.py", ""), ("commit", "", ""), ("init", "src", "")])
@example(
    [("write", "src/deep/c.py", ""), ("write", "dir/deep/er/f", "")],
    [("delete", "src/deep/c.py", ""), ("rename", "dir", "src/deep/c.py"), ("swap", "src", "")],
)
@given(by_a_user, by_an_agent)
def test_all_an_agent_did_is_saved_and_undone(
    prepared: list[tuple[str, str, str]], done: list[tuple[str, str, str]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder))
        project.write("a.txt", "second\n")
        project.git("commit", "-qam", "second")
        for what, name, text in prepared:
            do(project, what, name, text)
        checkpoint = take(project.repo, project.index)
        files, index, head = project.listing(), project.index_bytes(), project.head()
        seen = visible(project)
        for what, name, text in done:
            do(project, what, name, text)
        made = {
            name: item
            for name, item in project.listing().items()
            if item[0] in ("file", "program", "link") and files.get(name) != item
        }
        tip, left_by_agent, outside = project.head(), project.listing(), _outside(project)

        rolled = roll_back(project.repo, "run/1", project.index, checkpoint, "rejected")

        assert rolled.restored.is_complete, rolled.restored
        assert _outside(project) == outside
        now = project.listing()
        for name in files:
            if name in seen:
                assert now.get(name) == files[name], name
            elif not name.endswith("/") and not any(f"{name}/".startswith(f"{other}/") for other in seen):
                assert now.get(name) == left_by_agent.get(name), f"ignored, but touched: {name}"
        ignored_then = {name for name in now if name not in files}
        left = {name for name in ignored_then if name in visible(project)}
        assert not left
        assert project.index_bytes() == index
        assert project.head() == head
        assert project.git("symbolic-ref", "HEAD") == "refs/heads/main"
        for name, (_, content) in made.items():
            if name in now and now[name] == made[name]:
                continue  # ignored, and so not touched
            assert rolled.rescue is not None
            saved = name.replace(".git/", ".git-saved/")
            assert project.in_commit(rolled.rescue.commit, saved) == content, name
        if rolled.rescue:
            project.git("merge-base", "--is-ancestor", tip, rolled.rescue.commit)
        project.check_health()
        assert take(project.repo, project.index).tree == checkpoint.tree
