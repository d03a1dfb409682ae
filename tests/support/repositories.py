"""Real repositories for tests: made with plain git, looked at with plain file operations."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from subprocess import Popen

from ralph.host.git import command as door
from ralph.host.git.repo import Repo, identify

IDENTITY = ("-c", "user.name=Ada Tester", "-c", "user.email=ada@example.test")


class Project:
    """A repository in a folder, with a private index beside it."""

    def __init__(self, folder: Path, *, commit: bool = True, extra: tuple[str, ...] = ()) -> None:
        self.root = folder / "project"
        self.root.mkdir(parents=True)
        self.index = folder / "state" / "index"
        self.index.parent.mkdir()
        self.git("init", "-q", "-b", "main", *extra)
        if commit:
            self.write("a.txt", "one\n")
            self.write("src/b.py", "print(1)\n")
            self.write(".gitignore", "*.log\nbuild/\n")
            self.git("add", "-A")
            self.git("commit", "-qm", "first")

    @property
    def repo(self) -> Repo:
        return identify(self.root)

    def git(self, *args: str | bytes, check: bool = True, cwd: Path | None = None) -> str:
        """Plain git, as a user or an agent would run it."""
        done = subprocess.run(["git", *IDENTITY, *args], cwd=cwd or self.root, capture_output=True, check=False)
        if check and done.returncode:
            raise AssertionError(f"git {args}: {done.stderr.decode(errors='replace')}")
        return done.stdout.decode("utf-8", "surrogateescape").rstrip("\n")

    def write(self, name: str | bytes, text: str | bytes, mode: int | None = None) -> Path:
        path = self.root / os.fsdecode(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        if mode is not None:
            path.chmod(mode)
        return path

    def read(self, name: str) -> str:
        return (self.root / name).read_text()

    def head(self) -> str:
        return self.git("rev-parse", "HEAD")

    def status(self) -> str:
        return self.git("status", "--porcelain")

    def index_bytes(self) -> bytes:
        return (self.root / ".git" / "index").read_bytes()

    def listing(self) -> dict[str, tuple[str, bytes]]:
        """Everything but `.git`: path → kind and content. A trailing slash marks an empty folder."""
        return listing(self.root)

    def in_commit(self, commit: str, path: str | bytes) -> bytes | None:
        spec = os.fsencode(f"{commit}:") + os.fsencode(path)
        done = subprocess.run(["git", "cat-file", "blob", spec], cwd=self.root, capture_output=True, check=False)
        return done.stdout if done.returncode == 0 else None

    def check_health(self) -> None:
        """`git fsck` has nothing to say, and no lock is left."""
        done = subprocess.run(
            ["git", "fsck", "--strict", "--no-dangling", "--no-progress"],
            cwd=self.root,
            capture_output=True,
            check=False,
        )
        said = [text for text in (done.stdout + done.stderr).decode().splitlines() if "unborn" not in text]
        said = [text for text in said if text.startswith(("error", "fatal", "missing", "broken"))]
        assert done.returncode == 0, said
        assert not said
        assert not list((self.root / ".git").rglob("*.lock"))


def killed_after(calls: int, work: Callable[[], object]) -> bool:
    """Do `work` in a process that is killed before its git call, or its own change of the git folder, number `calls`.
    False: it ended before that.
    """
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            _count_down(calls)
            work()
            os._exit(0)
        os._exit(1)
    _, status = os.waitpid(child, 0)
    assert status in (0, signal.SIGKILL), "the work itself failed"
    return status != 0


def _count_down(calls: int) -> None:
    real, left = door._started, iter(range(calls))

    def counted(call: door.Call, *, keep_stderr: bool = True) -> AbstractContextManager[Popen[bytes]]:
        if next(left, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(call, keep_stderr=keep_stderr)

    door._started = counted  # type: ignore[assignment]
    replace = Path.replace

    def counted_replace(self: Path, target: Path) -> Path:  # how every file is put in its place
        if next(left, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)
        return replace(self, target)

    Path.replace = counted_replace  # type: ignore[assignment, method-assign]


@contextmanager
def as_nobody() -> Iterator[Path]:
    """A folder of another user, and all rights of root put down: permissions count. Only root can do this."""
    nobody = 65534
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        os.chown(name, nobody, nobody)
        home = os.environ["HOME"]
        os.environ["HOME"] = name
        os.setresgid(nobody, nobody, 0)
        os.setresuid(nobody, nobody, 0)
        try:
            yield Path(name)
        finally:
            os.setresuid(0, 0, 0)
            os.setresgid(0, 0, 0)
            os.environ["HOME"] = home


def listing(root: Path) -> dict[str, tuple[str, bytes]]:
    found: dict[str, tuple[str, bytes]] = {}
    for where, folders, files in os.walk(root):
        folders[:] = [f for f in folders if not (Path(where) == root and f == ".git")]
        inner = os.path.relpath(where, root)
        if not folders and not files and inner != ".":
            found[f"{inner}/"] = ("folder", b"")
        for name in (*files, *(f for f in folders if (Path(where) / f).is_symlink())):
            path = Path(where) / name
            relative = os.path.normpath(f"{inner}/{name}")
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode):
                found[relative] = ("link", os.fsencode(path.readlink()))
            elif stat.S_ISREG(mode):
                found[relative] = ("program" if mode & stat.S_IXUSR else "file", path.read_bytes())
            else:
                found[relative] = ("special", b"")
    return found
