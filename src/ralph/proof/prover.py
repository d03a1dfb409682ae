"""Prove a candidate whose checks pass: with the tests as they were, by counting tests, and by a witness.

The functions here decide which trees to run and what the results mean; a `Bench` composes and runs them.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from ralph.config.checks import ChosenCheck
from ralph.core.proof import NO_LONGER_RUNS, Proof, Tests
from ralph.core.text import one_line, plural
from ralph.proof.acceptance import not_run
from ralph.proof.files import Role, deciding, is_collected, role_of
from ralph.proof.moved import missing_tests, only_moved
from ralph.proof.restore import as_before, count_inline_tests
from ralph.proof.story_words import is_about, names_file, names_test, subjects
from ralph.proof.values import FEW, Bench, Candidate, FileChange, Ran, named
from ralph.proof.witness import WitnessSearch

_MOST_WITNESSES = 5
_MOST_OUTPUT = 3000
NO_WITNESS = "no check fails without this change: add a test that does"
_CHANGED_WITNESS = "only tests with changed expectations fail without this change: add a new test that does"


def prove(given: Candidate, bench: Bench) -> Proof:
    """What the passing checks are worth. Runs nothing more once the run is stopping."""
    commands = [check.command for check in given.checks]
    edited = _edited(given)
    decisive = (*edited, *(change for change in given.changes if change.path in given.acceptance))
    mine = {change.path for change in given.changes}
    foreign = [change for change in given.foreign if change.path not in mine]
    unsure = _unsure(given, foreign, commands) if foreign else ()
    restored = (*edited, *unsure)
    second = _second_pass(given, restored, bench) if restored and given.restores else _SecondPass()
    if unsure:  # the tests of the other stories went with their changes, so that the number of tests says nothing
        second = msgspec.structs.replace(second, objections=())
    proof = Proof(
        tree=given.tree,
        restored=tuple(change.path for change in restored) if given.restores else (),
        changed_expectations=second.failing,
        excuse=second.excuse,
        old_output=second.output,
        loosened=() if second.failing or not given.restores else (*_loosened(given, edited), *_fewer_cases(given)),
        objections=(
            *_counted(given, decisive),
            *second.objections,
            *not_run(given.acceptance_tests, given.acceptance, given.passed),
        ),
    )
    if bench.is_stopped or proof.objections or not given.wants_witness:
        return proof
    return _with_witness(given, decisive, bench, proof, second.doubtful)


def _edited(given: Candidate) -> tuple[FileChange, ...]:
    """The changes that decide what passes, besides acceptance tests: those are not the work of this session, and a
    file that only they read is product."""
    changes = [change for change in given.changes if change.path not in given.acceptance]
    tests = {path: data for path, data in given.tests.items() if path not in given.acceptance}
    return deciding(changes, [check.command for check in given.checks], tests, given.sources)


def _unsure(given: Candidate, foreign: Sequence[FileChange], commands: Sequence[str]) -> tuple[FileChange, ...]:
    """What unfinished stories changed that decides about others. A test they added can only be stricter."""
    found = deciding(foreign, commands, given.tests, given.sources)
    return tuple(change for change in found if change.old is not None or not is_collected(change.path))


class _SecondPass(Struct, frozen=True):
    failing: tuple[str, ...] = ()
    excuse: str = ""
    objections: tuple[str, ...] = ()
    output: str = ""
    doubtful: frozenset[str] = frozenset()
    """Checks and tests that pass only with changed expectations: no witnesses unless the change is excused."""


def _second_pass(given: Candidate, decisive: Sequence[FileChange], bench: Bench) -> _SecondPass:
    """The checks with what decides their result as it was at the story's start."""
    before = {change.path: as_before(change) for change in decisive}
    tree = bench.compose(given.tree, before | dict.fromkeys(given.acceptance))
    general = [check for check in given.checks if not _needs_new_file(check, decisive)]
    ran = bench.run(tree, general)
    if bench.is_stopped:
        return _SecondPass()
    silent = [
        f"{named(check)} ran {plural(one.tests.total, 'test')} with the tests as they were; at the story's start it "
        f"ran {start.total}"
        for check, one in zip(general, ran, strict=False)
        if (start := given.before.get(check.command)) is not None
        and not one.is_red
        and start.runner
        and one.tests.total < start.total
        and not (given.restores and _lost_cases(start, one.tests))
    ]
    red = [(check, one) for check, one in zip(general, ran, strict=False) if one.is_red]
    lost = _lost(given, decisive)
    if not red and not lost:
        return _SecondPass(objections=tuple(silent))
    failed = sorted({name for _, one in red for name, state in one.tests.names.items() if state == "failed"})
    told = tuple(_describe(check, one, decisive) for check, one in red) + lost
    output = "\n".join(one.result.tail[-_MOST_OUTPUT:] for _, one in red[:1])
    excuse = _excuse(given, decisive, failed, bool(red))
    doubtful = frozenset() if excuse else frozenset(failed).union(*((c.name, c.command) for c, _ in red))
    return _SecondPass(told, excuse, tuple(silent), output, doubtful)


def _needs_new_file(check: ChosenCheck, decisive: Sequence[FileChange]) -> bool:
    """A check that is about a file the story adds cannot run without it. It is judged as a witness."""
    added = [change.path for change in decisive if change.old is None]
    return any(path in check.command for path in added)


def _describe(check: ChosenCheck, ran: Ran, decisive: Sequence[FileChange]) -> str:
    edited = [change for change in decisive if change.old is not None] or list(decisive)
    places = ", ".join(f"{one_line(change.path, 80)}:{_first_line(change)}" for change in edited[:FEW])
    more = f" and {len(edited) - FEW} more" if len(edited) > FEW else ""
    failed = [name for name, state in ran.tests.names.items() if state == "failed"]
    tests = f": {', '.join(one_line(name, 100) for name in sorted(failed)[:FEW])}" if failed else ""
    return f"{places}{more}: {named(check)} passes only with this change to the tests{tests}"


