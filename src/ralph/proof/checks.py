"""Run the checks that apply and journal each with the tree it ran on."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import cast

import msgspec
from msgspec import Struct

from ralph.config.checks import ChosenCheck, When, choose, set_id
from ralph.config.schema import Config
from ralph.core.environment import child_environment
from ralph.core.events import (
    Baseline,
    CheckEnded,
    CheckStarted,
    IterationEnded,
    IterationStarted,
    Noted,
    Proved,
    Record,
)
from ralph.core.evidence import CheckResult
from ralph.core.moves import Reason, Stop
from ralph.core.plan import Mode, Plan, Story
from ralph.core.proof import Tests
from ralph.core.text import one_line
from ralph.core.verdict import Kind
from ralph.host.files import read_state, write_bytes
from ralph.host.git.swap import Keep, keep_nothing
from ralph.host.process.signals import StopSignal
from ralph.host.redaction import redact_struct
from ralph.proof.acceptance import concealed
from ralph.proof.check_run import run_check
from ralph.proof.check_trouble import NotRunnable, finds_no_tests, why_not_runnable
from ralph.proof.place import Place, Tell, Walls
from ralph.proof.place import Ran as Outcome
from ralph.proof.place_choice import Chosen
from ralph.proof.values import Ran
from ralph.state.names import MADE_BY_CHECKS, TESTS


def why_not_start(
    results: Iterable[CheckResult], story: Story | None, *, strict: bool, worktree: Path | None = None
) -> Stop | None:
    """Why no agent should be started for `story`, the next one; None: it may start.

    A check that is the story's own is what the story has to make pass. A suite without tests fails until a story
    writes the first test.
    """
    own = story.verify if story else ()
    failing = [r for r in results if r.required and not r.passed and r.command not in own]
    broken = [
        f"{_name(result)} cannot run: {_explained(trouble, worktree)}"
        for result in failing
        if (trouble := why_not_runnable(result.command, result.code, result.tail))
    ]
    if broken:
        return Stop(Reason.BROKEN_CHECK, "; ".join(broken))
    red = [_name(result) for result in failing if not finds_no_tests(result.code, result.tail)]
    if red and strict:
        return Stop(Reason.RED_BASELINE, f"{', '.join(red)} {'fails' if len(red) == 1 else 'fail'} before any work")
    return None


def _explained(trouble: NotRunnable, worktree: Path | None) -> str:
    """In a worktree, what is missing may well be installed in the project: git puts only tracked files there."""
    if worktree is None or not trouble.reason.endswith(("does not exist", "is not installed")):
        return f"{trouble.reason}; {trouble.fix}"
    return f"{trouble.reason} in the worktree {worktree}; a worktree has no ignored files, so install them there"


def _name(result: CheckResult) -> str:
    name, command = one_line(result.name, 60), one_line(result.command, 80)
    return name if name in command else f"{name} (`{command}`)"


FindPlace = Callable[[Sequence[ChosenCheck], Sequence[str]], Chosen]
"""Finds where proof runs, given the checks that pass in the workspace, without some files."""

AskBaseline = Callable[[str], str]
"""Asks the user at the terminal what to do about a failing check: "continue", "no-worse" or "stop"."""


_MOST_MADE = 20_000
_FEW = 3
_LEAST_LIMIT = 60.0
_TIMES = 10


class _KnownTests(Struct, frozen=True):
    tree: str
    tests: dict[str, Tests] = {}


def made_by_checks(state: Path) -> frozenset[str]:
    """Untracked files that appeared while the baseline was taken: not the user's work, no reason to refuse a run."""
    try:
        return frozenset(msgspec.json.decode(read_state(state / MADE_BY_CHECKS), type=list[str]))
    except (OSError, msgspec.DecodeError):
        return frozenset()


def _keep_made(state: Path, paths: frozenset[str]) -> None:
    kept = sorted(paths)[:_MOST_MADE]
    write_bytes(state / MADE_BY_CHECKS, msgspec.json.encode(kept), mode=0o600, durable=False)


