"""What a run with several workers would start first, and what the last one with several workers did last."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from ralph.core.areas import areas_of
from ralph.core.events import IterationEnded, Record, RunStarted, Scheduled
from ralph.core.history import History
from ralph.core.select import in_order, waiting_for
from ralph.core.text import one_line
from ralph.engine.schedule import schedule
from ralph.run.dry_run import acceptance_for, is_exam_due, needs_setup
from ralph.run.spec import Launched


class LastSchedule(Struct, frozen=True):
    """The last record of a run with several workers."""

    run: str
    scheduled: Scheduled


class Preview(Struct, frozen=True):
    workers: int
    titles: dict[str, str]
    """Of the stories that are not done."""
    areas: dict[str, tuple[str, ...]]
    """Of the same stories, where something is known."""
    scheduled: Scheduled
    waiting: dict[str, tuple[str, ...]]
    """Stories that depend on others that are not done, and on which."""
    ready: tuple[str, ...] = ()
    """Stories that could start and have no free worker, in their order."""
    last: LastSchedule | None = None


def preview(prepared: Launched, workers: int, records: Iterable[Record], env: Mapping[str, str]) -> Preview:
    """`records`: the journal of the last run, for the files of earlier attempts."""
    touched, last = _from_journal(records)
    config, plan = prepared.settings.config, prepared.plan
    stories = [story for story in plan.stories if not story.is_done]
    areas = areas_of(stories, touched)
    needs_tests = acceptance_for(prepared, env)
    scheduled = schedule(
        plan,
        History(),
        prepared.limits,
        time.time(),
        free=workers,
        areas=areas,
        returns=config.queue.returns,
        needs_setup=needs_setup(prepared),
        review=config.review.enabled,
        needs_acceptance={story.id for story in stories if needs_tests(story)},
        needs_exam=is_exam_due(prepared, env),
    )
    listed = {*(work.story for work in scheduled.start), *(held.story for held in scheduled.held)}
    ready = in_order(plan, review=config.review.enabled, skip=listed) if scheduled.start else ()
    return Preview(
        workers=workers,
        titles={story.id: story.title for story in stories},
        areas={name: area for name, area in areas.items() if area},
        scheduled=scheduled,
        waiting=waiting_for(plan),
        ready=tuple(story.id for story, _ in ready),
        last=last,
    )


def together(prepared: Launched, env: Mapping[str, str]) -> Iterator[str]:
    """For a dry run with several workers: what would start at the same time."""
    found = preview(prepared, prepared.settings.config.parallel, (), env)
    if not found.scheduled.start:
        return
    names = ", ".join(one_line(work.story, 40) or work.mode.value for work in found.scheduled.start)
    yield f"workers    {found.workers}; start together: {names}"
    for held in found.scheduled.held:
        yield f"held       {one_line(held.story, 40)}: {one_line(held.why, 200)}"
    yield "\nThe first of them:\n"


def _from_journal(records: Iterable[Record]) -> tuple[dict[str, tuple[str, ...]], LastSchedule | None]:
    run, last = "", None
    touched: dict[str, tuple[str, ...]] = {}
    for record in records:
        match record.event:
            case RunStarted(run=name):
                run = name
            case Scheduled() as scheduled:
                last = LastSchedule(run, scheduled)
            case IterationEnded(story=story, files=files):
                touched[story] = tuple(dict.fromkeys((*touched.get(story, ()), *files)))
    return touched, last
