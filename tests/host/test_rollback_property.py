"""Whatever an agent does to the files, branches and index: all of it is saved, and all of it is undone."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from ralph.host.checkpoint import take
from ralph.host.rescue import roll_back
from support.repositories import Project

NAMES = [
    "a.txt",
    "src/b.py",
    "src/deep/c.py",
    "new.py",
    "x.log",
    "build/out.o",
    ".gitignore",
    "src",
    "odd\nname",
    '"q"',
]
NAMES += ["dir/ü.txt", "dir/deep/er/f", "  spaces ", "-dash", os.fsdecode(b"\xff\xfe"), "dir", "src/.gitignore", "e/m"]
names = st.sampled_from(NAMES)
texts = st.sampled_from(["", "one\n", "two\n", "print(1)\n", "a\r\nb\r\n", "*.py\n", "!*.log\n", "dir/\n", "\0bin"])

before = st.lists(st.tuples(st.sampled_from(["write", "stage", "folder", "link", "program"]), names, texts), max_size=6)
doings = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["write", "program", "stage", "link", "append"]), names, texts),
        st.tuples(st.sampled_from(["delete", "folder", "chmod", "gone"]), names, st.just("")),
        st.tuples(st.just("rename"), names, names),
        st.tuples(
            st.sampled_from(["commit", "amend", "switch", "detach", "back", "reset", "stash", "add all", "init"]),
            names,
            st.just(""),
        ),
    ),
    min_size=1,
    max_size=8,
)


def do(project: Project, what: str, name: str, other: str) -> None:
    path = project.root / name
    with contextlib.suppress(OSError):
        match what:
            case "write" | "program" | "stage":
                if path.is_symlink():
                    path.unlink()
                project.write(name, other, 0o755 if what == "program" else None)
                if what == "stage":
                    project.git("add", "-f", "--", name, check=False)
            case "append":
                with path.open("a") as stream:
                    stream.write("more\n")
            case "delete":
                path.unlink()
            case "gone":
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
            case "folder":
                path.mkdir(parents=True)
            case "chmod":
                path.chmod(path.stat().st_mode ^ 0o111)
            case "link":
                path.parent.mkdir(parents=True, exist_ok=True)
                path.symlink_to("/etc" if other else "a.txt")
            case "rename":
                target = project.root / other
                target.parent.mkdir(parents=True, exist_ok=True)
                path.rename(target)
            case "init":
                if path.is_dir() and not path.is_symlink():
                    project.git("init", "-q", cwd=path)
            case _:
                git_command(project, what)


def git_command(project: Project, what: str) -> None:
    commands: dict[str, list[tuple[str, ...]]] = {
        "commit": [("add", "-A"), ("commit", "-qm", "agent")],
        "amend": [("commit", "--amend", "-qam", "amended")],
        "switch": [("switch", "-q", "-c", "side"), ("commit", "-q", "--allow-empty", "-m", "on side")],
        "detach": [("checkout", "-q", "--detach"), ("commit", "-q", "--allow-empty", "-m", "nowhere")],
        "back": [("switch", "-q", "main")],
        "reset": [("reset", "-q", "--hard", "HEAD~1")],
        "stash": [("stash", "-q", "-u")],
        "add all": [("add", "-A")],
    }
    for command in commands[what]:
        project.git(*command, check=False)


def visible(project: Project) -> set[str]:
    """What git does not ignore, by a look of its own at the same rules."""
    out = project.git("ls-files", "-z", "-c", "-o", "--exclude-standard")
    empty = [name for name in project.listing() if name.endswith("/")]
    shown = {name for name in empty if not project.git("check-ignore", "--no-index", "--", name, check=False)}
    return {name for name in out.split("\0") if name} | shown


@settings(max_examples=60)
@given(before, doings)
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
        tip, left_by_agent = project.head(), project.listing()

        rolled = roll_back(project.repo, "run/1", project.index, checkpoint, "rejected")

        assert rolled.restored.is_complete, rolled.restored
        now = project.listing()
        for name in files:
            if name in seen:
                assert now.get(name) == files[name], name
            elif not name.endswith("/") and not any(f"{other}/" in f"{name}/" for other in seen):
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
