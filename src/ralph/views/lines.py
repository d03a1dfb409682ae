"""One line, or a few, for each record of a run that tells a person something."""

from __future__ import annotations

from collections.abc import Sequence

from ralph.core.agent import Denial, Limit, Retry, Text, ToolUse
from ralph.core.control import Verb
from ralph.core.events import (
    AgentEnded,
    AgentSaid,
    AnyEvent,
    Asked,
    Baseline,
    CheckEnded,
    Committed,
    FindingDecided,
    Foreseen,
    Guided,
    HookAnswered,
    HostRefused,
    IterationEnded,
    IterationStarted,
    Judged,
    LimitAnswered,
    Noted,
    Paused,
    Proved,
    Queued,
    QueueProved,
    QueueProving,
    Record,
    Recovered,
    RescueSaved,
    Resumed,
    RunEnded,
    RunStarted,
    StepEnded,
    StoriesRetried,
    StorySetAside,
    WaitStarted,
    WorkerLost,
    WorkerStarted,
)
from ralph.core.evidence import CheckResult
from ralph.core.moves import Reason
from ralph.core.plan import Mode, State
from ralph.core.review import Fate
from ralph.core.text import one_line
from ralph.journal.run_state import RunState
from ralph.journal.workers import Activity, is_rescued
from ralph.views.columns import progress_bar
from ralph.views.paint import paint
from ralph.views.words import (
    STYLES,
    budget_line,
    checks_passed,
    duration,
    exceptions,
    foreseen,
    ground_for,
    is_short,
    money,
    plural,
    seconds,
    tokens,
    until_when,
)
from ralph.views.worker_lines import prefix


def describe(record: Record, state: RunState, *, verbose: bool = False) -> str:
    """The painted text of a record, or an empty string. Every view uses it. Lines of a worker name it and the story."""
    text = _text(record, state, verbose)
    lead = prefix(record.event, state) if text else ""
    return lead + text.replace("\n", f"\n{lead}")


def _text(record: Record, state: RunState, verbose: bool) -> str:
    event = record.event
    match event:
        case RunStarted(run=run, agent=agent, checks=checks):
            proof = plural(len(checks), "check") if checks else "no checks, so only a review can prove a story"
            head = f"run {run}: {event.done} of {plural(event.total, 'story')} done, agent {agent}, {proof}"
            return head + (paint(f"\n  the agent {one_line(event.may, 400)}", "dim") if event.may else "")
        case Recovered(run=run, what=what):
            return paint(f"recovered run {run}: {one_line(what)}", "yellow")
        case IterationStarted():
            count = "round" if event.mode is Mode.EXAM else "attempt"
            again = f", {count} {event.attempt}" if event.attempt > 1 else ""
            head = paint(f"▶ iteration {position(event, state)}:", "bold")
            story = f"{one_line(event.story)} " if event.story else ""
            by = f", by {one_line(event.choice, 60)}" if event.choice else ""
            return f"{head} {event.mode.value} {story}{one_line(event.title, 70)}{again}{by}"
        case AgentSaid(event=said):
            return _said(said, verbose)
        case HookAnswered(answer="deny" | "block"):
            return paint(f"  {_denied(event)}", "yellow")
        case AgentEnded(outcome=outcome) if outcome.denials:
            return paint("\n".join(f"  {refused(denial)}" for denial in outcome.denials), "yellow")
        case StepEnded(ok=False) if event.kind != "agent":  # the result of an agent step has its own line
            return f"  step {one_line(event.step, 60)}: {one_line(event.skipped or event.detail or 'failed', 200)}"
        case CheckEnded(result=result) if verbose or not result.passed:
            return _check(result, verbose)
        case Judged(iteration=number) if not verbose and number in state.parallel.queue:
            return ""  # judged again on the merged tree, of which the queue has told
        case Judged(evidence=evidence) if not verbose and (passed := checks_passed(evidence.checks)):
            return f"  {paint(passed, 'green')}"
        case WorkerStarted() | WorkerLost() | Queued() | QueueProving() | QueueProved():
            return _of_workers(event, state, verbose)
        case Baseline(results=results):
            failing = sum(not result.passed for result in results)
            return paint(f"  baseline: {len(results) - failing} of {plural(len(results), 'check')} passed", "dim")
        case RescueSaved(ref=ref) if verbose:
            return paint(f"  work saved as {one_line(ref, 200)}", "dim")
        case Committed(commit=commit, message=message, by_agent=by_agent) if verbose or by_agent:
            return f"  commit {commit[:9]} {one_line(message, 80)}"
        case IterationEnded():
            return _ended(event, state)
        case Foreseen() if event is state.first_forecast:
            forecast = f"forecast: {foreseen(event)} ({ground_for(event)}){_no_budget(state)}"
            return f"{_budget(event, state)}{paint(forecast, 'dim')}"
        case WaitStarted(until=until, why=why):
            return paint(f"⏸ {one_line(why)}: waiting until {until_when(until, record.t)}", "yellow")
        case LimitAnswered(answer=answer):
            then = {"wait": "waiting", "exit": "exiting"}.get(answer, "no answer, waiting")
            return paint(f"⏸ usage limit, wait or exit: {then}", "yellow")
        case StoriesRetried(stories=stories):
            return paint(f"↻ no other story is ready: retrying {', '.join(map(one_line, stories[:8]))}", "yellow")
        case StorySetAside(story=story, why=why, by_user=True):
            return paint(f"⊘ {one_line(story)} {one_line(why, 200)}", "yellow")
        case FindingDecided(story=story, finding=finding, fate=fate, reason=reason, text=text):
            verb = "rejected" if fate is Fate.REJECTED else "confirmed"
            about = f" ({one_line(text, 80)})" if text else ""
            why = f": {one_line(reason, 160)}" if reason else ""
            return paint(f"  you {verb} finding {finding} of {one_line(story)}{about}{why}", "yellow")
        case StorySetAside(story=story, why=why):
            return paint(f"⊘ {one_line(story)} set aside: {one_line(why, 200)}", "red")
        case Asked(verb=verb, by=by):
            return asked(verb, by, state)
        case Paused():
            return paint("⏸ paused: `ralph resume` or Ctrl-\\ continues; the plan may be edited", "yellow")
        case Resumed():
            return paint(f"▶ resumed after {duration(event.seconds)}", "yellow")
        case HostRefused(host=host, port=port, why=why):
            return paint(f"  the sandbox refused {one_line(host, 80)}:{port}: {why}", "yellow")
        case Guided(text=text):
            return f"  note from you: {one_line(text, 120)}"
        case Proved(results=()):
            return ""
        case Proved(passed=True, results=results):
            return paint(f"final checks: {checks_passed(results)}{exceptions(results)}", "green")
        case Proved():
            return paint("final checks failed", "red")
        case Noted(text=text) if state.is_parallel and sum(note.text == text for note in state.notes) > 1:
            return ""  # every worker says it
        case Noted(text=text, warning=warning):
            return paint(one_line(text), "yellow" if warning else "dim")
        case RunEnded(reason=reason, detail=detail):
            word = "finished" if reason is Reason.COMPLETE else f"stopped: {reason.value}"
            return word + (f" ({one_line(detail, 300)})" if detail else "")
        case _:
            return ""


