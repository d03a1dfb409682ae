"""What each address answers: thin functions from a request to a document of `ralph.views`.

They run in threads. Of a request, only numbers, known names and IDs of runs that exist get any further.
"""

from __future__ import annotations

import asyncio
import re
import time
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any

import msgspec
from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import Response

from ralph.core.errors import BadData, LockHeld, RalphError
from ralph.core.events import Record
from ralph.core.text import shown
from ralph.host.files import open_state
from ralph.host.redaction import redact
from ralph.journal.records import read
from ralph.report.report import make_report
from ralph.state.locks import is_alive
from ralph.state.names import CHECK_OUTPUTS
from ralph.views.attempts import Attempt, Check
from ralph.views.charts import CHARTS, COMPARED, compare
from ralph.views.diff import diff_of
from ralph.views.documents import (
    attempt_document,
    check_lines,
    compare_document,
    story_document,
    timeline_document,
)
from ralph.views.report_html import as_html
from ralph.views.svg import Theme
from ralph.views.transcript import transcript
from ralph.web.access import LARGEST_BODY, Refused
from ralph.web.feeds import Feed, encoded
from ralph.web.site import Site

_NUMBER = re.compile(r"\d{1,15}", re.ASCII)
_MOST_OUTPUT = 1_000_000
_MOST_JOURNAL = 4 * 1024 * 1024
_MASKS = re.compile(rb"\[redacted[^\]]{0,200}\]")
_MOST_EVENTS, _MOST_ENTRIES = 2000, 1000
_BODY_PATIENCE = 10.0
_PICTURE = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'; form-action 'none'"
"""Of a document of our own that has its style inside, and no script."""


def site_of(request: Request) -> Site:
    site: Site = request.scope["site"]
    return site


def _reply(value: Any) -> Response:
    return Response(encoded(value), media_type="application/json")


def _missing(what: str) -> Refused:
    return Refused(HTTPStatus.NOT_FOUND, f"there is no {what}", "the first page lists the runs of this machine")


def _feed(request: Request) -> Feed:
    return _feed_of(request, request.path_params["run"])


def _feed_of(request: Request, run: str) -> Feed:
    feed = site_of(request).feeds.get(run)
    if feed is None:
        raise _missing("such run on this machine")
    return feed


