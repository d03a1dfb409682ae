"""What the handlers share: the runs that are looked at, the streams, and the files of the page."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path

from anyio import CapacityLimiter
from starlette.responses import Response

from ralph.web.access import Refused
from ralph.web.feeds import Feeds, Home
from ralph.web.streams import Streams

_FOLDER = Path(__file__).parent / "static"
_TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".json": "application/json",
    ".webmanifest": "application/manifest+json",
}


class Static:
    """The files of the page, by name. What a request names is only looked up in this table."""

    def __init__(self) -> None:
        self._known = {path.name: path for path in sorted(_FOLDER.iterdir()) if path.suffix in _TYPES}

    def answer(self, name: str) -> Response:
        path = self._known.get(name)
        if path is None:
            raise Refused(HTTPStatus.NOT_FOUND, "there is no such file")
        return Response(path.read_bytes(), media_type=_TYPES[path.suffix])


class Site:
    def __init__(self, env: Mapping[str, str], feeds: Feeds, home: Home, streams: Streams) -> None:
        self.env, self.feeds, self.home, self.streams = env, feeds, home, streams
        self.static = Static()
        self.heavy = CapacityLimiter(4)
