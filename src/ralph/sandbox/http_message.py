"""Heads of HTTP/1 messages, read strictly: what two readers could understand differently is an error. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

CHUNKED = -1
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_UNWANTED = re.compile(r"[\x00\r\n]")
_HOP_BY_HOP = {
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authorization",
    "proxy-authenticate",
    "te",
    "upgrade",
}
_FRAMING = {"content-length", "transfer-encoding"}


class BadMessage(Exception):
    """The message is a sentence for the client."""


class Head(NamedTuple):
    start: tuple[str, str, str]
    """Method, target and version, or version, status and reason."""
    fields: tuple[tuple[str, str], ...]

    def all(self, name: str) -> list[str]:
        return [value for field, value in self.fields if field.lower() == name]

    def end_to_end(self) -> list[tuple[str, str]]:
        """The fields that are passed on. How the body is framed is, whatever `Connection` names."""
        named = {word.strip().lower() for value in self.all("connection") for word in value.split(",")}
        dropped = _HOP_BY_HOP | (named - _FRAMING)
        return [(field, value) for field, value in self.fields if field.lower() not in dropped]


def parse_head(data: bytes) -> Head:
    """Raises BadMessage."""
    first, *lines = data.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    start = first.split(" ", 2)
    if len(start) == 2 and first.startswith("HTTP/"):
        start.append("")  # an answer without a reason
    if len(start) != 3 or _UNWANTED.search(first):
        raise BadMessage("the first line is not one of HTTP/1")
    fields = []
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not _TOKEN.fullmatch(name) or _UNWANTED.search(value):
            raise BadMessage("a header line is malformed")
        fields.append((name, value.strip(" \t")))
    return Head((start[0], start[1], start[2]), tuple(fields))


def join_head(start: Iterable[str], fields: Iterable[tuple[str, str]]) -> bytes:
    lines = [" ".join(start).rstrip(" "), *(f"{name}: {value}" for name, value in fields), "", ""]
    return "\r\n".join(lines).encode("latin-1")


def body_length(head: Head) -> int:
    """Bytes of a request's body, or CHUNKED. Raises BadMessage."""
    encodings, lengths = head.all("transfer-encoding"), set(head.all("content-length"))
    if encodings:
        if lengths or [value.lower() for value in encodings] != ["chunked"] or head.start[2] != "HTTP/1.1":
            raise BadMessage("it is unclear where the body ends")
        return CHUNKED
    if not lengths:
        return 0
    value = lengths.pop()
    if lengths or not (value.isascii() and value.isdecimal() and len(value) < 19):
        raise BadMessage("it is unclear where the body ends")
    return int(value)


class Target(NamedTuple):
    host: str
    port: int
    path: str = ""
    authority: str = ""


def parse_target(head: Head) -> Target:
    """Where a request to a proxy goes. Raises BadMessage."""
    method, target, version = head.start
    if version not in ("HTTP/1.0", "HTTP/1.1") or not _TOKEN.fullmatch(method):
        raise BadMessage("the first line is not one of HTTP/1")
    if method == "CONNECT":
        host, port = _authority(target, None)
        return Target(host, port)
    scheme, mark, rest = target.partition("://")
    if not mark or scheme.lower() != "http":
        raise BadMessage("this is a proxy: use an http:// address or CONNECT")
    place = re.split(r"[/?#]", rest, maxsplit=1)[0]
    path = rest[len(place) :].partition("#")[0]
    authority = place.rpartition("@")[2]
    host, port = _authority(authority, 80)
    if not path.startswith("/"):
        path = "*" if method == "OPTIONS" and not path else f"/{path}"
    return Target(host, port, path, authority)


def _authority(text: str, usual: int | None) -> tuple[str, int]:
    match = re.fullmatch(r"(\[[0-9A-Fa-f:.%\w]+\]|[^:@/\[\]\s]+)(?::([0-9]{0,5}))?", text)
    if match is None:
        raise BadMessage("the host is malformed")
    port = int(match[2]) if match[2] else usual
    if port is None or not 0 < port < 65536:
        raise BadMessage("the port is missing or malformed")
    return match[1].strip("[]"), port
