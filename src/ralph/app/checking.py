"""Runs the checks that apply and journals each of them with the tree it ran on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import cast

import msgspec

from ralph.app.check_outputs import keeper
from ralph.checks.choosing import ChosenCheck, When, choose, set_id
from ralph.checks.running import run_check
from ralph.config.schema import Config
from ralph.core.environment import child_environment
from ralph.core.events import Baseline, CheckEnded, IterationEnded, Noted, Proved, Record
from ralph.core.evidence import CheckResult
from ralph.core.plan import Plan, Story
from ralph.core.text import one_line
from ralph.core.verdict import Kind
from ralph.host.files import write_bytes
from ralph.host.signals import StopSignal

BASELINE = "baseline.json"
"""In the plan's own folder: which checks passed on the last checkpoint."""


class Checks:
    """The engine's `Checker`, and the door for `command` steps."""

    def __init__(
        self,
        config: Config,
        root: Path,
        env: Mapping[str, str],
        tell: Callable[[CheckEnded | Baseline | Noted], object],
        stop: StopSignal,
        run: str,
        cache: Path,
        outputs: Path | None = None,
        is_same: Callable[[str, str], bool] = lambda old, new: False,
    ) -> None:
        self._outputs = outputs
        self._is_same = is_same
        """Whether two trees differ in nothing that a check could see."""
        self._baseline: tuple[ChosenCheck, ...] = ()
        self._raw: dict[tuple[str, str], CheckResult] = {}
        self._tree = ""
        """Where they ran last."""
        self.check_set = ""
        self._cache = cache
        self._before: dict[tuple[str, str], bool] = {}
        """Command and folder → whether it passed when it was last accepted, or at the start."""
        self._last: dict[tuple[str, str], bool] = {}
        self._config = config
        self._root = root
        # The mark by which a later run finds what this one left behind, should it be killed.
        self._env = child_environment(env, config.agent.env, {"RALPH_RUN": run})
        self._tell = tell
        self._stop = stop

    def __call__(
        self, plan: Plan, story: Story | None, when: str, iteration: int, tree: str
    ) -> tuple[CheckResult, ...]:
        chosen = choose(self._config, plan, story, cast(When, when))
        self.check_set = identity = set_id(chosen)
        self._tree, self._raw = tree, {}
        results = []
        for check in chosen:
            if self._is_stopped():
                break
            result = self._run_one(check, f"{iteration:04}")
            if self._is_stopped() and not result.passed:  # it was ended, and says nothing about the work
                break
            self._raw[check.command, check.cwd] = result
            result = self._compared(check, result)
            if check.story and (story is None or check.story != story.id):
                result = msgspec.structs.replace(result, proves=check.story if _is_done(plan, check.story) else "")
            self._tell(CheckEnded(iteration=iteration, tree=tree, check_set=identity, result=result))
            results.append(result)
        self._last = {(check.command, check.cwd): r.passed for check, r in zip(chosen, results, strict=False)}
        return tuple(results)

    def _compared(self, check: ChosenCheck, result: CheckResult) -> CheckResult:
        """A failure that was there before is told apart; with `no-worse` it is no reason to reject."""
        if result.passed or self._before.get((check.command, check.cwd), True):
            return result
        excused = self._config.baseline == "no-worse" and not check.story
        return msgspec.structs.replace(result, failed_before=True, required=result.required and not excused)

    def baseline(self, plan: Plan, tree: str) -> None:
        chosen = [check for check in choose(self._config, plan, None, "story") if not check.story]
        if not chosen:
            return
        self._baseline = tuple(chosen)
        identity = set_id(chosen)
        results = self._known(tree, identity)
        if results is None:
            results = self._run_all(chosen, "baseline")
            if self._is_stopped():
                return
            self._remember(tree, identity, results)
        self._before = {(check.command, check.cwd): r.passed for check, r in zip(chosen, results, strict=False)}
        self._tell(Baseline(tree=tree, check_set=identity, results=results))
        failing = [result.name for result in results if result.required and not result.passed]
        if failing:
            names = ", ".join(one_line(name, 60) for name in failing[:3])
            advice = "" if self._config.baseline == "no-worse" else "; every story is rejected until it is mended"
            self._tell(Noted(f"fails before anything is done: {names}{advice} (baseline)", warning=True))

    def run_quietly(self, plan: Plan, story: Story | None) -> tuple[CheckResult, ...]:
        """The checks of a story once more, without a record: for a second opinion."""
        chosen = choose(self._config, plan, story, "story")
        return tuple(self._compared(check, r) for check, r in zip(chosen, self._run_all(chosen), strict=False))

    def passed_before(self, result: CheckResult) -> bool:
        """It is known to have passed when it was last accepted, or at the start."""
        return any(passed for (command, _), passed in self._before.items() if command == result.command)

    def _run_all(self, chosen: Sequence[ChosenCheck], label: str = "") -> tuple[CheckResult, ...]:
        results = []
        for check in chosen:
            if self._is_stopped():
                break
            results.append(self._run_one(check, label))
        return tuple(results)

    def _run_one(self, check: ChosenCheck, label: str = "") -> CheckResult:
        """With a label, the whole output of a failure is kept under it."""
        keep = keeper(self._outputs, label, check) if self._outputs and label else None
        return run_check(
            check.name,
            check.command,
            root=self._root,
            env=self._env,
            timeout=self._bounded(check.timeout),
            cwd=check.cwd,
            required=check.required,
            stop=self._stop,
            keep=keep,
        )

    def _known(self, tree: str, identity: str) -> tuple[CheckResult, ...] | None:
        """The last baseline, if it was of this very tree and these checks. Anything else is found out anew."""
        try:
            known = msgspec.json.decode(self._cache.read_bytes(), type=Baseline)
        except (OSError, msgspec.DecodeError):
            return None
        if known.check_set != identity:
            return None
        return known.results if known.tree == tree or self._is_same(known.tree, tree) else None

    def _remember(self, tree: str, identity: str, results: tuple[CheckResult, ...]) -> None:
        known = Baseline(tree=tree, check_set=identity, results=results)
        write_bytes(self._cache, msgspec.json.encode(known), mode=0o600, durable=False)

    def listen(self, record: Record) -> None:
        """What was accepted is what later failures are compared with, in this run and in the next one."""
        event = record.event
        if isinstance(event, IterationEnded) and event.kind is Kind.ACCEPTED:
            self._before |= self._last
        if isinstance(event, Proved) or (isinstance(event, IterationEnded) and event.kind is Kind.ACCEPTED):
            known = [self._raw.get((check.command, check.cwd)) for check in self._baseline]
            if known and all(known) and self._tree:
                self._remember(self._tree, set_id(self._baseline), tuple(result for result in known if result))

    def _is_stopped(self) -> bool:
        return self._stop.requested

    def run_command(self, name: str, command: str, *, timeout: float | None, cwd: str = "") -> CheckResult:
        bounded = self._bounded(timeout)
        return run_check(name, command, root=self._root, env=self._env, timeout=bounded, cwd=cwd, stop=self._stop)

    def _bounded(self, timeout: float | None) -> float:
        return min(timeout or self._config.time_ceiling, self._config.time_ceiling)


def _is_done(plan: Plan, story: str) -> bool:
    found = plan.story(story)
    return found is not None and found.is_done
