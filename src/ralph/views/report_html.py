"""The report of a run as one HTML page that needs nothing else. All text from a plan, an agent or git is escaped."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from ralph.core.proof import Grade
from ralph.core.review import OPEN_FINDINGS
from ralph.core.text import one_line, plural
from ralph.report.report import STATES, Report, StoryReport
from ralph.views.chart_tables import Table, table_of
from ralph.views.charts import CHARTS, TITLES
from ralph.views.report_lines import facts, headline, proof_lines, story_facts, why, worker_facts
from ralph.views.run_view import RunView
from ralph.views.svg import Theme, stylesheet
from ralph.views.worker_lines import clash_line

_MOST_FILES = 200
_MOST_WORKERS = 64
_WIDE = ("gantt", "forecast")
_PAGE, _COLUMN, _PHONE = 920, 390, 360
"""Pixels a chart is drawn for."""
_STYLE = """
:root{color-scheme:light dark;--text:#1f2328;--dim:#59636e;--line:#d1d9e0;--page:#fff;--box:#f6f8fa;
--good:#1a7f37;--bad:#d1242f;--warn:#9a6700}
@media(prefers-color-scheme:dark){:root{--text:#e6edf3;--dim:#9198a1;--line:#3d444d;--page:#0d1117;--box:#151b23;
--good:#3fb950;--bad:#f85149;--warn:#d29922}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:60rem;padding:2rem 1rem;background:var(--page);color:var(--text);
font:15px/1.5 system-ui,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.4rem;margin:0}h2{font-size:1.05rem;margin:2rem 0 .5rem}h3{font-size:1rem;margin:0}
p{margin:.4rem 0}code{font:.85em ui-monospace,monospace}ul{margin:.3rem 0;padding-left:1.2rem}
.dim{color:var(--dim)}.good{color:var(--good)}.bad{color:var(--bad)}.warn{color:var(--warn)}
.bar{height:.6rem;border-radius:.3rem;background:var(--line);margin:.8rem 0;overflow:hidden}
.bar div{height:100%;background:var(--good)}
.box{border:1px solid var(--line);border-radius:.5rem;padding:.7rem 1rem;margin:.6rem 0;background:var(--box)}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.2rem 1rem;margin:1rem 0}dt{color:var(--dim)}dd{margin:0}
table{border-collapse:collapse;width:100%}td{padding:.1rem .6rem .1rem 0;vertical-align:top}
td.id{white-space:nowrap;width:1%}td.id:last-child{text-align:right;padding-right:0}
th{text-align:left;font-weight:600;padding:.1rem .6rem .1rem 0;vertical-align:bottom}
figure{margin:0;min-width:0}figure svg{display:block;max-width:100%;height:auto}figure h3{margin:.6rem 0 .2rem}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,24rem),1fr));gap:1rem 1.5rem}
.charts .wide{grid-column:1/-1}.charts svg{width:100%}
figure details{font-size:.85em;margin:.3rem 0}figure table{display:block;overflow-x:auto}
figure :is(td,th){white-space:nowrap}.narrow{display:none}summary{cursor:pointer;color:var(--dim)}
@media screen and (max-width:40rem){body{padding:1rem .75rem}.broad{display:none}.narrow{display:block}
dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:.4rem}}
@media print{:root{--text:#000;--dim:#444;--line:#bbb;--page:#fff;--box:#fff;--good:#060;--bad:#900;--warn:#640}
body{max-width:none;padding:0;font-size:11pt}.box,figure,tr{break-inside:avoid}h2,h3{break-after:avoid}
.bar,svg{print-color-adjust:exact}.charts{grid-template-columns:1fr 1fr}.charts svg{max-width:100%}
figure details{display:none}
@page{margin:15mm}}
"""
_CLASSES = {"done": "good", OPEN_FINDINGS: "warn", "unproven": "warn", "failed": "bad", "blocked": "warn"}


class _Html(str):
    """Text that is already HTML."""

    __slots__ = ()


def _tag(name: str, *parts: str, cls: str = "") -> _Html:
    inside = "".join(part if isinstance(part, _Html) else escape(_plain(part)) for part in parts)
    return _Html(f"<{name}{f' class={cls}' if cls else ''}>{inside}</{name}>")


def _plain(text: str) -> str:
    return one_line(text, 2000)


def as_html(report: Report, view: RunView) -> str:
    """`view`: the same run, for its charts."""
    end = report.explanation
    percent = 100 * end.done // end.total if end.total else 0
    head = _Html(
        '<meta charset=utf-8><meta name=viewport content="width=device-width,initial-scale=1">'
        "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src 'unsafe-inline'\">"
    )
    bar = _Html(f'<div class=bar role=img aria-label="{percent}%"><div style="width:{percent}%"></div></div>')
    cls = "good" if end.reason == "complete" else "warn"
    body = [
        _tag("h1", headline(report), cls=cls),
        _tag("p", f"{end.done} of {plural(end.total, 'story')} done. {end.why}"),
        *([_tag("p", end.detail, cls="dim")] if end.detail else []),
        bar,
        *_list("Look at first", report.look_first),
        *_questions_html(report),
        *_charts_html(view),
        *_stories_html(report),
        *_list("Returned by the merge queue", tuple(map(clash_line, report.clashes))),
        *_rejected_html(report),
        *_refused_html(report),
        *_workers_html(report),
        _tag("h2", "The run"),
        _tag(
            "dl",
            *(part for name, value in facts(report) for part in (_tag("dt", name), _tag("dd", *_with_code(value)))),
        ),
    ]
    page = _tag(
        "html",
        _tag("head", head, _tag("title", headline(report)), _tag("style", _Html(_STYLE + stylesheet()))),
        _tag("body", *body),
    )
    return f"<!doctype html>\n{page}\n".replace("<html>", "<html lang=en>", 1)


def _with_code(text: str) -> Iterator[str]:
    """Text with the commands in backticks as code."""
    for number, part in enumerate(text.split("`")):
        lead, trail = part[: len(part) - len(part.lstrip())], part[len(part.rstrip()) :]
        yield from (_tag("code", part),) if number % 2 else (_Html(lead), part, _Html(trail))


def _list(title: str, items: tuple[str, ...]) -> Iterator[_Html]:
    if items:
        yield _tag("h2", title)
        yield _tag("ul", *(_tag("li", item) for item in items))


def _questions_html(report: Report) -> Iterator[_Html]:
    if report.questions:
        yield _tag("h2", "Questions for you")
    for question in report.questions:
        command = _tag("code", f'ralph answer {question.story or "-"} "…"')
        yield _tag("div", _tag("h3", question.story or "The run"), _tag("p", question.text), command, cls="box")


def _stories_html(report: Report) -> Iterator[_Html]:
    for state in STATES:
        stories = [story for story in report.stories if story.state == state]
        if stories:
            yield _tag("h2", f"{state.capitalize()} ({len(stories)})", cls=_CLASSES.get(state, "dim"))
        for story in stories:
            yield _tag("div", *_story_html(story), cls="box")


def _story_html(story: StoryReport) -> Iterator[_Html]:
    yield _tag("h3", f"{story.id} {story.title}")
    if told := story_facts(story):
        yield _tag("div", told, cls="dim")
    if reason := why(story):
        yield _tag("p", reason, cls=_CLASSES.get(story.state, "dim"))
    for doubt in story.doubts:
        yield _tag("p", f"Changed tests or checks: {doubt}", cls="warn")
    for line in proof_lines(story):
        yield _tag("div", line, cls="warn" if story.grade == Grade.UNPROVEN else "dim")
    rows = []
    for commit in story.commits:
        by = _Html(f" {_tag('span', commit.remark.strip(), cls='dim')}") if commit.remark else _Html()
        stat = "" if commit.is_missing or commit.earlier_run else f"+{commit.added} −{commit.removed}"
        first = _tag("td", _tag("code", commit.id[:9]), cls="id")
        rows.append(_tag("tr", first, _tag("td", commit.subject, by), _tag("td", stat, cls="id")))
    if rows:
        yield _tag("table", *rows)
    if story.files:
        shown = (_tag("li", _tag("code", path)) for path in story.files[:_MOST_FILES])
        yield _tag("details", _tag("summary", plural(len(story.files), "file")), _tag("ul", *shown))


def _rejected_html(report: Report) -> Iterator[_Html]:
    if report.rejected:
        yield _tag("h2", "Rejected attempts")
    for one in report.rejected:
        what = "dropped" if one.is_missing else f"ralph rescue show {one.name}"
        told = _tag("p", f"{one.story} iteration {one.iteration}, {one.kind}: {one.reason}")
        yield _tag("div", told, *(_tag("p", reason) for reason in one.reasons), _tag("code", what), cls="box")


def _refused_html(report: Report) -> Iterator[_Html]:
    if report.refused_hosts:
        yield _tag("h2", "Hosts that the sandbox refused")
    for host in report.refused_hosts:
        yield _tag("div", _tag("p", host.line), _tag("code", host.allow), cls="box")


def _workers_html(report: Report) -> Iterator[_Html]:
    if report.workers:
        yield _tag("h2", "Workers")
        shown = report.workers[:_MOST_WORKERS]
        yield _tag(
            "table",
            *(
                _tag("tr", _tag("td", str(each.worker), cls="id"), _tag("td", worker_facts(each, name=False)))
                for each in shown
            ),
        )
    if len(report.workers) > _MOST_WORKERS:
        yield _tag("p", f"and {len(report.workers) - _MOST_WORKERS} more", cls="dim")


def _charts_html(view: RunView) -> Iterator[_Html]:
    yield _tag("h2", "How it went")
    yield _tag("div", *(_figure_html(view, name) for name in CHARTS), cls="charts")


def _figure_html(view: RunView, name: str) -> _Html:
    """A chart, and its figures as a table. A wide one is drawn again for a phone, so that its letters stay readable."""
    title, is_wide = TITLES[name], name in _WIDE
    sizes = (("broad", _PAGE), ("narrow", _PHONE)) if is_wide else (("", _COLUMN),)
    drawn = (_tag("div", _Html(CHARTS[name](view, width, Theme.PAGE)), cls=cls) for cls, width in sizes)
    return _tag("figure", _tag("h3", title), *drawn, *_table_html(table_of(view, name)), cls="wide" if is_wide else "")


def _table_html(table: Table) -> Iterator[_Html]:
    if table.rows:
        head = _tag("tr", *(_tag("th", cell) for cell in table.head))
        rows = (_tag("tr", *(_tag("td", cell) for cell in row)) for row in table.rows)
        more = [_tag("p", f"and {table.left_out} earlier", cls="dim")] if table.left_out else []
        yield _tag("details", _tag("summary", "The figures as a table"), _tag("table", head, *rows), *more)
