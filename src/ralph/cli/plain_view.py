"""A run as timestamped lines, for logs and for terminals that are not. Nothing is ever asked here."""

from __future__ import annotations

from ralph.cli.budget_line import budget_line, is_short
from ralph.cli.forecast_words import foreseen, ground_for
from ralph.cli.output import paint, say_raw
from ralph.cli.show import progress_bar
from ralph.cli.words import STYLES, clock, duration, exceptions, money, plural, tokens, until_when
from ralph.core.agent import Limit, Retry, ToolUse
from ralph.core.control import Verb
from ralph.core.events import (
    AgentSaid,
    Asked,
    Baseline,
    CheckEnded,
    Committed,
    Foreseen,
    Guided,
    HookAnswered,
    IterationEnded,
    IterationStarted,
    LimitAnswered,
    Noted,
    Paused,
    Proved,
    Record,
    Recovered,
    RescueSaved,
    Resumed,
    RunEnded,
    RunStarted,
    StepEnded,
    StorySetAside,
    WaitStarted,
)
from ralph.core.plan import State
from ralph.core.text import one_line
from ralph.journal.run_state import RunState


class PlainView:
    def __init__(self, *, verbose: bool = False) -> None:
        self._state = RunState()
        self._verbose = verbose

    def __call__(self, record: Record) -> None:
        self._state.add(record)
        line = describe(record, self._state, verbose=self._verbose)
        if line:
            say_raw(f"{paint(clock(record.t), 'dim')} {line}", at_once=True)  # somebody may be following a log


def describe(record: Record, state: RunState, *, verbose: bool = False, room: int = 60) -> str:
    """One line for a record, or nothing. `ralph log` uses it too. `room`: for the name of a check."""
    event = record.event
    match event:
        case RunStarted(run=run, agent=agent, checks=checks):
            proof = f"checks: {', '.join(one_line(c, 40) for c in checks[:4])}" if checks else "no checks: unproven"
            return f"run {run}: {event.done} of {event.total} stories done, agent {agent}, {proof}"
        case Recovered(run=run, what=what):
            return paint(f"recovered run {run}: {one_line(what)}", "yellow")
        case IterationStarted():
            again = f", attempt {event.attempt}" if event.attempt > 1 else ""
            head = paint(f"▶ {position(event, state)}", "bold")
            story = f"{one_line(event.story)} " if event.story else ""
            by = f", by {one_line(event.choice, 60)}" if event.choice else ""
            return f"{head} {event.mode.value} {story}{one_line(event.title, 70)}{again}{by}"
        case AgentSaid(event=said):
            return _said(said, verbose)
        case HookAnswered(answer="deny" | "block"):
            return paint(f"  {_denied(event)}", "yellow")
        case StepEnded(ok=False) if event.kind != "agent":  # an agent is waited for, and what came of it is told
            return f"  step {one_line(event.step, 60)}: {one_line(event.skipped or event.detail or 'failed', 200)}"
        case CheckEnded(result=result):
            word = (
                paint("passed", "green") if result.passed else paint("failed", "red" if result.required else "yellow")
            )
            shown = one_line(result.output, 300) if verbose else "`ralph log --check` shows all of it"
            where = paint(f"  {shown}", "dim") if result.output else ""
            return f"  check {one_line(result.name, room)}: {word} in {duration(result.seconds)}{where}"
        case Baseline(results=results):
            failing = sum(not result.passed for result in results)
            return paint(f"  baseline: {len(results) - failing} of {len(results)} checks pass before the start", "dim")
        case RescueSaved(ref=ref):
            return paint(f"  the work is saved: {one_line(ref, 200)}", "dim")
        case Committed(commit=commit, message=message):
            return f"  commit {commit[:9]} {one_line(message, 80)}"
        case IterationEnded():
            return _ended(event, state)
        case Foreseen() if event is state.first_forecast:
            return f"{_budget(event, state)}{paint(f'forecast: {foreseen(event)} ({ground_for(event)})', 'dim')}"
        case WaitStarted(until=until, why=why):
            return paint(f"⏸ {one_line(why)}: waiting until {until_when(until, record.t)}", "yellow")
        case LimitAnswered(answer=answer):
            then = {"wait": "it waits", "exit": "it exits"}.get(answer, "nobody answered, so it waits")
            return paint(f"⏸ asked whether to wait for the usage limit: {then}", "yellow")
        case StorySetAside(story=story, why=why):
            return paint(f"⊘ {one_line(story)} is set aside: {one_line(why, 200)}", "red")
        case Asked(verb=verb, by=by):
            return asked(verb, by, state)
        case Paused():
            return paint("⏸ paused: `ralph resume` or Ctrl-\\ goes on, the plan may be edited", "yellow")
        case Resumed(seconds=seconds):
            return paint(f"▶ goes on after {duration(seconds)}", "yellow")
        case Guided(text=text):
            return f"  a person says: {one_line(text, 120)}"
        case Proved(results=()):
            return ""
        case Proved(passed=True, results=results):
            return paint(f"final checks passed{exceptions(results)}", "green")
        case Proved():
            return paint("final checks failed", "red")
        case Noted(text=text, warning=warning):
            return paint(one_line(text), "yellow" if warning else "dim")
        case RunEnded(reason=reason, detail=detail):
            return f"stopped: {reason.value}" + (f" ({one_line(detail, 300)})" if detail else "")
        case _:
            return ""


