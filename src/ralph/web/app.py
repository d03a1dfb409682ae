"""The table of addresses, and the application behind its gate."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from ralph.web import handlers as to
from ralph.web.access import Access
from ralph.web.feeds import Feeds, Home
from ralph.web.gate import Gate
from ralph.web.site import Site
from ralph.web.streams import Streams

_RUN = "/api/runs/{run}"
_ATTEMPT = f"{_RUN}/attempts/{{number}}"


def _heavy(handler: Callable[[Request], Response]) -> Callable[[Request], Awaitable[Response]]:
    """What reads many megabytes or starts git. A few at once, so that the threads are left to the others."""

    async def answer(request: Request) -> Response:
        return await run_sync(handler, request, limiter=to.site_of(request).heavy)

    return answer


def _routes() -> list[Route]:
    return [
        Route("/", to.page),
        Route("/static/{name}", to.static),
        Route("/api/home", to.home),
        Route("/api/home/stream", to.home_stream),
        Route(_RUN, to.run),
        Route(f"{_RUN}/stream", to.run_stream),
        Route(f"{_RUN}/stories/{{story:path}}", to.story),
        Route(_ATTEMPT, to.attempt),
        Route(f"{_ATTEMPT}/diff", _heavy(to.diff)),
        Route(f"{_ATTEMPT}/transcript", _heavy(to.attempt_transcript)),
        Route(f"{_ATTEMPT}/checks/{{check}}", to.attempt_check),
        Route(f"{_RUN}/checks", to.run_checks),
        Route(f"{_RUN}/checks/{{check}}", to.run_check),
        Route(f"{_RUN}/events", to.events),
        Route(f"{_RUN}/timeline", to.timeline),
        Route(f"{_RUN}/charts/{{name}}.svg", to.chart),
        Route(f"{_RUN}/journal", _heavy(to.journal)),
        Route(f"{_RUN}/acts", to.act, methods=["POST"]),
        Route("/api/compare", to.comparison),
        Route("/api/compare/charts/{name}.svg", to.compare_chart),
        Route("/report/{run}", _heavy(to.report)),
        Route("/metrics", to.metrics),
    ]


def make_app(
    access: Access,
    env: Mapping[str, str],
    feeds: Feeds,
    *,
    version: str,
    host: str,
    is_stopping: Callable[[], bool],
    on_bug: Callable[[], object],
) -> ASGIApp:
    home = Home(env, version=version, host=host, read_only=access.read_only)
    site = Site(env, feeds, home, Streams(is_stopping))
    router = Router(_routes(), redirect_slashes=False, default=_nowhere)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        scope["site"] = site
        await router(scope, receive, send)

    return Gate(app, access, on_bug)


async def _nowhere(scope: Scope, receive: Receive, send: Send) -> None:
    raise to.not_found()
