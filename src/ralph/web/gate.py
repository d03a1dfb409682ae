"""The gate in front of the application: every request is decided here, and every answer gets its headers here."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

import msgspec
from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ralph.web.access import Access, Asked, Bucket, Refused

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
_BUG = {"error": "internal error", "hint": "details are in a log of the machine that serves this"}
_LOST = "the disk may be full or gone, or the run was removed"
_AGAIN = '<meta http-equiv="refresh" content="0; url=/">'
_LOGIN = """<!doctype html><html lang="en"><head><meta charset="utf-8">{}<title>Ralph</title>
<link rel="icon" href="data:,"></head>
<body><h1>{}</h1><p>Open the address that <code>ralph serve</code> printed when it started.</p></body></html>"""


_PIECE = 64 * 1024
"""Bytes that are sent at once. The next ones wait until the client has taken these."""


def error(status: int, text: str, hint: str = "", wait: int = 0) -> Response:
    headers = {"Retry-After": str(wait)} if wait else None
    return Response(msgspec.json.encode({"error": text, "hint": hint}), status, headers, "application/json")


class Gate:
    def __init__(self, app: ASGIApp, access: Access, on_bug: Callable[[], object]) -> None:
        """`on_bug` writes the traceback of the exception being handled to a log."""
        self._app, self._access, self._on_bug = app, access, on_bug
        self._acts = Bucket()
        self._failures = Bucket(most=30)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        has_begun = False

        async def answer(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                has_begun = True
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            for piece in _pieces(message):
                await send(piece)

        asked = _asked(scope, self._access.cookie_name)
        response: Response | None = None
        try:
            if (response := self._decide(asked, scope)) is None:
                await self._app(scope, receive, answer)
        except Refused as refused:
            response = _refusal(self._limited(refused, asked), asked)
        except ClientDisconnect:
            return
        except OSError as trouble:  # the disk is full or gone, or somebody removed a run
            if has_begun:
                raise _Broken from None
            why = trouble.strerror or type(trouble).__name__
            response = error(HTTPStatus.SERVICE_UNAVAILABLE, f"files of Ralph cannot be used: {why}", _LOST)
        except Exception:  # noqa: BLE001 - a bug is logged and answered; the server goes on
            self._on_bug()
            if has_begun:  # nothing else can be said on this connection
                raise _Broken from None
            response = Response(msgspec.json.encode(_BUG), 500, media_type="application/json")
        if response is not None:
            await response(scope, receive, answer)

    def _decide(self, asked: Asked, scope: Scope) -> Response | None:
        access = self._access
        access.refuse_stranger(asked)
        if asked.query_token:
            if not access.is_token(asked.query_token):
                raise Refused(HTTPStatus.UNAUTHORIZED, "wrong token", "every start of `ralph serve` makes a new one")
            response = RedirectResponse("/", HTTPStatus.SEE_OTHER)
            response.set_cookie(
                access.cookie_name,
                access.cookie,
                path="/",
                httponly=True,
                samesite="strict",
                secure=access.is_secure(asked),
            )
            return response
        access.refuse_unknown(asked)
        if asked.method not in ("GET", "HEAD"):
            access.refuse_act(asked)
            if wait := self._acts.take(time.monotonic()):
                raise Refused(HTTPStatus.TOO_MANY_REQUESTS, "too many acts", "wait a few seconds", wait=wait)
        return None

    def _limited(self, refused: Refused, asked: Asked) -> Refused:
        """A token that is right is never limited, so that nobody can keep the user out with wrong ones."""
        if refused.status is not HTTPStatus.UNAUTHORIZED or not asked.is_known_by_token:
            return refused
        if not (wait := self._failures.take(time.monotonic())):
            return refused
        return Refused(HTTPStatus.TOO_MANY_REQUESTS, "too many wrong tokens", "wait a few seconds", wait=wait)


class _Broken(Exception):
    """An answer ended in the middle. The connection is closed, so that nobody takes it for a whole one."""


def _asked(scope: Scope, cookie_name: str) -> Asked:
    headers: dict[str, str] = {}
    for name, value in scope["headers"]:
        headers.setdefault(name.decode("latin-1").lower(), value.decode("latin-1"))
    cookie: SimpleCookie = SimpleCookie()
    try:
        cookie.load(headers.get("cookie", ""))
    except CookieError:
        cookie.clear()
    server: Any = scope.get("server") or ("", 0)
    is_login = scope["path"] == "/" and scope["method"] == "GET"
    tokens = parse_qs(scope["query_string"].decode("latin-1")).get("token", []) if is_login else []
    return Asked(
        method=scope["method"],
        path=scope["path"],
        host=headers.get("host", ""),
        address=str(server[0]),
        headers=headers,
        cookie=cookie[cookie_name].value if cookie_name in cookie else "",
        query_token=tokens[0] if tokens else "",
    )


def _pieces(message: Message) -> Iterator[Message]:
    body = message.get("body", b"")
    if len(body) <= _PIECE:
        yield message
        return
    for start in range(0, len(body), _PIECE):
        more = message.get("more_body", False) or start + _PIECE < len(body)
        yield {**message, "body": body[start : start + _PIECE], "more_body": more}


def _refusal(refused: Refused, asked: Asked) -> Response:
    if asked.path != "/" or refused.status is not HTTPStatus.UNAUTHORIZED:
        return error(refused.status, refused.error, refused.hint, refused.wait)
    # After a link on another site, the browser keeps the new cookie back until a page of ours asks.
    again = _AGAIN if asked.headers.get("sec-fetch-site") == "cross-site" else ""
    page = _LOGIN.format(again, "This needs the token" if not again else "One moment")
    return Response(page, refused.status, media_type="text/html")
