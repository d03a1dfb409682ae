"""What earlier runs did for a story that is not done yet, for a worker that reviews or fixes it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from ralph.core.errors import BadData
from ralph.core.events import AnyEvent, Committed, IterationEnded, IterationStarted, Judged, Landing, RunStarted
from ralph.core.ports import PlanRef
from ralph.journal.records import read
from ralph.state.places import workspace_state
from ralph.state.runs import is_run_of, journal_path, list_runs

_MOST_RUNS = 20


class PastEvents:
    """Read once, when they are first needed."""

    def __init__(self, ref: PlanRef, run: str, env: Mapping[str, str]) -> None:
        self._ref, self._run, self._state = ref, run, workspace_state(ref.root, env)
        self._stories: dict[str, list[AnyEvent]] | None = None

    def __call__(self, story: str) -> tuple[AnyEvent, ...]:
        if self._stories is None:
            self._stories = {}
            for run in list_runs(self._state)[-_MOST_RUNS:]:
                if run != self._run:
                    self._read(journal_path(self._state, run), self._stories)
        return tuple(self._stories.get(story, ()))

    def _read(self, journal: Path, stories: dict[str, list[AnyEvent]]) -> None:
        open_ones: dict[int, list[AnyEvent]] = {}
        try:
            for record in read(journal):
                event = record.event
                match event:
                    case RunStarted() if not is_run_of(event, self._ref):
                        return
                    case IterationStarted():
                        open_ones[event.iteration] = [event]
                    case Landing() if event.iteration in open_ones:
                        begun = open_ones[event.iteration][0]
                        if isinstance(begun, IterationStarted):
                            open_ones[event.iteration][0] = replace(begun, checkpoint={"head": event.onto})
                    case Judged() | Committed() if event.iteration in open_ones:
                        open_ones[event.iteration].append(event)
                    case IterationEnded():
                        known = [*open_ones.pop(event.iteration, []), event]
                        if event.completes:
                            stories.pop(event.story, None)
                        else:
                            stories.setdefault(event.story, []).extend(known)
        except BadData:
            return
