"""Runs the checks that apply and journals each of them with the tree it ran on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

from ralph.checks.choosing import When, choose, set_id
from ralph.checks.running import run_check
from ralph.config.schema import Config
from ralph.core.environment import child_environment
from ralph.core.events import CheckEnded
from ralph.core.evidence import CheckResult
from ralph.core.plan import Plan, Story
from ralph.host.signals import StopSignal


class Checks:
    """The engine's `Checker`, and the door for `command` steps."""

    def __init__(
        self,
        config: Config,
        root: Path,
        env: Mapping[str, str],
        tell: Callable[[CheckEnded], object],
        stop: StopSignal,
        run: str,
    ) -> None:
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
        identity = set_id(chosen)
        results = []
        for check in chosen:
            if self._is_stopped():
                break
            result = run_check(
                check.name,
                check.command,
                root=self._root,
                env=self._env,
                timeout=check.timeout,
                cwd=check.cwd,
                required=check.required,
                stop=self._stop,
            )
            if self._is_stopped() and not result.passed:  # it was ended, and says nothing about the work
                break
            self._tell(CheckEnded(iteration=iteration, tree=tree, check_set=identity, result=result))
            results.append(result)
        return tuple(results)

    def _is_stopped(self) -> bool:
        return self._stop.requested

    def run_command(self, name: str, command: str, *, timeout: float | None, cwd: str = "") -> CheckResult:
        return run_check(name, command, root=self._root, env=self._env, timeout=timeout, cwd=cwd, stop=self._stop)
