"""The files by which an agent talks to the loop: the request file, and the sentinels WAITING and COMPLETE."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from ralph.core.errors import BadData
from ralph.core.requests import Request, read_request
from ralph.core.text import clean
from ralph.host.files import make_folder, read_bytes, write_text
from ralph.host.removal import remove_tree

_LIMIT = 64 * 1024
_LONGEST = 4000


class WorkspaceDesk:
    """`folder` is the plan's own; the sentinels are in the workspace's `.ralph/`, where users expect them."""

    def __init__(self, root: Path, folder: Path, *, asks_by_file: bool = False) -> None:
        self._root = root
        self.asks_by_file = asks_by_file
        """The layout has WAITING: it holds every question, and removing the file also counts as an answer."""
        self.request = folder / "request.json"
        self._waiting = root / ".ralph" / "WAITING"
        self._complete = root / ".ralph" / "COMPLETE"

    @property
    def files(self) -> tuple[Path, ...]:
        return (self.request, self._waiting, self._complete)

    def clear(self) -> None:
        for path in (self.request, self._complete):
            self._remove(path)

    def take(self) -> Request:
        request = self._request()
        complete = self._complete.is_file()
        waiting = self.waiting()
        self.clear()
        self._remove(self._waiting)
        return msgspec.structs.replace(request, complete=complete, waiting=waiting)

    def _request(self) -> Request:
        try:
            data = read_bytes(self.request, within=self._root, limit=_LIMIT)
        except BadData as error:
            return Request(problem=f"the request file could not be read: {error}" if self.request.exists() else "")
        return read_request(data) if data.strip() else Request()

    def waiting(self) -> str:
        """An empty WAITING file still blocks the run: the reason is unknown, so the user has to check."""
        if not self._waiting.is_file():
            return ""
        return clean(self._read(self._waiting)).strip()[:_LONGEST] or ".ralph/WAITING is empty"

    def keep_waiting(self, text: str) -> None:
        make_folder(self._waiting.parent)
        write_text(self._waiting, text.rstrip() + "\n")

    def says_complete(self) -> bool:
        return self._complete.is_file()

    def answered(self) -> None:
        """The user has answered: remove WAITING so that the run can continue."""
        self._remove(self._waiting)

    def complete(self) -> None:
        make_folder(self._complete.parent)
        write_text(self._complete, "")

    def _read(self, path: Path) -> str:
        try:
            return read_bytes(path, within=self._root, limit=_LIMIT).decode("utf-8", "replace")
        except BadData:
            return ""

    def _remove(self, path: Path) -> None:
        """Remove a file, or a folder that an agent put in its place; git ignores both, so a rollback does not see them.

        A link in place of a parent folder may point outside the workspace; its target is not removed.
        """
        if Path(os.path.realpath(path.parent)).is_relative_to(os.path.realpath(self._root)) and os.path.lexists(path):
            remove_tree(path)
