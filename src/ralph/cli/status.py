"""`ralph status`: show the stories, their states and the last run."""

from __future__ import annotations

import contextlib
import os
import time
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ralph.cli.output import emit_json, note, paint, say, say_raw, warn
from ralph.cli.show import as_json, cut, fit, grades_line, id_width, line_width, story_lines
from ralph.config.schema import minimum_grade
from ralph.core.agent import Tokens
from ralph.core.errors import BadData, PlanError, RalphError
from ralph.core.moves import Reason
from ralph.core.plan import Mode, Plan, State, Story
from ralph.core.proof import KEPT_UNPROVEN, Grade, count_grades
from ralph.core.review import OPEN_FINDINGS, approved_at
from ralph.core.select import next_work, why_nothing_is_ready
from ralph.core.text import one_line, plural
from ralph.host.git.command import ask_plainly, printable
from ralph.journal.records import read
from ralph.journal.run_state import RunState
from ralph.planning.waiting import waiting
from ralph.proof.records import describe_lost, find_lost
from ralph.state.places import workspace_state
from ralph.state.runs import journal_path, moved_to, worktrees_of
from ralph.state.streams import stream_around
from ralph.views.columns import cells, progress_bar
from ralph.views.lines import RUNNING_ITERATIONS, checks_line, position
from ralph.views.words import TERMINAL_CLOSED, duration, money, tokens, until_when
from ralph.views.worker_lines import queue_lines, returned_line, worker_lines, workers_document, workers_line
from ralph.workspace.agent_stream import running_sessions
from ralph.workspace.find import Choice, OpenPlan, find_repo, open_plan, opened_at
from ralph.workspace.own_files import bookkeeping
from ralph.workspace.runs import LastRun, Standing, active_runs, last_run

_PATIENCE = 10.0
_MOST = 40
_MOST_WORKERS = 20
_MOST_QUEUED = 10
_MOST_UNPROVEN = 5
_DONE_BEFORE = 3
"""Number of done stories shown before the first open one when the list is cut."""


def run(args: Namespace) -> int:
    opened = open_plan(args)
    for notice in opened.loaded.notices:
        warn(notice)
    last = last_run(opened.ref, os.environ)
    now = _under_way(opened, last)
    for activity in now.parallel.open.values() if now else ():
        if activity.started is not None:
            opened = _with_state(opened, activity.started.story, State.IN_PROGRESS)
    lost = {} if now else _lost(opened)
    for story in lost:
        opened = _with_state(opened, story, State.TODO)
    if args.json:
        emit_json(_document(opened, last, now))
    else:
        _print(opened, last, now, everything=args.all)
    for line in (*describe_lost(lost, "is not done here"), *_in_worktrees(opened, last)):
        note(line)
    if added := waiting(opened.ref, os.environ):
        note(f"{plural(added, 'pending call')} of `ralph add` or `ralph fix`; the next run adds the stories")
    return 0


def _lost(opened: OpenPlan) -> dict[str, str]:
    """Finished stories whose commits are not on this branch: the next run reopens them."""
    try:
        repo = find_repo(opened.ref, opened.settings, os.environ)
        own = bookkeeping(opened.ref, opened.layout.locations(opened.ref), repo.root, opened.settings.config)
        return find_lost(opened.plan, opened.ref, repo, os.environ, own.is_ours)
    except RalphError:  # no repository, or one that git cannot read
        return {}


