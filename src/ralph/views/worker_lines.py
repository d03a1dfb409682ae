"""Workers side by side and the merge queue below them, as lines; the same in every view."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from ralph.core.agent import Tokens
from ralph.core.events import AnyEvent, IterationEnded
from ralph.core.text import one_line, plural
from ralph.journal.run_state import RunState
from ralph.journal.workers import RED_MERGED, Activity, Clash, Entry, EntryState, Worker, WorkerState, iteration_of
from ralph.views.columns import cells, pad
from ralph.views.paint import paint
from ralph.views.words import STYLES, duration, money, seconds

_WIDEST_STORY = 12
_MODE = 10
_TIME = 9
_USED = 12
_MOST_NAMES = 3

Line = tuple[str, str]
"""A line and its style."""
Used = Callable[[Activity], tuple[Tokens, float | None, bool]]
"""The tokens and the cost of an iteration so far, and whether a part of the cost is estimated."""


def prefix(event: AnyEvent, state: RunState) -> str:
    """`[2 US-004] ` before the lines of an iteration in a run with several workers, else nothing."""
    if not state.is_parallel:
        return ""
    number = iteration_of(event)
    is_own = number in state.parallel.open or isinstance(event, IterationEnded)  # the final checks have a number too
    started = state.parallel.started(number) if is_own else None
    if started is None:
        return ""
    name = one_line(started.story, 40) or started.mode.value
    return paint(f"[{started.worker or 'run'} {name}]", "dim") + " "


def recorded(activity: Activity) -> tuple[Tokens, float | None, bool]:
    """What the journal has about an iteration: sessions that have ended."""
    return activity.tokens, activity.cost_usd, activity.is_estimated


def worker_lines(state: RunState, now: float, most: int | None = None, used: Used = recorded) -> Iterator[Line]:
    """One line per worker, busy ones first: number, story, mode, time, tokens and cost, what it does."""
    known = (each for each in state.parallel.known.values() if each.is_busy or not each.is_prover)
    workers = sorted(known, key=lambda each: (not each.is_busy, each.number))
    shown = workers if most is None or len(workers) <= most else workers[: max(most - 1, 0)]
    widest = len(str(max((each.number for each in workers), default=0)))
    stories = max((cells(_story(each, state)) for each in shown), default=0)
    for worker in shown:
        number = f"{worker.number:>{widest}}"
        yield f"  {number} {pad(_story(worker, state), min(stories, _WIDEST_STORY))} {_work(worker, state, now, used)}"\
            .rstrip(), _STYLES[worker.state]  # fmt: skip
    if rest := workers[len(shown) :]:
        counts = ((sum(each.state is kind for each in rest), kind.value) for kind in WorkerState)
        yield f"  … {len(rest)} more: {', '.join(f'{count} {word}' for count, word in counts if count)}", "dim"


_STYLES = {
    WorkerState.WORKING: "cyan",
    WorkerState.PROVING: "cyan",
    WorkerState.IDLE: "dim",
    WorkerState.LOST: "red",
}


def _story(worker: Worker, state: RunState) -> str:
    numbers = (worker.iteration,) if worker.iteration else worker.proving
    started = state.parallel.started(numbers[0]) if numbers else None
    if started is None or worker.lost is not None:
        return "-"
    more = f" +{len(numbers) - 1}" if len(numbers) > 1 else ""
    return (one_line(started.story, 40) or started.mode.value) + more


def _work(worker: Worker, state: RunState, now: float, used: Used) -> str:
    took = duration(now - worker.since)
    if worker.state is WorkerState.LOST:
        return f"{pad('lost', _MODE)} {pad(took, _TIME)} {one_line(worker.lost or '', 100)}"
    if worker.state is WorkerState.IDLE:
        return f"{pad('idle', _MODE)} {took}"
    activity = state.parallel.open.get(worker.iteration or worker.proving[0])
    if worker.state is WorkerState.PROVING:
        check = activity.check if activity else None
        return f"{pad('proving', _MODE)} {pad(took, _TIME)} {pad('', _USED)} {_check_name(check.name) if check else ''}"
    if activity is None or activity.started is None:
        return ""
    mode = activity.started.mode.value
    return f"{pad(mode, _MODE)} {pad(took, _TIME)} {pad(_amount(*used(activity)), _USED)} {phase(activity, now)}"


def phase(activity: Activity, now: float) -> str:
    """`agent: Bash pytest -q`, `checks: npm test (11 s)`"""
    if activity.agent is not None:
        return f"agent: {activity.call}" if activity.call else "agent"
    if activity.checks_since is not None:
        took = seconds(max(now - activity.checks_since, 0))
        return f"checks: {_check_name(activity.check.name)} ({took})" if activity.check else f"checks ({took})"
    return activity.judged.verdict.kind.value if activity.judged else "starting"


def _check_name(name: str) -> str:
    return one_line(name, 60)


def _amount(used: Tokens, usd: float | None, is_estimated: bool = False) -> str:
    """`12.1k $0.10`, or `12.1k ~$0.10`"""
    total = used.total
    short = str(total) if total < 1000 else f"{total / 1000:.1f}k" if total < 1_000_000 else f"{total / 1_000_000:.1f}M"
    return " ".join([*([short] if total else []), *([money(usd, is_estimated)] if usd is not None else [])])


def queue_lines(state: RunState, now: float, most: int | None = None) -> Iterator[Line]:
    """The merge queue in order, one line per candidate."""
    entries = list(state.parallel.queue.values())
    shown = entries if most is None or len(entries) <= most else entries[: max(most - 1, 0)]
    for number, entry in enumerate(shown):
        text = _entry(entry, now, is_first=not number)
        yield f"  {'' if number else 'queue':<6} {text}", _ENTRY_STYLES.get(entry.state, "")
    if rest := entries[len(shown) :]:
        yield f"  {'' if shown else 'queue':<6} … {len(rest)} more", "dim"


_ENTRY_STYLES = {EntryState.WAITING: "dim", EntryState.RED: "red", EntryState.LANDING: "green"}


def _entry(entry: Entry, now: float, *, is_first: bool) -> str:
    word = "proven" if is_first and entry.state is EntryState.PROVEN else _ENTRY_WORDS[entry.state]
    by = f" on worker {entry.worker}" if entry.worker and entry.state is EntryState.PROVING else ""
    why = f": {one_line(entry.why, 120)}" if entry.why and entry.state is EntryState.RED else ""
    return f"{one_line(entry.story, 40)} {word}{by}, {duration(now - entry.since)}{why}"


_ENTRY_WORDS = {
    EntryState.WAITING: "waiting",
    EntryState.PROVING: "proving",
    EntryState.PROVEN: "proven, waiting for those before it",
    EntryState.RED: "failed on the merged tree",
    EntryState.LANDING: "merging",
}


def result_lines(state: RunState, most: int) -> Iterator[Line]:
    """The last finished iterations, the latest one last."""
    for event in list(state.iterations)[-most:] if most > 0 else ():
        yield result_line(event)


def result_line(event: IterationEnded) -> Line:
    mark, style = STYLES[event.kind]
    name = one_line(event.story, 40) or event.mode.value
    return f"  {mark} {name} {event.kind.value}: {one_line(event.headline, 200)} ({duration(event.seconds)})", style


def workers_line(state: RunState) -> str:
    """`4 and 1 for proofs, 1 lost`"""
    provers = sum(each.is_prover for each in state.parallel.known.values())
    lost = f", {state.parallel.lost} lost" if state.parallel.lost else ""
    return f"{len(state.parallel.known) - provers}{f' and {provers} for proofs' if provers else ''}{lost}"


def returned_line(state: RunState) -> str:
    """`3 iterations (1 green alone, red merged: US-004)`; nothing if every merge went well."""
    if not state.returned:
        return ""
    red = [clash for clash in state.parallel.clashes if clash.is_red]
    names = ", ".join(dict.fromkeys(one_line(clash.story, 20) for clash in red))
    return plural(state.returned, "iteration") + (
        f" ({state.red_merged} green alone, red merged: {names})" if red else ""
    )


def clash_line(clash: Clash) -> str:
    """`US-004 iteration 7 was green alone and red merged with US-002: check tests`"""
    others, why = clash.merged_meanwhile, clash.why.removeprefix(RED_MERGED).removeprefix(": ")
    some = ", ".join(one_line(name, 40) for name in others[:_MOST_NAMES]) + (" …" if len(others) > _MOST_NAMES else "")
    which = f"{'one of ' if len(others) > 1 else ''}{some}" if others else "what was merged meanwhile"
    what = f"was green alone and red merged with {which}" if clash.is_red else f"conflicts with {which}"
    return f"{one_line(clash.story, 40)} iteration {clash.iteration} {what}: {one_line(why, 300)}"


def workers_document(state: RunState) -> dict[str, object]:
    """For `--json`: the workers, their iterations and the queue."""
    parallel = state.parallel
    return {
        "workers": [
            {
                "worker": worker.number,
                "state": worker.state,
                "since": _iso(worker.since),
                "iteration": worker.iteration or None,
                "proving": list(worker.proving),
                "where": worker.started.where if worker.started else "",
                "lost": worker.lost,
            }
            for worker in parallel.known.values()
        ],
        "open": [_open_document(each) for each in parallel.open.values() if each.started is not None],
        "queue": [
            {
                "iteration": entry.iteration,
                "story": entry.story,
                "state": entry.state,
                "since": _iso(entry.since),
                "queued": _iso(entry.queued),
                "worker": entry.worker or None,
                "why": entry.why,
            }
            for entry in parallel.queue.values()
        ],
        "returned": state.returned,
        "red_merged": state.red_merged,
    }


def _iso(t: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(t))


def _open_document(activity: Activity) -> dict[str, object]:
    started = activity.started
    assert started is not None
    return {
        "iteration": started.iteration,
        "worker": started.worker or None,
        "story": started.story,
        "mode": started.mode,
        "attempt": started.attempt,
        "since": _iso(activity.since),
        "activity": "checks" if activity.checks_since is not None else "agent" if activity.agent else None,
        "check": activity.check.name if activity.check else None,
        "call": activity.call or None,
        "tokens": activity.tokens.total,
        "cost_usd": activity.cost_usd,
        "cost_is_estimated": activity.is_estimated,
    }
