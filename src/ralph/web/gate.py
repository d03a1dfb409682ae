"""The gate in front of the application: every request is decided here, and every answer gets its headers here."""

from __future__ import annotations

import time
from collections.abc import Callable
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

import msgspec
from starlette.datastructures import MutableHeaders
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
_AGAIN = '<meta http-equiv="refresh" content="0; url=/">'
_LOGIN = """<!doctype html><html lang="en"><head><meta charset="utf-8">{}<title>Ralph</title></head>
<body><h1>{}</h1><p>Open the address that <code>ralph serve</code> printed when it started.</p></body></html>"""


def error(status: int, text: str, hint: str = "") -> Response:
    return Response(msgspec.json.encode({"error": text, "hint": hint}), status, media_type="application/json")


class Gate:
    def __init__(self, app: ASGIApp, access: Access, on_bug: Callable[[], object]) -> None:
        """`on_bug` writes the traceback of the exception being handled to a log."""
        self._app, self._access, self._on_bug = app, access, on_bug
        self._acts = Bucket()

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
            await send(message)

        asked = _asked(scope, self._access.cookie_name)
        response: Response | None = None
        try:
            if (response := self._decide(asked, scope)) is None:
                await self._app(scope, receive, answer)
        except Refused as refused:
            response = _refusal(refused, asked)
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
        token = parse_qs(scope["query_string"].decode("latin-1")).get("token") if asked.path == "/" else None
        if token and asked.method == "GET":
            if not access.is_token(token[0]):
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
            if not self._acts.take(time.monotonic()):
                raise Refused(HTTPStatus.TOO_MANY_REQUESTS, "too many acts", "wait a few seconds")
        return None


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
    return Asked(
        method=scope["method"],
        path=scope["path"],
        host=headers.get("host", ""),
        address=str(server[0]),
        headers=headers,
        cookie=cookie[cookie_name].value if cookie_name in cookie else "",
    )


def _refusal(refused: Refused, asked: Asked) -> Response:
    if asked.path != "/" or refused.status is not HTTPStatus.UNAUTHORIZED:
        return error(refused.status, refused.error, refused.hint)
    # After a link on another site, the browser keeps the new cookie back until a page of ours asks.
    again = _AGAIN if asked.headers.get("sec-fetch-site") == "cross-site" else ""
    page = _LOGIN.format(again, "This needs the token" if not again else "One moment")
    return Response(page, refused.status, media_type="text/html")