def _denied(event: HookAnswered) -> str:
    reason = one_line(event.reason, 200)
    if event.answer == "block":
        return f"not allowed to stop: {reason}"
    return f"denied {one_line(event.tool, 40)} {one_line(event.subject, 80)}".rstrip() + f": {reason}"


def position(event: IterationStarted, state: RunState) -> str:
    """`2 of 9`; after one that did not count, with the number under which it is recorded."""
    most = state.started.max_iterations if state.started else 0
    if not most:
        return str(event.iteration)
    place = event.iteration - state.free
    return f"{place} of {most}" + (f" (iteration {event.iteration})" if place != event.iteration else "")


def asked(verb: Verb, by: str, state: RunState) -> str:
    """What will come of a person's wish, and when. At a safe point it comes at once, with a line of its own."""
    return paint(f"{by}: {_TO_COME[verb]}", "yellow") if state.current is not None else ""


_TO_COME = {
    Verb.PAUSE: "pauses when this iteration is over",
    Verb.RESUME: "no pause after this iteration",
    Verb.STOP: "stops when this iteration is over, `ralph stop --now` ends it",
    Verb.STOP_NOW: "stopping, what the agent has done is saved",
}


def _budget(event: Foreseen, state: RunState) -> str:
    started = state.started
    if started is None or started.limits.once:
        return ""
    cap = started.max_iterations
    return paint(budget_line(event, cap), "yellow" if is_short(event, cap) else "dim") + "\n         "


def _said(said: object, verbose: bool) -> str:
    match said:
        case ToolUse(name, summary) if verbose:
            return paint(f"  {one_line(summary or name, 100)}", "dim")
        case Limit(rejected=True):
            return paint("  usage limit reached", "yellow")
        case Retry(attempt=attempt, status=status) if verbose:
            return paint(f"  the client tries again ({attempt}, status {status})", "dim")
        case _:
            return ""


def _ended(event: IterationEnded, state: RunState) -> str:
    mark, style = STYLES[event.kind]
    facts = [duration(event.seconds)]
    if event.tokens.total:
        facts.append(tokens(event.tokens))
    if event.cost_usd is not None:
        facts.append(money(event.cost_usd))
    head = paint(f"{mark} {event.kind.value}", style)
    story = f"{one_line(event.story)}: " if event.story else ""
    line = f"{head} {story}{one_line(event.headline, 160)} ({', '.join(facts)})"
    if event.story_state is State.FAILED:
        line += paint(f"\n           {one_line(event.story)} is given up: {plural(event.attempts, 'attempt')}", "red")
    if event.completes:
        line += f"  {paint(progress_bar(state.done, state.total, 10), 'green')}"
    for notice in event.notices:
        line += f"\n           {paint(one_line(notice, 160), 'yellow')}"
    for text in event.learned:
        line += f"\n           {paint(f'learned: {one_line(text, 160)}', 'dim')}"
    return line