def _number(text: str, what: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise _missing(f"such {what}")
    return int(text)


def _asked(request: Request, name: str, default: int, most: int = 10**9) -> int:
    text = request.query_params.get(name, "")
    if text and not _NUMBER.fullmatch(text):
        raise Refused(HTTPStatus.BAD_REQUEST, f"{name} is a number")
    return min(int(text or default), most)


def _attempt(request: Request, feed: Feed) -> Attempt:
    number = _number(request.path_params["number"], "attempt")
    attempt = feed.view.attempts.by_iteration.get(number)
    if attempt is None:
        raise _missing("such attempt")
    return attempt


def page(request: Request) -> Response:
    return site_of(request).static.answer("index.html")


def static(request: Request) -> Response:
    return site_of(request).static.answer(request.path_params["name"])


def home(request: Request) -> Response:
    found = site_of(request).home
    found.poll()
    return Response(found.document()[1], media_type="application/json")


async def home_stream(request: Request) -> Response:
    return site_of(request).streams.of(site_of(request).home)


def run(request: Request) -> Response:
    feed = _feed(request)
    with feed.reading():
        return Response(feed.document()[1], media_type="application/json")


async def run_stream(request: Request) -> Response:
    return site_of(request).streams.of(await run_sync(_feed, request))


def story(request: Request) -> Response:
    feed = _feed(request)
    with feed.reading() as view:
        line = view.story(request.path_params["story"])
        if line is None:
            raise _missing("such story in this run")
        return _reply(story_document(view, line, time.time(), feed.story_acts(line.id)))


def attempt(request: Request) -> Response:
    feed = _feed(request)
    with feed.reading():
        return _reply(attempt_document(_attempt(request, feed), time.time()))


def diff(request: Request) -> Response:
    feed = _feed(request)
    with feed.reading() as view:
        found, started = msgspec.structs.replace(_attempt(request, feed)), view.first
    assert started is not None  # it has attempts
    return _reply(diff_of(started, found, site_of(request).env))


def attempt_transcript(request: Request) -> Response:
    feed = _feed(request)
    with feed.reading() as view:
        found, started = _attempt(request, feed), view.first
        number = _asked(request, "session", 0)
        if number >= len(found.sessions):
            raise _missing("such session in this attempt")
        session = found.sessions[number]
    assert started is not None
    start, count = _asked(request, "start", 0), _asked(request, "count", 200, _MOST_ENTRIES)
    search = request.query_params.get("search", "")
    env = site_of(request).env
    return _reply(transcript(started, view.journal, found, session, env, start=start, count=count, search=search))


def attempt_check(request: Request) -> Response:
    feed = _feed(request)
    with feed.reading() as view:
        return _output(view.journal, _attempt(request, feed).checks, request)


def run_checks(request: Request) -> Response:
    with _feed(request).reading() as view:
        return _reply(check_lines(view.attempts.of_run))


def run_check(request: Request) -> Response:
    with _feed(request).reading() as view:
        return _output(view.journal, view.attempts.of_run, request)


def _output(journal: Path, checks: list[Check], request: Request) -> Response:
    number = _number(request.path_params["check"], "check")
    if number >= len(checks):
        raise _missing("such check")
    result = checks[number].result
    text, is_whole = result.tail, False
    if result.output:
        # Only its name counts: the journal may be from elsewhere, and say anything.
        path = journal.parent / CHECK_OUTPUTS / Path(result.output).name
        try:
            with open_state(path) as stream:
                size = stream.seek(0, 2)
                stream.seek(max(size - _MOST_OUTPUT, 0))
                text, is_whole = stream.read().decode("utf-8", "replace"), size <= _MOST_OUTPUT
        except OSError:
            pass
    return _reply({"name": result.name, "command": result.command, "output": shown(text), "is_whole": is_whole})


def events(request: Request) -> Response:
    start, count = _asked(request, "start", 0), _asked(request, "count", 200, _MOST_EVENTS)
    with _feed(request).reading() as view:
        return _reply({"total": view.count, "events": view.events(start, count)})


def timeline(request: Request) -> Response:
    with _feed(request).reading() as view:
        return _reply(timeline_document(view, time.time()))


def _theme(request: Request) -> Theme:
    try:
        return Theme(request.query_params.get("theme", "auto"))
    except ValueError:
        raise Refused(HTTPStatus.BAD_REQUEST, f"theme is one of {', '.join(Theme)}") from None


def _picture(svg: str) -> Response:
    return Response(redact(svg), media_type="image/svg+xml", headers={"Content-Security-Policy": _PICTURE})


def chart(request: Request) -> Response:
    draw = CHARTS.get(request.path_params["name"])
    if draw is None:
        raise _missing("such chart")
    theme, width = _theme(request), _width(request)
    with _feed(request).reading() as view:
        return _picture(draw(view, width, theme))


def _width(request: Request) -> int:
    return max(_asked(request, "width", 720, 4000), 200)


def _two(request: Request) -> tuple[Feed, Feed]:
    names = request.query_params.get("runs", "").split(",")
    if len(names) != 2:
        raise Refused(HTTPStatus.BAD_REQUEST, "a comparison is of two runs", "/api/compare?runs=ID,ID")
    return _feed_of(request, names[0]), _feed_of(request, names[1])


def comparison(request: Request) -> Response:
    documents = []
    for feed in _two(request):
        with feed.reading():
            documents.append(feed.describe())
    return _reply(compare_document(*documents))


def compare_chart(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in COMPARED:
        raise _missing("such chart")
    first, second = sorted(_two(request), key=lambda feed: feed.view.journal)  # the same order of locks for everybody
    with first.reading() as a, second.reading() as b:
        ordered = (a, b) if a.journal.parent.name == request.query_params["runs"].split(",")[0] else (b, a)
        return _picture(compare(*ordered, name, _width(request), _theme(request)))


def report(request: Request) -> Response:
    """The page of `ralph report --html`."""
    env = site_of(request).env
    with _feed(request).reading() as view:
        records: list[Record] = []
        with suppress(BadData):  # what stands before the damage is still worth reading
            for record in read(view.journal):
                records.append(record)
        html = as_html(make_report(records, is_alive=is_alive(view.first), env=env), view)
    return Response(redact(html), media_type="text/html", headers={"Content-Security-Policy": _PICTURE})


def journal(request: Request) -> Response:
    """Whole lines from an offset. Every line is as long as in the file: it is the reader's next offset."""
    start = _asked(request, "from", 0, 10**15)
    path = _feed(request).view.journal
    with open_state(path) as stream:
        size = stream.seek(0, 2)
        stream.seek(min(start, size))
        data = stream.read(_MOST_JOURNAL)
        if b"\n" not in data and len(data) == _MOST_JOURNAL:
            data += stream.readline(_MOST_JOURNAL * 8)
    data = data[: data.rfind(b"\n") + 1]
    if redact(data) is not data:
        data = b"".join(map(_same_length, data.splitlines(keepends=True)))
    return Response(data, media_type="application/x-ndjson", headers={"X-Journal-Size": str(size)})


def _same_length(line: bytes) -> bytes:
    """Without the secrets of this environment; those of the run's own were never in it."""
    shown = redact(line)
    return line if shown is line else _MASKS.sub(b"***", shown[:-1])[: len(line) - 1].ljust(len(line) - 1) + b"\n"


async def act(request: Request) -> Response:
    body = await _body(request)
    return await run_sync(_perform, request, body)


async def _body(request: Request) -> bytes:
    data = bytearray()
    try:
        async with asyncio.timeout(_BODY_PATIENCE):
            async for chunk in request.stream():
                data += chunk
                if len(data) > LARGEST_BODY:
                    raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"more than {LARGEST_BODY:,} bytes")
    except TimeoutError:
        raise Refused(HTTPStatus.REQUEST_TIMEOUT, "the body did not arrive") from None
    return bytes(data)


def _perform(request: Request, body: bytes) -> Response:
    from ralph.views.acts import Act, perform

    try:
        asked = msgspec.json.decode(body, type=Act)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(HTTPStatus.BAD_REQUEST, f"not an act: {error}") from None
    with _feed(request).reading() as view:
        started = view.first
    if started is None:
        raise Refused(HTTPStatus.CONFLICT, "the journal of this run cannot be read")
    try:
        message = perform(started, asked, site_of(request).env)
    except RalphError as error:
        status = HTTPStatus.CONFLICT if isinstance(error, LockHeld) else HTTPStatus.BAD_REQUEST
        raise Refused(status, str(error), error.hint) from None
    return _reply({"message": message})


def metrics(request: Request) -> Response:
    from ralph.web.metrics import TYPE, exposition

    return Response(redact(exposition(site_of(request).env)), headers={"Content-Type": TYPE})


def not_found() -> Refused:
    return _missing("such page")