class Checks:
    """The engine's `Checker`. `command` steps also run through it."""

    def __init__(
        self,
        config: Config,
        root: Path,
        env: Mapping[str, str],
        tell: Callable[[CheckStarted | CheckEnded | Baseline | Noted], object],
        stop: StopSignal,
        run: str,
        cache: Path,
        is_same: Callable[[str, str], bool] = lambda old, new: False,
        *,
        untracked: Callable[[], frozenset[str]] = frozenset,
        ignored: Callable[[float], Sequence[str]] = lambda since: (),
        allow_broken: bool = False,
        ask: AskBaseline | None = None,
        worktree: Path | None = None,
        place: Place,
        find_place: FindPlace | None = None,
        pending: Callable[[Plan], Sequence[str]] = lambda _: (),
        walls: Walls | None = None,
    ) -> None:
        """`place`: where the checks run until `find_place` has found a better one.

        `ignored`: source files written since a time that git ignores, so that they are not in the candidate.
        `pending`: test files of stories that are still to be implemented. They fail by nature.
        """
        self._pending = pending
        self._walls = walls
        self._candidate = ""
        self._hidden: Mapping[str, bytes] = {}
        self._place = place
        self._find_place = find_place
        self._tests: dict[str, dict[str, Tests]] = {}
        """Tree → command → the tests it ran there."""
        self._accepted: dict[str, Tests] = {}
        """The same for what was accepted last, or for the tree before any work."""
        self._at_start: dict[str, dict[str, Tests]] = {}
        """Story → the same for the tree when it began."""
        self._worktree = worktree
        self._untracked = untracked
        self._ignored = ignored
        self._started = 0.0
        """When the iteration began."""
        self._allow_broken = allow_broken
        self._ask = ask
        self._strict = config.baseline == "strict"
        self._is_same = is_same
        """Whether two trees are the same for a check."""
        self._baseline: tuple[ChosenCheck, ...] = ()
        self._raw: dict[tuple[str, str], CheckResult] = {}
        self._tree = ""
        """The tree they ran on last, without acceptance tests that are not in it."""
        self._proven = ""
        """The tree they ran on last."""
        self._iteration = 0
        self.check_set = ""
        self._cache = cache
        self._before: dict[tuple[str, str], bool] = {}
        """Command and folder → whether it passed at the last accepted story, or at the start."""
        self._last: dict[tuple[str, str], bool] = {}
        self._config = config
        self._root = root
        # The mark by which a later run finds what this one left behind, should it be killed.
        self._env = child_environment(env, config.agent.env, {"RALPH_RUN": run}, everything=config.env == "caller")
        self._tell = tell
        self._stop = stop

    def __call__(
        self, plan: Plan, story: Story | None, when: str, iteration: int, tree: str
    ) -> tuple[CheckResult, ...]:
        chosen = choose(self._config, plan, story, cast(When, when))
        self.check_set = identity = set_id(chosen)
        self._iteration = iteration
        self._tree, self._raw = self._candidate or tree, {}
        self._proven = tree
        results: list[CheckResult] = []

        def tell(check: ChosenCheck, ran: Outcome | None) -> None:
            if ran is None:
                self._tell(CheckStarted(iteration=iteration, name=check.name, when=when))
                return
            if self._is_stopped() and not ran.result.passed:  # it was ended, and says nothing about the work
                return
            self._tests.setdefault(tree, {})[check.command] = ran.tests
            self._raw[check.command, check.cwd] = ran.result
            result = self._compared(check, self._hinted(ran.result))
            if check.story and (story is None or check.story != story.id):
                result = msgspec.structs.replace(result, proves=check.story if _is_done(plan, check.story) else "")
            self._tell(CheckEnded(iteration=iteration, tree=tree, check_set=identity, result=result))
            results.append(result)

        if self._hidden and tree != self._candidate:
            self._run_concealed(tree, chosen, f"{iteration:04}", tell)
        else:
            self._place.run(tree, chosen, label=f"{iteration:04}", tell=tell)
        self._last = {(check.command, check.cwd): r.passed for check, r in zip(chosen, results, strict=False)}
        return tuple(results)

    def _hinted(self, result: CheckResult) -> CheckResult:
        if result.passed or self._place.where != "checkout" or not (files := self._ignored(self._started)):
            return result
        some = ", ".join(one_line(path, 80) for path in files[:_FEW])
        more = f" and {len(files) - _FEW} more" if len(files) > _FEW else ""
        verb = "it is" if len(files) == 1 else "they are"
        return msgspec.structs.replace(result, hint=f"git ignores {some}{more}, so {verb} not in the commit")

    def _run_concealed(self, tree: str, chosen: Sequence[ChosenCheck], label: str, tell: Tell) -> None:
        """Run checks with hidden tests in the tree. One that fails without them too is reported as it fails then."""
        for check in chosen:
            if self._is_stopped():
                return
            tell(check, None)
            for ran in self._place.run(tree, [check]):
                if not ran.result.passed and not self._is_stopped():
                    (plain,) = self._place.run(self._candidate, [check], label=label) or (ran,)
                    hidden = msgspec.structs.replace(ran, result=concealed(ran.result, ran.tests, self._hidden))
                    tell(check, plain if plain is not ran and not plain.result.passed else hidden)
                else:
                    tell(check, ran)

    def _compared(self, check: ChosenCheck, result: CheckResult) -> CheckResult:
        """Mark failures that existed before; with `no-worse` they do not reject a story."""
        if result.passed or self._before.get((check.command, check.cwd), True):
            return result
        excused = not self._strict and not check.story
        return msgspec.structs.replace(result, failed_before=True, required=result.required and not excused)

    def baseline(self, plan: Plan, find_tree: Callable[[], str], story: Story | None = None) -> Stop | None:
        chosen = [check for check in choose(self._config, plan, None, "story") if not check.story]
        if not chosen:
            return None
        self._baseline = tuple(chosen)
        tree, identity = find_tree(), set_id(chosen)
        known = self._known(tree, identity)
        if known is not None:
            self._recall_tests()
        if known is None or not all(result.passed for result in known):
            known = self._run_baseline(plan, tree, chosen, known or ())
            if self._is_stopped():
                return None
            self._remember(tree, identity, known)
        self._before = {(check.command, check.cwd): r.passed for check, r in zip(chosen, known, strict=False)}
        self._tell(Baseline(tree=tree, check_set=identity, results=known))
        stop = self._may_start(known, story)
        if stop is None and self._find_place is not None and not self._is_stopped():
            passing = [check for check, result in zip(chosen, known, strict=False) if result.passed]
            self._settle_in(passing, self._pending(plan))
        return stop

    def _settle_in(self, passing: Sequence[ChosenCheck], without: Sequence[str]) -> None:
        """Find the place where the work of this run is proven."""
        assert self._find_place is not None
        names = ", ".join(check.name for check in passing)
        self._tell(CheckStarted(name=names, when="checkout"))
        found = self._find_place(passing, without)
        self._place = found.place
        self._accepted |= {c.command: ran.tests for c, ran in zip(passing, found.ran, strict=False)}
        if found.ran and found.place.where == "checkout":
            note = "the checks pass in a clean checkout and work is proven there; tested again when they change"
            self._tell(Noted(note))
        if found.place.note:
            self._tell(Noted(found.place.note, warning=found.place.where != "checkout"))

    def begin(
        self,
        candidate: str,
        snapshot: str,
        hidden: Mapping[str, bytes] | None = None,
        keep: Keep = keep_nothing,
    ) -> None:
        """The trees of the next candidate: what would be committed, and what is in the workspace.

        `hidden`: acceptance tests that are not part of either. Their code is not reported.
        """
        self._candidate, self._hidden = candidate, hidden or {}
        self._place.begin(candidate, snapshot, keep)

    def _run_baseline(
        self, plan: Plan, tree: str, chosen: Sequence[ChosenCheck], known: Sequence[CheckResult]
    ) -> tuple[CheckResult, ...]:
        """A check that failed last time runs again: what it needs may have been installed since."""
        passed = {(result.name, result.command): result for result in known if result.passed}
        results = []
        before = self._untracked()
        start = tree
        self._place.begin(tree, tree)  # a set-up session may have been judged here before
        if pending := self._pending(plan):
            start = self._place.compose(tree, dict.fromkeys(pending))
        for check in chosen:
            if self._is_stopped():
                break
            if (result := passed.get((check.name, check.command))) is None:
                self._tell(CheckStarted(name=check.name, when="baseline"))
                for ran in self._place.run(start, [check], label="baseline"):
                    self._accepted[check.command] = ran.tests
                    result = ran.result
            if result is not None:
                results.append(result)
        if made := self._untracked() - before:
            state = self._cache.parent
            _keep_made(state, made | made_by_checks(state))
        return tuple(results)

    def _may_start(self, results: tuple[CheckResult, ...], story: Story | None) -> Stop | None:
        if all(result.passed or not result.required for result in results):
            return None
        stop = why_not_start(results, story, strict=self._strict, worktree=self._worktree)
        if stop is None:
            failing = ", ".join(one_line(r.name, 60) for r in results if r.required and not r.passed)
            then = "stories are accepted only once it passes" if self._strict else "stories are not rejected for it"
            self._tell(Noted(f"fails before any work: {failing}; {then} (baseline)", warning=True))
            return None
        answer = "continue" if self._allow_broken else ""
        if not answer and self._ask and stop.reason is Reason.RED_BASELINE:
            answer = self._ask(stop.detail)
        if answer not in ("continue", "no-worse"):
            return stop
        self._strict = self._strict and answer != "no-worse"
        then = "every story is rejected until it passes" if self._strict else "stories are not rejected for it"
        self._tell(Noted(f"{stop.detail}; continues: {then}", warning=True))
        return None

    @property
    def where(self) -> str:
        return self._place.where

    @property
    def is_stopped(self) -> bool:
        return self._is_stopped()

    @property
    def limits(self) -> tuple[str, ...]:
        return self._place.limits

    def compose(self, base: str, files: Mapping[str, bytes | None]) -> str:
        return self._place.compose(base, files)

    def run(self, tree: str, checks: Sequence[ChosenCheck]) -> tuple[Ran, ...]:
        """Run checks on any tree. The journal has the start of each, for views, and no result."""

        def tell(check: ChosenCheck, ran: Outcome | None) -> None:
            if ran is None:
                self._tell(CheckStarted(iteration=self._iteration, name=check.name, when="proof"))

        ran = self._place.run(tree, [self._in_bounds(check) for check in checks], tell=tell)
        return tuple(Ran(self._compared(check, one.result), one.tests) for check, one in zip(checks, ran, strict=False))

    def _in_bounds(self, check: ChosenCheck) -> ChosenCheck:
        """With a time limit that follows from its first pass: a test may never end where a function does nothing."""
        known = self._raw.get((check.command, check.cwd))
        if known is None or not known.passed:
            return check
        limit = _LEAST_LIMIT + _TIMES * known.seconds
        return msgspec.structs.replace(check, timeout=min(check.timeout or limit, limit))

    def tests_of(self, tree: str) -> dict[str, Tests]:
        """Command → the tests it ran on a tree."""
        return self._tests.get(tree, {})

    def tests_before(self, story: str, tree: str, checks: Sequence[ChosenCheck]) -> dict[str, Tests]:
        """The same for the tree when a story began. What is not known is run now."""
        known = self._at_start.setdefault(story, {})
        todo = [check for check in checks if check.command not in known]
        for check, one in zip(todo, self.run(tree, todo) if todo else (), strict=False):
            known[check.command] = one.tests
        return known

    def forget_tests(self) -> None:
        """Of every tree: the next story starts from another one."""
        self._accepted, self._at_start, self._tests = {}, {}, {}

    def _known(self, tree: str, identity: str) -> tuple[CheckResult, ...] | None:
        """The last baseline, if it was taken on exactly this tree with these checks."""
        try:
            known = msgspec.json.decode(read_state(self._cache), type=Baseline)
        except (OSError, msgspec.DecodeError):
            return None
        if known.check_set != identity:
            return None
        return known.results if known.tree == tree or self._is_same(known.tree, tree) else None

    def _remember(self, tree: str, identity: str, results: tuple[CheckResult, ...]) -> None:
        known = redact_struct(Baseline(tree=tree, check_set=identity, results=results))
        write_bytes(self._cache, msgspec.json.encode(known), mode=0o600, durable=False)
        tests = _KnownTests(tree, self._accepted)
        write_bytes(self._cache.with_name(TESTS), msgspec.json.encode(tests), mode=0o600, durable=False)

    def _recall_tests(self) -> None:
        """The tests that ran when the known baseline was taken."""
        with contextlib.suppress(OSError, msgspec.DecodeError):
            known = msgspec.json.decode(read_state(self._cache.with_name(TESTS)), type=_KnownTests)
            self._accepted = known.tests | self._accepted

    def listen(self, record: Record) -> None:
        """Later failures are compared with what was accepted, in this run and in the next one."""
        event = record.event
        if isinstance(event, IterationEnded) and event.mode in (Mode.ACCEPTANCE, Mode.EXAM):
            return
        if isinstance(event, IterationStarted):
            self._at_start.setdefault(event.story, dict(self._accepted))
            self._started = record.t
        if isinstance(event, IterationEnded) and event.kind is Kind.ACCEPTED:
            self._before |= self._last
            self._accepted |= self._tests.get(self._proven, {})
            self._tests = {}
        if isinstance(event, Proved) or (isinstance(event, IterationEnded) and event.kind is Kind.ACCEPTED):
            known = [self._raw.get((check.command, check.cwd)) for check in self._baseline]
            if known and all(known) and self._tree:
                self._remember(self._tree, set_id(self._baseline), tuple(result for result in known if result))

    def _is_stopped(self) -> bool:
        return self._stop.requested

    def run_command(self, name: str, command: str, *, timeout: float | None, cwd: str = "") -> CheckResult:
        bounded = self._bounded(timeout)
        enclosure = self._walls.around_workspace() if self._walls else None
        return run_check(
            name,
            command,
            root=self._root,
            env=self._env,
            timeout=bounded,
            cwd=cwd,
            stop=self._stop,
            enclosure=enclosure,
        )

    def _bounded(self, timeout: float | None) -> float:
        return min(timeout or self._config.time_ceiling, self._config.time_ceiling)


def _is_done(plan: Plan, story: str) -> bool:
    found = plan.story(story)
    return found is not None and found.is_done
