"""Kill the loop, or fail its writes, at any point of a run: the next run ends as an undisturbed one does.

By default a choice of points is tried, always the same one. `RALPH_CRASH_ALL=1` tries all of them, which takes hours,
and also the other layouts, the review cycle and steps of a project's own.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from difflib import unified_diff
from functools import partial
from pathlib import Path
from pprint import pformat
from typing import NamedTuple

import pytest

from ralph.core.events import IterationEnded, RunEnded
from ralph.core.verdict import Kind
from ralph.journal.records import read
from ralph.run.replay import replay
from support.crash_driver import WRITING_GIT
from support.loops import (
    LoopProject,
    Outcome,
    Scenario,
    hooked,
    reviewed,
    run_driven,
    run_ralph,
    short,
    stepped,
    whole,
)

pytestmark = pytest.mark.slow

ALL = os.environ.get("RALPH_CRASH_ALL") == "1"
SCENARIOS = {"hooked": hooked, "reviewed": reviewed, "stepped": stepped}
TROUBLE = {"ENOSPC": "No space left on device", "full": "No space left on device", "EIO": "Input/output error"}
ELSE = ("feature", "spec.md", "steps", *SCENARIOS)
"""Only when everything is tried."""
_WRITES = ("open", "fill", "write", "fsync", "rename", "mkdir", "git")
_IDLE = ("journal", "journalled", "fsync", "fill", "chmod", "utime", "git")


class Reference(NamedTuple):
    """A project that nothing has happened to yet, what becomes of it undisturbed, and the points on the way."""

    folder: Path
    template: LoopProject
    outcome: Outcome
    points: list[str]

    def moments(self) -> list[int]:
        return moments(self.points)

    def writes(self) -> list[int]:
        """Points where a disk in trouble is noticed."""
        return [n for n, point in enumerate(self.points, 1) if point.split()[0] in _WRITES]

    def numbers(self, *beginnings: str) -> list[int]:
        return [n for n, point in enumerate(self.points, 1) if point.startswith(beginnings)]

    def settling(self) -> list[int]:
        """From the first record of a settlement to its last one."""
        found, inside = [], False
        for number, point in enumerate(self.points, 1):
            inside = inside or point == "journal Judged"
            if inside:
                found.append(number)
            inside = inside and point != "journalled IterationEnded"
        return found


def moments(points: Sequence[str]) -> list[int]:
    """Points before which something has changed; the others find the same situation as the one before them."""
    return [n for n in range(1, len(points) + 1) if n == 1 or _changes(points[n - 2])]


def _changes(point: str) -> bool:
    """Whether something is different once this has been done. A git that is at work counts, if it writes."""
    verb, _, rest = point.partition(" ")
    return verb not in _IDLE and not (rest.startswith("git ") and rest.removeprefix("git ") not in WRITING_GIT)


def make_reference(folder: Path, scenario: Scenario) -> Reference:
    template = LoopProject.make(folder / "template", scenario)
    before = template.theirs()
    quiet = template.copy(folder / "undisturbed")
    done = run_driven(quiet, "kill", 0, folder / "points")
    assert (done.code, done.err) == (0, "")
    assert list(problems_of(quiet)) == []
    outcome = quiet.outcome()
    assert outcome.theirs == before
    return Reference(folder, template, outcome, (folder / "points").read_text().splitlines())


@pytest.fixture(scope="module")
def shorter(tmp_path_factory: pytest.TempPathFactory) -> Reference:
    return make_reference(tmp_path_factory.mktemp("short"), short("tasks.json"))


@pytest.fixture(scope="module", params=["tasks.json", "plan.md", *(ELSE if ALL else ())])
def longer(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Reference:
    scenario = SCENARIOS.get(request.param, partial(whole, request.param))
    return make_reference(tmp_path_factory.mktemp("whole"), scenario())


class Case(NamedTuple):
    how: str
    at: int


def disturb(reference: Reference, cases: Sequence[Case]) -> list[str]:
    """A run in trouble, another one for each further case, and one in peace: what is wrong in the end."""
    name = "-".join(f"{case.how}{case.at}" for case in cases)
    project = reference.template.copy(reference.folder / name)
    found: list[str] = []
    where = []
    for case in cases:
        log = project.folder / f"points-{case.at}"
        done = run_driven(project, case.how, case.at, log)
        passed = log.read_text().splitlines()
        where.append(f"{case.how} at {case.at}, {passed[case.at - 1] if len(passed) >= case.at else 'nowhere'}")
        found += _ending_problems(case, done.code, done.err)
    last = run_ralph(project)
    if last.code != 0 or last.err:
        found.append(f"the next run ended with {last.code}: {last.err[-2000:]}")
    found += problems_of(project)
    found += _differences(project.outcome(), reference.outcome)
    if not found:
        shutil.rmtree(project.folder)  # what is wrong can be looked at
    return [f"{'; '.join(where)}: {problem}" for problem in found]


def _ending_problems(case: Case, code: int, err: str) -> Iterator[str]:
    if case.how == "kill":
        if code != -signal.SIGKILL:
            yield f"it was not killed, but ended with {code}: {err}"
    elif "Traceback" in err or "inside Ralph" in err:
        yield f"the error is told like a bug: {err}"
    elif code not in (0, 78) or (code and TROUBLE[case.how] not in err):
        yield f"it ended with {code}, and does not tell what happened: {err}"


def problems_of(project: LoopProject) -> Iterator[str]:
    """What is wrong with a project in which the last run has ended well."""
    yield from project.health()
    if alive := project.processes():
        yield f"alive: {alive}"
    attempts = []
    for path in project.journals():
        records = list(read(path))
        name = path.parent.name
        if [record.seq for record in records] != list(range(1, len(records) + 1)):
            yield f"{name}: the numbers of its records have gaps"
        if [n for n, record in enumerate(records, 1) if isinstance(record.event, RunEnded)] != [len(records)]:
            yield f"{name}: it is not closed by its last record"
        for difference in replay(records).differences:
            yield f"{name}: {difference} when replayed"
        ended = [record.event for record in records if isinstance(record.event, IterationEnded)]
        attempts += [(event.story, event.kind) for event in ended if event.kind is not Kind.INTERRUPTED]
    if attempts != project.scenario.attempts:
        yield f"the attempts were {attempts}"
    wanted = any(kind is Kind.REJECTED for _, kind in attempts)
    if wanted and not any(
        project.git("show", f"{ref}:src/two.txt", check=False) == "BROKEN" for ref in project.rescues()
    ):
        yield "the work that was undone is in no rescue"


def _differences(now: Outcome, wanted: Outcome) -> Iterator[str]:
    for name in Outcome._fields:
        if getattr(now, name) != getattr(wanted, name):
            before, after = (pformat(getattr(outcome, name), width=200).splitlines() for outcome in (wanted, now))
            yield f"{name} differs:\n" + "\n".join(unified_diff(before, after, lineterm="", n=0))


def some(numbers: Sequence[int], most: int) -> list[int]:
    """As many as there is time for; always the same ones."""
    if ALL or len(numbers) <= most:
        return list(numbers)
    return sorted(random.Random(20260101).sample(numbers, most))


def check(reference: Reference, cases: Iterable[Sequence[Case]]) -> None:
    with ThreadPoolExecutor(2) as pool:
        found = [problem for problems in pool.map(partial(disturb, reference), cases) for problem in problems]
    assert not found, "\n".join(found)


def test_killed_at_any_record_of_the_journal(shorter: Reference) -> None:
    check(shorter, ([Case("kill", at)] for at in some(shorter.numbers("journal "), 9)))


def test_killed_while_the_work_is_kept_or_undone(shorter: Reference) -> None:
    at_stake = sorted(set(shorter.moments()) & set(shorter.settling()))
    check(shorter, ([Case("kill", at)] for at in some(at_stake, 9)))


def test_killed_while_git_works(shorter: Reference) -> None:
    writing = shorter.numbers(*(f"started git {verb}" for verb in sorted(WRITING_GIT)))
    check(shorter, ([Case("kill", at)] for at in some(writing, 4)))


def test_killed_anywhere_in_three_stories(longer: Reference) -> None:
    check(longer, ([Case("kill", at)] for at in some(longer.moments(), 4)))


def test_killed_again_while_the_killed_run_is_recovered(shorter: Reference) -> None:
    firsts = shorter.numbers("journalled Settling", "journalled AgentEnded")
    for first in firsts if ALL else firsts[::3]:
        again = recovering(shorter, first)
        check(shorter, ([Case("kill", first), Case("kill", second)] for second in some(again, 2)))


def recovering(reference: Reference, at: int) -> list[int]:
    """Moments of the run that follows a killed one, before it starts something of its own."""
    project = reference.template.copy(reference.folder / f"recovering{at}")
    assert run_driven(project, "kill", at, reference.folder / f"killed{at}").code == -signal.SIGKILL
    log = reference.folder / f"recovered{at}"
    assert run_driven(project, "kill", 0, log).code == 0
    shutil.rmtree(project.folder)
    points = log.read_text().splitlines()
    return moments(points[: points.index("journal RunStarted")])


@pytest.mark.parametrize("how", TROUBLE)
def test_a_disk_that_fails_at_any_write_ends_the_run_with_a_sentence(shorter: Reference, how: str) -> None:
    check(shorter, ([Case(how, at)] for at in some(shorter.writes(), 5)))


@pytest.mark.parametrize("how", TROUBLE)
def test_a_story_whose_commit_exists_stays_done_when_the_disk_fails(shorter: Reference, how: str) -> None:
    after_commit = shorter.settling()
    committed = max(n for n in after_commit if shorter.points[n - 1] == "started git update-ref")
    writes = [n for n in shorter.writes() if committed < n <= after_commit[-1]]
    assert writes
    check(shorter, ([Case(how, at)] for at in some(writes, 3)))


def test_a_disk_that_fails_at_any_write_of_three_stories(longer: Reference) -> None:
    hows = [*TROUBLE] if ALL else ["ENOSPC", "EIO"]
    check(longer, ([Case(how, at)] for how in hows for at in some(longer.writes(), 2)))


def test_what_a_killed_run_left_is_shown_by_every_view(shorter: Reference) -> None:
    at = shorter.numbers("journalled AgentSaid")[4]  # its agent ends with the run, and must have done something
    project = shorter.template.copy(shorter.folder / "views")
    run_driven(project, "kill", at, project.folder / "points")
    for is_over in (False, True):
        for command in ("status", "runs", "log"):
            done = run_ralph(project, command)
            assert (done.code, done.err) == (0, ""), (command, is_over)
        for path in project.journals():
            replayed = run_ralph(project, "replay", path.parent.name)
            assert (replayed.code, replayed.err) == (0, "")
            assert "0 differ" in replayed.out
        if not is_over:
            done = run_ralph(project)
            assert done.code == 0
            assert "which was interrupted; the work is in refs/ralph/rescue/" in done.out


def test_locks_of_gits_that_were_killed_too_lock_nobody_out(shorter: Reference) -> None:
    project = shorter.template.copy(shorter.folder / "locked")
    run_driven(project, "kill", shorter.numbers("journalled Settling")[-1], project.folder / "points")
    for name in ("index", "HEAD", "packed-refs", "refs/heads/main"):
        (project.root / f".git/{name}.lock").touch()
    done = run_ralph(project)
    assert (done.code, done.err) == (0, "")
    assert list(problems_of(project)) == []
    assert list(_differences(project.outcome(), shorter.outcome)) == []


def test_a_git_that_outlives_the_loop_is_ended_before_its_work_is_done_again(shorter: Reference) -> None:
    project = shorter.template.copy(shorter.folder / "outlived")
    slow = project.home / "bin" / "git"
    slow.parent.mkdir()
    slow.write_text(f'#!/bin/sh\ncase " $* " in *" commit-tree "*) sleep 60 ;; esac\nexec {shutil.which("git")} "$@"\n')
    slow.chmod(0o755)
    at = shorter.numbers("started git commit-tree")[0]
    path = f"{slow.parent}:{os.environ['PATH']}"
    assert run_driven(project, "kill", at, project.folder / "points", PATH=path).code == -signal.SIGKILL
    assert project.processes()
    done = run_ralph(project)
    assert (done.code, done.err) == (0, "")
    assert list(problems_of(project)) == []
    assert list(_differences(project.outcome(), shorter.outcome)) == []


def test_a_branch_that_people_went_on_with_after_the_kill_is_left_to_them(shorter: Reference) -> None:
    project = shorter.template.copy(shorter.folder / "people")
    run_driven(project, "kill", shorter.numbers("journalled AgentEnded")[0], project.folder / "points")
    time.sleep(8)  # an agent could still be writing right after the last sign of life of its loop
    project.git("reset", "-q", "--", "src")
    project.git("checkout", "-q", "--", "src")
    project.git("clean", "-qfd", "src", "extra")
    project.write("src/person.txt", "by hand\n")
    project.git("add", "src")
    project.git("commit", "-q", "-m", "by hand", "--", "src")
    done = run_ralph(project)
    assert (done.code, done.err) == (0, "")
    assert "the agent did not make it" in done.out
    subjects = project.git("log", "--format=%s").splitlines()
    assert subjects.index("by hand") > subjects.index("feat(US-001): Say it all")
    assert list(problems_of(project)) == []
