"""Who may do what: the decision about every request, before anything else looks at it. Pure.

The server is reachable by every user of the machine and by every page in the user's browser. So each request names a
host that is served (a page of another site that points its own name here does not), carries the token or the cookie of
this start of the server, and an act also comes from our own page.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Mapping
from http import HTTPStatus
from math import ceil
from urllib.parse import urlsplit

from msgspec import Struct

LARGEST_BODY = 64 * 1024
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


class Refused(Exception):
    """The request is not answered. `hint` says what to do; `wait`: the seconds after which it may be sent again."""

    def __init__(self, status: HTTPStatus, error: str, hint: str = "", *, wait: int = 0) -> None:
        super().__init__(error)
        self.status, self.error, self.hint, self.wait = status, error, hint, wait


class Asked(Struct, frozen=True, kw_only=True):
    """What a request says about itself."""

    method: str
    path: str
    host: str
    address: str
    """Our own, as the client reached it."""
    headers: Mapping[str, str]
    """By names in lower case."""
    cookie: str = ""
    query_token: str = ""
    """From the address that `ralph serve` prints."""

    @property
    def is_known_by_token(self) -> bool:
        """It names something that is meant to let it in."""
        return bool(self.query_token or self.cookie or self.headers.get("authorization"))


class Access(Struct, frozen=True, kw_only=True):
    token: str
    cookie: str
    """The value of the cookie. Like the token, it is new with every start."""
    port: int
    names: tuple[str, ...] = ()
    """Further names under which the server is reached, with or without a port."""
    is_remote: bool = False
    """Others than this machine may reach it: what a proxy says about TLS counts."""
    read_only: bool = False

    @property
    def cookie_name(self) -> str:
        """Browsers do not keep the cookies of two ports apart."""
        return f"ralph_{self.port}"

    def is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode("utf-8", "replace"), self.token.encode())

    def is_secure(self, asked: Asked) -> bool:
        """The browser speaks TLS with a proxy in front."""
        return self.is_remote and asked.headers.get("x-forwarded-proto", "").strip().lower() == "https"

    def refuse_stranger(self, asked: Asked) -> None:
        """Raises Refused unless the request is one for us."""
        if not asked.path.startswith("/"):
            raise Refused(HTTPStatus.BAD_REQUEST, "the request names no path")
        if not self._is_served(asked):
            raise Refused(
                HTTPStatus.MISDIRECTED_REQUEST,
                "this server is not reached by that name",
                "use the address that `ralph serve` printed, or start it with --allow-host NAME",
            )

    def _is_served(self, asked: Asked) -> bool:
        host = asked.host.lower()
        known = {f"{name}:{self.port}" for name in (*_LOOPBACK, *self.names)} | set(self.names)
        address = asked.address.removeprefix("::ffff:")
        if self.is_remote and _is_address(address):  # a name can be pointed elsewhere, an address cannot
            known |= {f"{address}:{self.port}", f"[{address}]:{self.port}"}
        return host in known or (self.port == 80 and host in _LOOPBACK)

    def refuse_unknown(self, asked: Asked) -> None:
        """Raises Refused unless the request has the token, or comes from our own page."""
        given = asked.headers.get("authorization", "")
        if given[:7].lower() == "bearer ":
            if self.is_token(given[7:].strip()):
                return
        elif hmac.compare_digest(asked.cookie.encode("utf-8", "replace"), self.cookie.encode()):
            # `same-site` is a page on another port of this machine, which may be another user's.
            if asked.path == "/" or asked.headers.get("sec-fetch-site", "none") in ("none", "same-origin"):
                return
            raise Refused(HTTPStatus.FORBIDDEN, "another page asked for this")
        raise Refused(
            HTTPStatus.UNAUTHORIZED,
            "this needs the token",
            "open the address that `ralph serve` printed when it started",
        )

    def refuse_act(self, asked: Asked) -> None:
        """Raises Refused unless the request may change something."""
        if self.read_only:
            raise Refused(HTTPStatus.FORBIDDEN, "this server is read-only", "start it without --read-only")
        if asked.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "acts are sent as application/json")
        if not self._is_our_page(asked):
            raise Refused(HTTPStatus.FORBIDDEN, "another page asked for this")
        length = asked.headers.get("content-length", "0")
        if not length.isdigit() or int(length[:12]) > LARGEST_BODY:
            raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"more than {LARGEST_BODY:,} bytes")

    def _is_our_page(self, asked: Asked) -> bool:
        """A browser says which page asks. A program with the token says nothing."""
        origin, site = asked.headers.get("origin"), asked.headers.get("sec-fetch-site")
        if origin is not None:
            scheme = "https" if self.is_secure(asked) else "http"
            return _origin(origin) == (scheme, asked.host.lower())
        if site is not None:
            return site == "same-origin"
        return not asked.cookie


def _origin(text: str) -> tuple[str, str]:
    try:
        parts = urlsplit(text)
    except ValueError:
        return "", ""
    return ("", "") if parts.path or parts.query or parts.fragment else (parts.scheme, parts.netloc.lower())


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    return _is_address(host) and ipaddress.ip_address(host).is_loopback


class Bucket:
    """So many at once, then so many a second."""

    def __init__(self, most: float = 10, per_second: float = 1) -> None:
        self._most, self._rate = most, per_second
        self._left, self._at = most, 0.0

    def take(self, now: float) -> int:
        """0, or the seconds until there is one to take."""
        self._left = min(self._most, self._left + max(now - self._at, 0) * self._rate) if self._at else self._most
        self._at = now
        if self._left < 1:
            return ceil((1 - self._left) / self._rate)
        self._left -= 1
        return 0
