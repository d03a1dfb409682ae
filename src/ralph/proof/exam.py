"""The tests of an exam: which fail, and the command that runs one file of them. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from msgspec import Struct

from ralph.core.plan import Story
from ralph.core.text import one_line, plural
from ralph.proof.acceptance import Trial, broken, new_tests, some, turned_red
from ralph.proof.files import is_collected
from ralph.proof.values import FEW, named

_TAKES_VALUE = frozenset("ckmopWrn") | {"rootdir", "ignore", "confcutdir", "deselect", "require", "import"}
"""Options whose value is the next word."""
_RUN = r"(?:(?:uv|poetry|pdm|hatch) run )?"
_PYTHON = rf"{_RUN}\S*python[\d.]*"
_FOCUSED: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(rf"(?:\w+=\S+ )*(?:{_PYTHON} -m |{_RUN})\S*(?:pytest|py\.test)(?: .*)?"), "{all} {file}"),
    (re.compile(rf"({_PYTHON} -m unittest)(?: .*)?"), "{1} {file}"),
    (re.compile(r"node(?: \S+)* --test(?: .*)?"), "{all} {file}"),
    (re.compile(r"(?:npx |pnpm (?:exec )?|yarn )?(?:jest|vitest run)(?: .*)?"), "{all} {file}"),
    (re.compile(r"go test(?: .*)?"), "go test -count=1 ./{folder} -run {names}"),
    (re.compile(r"cargo test(?: .*)?"), "cargo test --test {stem}"),
)
"""Check commands, and how they run one test file."""
_SHELL = re.compile(r"[;&|<>`$()\n]")
_MOST_OUTPUT = 1500
_MOST_FILES = 10
TITLE = "Exam: "
"""How the titles of stories that an exam added start."""


class Finding(Struct, frozen=True):
    """A new test file with tests that fail."""

    file: str
    tests: tuple[str, ...]
    """Names, or the file where the runner reports no names."""
    command: str
    """The check that failed."""
    tail: str


class Result(Struct, frozen=True):
    findings: tuple[Finding, ...] = ()
    passed: int = 0
    objections: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


def by_file(files: Iterable[str], trials: Sequence[Trial]) -> dict[str, dict[str, str]] | None:
    """Test file → its tests and how they ended. None: the runner does not report that for each file."""
    collected = [path for path in files if is_collected(path)]
    results: dict[str, dict[str, str]] = {path: {} for path in collected}
    for trial in trials:
        if turned_red(trial) and not trial.ran.tests.names:
            return None
        for name, state in new_tests(trial).items():
            path = next((path for path in collected if name.startswith(f"{path}::")), None)
            if path is None:  # also a file that cannot be loaded: it may have kept the others from running
                return None
            results[path][name] = state
    return results


def evaluate(files: Mapping[str, bytes], trials: Sequence[Trial], alone: Callable[[str], Sequence[Trial]]) -> Result:
    """`alone`: the checks with only one of the new test files."""
    collected = [path for path in files if is_collected(path)]
    if not collected:
        return Result(objections=("no new test file was written: add one that the checks run",))
    if len(collected) > _MOST_FILES:
        return Result(objections=(f"{len(collected)} new test files: write at most {_MOST_FILES}",))
    if wrong := tuple(dict.fromkeys(broken(files, trials))):
        return Result(objections=wrong)
    known = by_file(collected, trials)
    results = [_of_file(path, trials if known is not None else alone(path), known) for path in collected]
    return Result(
        findings=tuple(finding for each in results for finding in each.findings),
        passed=sum(each.passed for each in results),
        objections=tuple(objection for each in results for objection in each.objections),
        notices=tuple(notice for each in results for notice in each.notices),
    )


def _of_file(path: str, trials: Sequence[Trial], known: Mapping[str, Mapping[str, str]] | None) -> Result:
    states = known[path] if known is not None else {n: s for trial in trials for n, s in new_tests(trial).items()}
    failed = tuple(name for name, state in states.items() if state == "failed")
    red = next((trial for trial in trials if turned_red(trial)), None)
    passed = sum(state == "passed" for state in states.values())
    if red is not None and (failed or known is None):
        finding = Finding(path, failed or (path,), red.check.command, red.ran.result.tail)
        return Result((finding,), passed)
    if skipped := [name for name, state in states.items() if state == "skipped"]:
        return Result(objections=(f"skipped: {some(skipped)}",))
    counted = max((trial.ran.tests.passed - trial.before.passed for trial in trials), default=0)
    if not any(trial.ran.tests.runner for trial in trials):
        unsure = f"the checks pass with {one_line(path, 100)}, but their output does not show that it runs"
        return Result(passed=1, notices=(unsure,))
    if not states and counted <= 0:
        commands = ", ".join(named(trial.check) for trial in trials[:FEW])
        return Result(objections=(f"{commands} does not run {one_line(path, 100)}",))
    return Result(passed=passed or counted)


def focused(command: str, finding: Finding, paths: Collection[str]) -> str:
    """The check for one test file only; empty: unknown for this command. `paths`: files and folders of the project."""
    if _SHELL.search(command):
        return ""
    for pattern, form in _FOCUSED:
        if match := pattern.fullmatch(command.strip()):
            folder, _, name = finding.file.rpartition("/")
            tests = "|".join(re.escape(test.rpartition("::")[2].split("/")[0]) for test in finding.tests)
            return form.format(
                *(match[0], match[1] if match.re.groups else ""),
                all=_without_paths(match[0], paths),
                file=shlex.quote(finding.file),
                folder=shlex.quote(folder) if folder else "",
                stem=shlex.quote(name.partition(".")[0]),
                names=shlex.quote(f"^({tests})$"),
            )
    return ""


def _without_paths(command: str, paths: Collection[str]) -> str:
    """The command without the tests it names."""
    words = command.split(" ")
    kept = [
        word
        for before, word in zip(["", *words], words, strict=False)
        if (before.startswith("-") and before.lstrip("-") in _TAKES_VALUE)
        or word.partition("::")[0].removeprefix("./").rstrip("/") not in paths
    ]
    return " ".join(kept)


def story_for(finding: Finding, verify: str) -> Story:
    """Title, description and check of a story for a failing test."""
    names = [test.rpartition("::")[2] or test for test in finding.tests]
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    title = f"{TITLE}make {one_line(names[0], 80)}{more} pass"
    tail = finding.tail.strip()[-_MOST_OUTPUT:]
    output = "\n".join(f"| {line.rstrip()}" for line in tail.splitlines() if line.strip())
    lead = (
        f"{plural(len(names), 'end-to-end test')} in {finding.file} "
        f"{'fails' if len(names) == 1 else 'fail'} although every story is done. The test was written from the "
        "requirements and must not be changed; ask if it contradicts them."
    )
    description = f"{lead} `{one_line(finding.command, 100)}` ended with:\n\n{output}" if output else lead
    criteria = (f"{some(finding.tests)} passes" if len(names) == 1 else f"{some(finding.tests)} pass",)
    return Story(id="", title=title, description=description, criteria=criteria, verify=(verify,) if verify else ())