def _in_worktrees(opened: OpenPlan, own: LastRun | None) -> Iterator[str]:
    """Runs in worktrees: live ones of any plan, and the last one of this plan in each worktree.

    A complete one only if it is newer than the last run here and its work is not merged.
    """
    live = {each.run for each in active_runs(opened.root, Choice(), os.environ) if each.worktree}
    for run in sorted(live):
        yield f"run {run} works in a worktree: `ralph watch {run}` shows it, `ralph stop` stops it"
    for tree, root in worktrees_of(opened.root, os.environ):
        ref = moved_to(opened.ref, root)
        last = last_run(ref, os.environ) if ref.path.is_file() else None
        if last is None or last.run in live:
            continue
        if last.reason == Reason.COMPLETE.value:
            if (own is None or own.run < last.run) and (branch := _unmerged(opened.root, tree)):
                yield f"newer run {last.run} in worktree {root}, branch {branch}: complete, not merged here"
            continue
        with contextlib.suppress(PlanError):
            plan = opened_at(ref, opened.settings, os.environ).plan
            state = "was killed" if last.standing is Standing.UNFINISHED else f"stopped: {last.reason}"
            folder = stream_around(root)
            where = f"stream {folder.name}" if folder else f"the worktree {root}"
            again = f"ralph stream build {folder.name}" if folder else "ralph run --worktree"
            yield (
                f"run {last.run} in {where} {state}, {plan.count(State.DONE)} of "
                f"{plural(len(plan.stories), 'story')} done; `{again}` continues it"
            )


def _unmerged(root: Path, tree: Path) -> str:
    """The branch of a worktree. Empty if its commits are in this checkout, too."""
    branch = printable(ask_plainly(tree, "branch", "--show-current", timeout=_PATIENCE).out.rstrip(b"\n"))
    merged = ask_plainly(root, "merge-base", "--is-ancestor", f"refs/heads/{branch}", "HEAD", timeout=_PATIENCE)
    return branch if merged.code == 1 else ""


def _next(opened: OpenPlan) -> tuple[Story, Mode] | None:
    config = opened.settings.config
    waiting = () if config.review.enabled or minimum_grade(config) == "unproven" else _unproven(opened.plan)
    return next_work(opened.plan, review=config.review.enabled, skip=waiting)


def _why(opened: OpenPlan, story: Story) -> str:
    return opened.loaded.sidecar.get(story.id).why or ""


def _under_way(opened: OpenPlan, last: LastRun | None) -> RunState | None:
    """The state of the run that works on this plan, from its journal."""
    if last is None or last.standing not in (Standing.RUNNING, Standing.PAUSED, Standing.WAITING):
        return None
    state = RunState()
    with contextlib.suppress(BadData):
        for record in read(journal_path(workspace_state(opened.root, os.environ), last.run)):
            state.add(record)
    return state


def _with_state(opened: OpenPlan, story: str, state: State) -> OpenPlan:
    change = msgspec.structs.replace
    stories = tuple(change(each, state=state) if each.id == story else each for each in opened.plan.stories)
    return change(opened, loaded=change(opened.loaded, plan=change(opened.plan, stories=stories)))


def _so_far(now: RunState) -> tuple[Tokens, float | None, bool]:
    """The tokens and cost of the run, with an estimate for the running sessions, and whether the cost has one."""
    used, cost, is_estimate = now.tokens, now.cost_usd, now.is_estimated
    for session in running_sessions(now, os.environ):
        used += session.tokens
        if (more := session.cost_usd) is not None:
            cost, is_estimate = (cost or 0) + more, True
        session.close()
    return used, cost, is_estimate


def _pending(now: RunState) -> str:
    if now.paused_since is not None or not now.wish.is_any:
        return ""
    return "stop" if now.wish.stop else "pause"


def _document(opened: OpenPlan, last: LastRun | None, now: RunState | None) -> dict[str, object]:
    plan = opened.plan
    following = _next(opened)
    return {
        "workspace": opened.root,
        "layout": opened.ref.layout,
        "plan": opened.ref.path,
        "name": plan.name or opened.ref.name,
        "branch": plan.branch,
        "total": len(plan.stories),
        "counts": {state.value: plan.count(state) for state in State},
        "grades": _grades(plan),
        "unproven": _unproven(plan),
        "finished": plan.is_finished,
        "next": following[0].id if following else None,
        "next_mode": following[1] if following else None,
        "last_run": _last_run_document(last),
        "running": _running_document(now) if now else None,
        "stories": [as_json(story, _why(opened, story)) for story in plan.stories],
    }