def _first_line(change: FileChange) -> int:
    """The first line of the new version that differs; of the old one if it was deleted."""
    old, new = (change.old or b"").splitlines(), (change.new or b"").splitlines()
    same = next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    return same + 1


def _lost(given: Candidate, decisive: Sequence[FileChange]) -> tuple[str, ...]:
    """Tests that ran at the story's start and no longer do, although nothing fails."""
    told = []
    for check in given.checks:
        before, after = given.before.get(check.command), given.passed.get(check.command)
        if before is None or after is None or not before.runner:
            continue
        if names := missing_tests(before, after, given.changes):
            some = ", ".join(one_line(name, 100) for name in names[:FEW])
            told.append(f"{plural(len(names), 'test')} no longer {'runs' if len(names) == 1 else 'run'}: {some}")
    return tuple(told)


def _excuse(given: Candidate, decisive: Sequence[FileChange], failed: Sequence[str], red: bool) -> str:
    """Why a change to the tests is legitimate by itself; empty: somebody has to look at it."""
    edited = [change for change in decisive if change.old is not None]
    if edited and all(names_file(given.words, change.path) for change in edited):
        return f"the story names {', '.join(change.path for change in edited[:FEW])}"
    if red and failed and all(names_test(given.words, name) for name in failed):
        return "the story names the tests that change"
    return "the tests only moved" if only_moved(given.changes, decisive) else ""


def _loosened(given: Candidate, decisive: Sequence[FileChange]) -> tuple[str, ...]:
    """A change to existing tests that nothing needs. It proves nothing now, and may hide a failure later."""
    edited = [change for change in decisive if change.old is not None and not names_file(given.words, change.path)]
    if not edited or only_moved(given.changes, decisive):
        return ()
    return tuple(f"{one_line(change.path, 80)}:{_first_line(change)}" for change in edited[:FEW])


def _counted(given: Candidate, decisive: Sequence[FileChange]) -> tuple[str, ...]:
    """A pass with fewer tests than before, or none, or with failures, is not a pass."""
    told = []
    # Tests inside source files that were deleted.
    gone = sum(count_inline_tests(one.path, one.old) for one in given.changes if one.new is None and one.old)
    for check in given.checks:
        before, after = given.before.get(check.command, Tests()), given.passed.get(check.command, Tests())
        if after.failed:
            told.append(f"{named(check)} passed although {plural(after.failed, 'test')} failed")
        if not before.total or check.command not in given.passed:
            continue
        skipped = [name for name, state in after.names.items() if state == "skipped" and _ran(before, name)]
        if not after.total:
            told.append(f"{named(check)} passed without running a test; before, it ran {before.total}")
        elif after.total + gone < before.total and not decisive and not (given.restores and _lost_cases(before, after)):
            told.append(f"{named(check)} ran {plural(after.total, 'test')}; before, it ran {before.total}")
        elif skipped and not decisive:
            some = ", ".join(one_line(name, 100) for name in skipped[:FEW])
            told.append(f"{named(check)} now skips {plural(len(skipped), 'test')} that it ran before: {some}")
    return tuple(told)


def _lost_cases(before: Tests, after: Tests) -> tuple[str, ...]:
    """Cases of parametrised tests that are gone while others of the same test run; empty if anything else is gone.

    The code may list them (`parametrize(LOCALES)`), so that honest work removes one.
    """
    gone = sorted(name for name in before.names if _ran(before, name) and name not in after.names)
    running = {name.partition("[")[0] for name in after.names if "[" in name}
    return tuple(gone) if all("[" in name and name.partition("[")[0] in running for name in gone) else ()


def _fewer_cases(given: Candidate) -> tuple[str, ...]:
    """For a review."""
    found = [
        name
        for command, before in given.before.items()
        for name in _lost_cases(before, given.passed.get(command, Tests()))
    ]
    return tuple(f"{one_line(name, 100)} {NO_LONGER_RUNS}" for name in found[:FEW])


def _ran(tests: Tests, name: str) -> bool:
    return tests.names.get(name) in ("passed", "failed")


def _with_witness(
    given: Candidate, decisive: Sequence[FileChange], bench: Bench, proof: Proof, doubtful: frozenset[str]
) -> Proof:
    search = WitnessSearch(given, decisive, bench)
    found = search.witnesses()
    witnesses = tuple(witness for witness in found if witness.name not in doubtful)
    objections = () if bench.is_stopped else search.silent_runner()
    if found and not witnesses:
        search.missing = _CHANGED_WITNESS
    if witnesses and not any(witness.is_own for witness in witnesses) and not is_about(given.words, _added(given)):
        witnesses = ()
        names = ", ".join(sorted(subjects(given.words))[:FEW])
        search.missing = (
            f"tests fail without the change, but it mentions nothing that the story names ({one_line(names, 80)}): "
            "use it in the test, or give the story a check of its own"
        )
    missing = () if witnesses else (search.missing or NO_WITNESS,)
    return msgspec.structs.replace(
        proof, objections=objections, witnesses=witnesses[:_MOST_WITNESSES], missing=missing, limits=search.limits
    )


def _added(given: Candidate) -> str:
    """The lines that the change adds, and the names of its files."""
    parts = []
    for change in given.changes:
        if change.new is not None and role_of(change.path) is not Role.DOCS:
            old = frozenset((change.old or b"").splitlines())
            new = b"\n".join(line for line in change.new.splitlines() if line not in old)
            parts += [change.path, new.decode("utf-8", "replace")]
    return "\n".join(parts)
