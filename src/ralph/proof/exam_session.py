"""The exam: end-to-end tests by a session that knows the requirements and the public interface, not the history."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from ralph.config.checks import ChosenCheck
from ralph.config.schema import Config
from ralph.core.changes import AddStory, apply
from ralph.core.events import IterationEnded, Noted, Record
from ralph.core.evidence import CheckResult
from ralph.core.plan import Mode, Plan
from ralph.core.proof import Acceptance, exam_failure
from ralph.core.run_ports import Attempt, Written
from ralph.core.text import one_line
from ralph.core.verdict import Kind
from ralph.host.files import make_folder, read_state, write_bytes
from ralph.host.git.objects import entries
from ralph.host.git.repo import Repo
from ralph.plans.plan_edits import insert
from ralph.proof.acceptance import Trial
from ralph.proof.acceptance_tests import AcceptanceStore, StoryAcceptance, has_check
from ralph.proof.checks import Checks
from ralph.proof.exam import Finding, evaluate, focused, story_for
from ralph.proof.files import is_collected
from ralph.state.names import EXAM

READS_HISTORY = tuple(f"Bash(git {verb}:*)" for verb in ("log", "show", "diff", "blame", "reflog", "whatchanged"))
"""Tools that an exam has no use for: it must not know the history of the implementation."""


class Rounds(Struct, frozen=True):
    key: str = ""
    """The stories that were examined. Other stories get a new exam."""
    count: int = 0
    is_over: bool = False
    """The last round found no failure."""


class ExamRounds:
    """How many rounds there were, over runs."""

    def __init__(self, folder: Path, store: AcceptanceStore) -> None:
        self._file = folder / EXAM
        self._store = store

    def of(self, plan: Plan) -> Rounds:
        key = self._key(plan)
        return rounds if (rounds := self._read()).key == key else Rounds(key)

    def begin(self, plan: Plan) -> Rounds:
        """Also after a kill the round that begins now can be counted."""
        rounds = self.of(plan)
        self._write(rounds)
        return rounds

    def count(self, *, is_over: bool) -> None:
        rounds = self._read()
        self._write(Rounds(rounds.key, rounds.count + 1, is_over))

    def _read(self) -> Rounds:
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            return msgspec.json.decode(read_state(self._file), type=Rounds)
        return Rounds()

    def _write(self, rounds: Rounds) -> None:
        make_folder(self._file.parent, private=True)
        write_bytes(self._file, msgspec.json.encode(rounds), mode=0o600)

    def _key(self, plan: Plan) -> str:
        """Without the stories that exams have added."""
        records = self._store.all()
        own = [s for s in plan.stories if (record := records.get(s.id)) is None or not record.is_exam]
        return hashlib.sha256("\n".join(f"{s.id} {s.content_key}" for s in own).encode()).hexdigest()[:16]


def is_due(config: Config, plan: Plan, rounds: Rounds) -> bool:
    """Whether a run starts a round of the exam by itself."""
    if config.exam == "off" or not plan.stories or not plan.is_finished:
        return False
    return not rounds.is_over and rounds.count < config.exam_rounds and has_check(config, plan)


class Exam:
    """The engine's `ExamTests`."""

    def __init__(
        self,
        config: Config,
        repo: Repo,
        rounds: ExamRounds,
        store: AcceptanceStore,
        acceptance: StoryAcceptance,
        checks: Checks,
        tell: Callable[[Noted], object],
        *,
        by_hand: bool,
        is_due_at_end: bool,
    ) -> None:
        """`by_hand`: one round, whatever the settings say. `is_due_at_end`: the run is about all stories."""
        self._config = config
        self._repo = repo
        self._rounds = rounds
        self._store = store
        self._acceptance = acceptance
        self._checks = checks
        self._tell = tell
        self._by_hand = by_hand
        self._is_due_at_end = is_due_at_end
        self._is_taken = False
        self._told_no_checks = False
        self._failure = ""
        """Why the last round had no result, until it is reported."""

    def is_due(self, plan: Plan) -> bool:
        if self._by_hand:
            return plan.is_finished and not self._is_taken
        if not self._is_due_at_end:
            return False
        if self._config.exam != "off" and plan.is_finished and not has_check(self._config, plan):
            if not self._told_no_checks:
                self._tell(Noted("no exam: no check would run its tests", warning=True))
            self._told_no_checks = True
        due = is_due(self._config, plan, self._rounds.of(plan))
        if self._failure and not due:
            self._tell(Noted(f"the exam has no result: {self._failure}", warning=True))
        self._failure = ""
        return due

    def rounds(self, plan: Plan) -> int:
        return self._rounds.begin(plan).count

    def take(self, attempt: Attempt, name: str) -> Written:
        self._store.settle_exam(is_accepted=False)  # drafts of a session that was killed
        files = self._acceptance.new_files(attempt)
        left = self._acceptance.restore_rest(attempt, name, files)
        if left.objections or not left.inspection.sound:
            return left
        tree, chosen = self._acceptance.begin_trial(attempt, left.inspection)
        collected = [path for path in files if is_collected(path)]
        bare = self._checks.run(self._checks.compose(tree, dict.fromkeys(collected)), chosen) if collected else ()

        def trials(without: Sequence[str] = ()) -> list[Trial]:
            ran = self._checks.run(self._checks.compose(tree, dict.fromkeys(without)), chosen)
            return [
                Trial(check, old.tests, msgspec.structs.replace(new, result=_compared(new.result, old.is_red)))
                for check, old, new in zip(chosen, bare, ran, strict=False)
            ]

        def alone(path: str) -> list[Trial]:
            return trials([other for other in collected if other != path])

        result = evaluate(files, trials() if collected else [], alone)
        if result.objections:
            return msgspec.structs.replace(left, objections=result.objections)
        plan, stories = attempt.reading.plan, []
        for finding in result.findings:
            added = insert(plan, story_for(*self._check_for(tree, finding, chosen, collected)))
            plan = apply(plan, [added])
            stories.append(added)
            self._draft(added, finding, files)
        tests = tuple(test for finding in result.findings for test in finding.tests)
        notices = (*left.notices, *result.notices)
        return msgspec.structs.replace(left, tests=tests, stories=tuple(stories), passed=result.passed, notices=notices)

    def _check_for(
        self, tree: str, finding: Finding, chosen: Sequence[ChosenCheck], collected: Sequence[str]
    ) -> tuple[Finding, str]:
        """A command that fails because of these tests, for their file alone if possible, and what it printed."""
        check = next(check for check in chosen if check.command == finding.command)
        if check.cwd:
            return finding, ""
        if command := focused(check.command, finding, self._paths(tree)):
            others = dict.fromkeys(path for path in collected if path != finding.file)
            one = msgspec.structs.replace(check, name=command, command=command)
            with_it = self._checks.run(self._checks.compose(tree, others), [one])
            if with_it and with_it[0].is_red and with_it[0].tests.failed:
                return msgspec.structs.replace(finding, command=command, tail=with_it[0].result.tail), command
        return finding, check.command

    def _paths(self, tree: str) -> frozenset[str]:
        files = [os.fsdecode(path) for path in entries(self._repo, tree)]
        folders = {str(folder) for file in files for folder in Path(file).parents}
        return frozenset(files) | folders

    def _draft(self, added: AddStory, finding: Finding, files: Mapping[str, bytes]) -> None:
        """Data and helpers of the tests belong to no story: other tests may use them."""
        self._store.draft(
            Acceptance(
                story=added.story.id,
                key=added.story.content_key,
                files={finding.file: files[finding.file]},
                tests=finding.tests,
                is_exam=True,
            )
        )

    def listen(self, record: Record) -> None:
        event = record.event
        if not isinstance(event, IterationEnded) or event.mode is not Mode.EXAM:
            return
        is_accepted = event.kind is Kind.ACCEPTED
        stories = self._store.settle_exam(is_accepted=is_accepted)
        if event.kind.uses_attempt:
            self._is_taken = True
            self._failure = "" if is_accepted else one_line(exam_failure(event.headline), 200)
            self._rounds.count(is_over=is_accepted and not stories)


def _compared(result: CheckResult, failed_before: bool) -> CheckResult:
    return msgspec.structs.replace(result, failed_before=failed_before)
