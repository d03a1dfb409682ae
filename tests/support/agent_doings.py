"""What a user or an agent may do in a repository, at random."""

from __future__ import annotations

import contextlib
import os
import shutil

from hypothesis import strategies as st

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

_users = st.sampled_from(["write", "stage", "folder", "link", "program"])
by_a_user = st.lists(st.tuples(_users, names, texts), max_size=6)
to_files = st.one_of(
    st.tuples(st.sampled_from(["write", "program", "stage", "link", "append", "swap"]), names, texts),
    st.tuples(st.sampled_from(["delete", "folder", "chmod", "gone"]), names, st.just("")),
    st.tuples(st.just("rename"), names, names),
)
with_git = st.tuples(
    st.sampled_from(["commit", "amend", "switch", "detach", "back", "reset", "stash", "add all", "init", "gc"]),
    names,
    st.just(""),
)
by_an_agent = st.lists(st.one_of(to_files, with_git), min_size=1, max_size=8)


def do(project: Project, what: str, name: str, other: str) -> None:
    """Do one thing, if it is possible. Links lead to a folder beside the project: nothing else is ever touched."""
    outside = project.root.parent / "outside"
    outside.mkdir(exist_ok=True)
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
                if path.is_file():
                    path.chmod(path.stat().st_mode ^ 0o111)
            case "link":
                path.parent.mkdir(parents=True, exist_ok=True)
                path.symlink_to(project.root.parent / "outside" if other else "a.txt")
            case "swap":  # the thing goes elsewhere, and a link to it takes its place
                elsewhere = project.root.parent / f"moved-{len(list(project.root.parent.iterdir()))}"
                path.rename(elsewhere)
                path.symlink_to(elsewhere)
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
        "gc": [("reflog", "expire", "--expire=now", "--all"), ("gc", "-q", "--prune=now")],
    }
    for command in commands[what]:
        project.git(*command, check=False)