def _last_run_document(last: LastRun | None) -> dict[str, object] | None:
    if last is None:
        return None
    return {
        "run": last.run,
        "state": last.standing,
        "started": _iso(last.started),
        "ended": _iso(last.seen) if last.standing is Standing.ENDED else None,
        "reason": last.reason or None,
        "detail": last.detail,
        "until": _iso(last.until),
    }


def _running_document(now: RunState) -> dict[str, object]:
    used, cost, is_estimate = _so_far(now)
    current = now.current
    return {
        "iteration": current.iteration if current else None,
        "story": current.story if current else None,
        "mode": current.mode if current else None,
        "attempt": current.attempt if current else None,
        "activity": "checks" if now.checks_since is not None else "agent" if now.agent else None,
        "check": now.check.name if now.check else None,
        "iterations_done": now.count,
        "tokens": used.total,
        "cost_usd": cost,
        "cost_is_estimated": is_estimate,
        "pending": _pending(now) or None,
        **workers_document(now),
    }


def _iso(t: float | None) -> str | None:
    return None if t is None else time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(t))


def _print(opened: OpenPlan, last: LastRun | None, now: RunState | None, everything: bool) -> None:
    plan, room = opened.plan, line_width()
    following = _next(opened)
    name = fit(plan.name or opened.ref.name or opened.root.name, 60)
    where = one_line(str(opened.ref.path.relative_to(opened.root)))
    say_raw(f"{paint(name, 'bold')}  {paint(where, 'dim')}")
    bar = progress_bar(plan.count(State.DONE), len(plan.stories))
    left = None if room is None else max(room - cells(bar) - 1, 0)
    title = fit(following[0].title, left) if following else ""
    say_raw(f"{paint(bar, 'green' if plan.is_finished else 'cyan')} {title}".rstrip())
    say()
    _print_stories(opened, room, everything)
    say()
    if not plan.is_finished:
        say(_counts(plan))
    if grades := _grades(plan):
        say(f"Proof: {grades_line(grades)}")
    if unproven := _unproven(plan):
        some = ", ".join(one_line(story, 40) for story in unproven[:_MOST_UNPROVEN])
        more = f" and {len(unproven) - _MOST_UNPROVEN} more" if len(unproven) > _MOST_UNPROVEN else ""
        say(f"Unproven: {some}{more}: {KEPT_UNPROVEN}", "yellow")
    if now is None or now.current is None:
        _print_next(plan, following)
    if last is not None:
        word = "Last run" if now is None else "Run"
        say_raw(fit(f"{word}: {last.run}, {_in_words(last)}", room))
        if last.reason == Reason.TERMINAL_CLOSED:
            say(TERMINAL_CLOSED, "yellow")
    for line in _progress(now) if now else ():
        say_raw(cut(line, room))


def _progress(now: RunState) -> Iterator[str]:
    """The iteration of the run, its cost, and pending requests."""
    if now.is_parallel:
        busy = sum(worker.is_busy for worker in now.parallel.known.values())
        yield f"Workers: {workers_line(now)}; {busy} busy"
        yield from (line for line, _ in worker_lines(now, time.time(), _MOST_WORKERS))
        yield from (line for line, _ in queue_lines(now, time.time(), _MOST_QUEUED))
    elif current := now.current:
        again = f", attempt {current.attempt}" if current.attempt > 1 else ""
        story = f"{one_line(current.story)} {one_line(current.title)}".strip()
        since = duration(time.time() - now.current_since)
        yield f"Iteration {position(current, now)}: {current.mode.value} {story}{again}, {since}"
    checks = "" if now.is_parallel and now.current else checks_line(now, time.time())
    if checks:
        yield f"{checks[:1].upper()}{checks[1:]}"
    used, cost, is_estimate = _so_far(now)
    facts = [plural(now.count, "iteration"), *([tokens(used)] if used.total else []), money(cost, is_estimate)]
    yield f"So far: {', '.join(facts)}"
    if returned := returned_line(now):
        yield f"Returned by the merge queue: {returned}"
    if pending := _pending(now):
        after = RUNNING_ITERATIONS if now.is_parallel else "this iteration"
        yield f"A {pending} is pending: the run {pending}s after {after}"
    yield "`ralph watch` shows it live, `ralph stop` stops it"