def _of_workers(event: AnyEvent, state: RunState, verbose: bool) -> str:
    match event:
        case WorkerStarted(worker=worker, where=where, seconds=took) if verbose:
            return paint(
                f"worker {worker} started{f' on {one_line(where, 80)}' if where else ''} ({took:.1f} s)", "dim"
            )
        case WorkerLost(worker=worker, iteration=iteration, why=why):
            started = state.parallel.started(iteration)
            again = f"; {one_line(started.story, 40) or started.mode.value} is started again" if started else ""
            return paint(f"worker {worker} lost: {one_line(why, 200) or 'it ended'}{again}", "yellow")
        case Queued(iteration=iteration):
            before = list(state.parallel.queue).index(iteration)
            behind = f", behind {plural(before, 'other')}" if before else ""
            return paint(f"  in the merge queue{behind}", "dim")
        case QueueProving(worker=worker) if verbose:
            by = f" on worker {worker}" if worker else ""
            return paint(f"  proving {_together(event.iterations, state)}on the merged tree{by}", "dim")
        case QueueProved(passed=True, seconds=took):
            which = _together(event.iterations, state)
            return f"  {paint(f'{which}proven on the merged tree ({seconds(took)})', 'green')}"
        case QueueProved(passed=False, why=why):
            which = _together(event.iterations, state)
            return paint(f"  {which}failed on the merged tree: {one_line(why, 200)}", "red")
        case _:
            return ""


def _together(iterations: Sequence[int], state: RunState) -> str:
    """The stories of several candidates; a single one has its name before the line."""
    stories = [started.story for number in iterations if (started := state.parallel.started(number))]
    return f"{', '.join(one_line(story, 40) for story in stories)} " if len(iterations) > 1 else ""


def _denied(event: HookAnswered) -> str:
    reason = one_line(event.reason, 200)
    if event.answer == "block":
        return f"not allowed to stop: {reason}"
    return f"denied {one_line(event.tool, 40)} {one_line(event.subject, 80)}".rstrip() + f": {reason}"


def refused(denial: Denial) -> str:
    return f"the client refused {denial.tool} {one_line(denial.subject, 80)}".rstrip() + f": {denial.remedy}"


_CHECKS = {
    "baseline": "running checks before the first story",
    "checkout": "testing whether work can be proven in a clean checkout",
    "proof": "proving the change",
    "final": "running the final checks",
}


def checks_line(state: RunState | Activity, now: float) -> str:
    """`running checks: npm test (11 s)` while checks run, else nothing."""
    if state.checks_since is None or state.agent is not None:
        return ""
    took = seconds(max(now - state.checks_since, 0))
    if state.check is None:
        return f"running checks ({took})"
    return f"{_CHECKS.get(state.check.when, 'running checks')}: {one_line(state.check.name, 60)} ({took})"


