"""The report of a run as an HTML page or as Markdown. All text from a plan or git is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html import escape

from ralph.cli.show import grades_line
from ralph.core.proof import Grade
from ralph.core.review import OPEN_FINDINGS
from ralph.core.text import one_line, plural
from ralph.report.report import STATES, Report, StoryReport
from ralph.report.worker_time import Span, WorkerUse
from ralph.views.words import duration, moment, money, seconds
from ralph.views.worker_lines import clash_line

_MOST_FILES = 200
_MOST_WORKERS = 64
_MOST_WITNESSES = 5
WHERE = {
    "checkout": "this run: in a clean checkout",
    "in-place": "this run: in the workspace (in-place), not in a clean checkout",
}
"""The grades are those of all stories, also of earlier runs."""
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
td.id{white-space:nowrap;width:1%}
.lane{position:relative;height:1.1rem;border-radius:.2rem;overflow:hidden;margin-top:.25rem}
.lane i{position:absolute;top:0;bottom:0;min-width:1px;border-right:1px solid var(--page)}
.legend i{display:inline-block;width:.8rem;height:.8rem;margin:0 .3rem 0 .8rem;vertical-align:-1px}
i.alive{background:var(--line)}i.ok{background:var(--good)}i.no{background:var(--bad)}i.back{background:var(--warn)}
i.other{background:var(--dim)}i.proof{background:repeating-linear-gradient(45deg,var(--good) 0 3px,var(--box) 3px 6px)}
i.p-red{background:repeating-linear-gradient(45deg,var(--bad) 0 3px,var(--box) 3px 6px)}
@media print{:root{--text:#000;--dim:#444;--line:#bbb;--page:#fff;--box:#fff;--good:#060;--bad:#900;--warn:#640}
body{max-width:none;padding:0;font-size:11pt}.box{break-inside:avoid}.bar,i{print-color-adjust:exact}}
"""
_CLASSES = {"done": "good", OPEN_FINDINGS: "warn", "unproven": "warn", "failed": "bad", "blocked": "warn"}


def headline(report: Report) -> str:
    end = report.explanation
    name = f" on {one_line(end.plan, 60)}" if end.plan else ""
    how = end.reason.replace("-", " ") if end.reason else end.state
    return f"Run {one_line(end.run, 60)}{name}: {how}"


def facts(report: Report) -> Iterator[tuple[str, str]]:
    end = report.explanation
    ended = f" to {moment(report.last)}" if end.state in ("ended", "killed") else ""
    yield "when", f"{moment(report.started)}{ended}"
    among = "in agents" if report.workers else "of it in the agent"
    in_agent = f", {duration(report.agent_seconds)} {among}" if report.iterations else ""
    yield "time", f"{duration(end.seconds)}{in_agent}"
    unknown = f" and {plural(report.unknown_costs, 'session')} of unknown cost" if report.unknown_costs else ""
    unknown = unknown if report.cost_usd is not None else ""
    cost = f"{money(report.cost_usd, report.cost_is_estimated)}{unknown}, {report.tokens:,} tokens"
    is_started = report.iterations or any(story.state == "in progress" for story in report.stories)
    yield "cost", cost.removeprefix("cost ") if is_started else "nothing: no session was started"
    verdicts = ", ".join(f"{count} {kind}" for kind, count in report.verdicts.items())
    yield "iterations", f"{report.iterations}{f' ({verdicts})' if verdicts else ''}"
    if len(report.agents) > 1:
        yield "agents", agents_line(report.agents)
    if report.queue.candidates:
        yield "queue", queue_facts(report)
    if report.branch:
        own = sum(commit.by_agent for story in report.stories for commit in story.commits)
        yield "branch", f"{report.branch}, {plural(report.commits, 'commit')}{f' ({own} by the agent)' if own else ''}"
    if not report.has_git:
        yield "git", "repository not found; commits have no subject and no diffstat"
    if proof := "; ".join(filter(None, (grades_line(report.grades), WHERE.get(report.where, "")))):
        yield "proof", proof
    for headline in report.exams:
        yield "exam", one_line(headline, 300)
    yield "next", end.next


def agents_line(agents: Mapping[str, int]) -> str:
    """`claude 3 iterations, codex 1 iteration`"""
    return ", ".join(f"{one_line(name, 40)} {plural(count, 'iteration')}" for name, count in agents.items())


