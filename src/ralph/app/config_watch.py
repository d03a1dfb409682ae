"""Notice changes to a run's settings files. The run keeps the settings it started with."""

from __future__ import annotations

from pathlib import Path

from ralph.config.layers import WORKSPACE, Settings
from ralph.core.errors import BadData
from ralph.host.files import read_bytes

_LIMIT = 1_000_000


class ConfigWatch:
    def __init__(self, settings: Settings, root: Path) -> None:
        self._root = root
        named = [Path(layer.file) for layer in settings.layers if layer.kind in WORKSPACE and layer.file]
        self._start = {path: self._read(path) for path in (root / ".ralph" / "config.yaml", *named)}
        self._told = dict(self._start)

    def __call__(self) -> tuple[str, ...]:
        """Files that changed since the run started; each version is reported once."""
        now = {path: self._read(path) for path in self._start}
        changed = [path for path, data in now.items() if data not in (self._start[path], self._told[path])]
        self._told = now
        return tuple(str(path.relative_to(self._root)) for path in changed)

    def _read(self, path: Path) -> bytes | None:
        try:
            return read_bytes(path, within=self._root, limit=_LIMIT)
        except BadData:
            return None
