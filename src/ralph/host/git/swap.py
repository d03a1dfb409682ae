"""Puts other versions of some files into the working tree while checks run.

This is done in place, because checks need what a second tree would not have: installed dependencies, build results,
absolute paths. A rescue ref holds the work meanwhile, so a kill loses nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

from ralph.host.clocks import newest, set_later
from ralph.host.git.objects import Changed
from ralph.host.git.restore import write_files
from ralph.host.git.shadow import Shadow
from ralph.host.removal import remove_empty_folders, remove_file

Keep = Callable[[Sequence[bytes]], contextlib.AbstractContextManager[object]]
"""Keeps the work while other versions of these files are in its place."""


@contextlib.contextmanager
def keep_nothing(paths: Sequence[bytes]) -> Iterator[None]:
    """For files that exist elsewhere."""
    yield


@contextlib.contextmanager
def swapped(shadow: Shadow, todo: Sequence[Changed], keep: Keep = keep_nothing) -> Iterator[None]:
    """Inside, each of these files is as it was before its change. Afterwards the change is restored in any case."""
    with keep([change.raw for change in todo]):
        at = _write(
            shadow, [_backwards(change) for change in todo], newest(shadow.root, [change.raw for change in todo])
        )
        try:
            yield
        finally:
            _write(shadow, todo, at)


def swap_back(shadow: Shadow, todo: Sequence[Changed]) -> None:
    """Restore changes after a kill left other versions in their place."""
    _write(shadow, todo, newest(shadow.root, [change.raw for change in todo]))


def _write(shadow: Shadow, wanted: Sequence[Changed], last: float) -> float:
    """Write the new side of these changes to disk. Returns the modification time of the files."""
    for change in wanted:
        if change.status == "D":
            remove_file(shadow.root, change.raw)
            remove_empty_folders(shadow.root, change.raw.rpartition(b"/")[0], lambda folder: False)
    written = [change for change in wanted if change.status != "D"]
    write_files(shadow, written)
    return set_later(shadow.root, [change.raw for change in written], last)


def _backwards(change: Changed) -> Changed:
    status = {"A": "D", "D": "A"}.get(change.status, change.status)
    return Changed(change.path, status, change.new_mode, change.old_mode, change.new_id, change.old_id, change.raw)
