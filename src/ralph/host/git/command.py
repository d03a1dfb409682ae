"""Runs git: without hooks, prompts, pagers or helpers, and never in an outer repository."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import stat
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from ralph.core.errors import SetupError, StoppedNow
from ralph.core.lazy_pattern import lazy_pattern
from ralph.core.text import one_line
from ralph.host.process.signals import is_stopping, urgent_exit_code

_READ_BY_GIT = frozenset({".gitignore", ".gitattributes", ".gitmodules", ".mailmap"})
TIMEOUT = 600.0
"""Seconds. A git command that takes longer is hanging, on a lock or a dead network drive."""
_GRACE = 2.0
_SLOW = 3.0
"""Seconds after which git may be waiting for a named pipe."""
_PIPES = 20
_LOOK = 0.5
"""Seconds between looks at an urgent request to stop."""
_LOCKED = lazy_pattern(rb"Unable to create '.*index\.lock': File exists")
_LOCK_PATIENCE = 10.0
_LOCK_PATIENCE_STOPPING = 1.0
_LOCK_PAUSE = 0.1
# Whatever can make git start another program, or change its answers. A `-c` wins over every file.
_PLAIN = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.pager=cat",
    "core.editor=:",
    "core.askPass=",
    "credential.helper=",
    "commit.gpgSign=false",
    "tag.gpgSign=false",
    "log.showSignature=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
    "protocol.ext.allow=never",
    "color.ui=false",
    "core.filesRefLockTimeout=5000",  # milliseconds to wait for another process's lock on a ref, instead of 100
    "core.packedRefsTimeout=10000",
)
_FLAGS = tuple(part for setting in _PLAIN for part in ("-c", setting))
_PRIVATE_INDEX_FLAGS = ("-c", "core.splitIndex=false")  # a split one would put its other half into the repository
_IDENTITY = frozenset(f"GIT_{who}_{what}" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL"))
BAD_INDEX = (
    'rebuild the index with `rm "$(git rev-parse --git-path index)" && git reset`: files stay as they are, and what was'
    " staged has to be staged again"
)
_BAD_OBJECT = (
    "an object is damaged or missing: `git fsck --full` names it; delete the empty file it names, then get the object"
    " with `git fetch` or from another clone; `git reflog` shows earlier commits to go back to"
)
_REMEDIES = (
    (re.compile(r"(unexpected|unterminated) line in .*packed-refs"), "delete the line that git names from packed-refs"),
    (re.compile(r"No space left on device|Out of diskspace"), "free up space, then run again"),
    (
        re.compile(r"index file (smaller than expected|corrupt)|bad index file|bad signature 0x"),
        BAD_INDEX,
    ),
    (
        re.compile(
            r"object file .* is empty|(loose|packed) object .* is corrupt|bad (tree )?object|nonexistent object"
            r"|unable to (read|parse|find) (tree|commit|object|[0-9a-f]{40})|missing (blob|tree|commit|object)"
            r"|could not (read|parse) (HEAD|commit|object)|(in|not a )valid object|your current branch appears"
        ),
        _BAD_OBJECT,
    ),
)
"""What to do about a damaged repository, by git's words."""


def _remove_pipes(root: Path, git_dir: Path) -> int:
    """Remove named pipes from the working tree and from git's own folder, where git expects files.

    Git opens such a pipe and waits for ever. Ending the wait is enough for it to go on: it reads the end of a file.
    """
    found = [*_pipes(root, _READ_BY_GIT), *_pipes(git_dir, None)]
    for path in found:
        with contextlib.suppress(OSError):
            writer = -1
            with contextlib.suppress(OSError):  # nobody waits for this one
                writer = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            path.unlink()
            if writer >= 0:
                os.close(writer)
    return len(found)


def _pipes(folder: Path, names: frozenset[str] | None) -> list[Path]:
    found = []
    for parent, folders, files in os.walk(folder):
        if names is not None and ".git" in folders:
            folders.remove(".git")
        for name in files:
            if names is None or name in names:
                path = Path(parent, name)
                with contextlib.suppress(OSError):
                    if stat.S_ISFIFO(path.lstat().st_mode):
                        found.append(path)
    return found


class Located(Protocol):
    """A git directory and a working tree, both known, so that git never has to search for them."""

    @property
    def git_dir(self) -> Path: ...

    @property
    def root(self) -> Path: ...

    @property
    def surroundings(self) -> Mapping[str, str]:
        """Environment variables for this pair."""
        ...


class Answer(Struct, frozen=True):
    code: int
    out: bytes
    err: bytes

    @property
    def complaint(self) -> str:
        """The first line on stderr that is not a hint, without its prefix."""
        lines = self.err.decode("utf-8", "replace").splitlines()
        said = [line for line in lines if line.strip() and not line.startswith(("hint:", "warning:"))]
        first = (said or lines or [f"exit code {self.code}"])[0]
        return one_line(first.removeprefix("fatal: ").removeprefix("error: "), 300)