def _print_stories(opened: OpenPlan, room: int | None, everything: bool) -> None:
    stories = opened.plan.stories
    start, end = (0, len(stories)) if everything else _window(stories)
    if start:
        say(f"… {start} done", "dim")
    indent = id_width(opened.plan)
    for story in stories[start:end]:
        for line in story_lines(story, room, indent, _why(opened, story)):
            say_raw(line)
    if end < len(stories):
        say(f"… and {len(stories) - end} more (`ralph status --all`)", "dim")


def _window(stories: tuple[Story, ...]) -> tuple[int, int]:
    """The part of a long list to show: from shortly before the first story that is not done."""
    if len(stories) <= _MOST:
        return 0, len(stories)
    is_open = (number for number, story in enumerate(stories) if not story.is_done)
    first = max(next(is_open, 0) - _DONE_BEFORE, 0)
    start = min(first, len(stories) - _MOST)
    return start, start + _MOST


def _counts(plan: Plan) -> str:
    order = sorted(State, key=lambda state: state is not State.DONE)
    counts = [(plan.count(state), state.value.replace("_", " ")) for state in order]
    return ", ".join(f"{count} {word}" for count, word in counts if count)


def _grades(plan: Plan) -> dict[str, int]:
    return count_grades(story.grade for story in plan.stories if story.is_done)


def _unproven(plan: Plan) -> list[str]:
    """Stories whose work is kept but waits for a review."""
    return [story.id for story in plan.stories if story.is_open and story.grade == Grade.UNPROVEN]


def _print_next(plan: Plan, following: tuple[Story, Mode] | None) -> None:
    if plan.is_finished:
        say("Every story is done.", "green")
        if unsettled := [one_line(story.id, 40) for story in plan.stories if approved_at(story.review)]:
            say(f"{OPEN_FINDINGS.capitalize()}: {', '.join(unsettled)} (`ralph task show ID`)", "yellow")
    elif following:
        story, mode = following
        say(f"Next: {one_line(story.id)}" + ("" if mode is Mode.IMPLEMENT else f" ({mode.value})"))
    else:
        reason = why_nothing_is_ready(plan) or "unproven stories wait for a review, and reviews are off"
        say(f"Nothing is ready: {reason}", "yellow")
        if failed := next((story.id for story in plan.stories if story.state is State.FAILED), None):
            say(f"`ralph retry {one_line(failed)}` gives a failed story another chance", "dim")


def _in_words(last: LastRun) -> str:
    match last.standing:
        case Standing.RUNNING:
            return f"running{_clock(' since ', last.started)}"
        case Standing.PAUSED:
            return f"paused{_clock(' since ', last.seen)}; `ralph resume` continues it"
        case Standing.WAITING:
            until = f" until {until_when(last.until, time.time())}" if last.until is not None else ""
            return f"waiting{until}: {one_line(last.detail)}"
        case Standing.UNFINISHED:
            return f"killed{_clock(' after ', last.seen)}; `ralph run` continues from there"
        case Standing.UNREADABLE:
            return last.detail
    how = last.reason if last.reason == "complete" else f"stopped: {last.reason.replace('-', ' ')}"
    return f"{how}{_clock(', ', last.seen)}" + (f" ({last.detail})" if last.detail else "")


def _clock(word: str, t: float | None) -> str:
    return "" if t is None else word + time.strftime("%Y-%m-%d %H:%M", time.localtime(t))
