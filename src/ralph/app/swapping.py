"""Other versions of some files in the working tree, for as long as the checks take.

In place, because checks need what a second tree would not have: dependencies that were installed into the folder,
build results, paths that somebody wrote down. A rescue ref holds the work meanwhile, so a kill loses nothing.
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence

from ralph.host.removal import remove_empty_folders, remove_file
from ralph.host.restoring import write_files
from ralph.host.shadow import Shadow
from ralph.host.trees import Changed

Keep = Callable[[], contextlib.AbstractContextManager[object]]


@contextlib.contextmanager
def swapped(shadow: Shadow, todo: Sequence[Changed], keep: Keep = contextlib.nullcontext) -> Iterator[None]:
    """Inside, each of these files is what it was before its change. After it, it is what it was made, in any case."""
    with keep():
        at = _write(shadow, [_backwards(change) for change in todo], _newest(shadow, todo))
        try:
            yield
        finally:
            _write(shadow, todo, at)


def _write(shadow: Shadow, wanted: Sequence[Changed], last: float) -> float:
    """Make the disk say the new side of these. Returns the time that the files have then."""
    for change in wanted:
        if change.status == "D":
            remove_file(shadow.root, change.raw)
            remove_empty_folders(shadow.root, change.raw.rpartition(b"/")[0], lambda folder: False)
    written = [change for change in wanted if change.status != "D"]
    write_files(shadow, written)
    # Caches of compiled files compare sizes and whole seconds: two versions must never have the same.
    at = max(time.time(), math.floor(last) + 1)
    for change in written:
        with contextlib.suppress(OSError, NotImplementedError):
            os.utime(os.fsencode(shadow.root) + b"/" + change.raw, (at, at), follow_symlinks=False)
    return at


def _newest(shadow: Shadow, todo: Sequence[Changed]) -> float:
    times = [0.0]
    for change in todo:
        with contextlib.suppress(OSError):
            times.append(os.lstat(os.fsencode(shadow.root) + b"/" + change.raw).st_mtime)
    return max(times)


def _backwards(change: Changed) -> Changed:
    status = {"A": "D", "D": "A"}.get(change.status, change.status)
    return Changed(change.path, status, change.new_mode, change.old_mode, change.new_id, change.old_id, change.raw)
