"""The report of a run as lines of plain text: what the screen, the page and Markdown have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ralph.core.text import one_line, plural
from ralph.report.report import Report, StoryReport
from ralph.report.worker_time import WorkerUse
from ralph.views.words import duration, grades_line, moment, money, seconds

_MOST_WITNESSES = 5
WHERE = {
    "checkout": "this run: in a clean checkout",
    "in-place": "this run: in the workspace (in-place), not in a clean checkout",
}
"""The grades are those of all stories, also of earlier runs."""


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
