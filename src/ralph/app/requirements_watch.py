"""Watches the requirements page or a prompt during a run: agents read it, the user may change it.

A change between iterations is the user's and takes effect. A change found after an agent ran is reverted, also where
git does not track the page.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from ralph.core.errors import BadData
from ralph.engine.ground import PageBack
from ralph.host.files import make_folder, read_bytes, write_bytes
from ralph.journal.sinks.door import Door

_LIMIT = 4_000_000


class RequirementsWatch:
    """`aside` is a folder that only the run uses; it keeps the agents' versions of the page."""

    def __init__(self, page: Path | None, root: Path, aside: Path) -> None:
        self._page = _behind(page, root) if page is not None and page.is_symlink() else page
        self._root = root
        self._aside = aside
        self._before = self._read()
        self._is_odd = self._before is None and page is not None and os.path.lexists(page)
        """Something else was at this path before the run: it is the user's, and is left alone."""

    @property
    def name(self) -> str:
        return os.path.relpath(self._page, self._root) if self._page else ""

    def by_people(self) -> list[str]:
        """Between iterations: accept what changed since the last one as the user's change."""
        now = self._read()
        if now == self._before:
            return []
        done = "removed" if now is None else "written" if self._before is None else "changed"
        self._before, self._is_odd = now, False
        return [f"{self.name} was {done} outside the run: agents use it as it is now"]

    def put_back(self, iteration: int) -> PageBack:
        """After an agent: restore the page if it changed."""
        if self._page is None or self._is_odd:
            return PageBack()
        now = self._read()
        if now == self._before and (now is not None or not os.path.lexists(self._page)):
            return PageBack()
        aside = make_folder(self._aside, private=True) / f"{iteration:04}-{self._page.name}"
        kept = f"; the agent's version is in {aside}"
        if now is not None:
            write_bytes(aside, now, mode=0o600, durable=False)
        elif not self._move_away(self._page, aside):
            kept = ""
        self._write(self._page)
        if self._read() != self._before:
            return PageBack(left=f"{self.name} is read-only during a run, but could not be restored")
        return PageBack(f"{self.name} is read-only during a run and was restored{kept}")

    def _move_away(self, page: Path, aside: Path) -> bool:
        """Move away a symlink or a folder that replaced the page."""
        with contextlib.suppress(OSError):
            if page.is_symlink():
                page.unlink()
            elif page.is_dir():
                import shutil  # rare

                shutil.move(page, aside)
                return True
        return False

    def _write(self, page: Path) -> None:
        door = Door(self._root)
        if self._before is None:
            door.remove(page)
        else:
            door.replace(page, self._before)

    def _read(self) -> bytes | None:
        if self._page is None or self._page.is_symlink():
            return None
        try:
            return read_bytes(self._page, within=self._root, limit=_LIMIT)
        except BadData:
            return None


def _behind(link: Path, root: Path) -> Path | None:
    """The page that the user's symlink points to. None if it is outside the workspace."""
    page, top = link.resolve(), root.resolve()
    return root / page.relative_to(top) if page.is_relative_to(top) and page.is_file() else None
