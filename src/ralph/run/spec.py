"""What defines a run: its plan, its settings, its repository, and the options of the command line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from ralph.config.layers import Settings
from ralph.config.schema import Config
from ralph.core.plan import Plan
from ralph.core.ports import PlanRef
from ralph.core.rules import Limits
from ralph.core.trace_context import TraceContext
from ralph.host.git.repo import Repo
from ralph.session.limits import limits_of
from ralph.state.places import workspace_state
from ralph.state.runs import runs_folder


class Options(Struct, frozen=True):
    """What the command line asks of one run, beside the settings."""

    once: bool = False
    stories: tuple[str, ...] = ()
    """Only these stories; empty: all."""
    exam: bool = False
    """Only one round of the exam."""
    stash: bool = False
    worktree: bool = False
    reset: bool = False
    """Forget failed stories and pending waits of earlier runs."""
    allow_broken_checks: bool = False
    """Start although a check cannot run, or fails before any work."""

    def limits(self, settings: Settings) -> Limits:
        return limits_of(settings, once=self.once, stories=self.stories, exam_only=self.exam)


class Launched(Struct, frozen=True, kw_only=True):
    """A run that is ready to start; nothing has been changed yet."""

    ref: PlanRef
    settings: Settings
    plan: Plan
    options: Options = Options()

    @property
    def limits(self) -> Limits:
        return self.options.limits(self.settings)


class RunSpec(Struct, frozen=True, kw_only=True):
    """Everything that defines one run. It can be executed here or elsewhere."""

    run: str
    ref: PlanRef
    settings: Settings
    repo: Repo
    options: Options = Options()
    is_clone: bool = False
    """The repository is a clone that Ralph made."""
    sandbox: str = ""
    """What the agents and checks run in, for people."""
    trace: TraceContext | None = None
    """Told to the clients of agents. None: no traces are sent."""

    @property
    def config(self) -> Config:
        return self.settings.config

    @property
    def is_parallel(self) -> bool:
        """Several workers, or workers on other machines."""
        return (self.config.parallel > 1 or bool(self.config.on)) and not self.options.once

    @property
    def limits(self) -> Limits:
        return self.options.limits(self.settings)


def run_folder(ref: PlanRef, run: str, env: Mapping[str, str]) -> Path:
    return runs_folder(workspace_state(ref.root, env)) / run