def story_facts(story: StoryReport) -> str:
    parts = []
    if story.iterations:
        parts.append(plural(story.iterations, "iteration"))
        parts.append(duration(story.seconds))
        parts.append(money(story.cost_usd, story.cost_is_estimated))
    if story.files:
        parts.append(f"+{story.added} −{story.removed} in {plural(len(story.files), 'file')}")
    if story.returned:
        red = f" ({story.red_merged} green alone, red merged)" if story.red_merged else ""
        parts.append(f"returned {plural(story.returned, 'time')}{red}")
    return ", ".join(parts)


def proof_lines(story: StoryReport) -> Iterator[str]:
    """Who did it, if several agents worked; the grade of a story, what proves it, and what was not examined."""
    if story.by:
        yield one_line(", ".join(story.by), 300)
    if story.grade:
        names = ", ".join(one_line(name, 100) for name in story.witnesses[:_MOST_WITNESSES])
        more = f" and {len(story.witnesses) - _MOST_WITNESSES} more" if len(story.witnesses) > _MOST_WITNESSES else ""
        place = ", in place" if story.where == "in-place" else ""
        yield f"{story.grade}{f' by {names}{more}' if names else ''}{place}"
    yield from (f"missing: {what}" for what in story.missing)
    yield from (f"not examined: {what}" for what in story.limits)


def why(story: StoryReport) -> str:
    return story.why if story.state in ("failed", "blocked", "open") else ""


class _Html(str):
    """Text that is already HTML."""

    __slots__ = ()


def _tag(name: str, *parts: str, cls: str = "") -> _Html:
    inside = "".join(part if isinstance(part, _Html) else escape(_plain(part)) for part in parts)
    return _Html(f"<{name}{f' class={cls}' if cls else ''}>{inside}</{name}>")


def _plain(text: str) -> str:
    return one_line(text, 2000)