def position(event: IterationStarted, state: RunState) -> str:
    """`2/9`. An iteration that does not count, such as one cut off by a usage limit, raises the maximum by one."""
    most = event.most or (state.started.max_iterations if state.started else 0)
    return f"{event.iteration}/{most + state.free}" if most else str(event.iteration)


def _check(result: CheckResult, verbose: bool) -> str:
    word = paint("passed", "green") if result.passed else paint("failed", "red" if result.required else "yellow")
    shown = one_line(result.output, 300) if verbose else "`ralph log --check` shows its output"
    where = paint(f"  {shown}", "dim") if result.output else ""
    return f"  check {one_line(result.name, 60)}: {word} in {seconds(result.seconds)}{where}"


def asked(verb: Verb, by: str, state: RunState) -> str:
    """The effect of a pause, resume or stop request. Between iterations it takes effect at once, with its own line."""
    if state.current is not None:
        text = _TO_COME[verb]
        if state.is_parallel:
            text = text.replace("this iteration", RUNNING_ITERATIONS).replace("the agent's work", "the agents' work")
        return paint(f"{by}: {text}", "yellow")
    return paint(f"{by}: stopping", "yellow") if verb is Verb.STOP_NOW else ""


RUNNING_ITERATIONS = "the running iterations"
_TO_COME = {
    Verb.PAUSE: "pauses after this iteration",
    Verb.RESUME: "pause cancelled",
    Verb.STOP: "stops after this iteration; `ralph stop --now` stops now",
    Verb.STOP_NOW: "stopping; the agent's work is saved",
}


def _budget(event: Foreseen, state: RunState) -> str:
    started = state.started
    if started is None or started.limits.once:
        return ""
    cap = started.max_iterations
    return paint(budget_line(event, cap, started.limits), "yellow" if is_short(event, cap) else "dim") + "\n"


def _no_budget(state: RunState) -> str:
    limits = state.started.limits if state.started else None
    return "; no budget set (--max-cost USD)" if limits and not limits.budget.is_set else ""


def _said(said: object, verbose: bool) -> str:
    match said:
        case Text(text) if verbose:
            return f"  {one_line(text, 200)}"
        case ToolUse(name, summary) if verbose:
            return paint(f"  {one_line(summary or name, 100)}", "dim")
        case Limit(rejected=True) if verbose:
            return paint("  usage limit reached", "yellow")
        case Retry(attempt=attempt, status=status) if verbose:
            return paint(f"  the client retries ({attempt}, status {status})", "dim")
        case _:
            return ""


_LONGEST = 300
_LONGEST_NOTICE = 400  # it may end with a path
_MOST_REASONS = 5


def more_reasons(reasons: Sequence[str]) -> list[str]:
    """The reasons besides the headline. A failing check has its own line."""
    shown = [one_line(reason, _LONGEST) for reason in reasons if not reason.startswith("check ")]
    left = len(shown) - _MOST_REASONS
    return [*shown[:_MOST_REASONS], *([f"and {left} more"] if left > 0 else [])]


_CHANGES = "changes requested: "
"""The prefix of the headline that `engine.judge_review` gives a review with findings."""


def _ended(event: IterationEnded, state: RunState) -> str:
    mark, style = STYLES[event.kind]
    shown = event.grade if event.completes and event.grade not in event.headline else ""
    facts = [*([shown] if shown else []), duration(event.seconds)]
    if event.tokens.total:
        facts.append(tokens(event.tokens))
    usd, is_estimated = state.last_cost
    if usd is not None:
        facts.append(money(usd, is_estimated))
    if event.commit:
        facts.append(f"commit {event.commit[:9]}")
    if is_rescued(event):
        facts.append("work saved: `ralph rescue list`")
    word, headline = event.kind.value, event.headline
    if event.mode is Mode.REVIEW and headline.startswith(_CHANGES):  # the review is accepted, the story is not
        mark, style, word, headline = "◐", "yellow", "review asks for changes on", headline.removeprefix(_CHANGES)
    head = paint(f"{mark} {word}", style)
    story = f"{one_line(event.story)}: " if event.story else ""
    line = f"{head} {story}{one_line(headline, _LONGEST)} ({', '.join(facts)})"
    for reason in more_reasons(event.reasons):
        line += f"\n    {paint(reason, style)}"
    if event.story_state is State.FAILED:
        line += paint(f"\n    {one_line(event.story)} failed after {plural(event.attempts, 'attempt')}", "red")
    if event.completes:
        line += f"  {paint(progress_bar(state.done, state.total, 10), 'green')}"
    for notice in event.notices:
        line += f"\n    {paint(one_line(notice, _LONGEST_NOTICE), 'yellow')}"
    for text in event.learned:
        line += f"\n    {paint(f'learned: {one_line(text, 160)}', 'dim')}"
    return line
