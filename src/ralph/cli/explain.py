"""`ralph explain`: why a run ended, its circuit breakers, the route and the prompt of the next session."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Callable
from itertools import groupby

from ralph.cli.output import emit_json, note, paint, say, say_raw
from ralph.core.errors import UsageError
from ralph.core.events import RunStarted
from ralph.core.exit_codes import ExitCode
from ralph.core.moves import Work
from ralph.core.plan import Mode
from ralph.core.proof import MEANING, Grade
from ralph.core.rules import OnStuck
from ralph.core.select import mode_of, next_story
from ralph.core.text import clean, estimate_tokens, one_line, plural
from ralph.engine.steps import Position
from ralph.journal.records import read
from ralph.report.explain import Circuits, Counters, Explanation, circuits, explain, tail
from ralph.report.transition_table import PEOPLE, table
from ralph.state.locks import is_alive
from ralph.views.lines import more_reasons
from ralph.views.words import STYLES, duration
from ralph.workspace.find import open_ref, store_for
from ralph.workspace.plan_edit import find_story
from ralph.workspace.runs import chosen_run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ralph.run.route import Route
    from ralph.run.spec import Launched

_BELOW = {
    Grade.PROVEN: "a story with a lower grade is rejected",
    Grade.WITNESSED: "a story with a lower grade is rejected",
    Grade.REVIEWED: "the default: a story that no test shows to be done gets a review session",
    Grade.UNPROVEN: "passing checks are enough; no witness is searched",
}
"""`proof.minimum` → what it does."""


def explain_run(args: Namespace) -> int:
    if topic := _TOPICS.get(args.what):
        topic(args.json)
        return ExitCode.COMPLETE
    try:
        records = list(read(chosen_run(args, os.environ, args.what)))
    except UsageError as error:
        error.hint = f"{error.hint}; the topics are {', '.join(_TOPICS)}" if args.what else error.hint
        raise
    started = next((record.event for record in records if isinstance(record.event, RunStarted)), None)
    found = explain(records, is_alive=is_alive(started))
    if args.json:
        emit_json(found)
    else:
        _print(found)
    return ExitCode.COMPLETE


def _print(found: Explanation) -> None:
    how = f"{found.reason} (exit code {found.exit_code})" if found.reason else found.state
    name = f" on {one_line(found.plan, 60)}" if found.plan else ""
    say(f"Run {found.run}{name}: {how}", "bold")
    say(found.why)
    if found.detail:
        say(f"Detail: {one_line(found.detail, 600)}")
    say(f"{found.done} of {plural(found.total, 'story')} done after {duration(found.seconds)}.")
    _print_evidence(found)
    say()
    say_raw(f"{paint('What to do:', 'bold')} {found.next}")


def _print_evidence(found: Explanation) -> None:
    if found.last:
        say()
        say("Last iterations:")
    for past in found.last:
        mark, style = STYLES[past.verdict]
        story = f" {one_line(past.story, 40)}" if past.story else ""
        verdict = paint(f"{mark} {past.verdict.value}", style)
        worker = paint(f"[{past.worker}] ", "dim") if past.worker else ""
        say_raw(f"  {past.iteration:>3} {worker}{past.mode}{story}  {verdict}: {one_line(past.headline, 300)}")
        for reason in more_reasons(past.reasons):
            say(f"      {reason}", style)
    for check in found.failing:
        say()
        say(f"Last failing check: {one_line(check.command, 120)}", "red")
        for line in tail(check):
            say(f"  | {clean(line)[:200]}")
    if found.failing:
        say("`ralph log --check` shows its full output", "dim")
    if found.stuck:
        say()
        say("Stuck stories:")
        for story, why in found.stuck.items():
            say(f"  {one_line(story, 40)}: {one_line(why, 200)}")
    if found.reason != "complete":
        say()
        some = found.counters[:1] + tuple(each for each in found.counters[1:] if each.count)
        counted = (f"{each.what} {each.count}{f' of {each.most}' if each.most else ''}" for each in some)
        say(f"Counters: {'; '.join(counted)}")
    if found.rescues:
        say("Rejected work is kept:")
        for ref in found.rescues:
            say(f"  `ralph rescue show {one_line(ref.removeprefix('refs/ralph/rescue/'), 100)}`")


def _grades(as_json: bool) -> None:
    if as_json:
        emit_json([{"grade": grade, "meaning": MEANING[grade], "minimum": _BELOW[grade]} for grade in Grade])
        return
    say("How well a story is proven, best first:", "bold")
    for grade in Grade:
        say(f"  {grade.value:<10} {MEANING[grade]}")
    say()
    say("proof.minimum (`ralph run --proof-minimum GRADE`) is the least grade of a story that is done:", "bold")
    for grade in Grade:
        say(f"  {grade.value:<10} {_BELOW[grade]}")
    say()
    say("`ralph proof STORY` shows the evidence for a story; docs/proof.md describes the procedure.")


def _transitions(as_json: bool) -> None:
    changes = table()
    if as_json:
        emit_json(changes)
        return
    for by, group in groupby(changes, key=lambda change: change.by):
        what = "the state of a story, by `ralph task`" if by == PEOPLE else "reviewStatus, by an agent"
        say(f"{by}: {what}", "bold")
        for change in group:
            word = paint("legal  ", "green") if change.legal else paint("illegal", "red")
            told = change.condition or change.why
            say_raw(f"  {change.old:>17} → {change.new:<17} {word}  {paint(told, 'dim')}".rstrip())
        say()


_TOPICS: dict[str, Callable[[bool], None]] = {"grades": _grades, "transitions": _transitions}


def show_circuit(args: Namespace) -> int:
    found = circuits(read(chosen_run(args, os.environ, args.run)))
    if args.json:
        emit_json(found)
        return ExitCode.COMPLETE
    say(f"run {found.run}, {f'ended: {found.ended}' if found.ended else 'not ended'}", "bold")
    _show("the run", found.whole, _of_the_run(found))
    for name, counters in found.stories.items():
        _show(one_line(name, 40), counters, _of_a_story(counters, found))
    for name, counters in found.steps.items():
        _show(f"step {one_line(name, 40)}", counters, [])
    _tell_rules(found)
    return ExitCode.COMPLETE


def _of_the_run(found: Circuits) -> list[str]:
    """When stuck stories are set aside, the run counts those stories instead of attempts."""
    same = _count("same error", found.whole.same_error, found.same_error_threshold)
    if found.on_stuck is OnStuck.NEXT:
        return [_count("stories set aside in a row", found.set_aside_in_a_row, found.no_progress_threshold), same]
    return [_count("no progress", found.whole.no_progress, found.no_progress_threshold), same]


def _of_a_story(counters: Counters, found: Circuits) -> list[str]:
    if not counters.same_error:  # it was set aside, and its counts went with it
        return []
    return [
        _count("no progress", counters.no_progress, found.no_progress_threshold),
        _count("same error", counters.same_error, found.same_error_threshold),
    ]


def _show(name: str, counters: Counters, facts: list[str]) -> None:
    told = counters.why or (f"last: {counters.error}" if counters.error else "")
    line = ", ".join([counters.position.value, *facts])
    style = "red" if counters.position is Position.OPEN else ""
    say(f"  {name:<12} {line}{f' — {one_line(told, 200)}' if told else ''}", style)


def _count(what: str, count: int, most: int) -> str:
    return f"{what} {count}/{most}" if most else f"{what} {count} (no limit)"


def _tell_rules(found: Circuits) -> None:
    if found.died_at_once:
        say(f"  agents that exited at once, in a row: {found.died_at_once}/{found.crash_loop_threshold}")
    then = "is set aside and the run continues" if found.on_stuck is OnStuck.NEXT else "stops the run"
    say(f"  a story that trips {then} (circuit_breaker.on_stuck)", "dim")


def show_route(args: Namespace) -> int:
    from ralph.run.route import route
    from ralph.run.spec import Launched

    ref, settings = open_ref(args)
    prepared = Launched(ref=ref, settings=settings, plan=store_for(ref, os.environ).load().plan)
    story = find_story(prepared.plan, args.story) if args.story else next_story(prepared.plan)
    if story is None:
        raise UsageError("no story is ready", hint="`ralph status` shows what each story waits for; or name a story")
    found = route(prepared, story, os.environ)
    if args.json:
        emit_json(found)
        return 0
    _show_route(found)
    return 0


def _show_route(found: Route) -> None:
    say(f"{one_line(found.story, 40)} {one_line(found.title, 80)}", "bold")
    say(f"  {'works':<10} {_who(found.agent, found.model)} ({one_line(found.why, 100)})")
    say(f"  {'looks':<10} {found.complexity.level.value}, {found.points} points")
    for part in found.complexity.parts:
        say(f"  {'':<10} {part.points:+d}  {one_line(part.why, 100)}")
    if not found.routing:
        say(f"  {'routing':<10} is off; it would choose {found.routed_to or 'the client’s own model'}")
    for at, each in enumerate(found.lineup if len(found.lineup) > 1 else ()):
        note = f": not now, {one_line(each.in_the_way, 100)}" if each.in_the_way else ""
        say(f"  {'then' if at else 'first':<10} {_who(each.agent, each.model)}{note}")
    for by in found.reviewers:
        name = f"{one_line(by.name, 40)}: " if by.name else ""
        say(f"  {'reviews':<10} {name}{_who(by.agent, by.model)} ({one_line(by.why, 100)})")


def _who(agent: str, model: str) -> str:
    return f"{one_line(agent, 40)}, {one_line(model, 60) if model else 'its own model'}"


def show_prompt(args: Namespace) -> int:
    from ralph.run.dry_run import session_of
    from ralph.run.spec import Launched
    from ralph.session.steps import plan_steps

    ref, settings = open_ref(args)
    prepared = Launched(ref=ref, settings=settings, plan=store_for(ref, os.environ).load().plan)
    work = _work(prepared, args.story, Mode(args.mode) if args.mode else None)
    steps = plan_steps(settings, ref.root)
    planned = steps.setup if work.mode is Mode.SETUP else steps.work
    config = next((dict(step.config) for step in planned if step.kind == "agent"), {})
    session = session_of(prepared, work, config, os.environ)
    count = {"prompt": estimate_tokens(session.prompt), "system": estimate_tokens(session.system)}
    if args.json:
        emit_json(
            {
                "story": work.story,
                "mode": work.mode,
                "prompt": session.prompt,
                "system": session.system,
                "tokens": count,
            }
        )
        return 0
    if session.system:
        say("--- appended to the system prompt", "dim")
        say(session.system)
        say("--- prompt", "dim")
    say(session.prompt.rstrip("\n"))
    note(f"about {count['prompt']} tokens" + (f" and {count['system']} in the system prompt" if session.system else ""))
    return 0


def _work(prepared: Launched, wanted: str | None, mode: Mode | None) -> Work:
    """The story and mode from the options, or those a run would choose."""
    from ralph.run.dry_run import next_move

    if mode in (Mode.SETUP, Mode.EXAM):
        return Work("", mode)
    plan, review = prepared.plan, prepared.settings.config.review.enabled
    if wanted is None and mode is None and isinstance(move := next_move(prepared, os.environ), Work):
        return move
    if wanted is not None:
        story = find_story(plan, wanted)
        return Work(story.id, mode or mode_of(story, review=review))
    found = next((s for s in plan.stories if s.is_open and mode is mode_of(s, review=review)), None) or next_story(plan)
    if found is None:
        raise UsageError("no story is ready", hint="`ralph status` shows what each story waits for; --story names one")
    return Work(found.id, mode or mode_of(found, review=review))