class GitFailed(SetupError):
    """Git failed. The message is the first line of its error."""

    def __init__(self, args: Sequence[str | bytes], answer: Answer) -> None:
        verb = next((os.fsdecode(a) for a in args if not os.fsdecode(a).startswith("-")), "git")
        text = answer.err.decode("utf-8", "replace")
        hint = next((hint for pattern, hint in _REMEDIES if pattern.search(text)), "run the same command to see more")
        super().__init__(f"git {verb}: {answer.complaint}", hint=hint)
        self.answer = answer


class Call(Struct, frozen=True):
    """One git command that can run in parallel with others."""

    where: Located | Path
    args: tuple[str | bytes, ...]
    index: Path | None = None
    env_extra: Mapping[str, str] = {}
    stdin: bytes = b""
    is_plain: bool = False
    """Without our settings and variables, as the user would call it."""


def git(
    where: Located | Path,
    *args: str | bytes,
    index: Path | None = None,
    stdin: bytes = b"",
    env_extra: Mapping[str, str] | None = None,
    timeout: float = TIMEOUT,
) -> bytes:
    """The output of a git command. Raises GitFailed when it fails."""
    answer = ask(where, *args, index=index, stdin=stdin, env_extra=env_extra, timeout=timeout)
    if answer.code != 0:
        raise GitFailed(args, answer)
    return answer.out


def ask(
    where: Located | Path,
    *args: str | bytes,
    index: Path | None = None,
    stdin: bytes = b"",
    env_extra: Mapping[str, str] | None = None,
    timeout: float = TIMEOUT,
) -> Answer:
    """Like `git`, for commands whose exit code is an answer. `where` as a path is a folder to run in."""
    return _ask(Call(where, args, index, env_extra or {}, stdin), timeout)


def ask_plainly(folder: Path, *args: str, timeout: float) -> Answer:
    """Run git as the user would, with hooks and all settings, but never with a question at the terminal."""
    return _ask(Call(folder, args, is_plain=True), timeout)


def _ask(call: Call, timeout: float) -> Answer:
    with _started(call) as process:
        answer = _answer(call, process, timeout)
    return _when_unlocked(call, answer, timeout)


def try_ask(
    where: Located | Path,
    *args: str | bytes,
    stdin: bytes = b"",
    env_extra: Mapping[str, str] | None = None,
    timeout: float = TIMEOUT,
) -> Answer:
    """Like `ask`, for commands that may hang: taking too long is an answer, too."""
    try:
        return ask(where, *args, stdin=stdin, env_extra=env_extra, timeout=timeout)
    except GitFailed as error:
        return error.answer


def ask_together(calls: Sequence[Call]) -> list[Answer]:
    """The answers of independent commands, run in parallel."""
    if not calls:
        return []
    with _started(calls[0]) as process:
        rest = ask_together(calls[1:])
        answer = _answer(calls[0], process, TIMEOUT)
    return [_when_unlocked(calls[0], answer, TIMEOUT), *rest]


def git_together(calls: Sequence[Call]) -> list[bytes]:
    """The output of independent commands, run in parallel. Raises GitFailed when one fails."""
    answers = ask_together(calls)
    for call, answer in zip(calls, answers, strict=True):
        if answer.code:
            raise GitFailed(call.args, answer)
    return [answer.out for answer in answers]


def _when_unlocked(call: Call, answer: Answer, timeout: float) -> Answer:
    """Ask again while another program holds the index for a moment, such as a `git status` in an editor.

    Git takes this lock before it does anything, so nothing is done twice.
    """
    begun = time.monotonic()
    while answer.code == 128 and _LOCKED.search(answer.err):
        if time.monotonic() - begun > (_LOCK_PATIENCE if not is_stopping() else _LOCK_PATIENCE_STOPPING):
            break
        time.sleep(_LOCK_PAUSE)
        with _started(call) as process:
            answer = _answer(call, process, timeout)
    return answer


def head_of_output(where: Located | Path, *args: str | bytes, limit: int) -> tuple[bytes, bool]:
    """The first `limit` bytes of a command's output, and whether there was more. The rest is not read."""
    with _started(Call(where, args), keep_stderr=False) as process:
        assert process.stdout is not None
        data = process.stdout.read(limit + 1)
        process.kill()
    return data[:limit], len(data) > limit


def names(out: bytes) -> list[bytes]:
    """The items of `-z` output."""
    return out.split(b"\0")[:-1] if out else []


def printable(path: bytes) -> str:
    """A path as text that any log can hold: exact for UTF-8, with escapes for what is not."""
    return path.decode("utf-8", "backslashreplace")


def line(out: bytes) -> str:
    return out.decode("utf-8", "surrogateescape").rstrip("\n")


