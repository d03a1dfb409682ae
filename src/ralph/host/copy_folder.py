"""Copy folders of dependencies to another place, so that nothing in the copy points back to the original."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from ralph.core.errors import SetupError
from ralph.core.lazy_pattern import lazy_pattern
from ralph.core.text import one_line
from ralph.host.process.start import run
from ralph.host.removal import remove_tree

_TIMEOUT = 600.0
_LARGEST_TEXT = 1024 * 1024
_PROGRAMS = (b"bin", b".bin", b"Scripts")
_TEXTS = lazy_pattern(rb"pyvenv\.cfg|direct_url\.json|__editable__.*\.py|.*\.(?:pth|egg-link)|\.modules\.yaml")
_CACHES = (b"__pycache__", b".cache", b".vite", b".vite-temp", b".vitest")


def copy_tree(source: Path, target: Path) -> None:
    """A real copy, never a hard link to the original: blocks are shared where the file system can do that safely."""
    remove_tree(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    flags = ["-a", "--reflink=auto"] if sys.platform == "linux" else ["-pPR"]
    done = run(["cp", *flags, "--", str(source), str(target)], cwd=target.parent, timeout=_TIMEOUT)
    if not done.ok:
        remove_tree(target)
        raise SetupError(f"could not copy {source}: {one_line(done.err.decode('utf-8', 'replace'), 200)}")


def redirect(folder: Path, old: Path, new: Path) -> None:
    """Make links and text files in `folder` that name the folder `old` name `new` instead.

    Such texts are start lines of programs, virtual environments' settings and what makes an install editable.
    """
    pairs = [(os.fsencode(old), os.fsencode(new)), (quote(str(old)).encode(), quote(str(new)).encode())]
    patterns = [(re.compile(re.escape(before) + rb"(?![\w.-])"), after) for before, after in dict(pairs).items()]
    paths = _walk(os.fsencode(folder)) if folder.is_dir() else [(os.fsencode(folder), folder.lstat())]
    for path, found in paths:
        if stat.S_ISLNK(found.st_mode):
            target = os.readlink(path)  # noqa: PTH115 - bytes
            if (changed := _replaced(target, patterns)) != target:
                os.unlink(path)  # noqa: PTH108
                os.symlink(changed, path)  # noqa: PTH211
        elif stat.S_ISREG(found.st_mode) and found.st_size <= _LARGEST_TEXT and _is_text(path):
            with contextlib.suppress(OSError):
                _redirect_text(path, stat.S_IMODE(found.st_mode), patterns)


def _is_text(path: bytes) -> bool:
    folder, _, name = path.rpartition(b"/")
    return folder.rpartition(b"/")[2] in _PROGRAMS or _TEXTS.fullmatch(name) is not None


def _redirect_text(path: bytes, mode: int, patterns: list[tuple[re.Pattern[bytes], bytes]]) -> None:
    with open(path, "rb") as stream:  # noqa: PTH123 - bytes
        data = stream.read()
    if b"\0" in data or (changed := _replaced(data, patterns)) == data:
        return
    os.chmod(path, mode | stat.S_IWUSR)  # noqa: PTH101
    with open(path, "wb") as stream:  # noqa: PTH123
        stream.write(changed)
    os.chmod(path, mode)  # noqa: PTH101


def _replaced(data: bytes, patterns: list[tuple[re.Pattern[bytes], bytes]]) -> bytes:
    for pattern, after in patterns:
        data = pattern.sub(lambda match, after=after: after, data)  # type: ignore[misc]
    return data


def _walk(folder: bytes) -> Iterator[tuple[bytes, os.stat_result]]:
    """Every file and link in a folder, in a stable order."""
    pending = [folder]
    while pending:
        try:
            with os.scandir(pending.pop()) as listed:
                entries = sorted(listed, key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                pending.append(entry.path)
            else:
                with contextlib.suppress(OSError):
                    yield entry.path, entry.stat(follow_symlinks=False)


def fingerprint(folder: Path) -> str:
    """Changes when a file in the folder is added, removed or written; caches do not count. Empty: no such folder."""
    base = os.fsencode(folder)
    if not os.path.lexists(base):
        return ""
    digest = hashlib.sha256()
    for path, found in _walk(base) if folder.is_dir() else [(base, folder.lstat())]:
        inner = path[len(base) :]
        if not any(part in _CACHES for part in inner.split(b"/")[:-1]):
            digest.update(b"%s\0%d %d %d\n" % (inner, found.st_mode, found.st_size, found.st_mtime_ns))
    return digest.hexdigest()


def size_of(folder: Path) -> int:
    return sum(found.st_size for _, found in _walk(os.fsencode(folder)))