def as_html(report: Report) -> str:
    end = report.explanation
    percent = 100 * end.done // end.total if end.total else 0
    head = _Html(
        '<meta charset=utf-8><meta name=viewport content="width=device-width">'
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
        "html", _tag("head", head, _tag("title", headline(report)), _tag("style", _Html(_STYLE))), _tag("body", *body)
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
    """One bar per worker over the time of the run."""
    if not report.workers:
        return
    yield _tag("h2", "Workers")
    start, whole = report.started, max(report.last - report.started, 0.001)
    rows = []
    for worker in report.workers[:_MOST_WORKERS]:
        bars = "".join(_span_html(span, start, whole) for span in worker.spans)
        alive = _place(worker.start, worker.end, start, whole)
        lane = _Html(f"<div class=lane><i class=alive style={alive}></i>{bars}</div>")
        told = _tag("div", worker_facts(worker, name=False), cls="dim")
        rows.append(_tag("tr", _tag("td", str(worker.worker), cls="id"), _tag("td", lane, told)))
    yield _tag("table", *rows)
    if len(report.workers) > _MOST_WORKERS:
        yield _tag("p", f"and {len(report.workers) - _MOST_WORKERS} more", cls="dim")
    legend = "".join(f"<i class={cls}></i>{word} " for word, cls in _LEGEND)
    yield _Html(f'<p class="dim legend">{legend}</p>')


def _span_html(span: Span, start: float, whole: float) -> _Html:
    cls = ("p-red" if span.result == "red" else "proof") if span.is_proof else _SPANS.get(span.result, "other")
    what = f"{'proof of ' if span.is_proof else ''}{span.story}"
    title = f"{what}{f': {span.result}' if span.result else ''}, {duration(span.end - span.start)}"
    place = _place(span.start, span.end, start, whole)
    return _Html(f'<i class={cls} style={place} title="{escape(_plain(title))}"></i>')


def _place(begin: float, end: float, start: float, whole: float) -> str:
    left = min(max((begin - start) / whole, 0), 1)
    return f"left:{100 * left:.2f}%;width:{100 * min(max(end - begin, 0) / whole, 1 - left):.2f}%"


_SPANS = {"accepted": "ok", "partial": "ok", "returned": "back", "rejected": "no", "crashed": "no", "timed-out": "no"}
_LEGEND = (
    ("accepted", "ok"),
    ("returned by the queue", "back"),
    ("not accepted", "no"),
    ("other", "other"),
    ("proof of a merged tree", "proof"),
    ("failed proof", "p-red"),
)


def queue_facts(report: Report) -> str:
    """`12 candidates, 9 merged, 3 returned (1 green alone, red merged); waited 4 s on average, 20 s at most`"""
    queue, red = report.queue, sum(clash.is_red for clash in report.clashes)
    told = f" ({red} green alone, red merged)" if red else ""
    returned = f", {len(report.clashes)} returned{told}" if report.clashes else ""
    waited = f"waited {seconds(queue.mean_wait)} on average, {seconds(queue.longest_wait)} at most"
    proofs = f"{plural(queue.proofs, 'proof')}, {queue.failed_proofs} failed"
    return f"{plural(queue.candidates, 'candidate')}, {queue.merged} merged{returned}; {waited}; {proofs}"


def worker_facts(worker: WorkerUse, *, name: bool = True) -> str:
    """`worker 2: 71% busy, 10% proving, 19% idle of 4 m 05 s; 5 iterations`"""
    whole = worker.busy + worker.proving + worker.idle
    parts = (("busy", worker.busy), ("proving", worker.proving), ("idle", worker.idle))
    shares = ", ".join(f"{used / whole:.0%} {word}" if whole else f"0% {word}" for word, used in parts)
    lead = f"worker {worker.worker}: " if name else ""
    lost = ", lost" if worker.is_lost else ""
    return f"{lead}{shares} of {duration(whole)}; {plural(worker.iterations, 'iteration')}{lost}"


def worker_bar(worker: WorkerUse, report: Report, width: int) -> str:
    """`··████▒▒██··`: its time in the run, working and proving."""
    whole = max(report.last - report.started, 0.001)
    bar = [" "] * width

    def fill(begin: float, end: float, sign: str) -> None:
        first = min(max(int((begin - report.started) / whole * width), 0), width - 1)
        for at in range(first, min(max(int((end - report.started) / whole * width), first + 1), width)):
            bar[at] = sign

    fill(worker.start, worker.end, "·")
    for span in worker.spans:
        fill(span.start, span.end, "▒" if span.is_proof else "█")
    return "".join(bar)


def as_markdown(report: Report) -> str:
    return "\n".join(_markdown(report)) + "\n"


def _markdown(report: Report) -> Iterator[str]:
    end = report.explanation
    yield f"# {_md(headline(report))}"
    yield ""
    yield _md(f"{end.done} of {plural(end.total, 'story')} done. {end.why} {end.detail}")
    if report.look_first:
        yield "\n## Look at first\n"
        yield from (f"- {_md(line)}" for line in report.look_first)
    if report.questions:
        yield "\n## Questions for you\n"
        yield from (f"- **{_md(one.story or 'the run')}** {_md(one.text)}" for one in report.questions)
    for state in STATES:
        stories = [story for story in report.stories if story.state == state]
        if stories:
            yield f"\n## {state.capitalize()} ({len(stories)})\n"
        for story in stories:
            yield f"- **{_md(story.id)}** {_md(story.title)}" + (f" ({story_facts(story)})" if story.iterations else "")
            if shown := why(story):
                yield f"  - {_md(shown)}"
            for line in (*proof_lines(story), *(f"changed tests or checks: {doubt}" for doubt in story.doubts)):
                yield f"  - {_md(line)}"
            for commit in story.commits:
                yield f"  - `{commit.id[:9]}` {_md(commit.subject)}{commit.remark}"
    if report.clashes:
        yield "\n## Returned by the merge queue\n"
        yield from (f"- {_md(clash_line(clash))}" for clash in report.clashes)
    if report.rejected:
        yield "\n## Rejected attempts\n"
        for one in report.rejected:
            kept = "dropped" if one.is_missing else f"`ralph rescue show {one.name}`"
            yield f"- {_md(f'{one.story} iteration {one.iteration}, {one.kind}: {one.reason}')} ({kept})"
            yield from (f"  - {_md(reason)}" for reason in one.reasons)
    if report.refused_hosts:
        yield "\n## Hosts that the sandbox refused\n"
        yield from (f"- {_md(host.line)} (`{host.allow}`)" for host in report.refused_hosts)
    if report.workers:
        yield "\n## Workers\n"
        yield from (f"- {_md(worker_facts(worker))}" for worker in report.workers)
    yield "\n## The run\n"
    # What to do next is Ralph's own text, with commands between backticks.
    yield from (f"- {name}: {value if name == 'next' else _md(value)}" for name, value in facts(report))


def _md(text: str) -> str:
    """Text with all Markdown and HTML escaped."""
    return re.sub(r"([\\`*_{}\[\]|#~!])", r"\\\1", escape(_plain(text), quote=False))
