"""The summary of a run: what is done, what is not, what it cost, and what to do next."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from ralph.cli.output import columns, folded, is_too_wide, paint, say_raw
from ralph.cli.runs import review_lines
from ralph.cli.show import grades_line
from ralph.core.events import OUTSIDE_NOTE
from ralph.core.moves import Reason
from ralph.core.plan import State
from ralph.core.proof import KEPT_UNPROVEN
from ralph.core.review import OPEN_FINDINGS
from ralph.core.text import one_line, plural
from ralph.journal.run_state import RunState
from ralph.journal.statistics import Figures
from ralph.report.advice import next_step
from ralph.sandbox.hosts import shown
from ralph.views.columns import progress_bar
from ralph.views.lines import refused
from ralph.views.report_lines import WHERE, agents_line
from ralph.views.words import duration, exceptions, money, tokens
from ralph.views.worker_lines import returned_line, workers_line

_MOST_STUCK = 5
_INDENT = 13
"""Where the second column begins."""


def print_summary(state: RunState, figures: Figures, left_on: str = "") -> None:
    """`left_on`: the branch that has the work, if the user's own could not be advanced."""
    room = columns(sys.stdout)
    for line in summary(state, figures, left_on):
        if line.startswith("  ") or not is_too_wide(line, room):
            say_raw(folded(line, sys.stdout, _INDENT))
        else:  # the bar has a line of its own
            say_raw(folded(line.replace("  ", "\n  ", 1), sys.stdout, 2))


def summary(state: RunState, figures: Figures | None = None, left_on: str = "") -> Iterator[str]:
    yield ""
    complete = state.ended is not None and state.ended.reason is Reason.COMPLETE
    bar = progress_bar(state.done, state.total)
    yield f"{paint(bar, 'green' if complete else 'yellow')}  {_headline(state)}"
    for title, names in _groups(state):
        stuck = [n for n in names if title in ("failed", "blocked") and state.reasons.get(n)][:_MOST_STUCK]
        for name in stuck:
            yield f"  {title:<10} {one_line(name, 20)}: {one_line(state.reasons[name], 160)}"
        if rest := [name for name in names if name not in stuck]:
            yield f"  {title:<10} {', '.join(one_line(n, 20) for n in rest[:12])}{' …' if len(rest) > 12 else ''}"
    if waiting := state.waiting_for_proof:
        some = f"{', '.join(one_line(n, 20) for n in waiting[:12])}{' …' if len(waiting) > 12 else ''}"
        yield f"  {'unproven':<10} {paint(f'{some}: {KEPT_UNPROVEN}', 'yellow')}"
    if proof := proof_line(state):
        yield f"  {'proof':<10} {proof}"
    for title, result in zip(("exam", *[""] * len(state.exams)), state.exams, strict=False):
        yield f"  {title:<10} {one_line(result, 200)}"
    verdicts = ", ".join(f"{count} {kind.value}" for kind, count in sorted(state.kinds.items()))
    yield f"  {'iterations':<10} {state.count}{f' ({verdicts})' if verdicts else ''}"
    if returned := returned_line(state):
        yield f"  {'returned':<10} {returned}"
    if state.is_parallel:
        yield f"  {'workers':<10} {workers_line(state)}"
    among = "in agents" if state.is_parallel else "of it in the agent"
    in_agent = f", {duration(state.agent_seconds)} {among}" if state.count else ""
    yield f"  {'time':<10} {duration(state.now - state.started_at)}{in_agent}"
    more = f" and {plural(state.unknown_costs, 'session')} of unknown cost" if state.unknown_costs else ""
    cost = f"{money(state.cost_usd, state.is_estimated)}{more if state.cost_usd is not None else ''}"
    yield f"  {'used':<10} {f'{tokens(state.tokens)}, {cost}' if state.count else 'nothing: no session was started'}"
    if len(state.agents) > 1:
        yield f"  {'agents':<10} {agents_line(state.agents)}"
    for title, line in zip(("reviews", ""), review_lines(figures) if figures else (), strict=False):
        yield f"  {title:<10} {line}"
    if outside := next((note.text for note in state.notes if note.text.startswith(OUTSIDE_NOTE)), ""):
        yield f"  {'sandbox':<10} {one_line(outside.partition(';')[0], 160)}"
    if state.started and state.started.branch:
        own, made = one_line(state.started.branch), f"{plural(len(state.commits), 'commit')} in iterations"
        is_left = bool(left_on and state.commits) and left_on != state.started.branch
        yield f"  {'branch':<10} {f'{one_line(left_on)}, {made}; not in {own} yet' if is_left else f'{own}, {made}'}"
    if state.ended and (left := state.ended.uncommitted):
        some = ", ".join(one_line(path, 60) for path in left[:5])
        more = f" and {len(left) - 5} more" if len(left) > 5 else ""
        yield f"  {'warning':<10} {paint(f'not committed, changed during the run: {some}{more}', 'yellow')}"
    if state.rescues:
        yield f"  {'rescued':<10} {plural(len(state.rescues), 'attempt')}: `ralph rescue list`"
    for title, denial in zip(("refused", *[""] * 4), state.denials.values(), strict=False):
        yield f"  {title:<10} {paint(refused(denial), 'yellow')}"
    if state.refused_hosts:
        yield f"  {'hosts':<10} {paint(_refused_line(state), 'yellow')}"
    if state.count:
        yield f"  {'report':<10} `ralph report` shows commits, diffs and what to look at first"
    if state.ended:
        yield f"  {'next':<10} {next_step(state)}"


def _refused_line(state: RunState) -> str:
    hosts = list(dict.fromkeys(shown(host, port) for host, port, _ in state.refused_hosts))
    some = ", ".join(one_line(host, 60) for host in hosts[:3]) + (" …" if len(hosts) > 3 else "")
    return f"the sandbox refused {some}; `ralph sandbox log` shows how to allow {'it' if len(hosts) == 1 else 'them'}"


def proof_line(state: RunState) -> str:
    """The grades of the finished stories, and whether they were proven in place."""
    return "; ".join(filter(None, (grades_line(state.grades), WHERE[state.where] if state.where == "in-place" else "")))


def _headline(state: RunState) -> str:
    if state.ended is None:
        return "still running"
    reason, detail = state.ended.reason, state.ended.detail
    results = state.proved.results if state.proved else ()
    if reason is Reason.COMPLETE and any(result.passed for result in results):
        told = f"every story is done, and the checks pass on the final tree{exceptions(results)}"
        return paint(told, "green bold")
    if reason is Reason.COMPLETE:
        return paint("every story is done, but no check proves it", "yellow")
    if reason is Reason.NAMED_STORIES:
        return paint(detail, "green")
    stopped = paint(f"stopped: {reason.value.replace('-', ' ')}", "yellow bold")
    return f"{stopped} — {one_line(detail, 300)}" if detail else stopped


def _groups(state: RunState) -> Iterator[tuple[str, list[str]]]:
    stories = state.stories.values()
    yield "done", [s.id for s in stories if s.state is State.DONE and s.id not in state.unproven and not s.approved_at]
    yield f"{OPEN_FINDINGS}:", [s.id for s in stories if s.approved_at]
    yield "unproven", [s.id for s in stories if s.id in state.unproven and not s.approved_at]
    yield "failed", [s.id for s in stories if s.state is State.FAILED]
    yield "blocked", [s.id for s in stories if s.state is State.BLOCKED]
    waiting = state.waiting_for_proof
    yield "open", [s.id for s in stories if s.state in (State.TODO, State.IN_PROGRESS) and s.id not in waiting]
