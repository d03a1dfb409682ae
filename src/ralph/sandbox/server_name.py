"""The host name in the first message of a TLS connection (SNI), which the client sends unencrypted. Pure."""

from __future__ import annotations

_HANDSHAKE = 0x16
_CLIENT_HELLO = 1
_SERVER_NAME = 0
_LONGEST = 64 * 1024


class Incomplete(Exception):
    """More bytes are needed."""


def server_name(data: bytes) -> str:
    """The name that a client asks for with its first bytes; empty if this is not TLS or has no name.

    Raises Incomplete.
    """
    if data[:1] != bytes((_HANDSHAKE,)):
        return ""
    try:
        return _in_hello(_Bytes(_handshake(data)))
    except _Short:
        return ""


def _handshake(data: bytes) -> bytes:
    """The ClientHello, which may be spread over several records. Raises Incomplete, _Short."""
    message = b""
    at = 0
    while True:
        if len(message) >= 4:
            if message[0] != _CLIENT_HELLO:
                raise _Short
            length = int.from_bytes(message[1:4], "big")
            if length > _LONGEST:
                raise _Short
            if len(message) >= 4 + length:
                return message[4 : 4 + length]
        header = data[at : at + 5]
        if len(header) < 5:
            raise Incomplete
        if header[0] != _HANDSHAKE or header[1] != 3:
            raise _Short
        length = int.from_bytes(header[3:5], "big")
        message += data[at + 5 : at + 5 + length]
        if len(data) < at + 5 + length and (len(message) < 4 or len(message) < 4 + int.from_bytes(message[1:4], "big")):
            raise Incomplete
        at += 5 + length


def _in_hello(hello: _Bytes) -> str:
    hello.take(2 + 32)  # version and random
    hello.take_counted(1)  # session
    hello.take_counted(2)  # cipher suites
    hello.take_counted(1)  # compression
    extensions = _Bytes(hello.take_counted(2))
    while extensions.is_left:
        kind, content = extensions.number(2), _Bytes(extensions.take_counted(2))
        if kind == _SERVER_NAME:
            names = _Bytes(content.take_counted(2))
            while names.is_left:
                kind_of_name, name = names.number(1), names.take_counted(2)
                if kind_of_name == 0:
                    return name.decode("latin-1")
    return ""


class _Short(Exception):
    """It is not what it seemed to be."""


class _Bytes:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def is_left(self) -> bool:
        return self._at < len(self._data)

    def take(self, length: int) -> bytes:
        part = self._data[self._at : self._at + length]
        if len(part) < length:
            raise _Short
        self._at += length
        return part

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def take_counted(self, size: int) -> bytes:
        return self.take(self.number(size))