def environment() -> dict[str, str]:
    """Our environment without `GIT_*`, which could point git at another repository, index or configuration."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    kept.pop("LANGUAGE", None)
    return kept | {
        "LC_ALL": "C",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_LITERAL_PATHSPECS": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",  # a replace ref would show us other content under the same id
    }


def without_settings(home: Path) -> dict[str, str]:
    """Variables with which git reads no settings of the user or the system."""
    nothing = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_ATTR_NOSYSTEM": "1"}
    return nothing | {"HOME": str(home), "XDG_CONFIG_HOME": str(home)}


def _plain_environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in _IDENTITY}
    return kept | {"GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": ":"}


def identity(name: str, email: str) -> dict[str, str]:
    """Environment variables for a commit that is not the user's."""
    values = {"NAME": name, "EMAIL": email}
    return {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in values.items()}


def identity_from_environment() -> dict[str, str]:
    """A git identity that the user set with environment variables; it belongs to the user, not to a repository."""
    return {name: value for name, value in os.environ.items() if name in _IDENTITY and value}


@contextmanager
def _started(call: Call, *, keep_stderr: bool = True) -> Iterator[subprocess.Popen[bytes]]:
    env = environment() if not call.is_plain else _plain_environment()
    argv: list[str | bytes] = ["git", "--no-pager"]
    if isinstance(call.where, Path):
        folder = call.where
    else:
        folder = call.where.root
        argv += [f"--git-dir={call.where.git_dir}", f"--work-tree={folder}"]
        env |= call.where.surroundings
    argv += _FLAGS if not call.is_plain else ()
    if call.index is not None:
        env["GIT_INDEX_FILE"] = str(call.index)
        argv += _PRIVATE_INDEX_FLAGS
    env |= call.env_extra
    stdin = _as_file(call.stdin) if call.stdin else None
    try:
        process = subprocess.Popen(
            [*argv, *call.args],
            cwd=folder,
            env=env,
            stdin=stdin if stdin is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if keep_stderr else subprocess.DEVNULL,
            process_group=0,  # a Ctrl-C is for the loop; git finishes what it is writing
        )
    except FileNotFoundError as error:
        if error.filename == "git":
            raise SetupError("git is not installed, or not on PATH", hint="install git 2.30 or newer") from None
        raise SetupError(f"the folder {folder} does not exist") from None
    except OSError as error:
        raise SetupError(f"could not start git in {folder}: {error.strerror}") from None
    finally:
        if stdin is not None:
            os.close(stdin)
    with process:
        try:
            yield process
        except BaseException:
            _end(process)
            raise


def _as_file(data: bytes) -> int:
    """A descriptor to read this from. Not a pipe: `communicate`, called again after a timeout, does not fill it."""
    try:
        descriptor = os.memfd_create("stdin")
    except (AttributeError, OSError):  # not on Linux, or forbidden
        from tempfile import TemporaryFile

        with TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    try:
        left = memoryview(data)
        while left:
            left = left[os.write(descriptor, left) :]
        os.lseek(descriptor, 0, os.SEEK_SET)
    except OSError as error:
        os.close(descriptor)
        raise SetupError(f"could not pass {len(data):,} bytes to git: {error.strerror}") from error
    return descriptor


def _end(process: subprocess.Popen[bytes]) -> None:
    """SIGTERM first, so that git removes its own lock files. Then what git itself started ends, too: a filter, ssh."""
    process.terminate()
    try:
        process.wait(_GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)


def _answer(call: Call, process: subprocess.Popen[bytes], timeout: float) -> Answer:
    try:
        out, err = _communicate(call, process, timeout)
    except subprocess.TimeoutExpired:
        _end(process)
        raise GitFailed(call.args, Answer(-9, b"", f"did not finish within {timeout:g} seconds".encode())) from None
    return Answer(process.returncode, out, err)


def _communicate(call: Call, process: subprocess.Popen[bytes], timeout: float) -> tuple[bytes, bytes]:
    begun = time.monotonic()
    for _ in range(_PIPES if timeout > _SLOW else 0):
        try:
            return _communicate_until(call, process, _SLOW)
        except subprocess.TimeoutExpired:
            pass
        root, git_dir = _places(call.where)
        if not _remove_pipes(root, git_dir):
            break
    return _communicate_until(call, process, max(timeout - (time.monotonic() - begun), 0.1))


def _communicate_until(call: Call, process: subprocess.Popen[bytes], timeout: float) -> tuple[bytes, bytes]:
    """Raises StoppedNow if git takes its time after a second request to stop."""
    deadline = time.monotonic() + timeout
    while True:
        urgent = urgent_exit_code()
        try:
            return process.communicate(timeout=min(_LOOK, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            if time.monotonic() >= deadline:
                raise
            if urgent is not None:
                verb = next((os.fsdecode(a) for a in call.args if not os.fsdecode(a).startswith("-")), "git")
                why = f"git {verb} was ended: the run was asked twice to stop"
                raise StoppedNow(why, urgent, hint="the next `ralph run` closes the iteration") from None


def _places(where: Located | Path) -> tuple[Path, Path]:
    return (where, where / ".git") if isinstance(where, Path) else (where.root, where.git_dir)
