"""Runs checks by hand, as the loop does, and records a full pass for `ralph audit`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from ralph.config.checks import ChosenCheck, When, choose, set_id
from ralph.config.schema import Config
from ralph.core.environment import child_environment
from ralph.core.events import Baseline
from ralph.core.evidence import CheckResult
from ralph.core.plan import Plan, Story
from ralph.core.ports import PlanRef
from ralph.host.files import keep_aside, make_folder, read_bytes, read_state, write_bytes
from ralph.host.git.command import git
from ralph.host.git.objects import changes
from ralph.host.git.repo import Repo
from ralph.host.git.snapshot import snapshot_tree
from ralph.host.redaction import redact_struct
from ralph.proof.check_outputs import keeper
from ralph.proof.checks import BASELINE
from ralph.proof.records import Pass
from ralph.proof.running import run_check
from ralph.state.places import plan_state

_FILE = "verified.json"


def run_checks(
    chosen: tuple[ChosenCheck, ...],
    config: Config,
    ref: PlanRef,
    env: Mapping[str, str],
    tell: Callable[[CheckResult], None],
) -> tuple[CheckResult, ...]:
    """The output of a failing check is kept in the plan's state folder."""
    clean = child_environment(env, config.agent.env, everything=config.env == "caller")
    before = _failed_before(plan_state(ref, env) / BASELINE) if config.baseline == "no-worse" else frozenset()
    results = []
    for check in chosen:
        result = run_check(
            check.name,
            check.command,
            root=ref.root,
            env=clean,
            timeout=check.timeout,
            cwd=check.cwd,
            required=check.required,
            keep=keeper(plan_state(ref, env) / "checks", "verify", check),
        )
        if not result.passed and check.command in before and not check.story:
            result = msgspec.structs.replace(result, failed_before=True, required=False)
        tell(result)
        results.append(result)
    return tuple(results)


def _failed_before(baseline: Path) -> frozenset[str]:
    """Commands that failed on the last checkpoint of a run."""
    try:
        known = msgspec.json.decode(read_state(baseline), type=Baseline)
    except (OSError, msgspec.DecodeError):
        return frozenset()
    return frozenset(result.command for result in known.results if not result.passed)


def chosen_for(config: Config, plan: Plan, story: Story | None, when: When) -> tuple[ChosenCheck, ...]:
    return choose(config, plan, story, when)


def current_tree(repo: Repo, ref: PlanRef, env: Mapping[str, str]) -> str:
    """The id of the current working tree, computed with an index that no run uses."""
    return snapshot_tree(repo, make_folder(plan_state(ref, env), private=True) / "audit-index")


def pin(repo: Repo, ref: PlanRef, tree: str) -> None:
    """Keep the tree of the last full pass, to compare it with later ones."""
    git(repo, "update-ref", f"refs/ralph/proved/{ref.layout.replace('.', '-')}-{ref.name.replace('/', '-')}", tree)


def differs(repo: Repo, old: str, new: str, is_bookkeeping: Callable[[str], bool]) -> tuple[str, ...] | None:
    """What changed between two trees, without bookkeeping files. None: the old tree no longer exists."""
    if old == new:
        return ()
    try:
        found = changes(repo, old, new)
    except Exception:  # noqa: BLE001 - the tree is no longer, or never was, in this repository
        return None
    return tuple(change.path for change in found if not is_bookkeeping(change.path))


def keep_pass(
    ref: PlanRef, chosen: tuple[ChosenCheck, ...], tree: str, results: tuple[CheckResult, ...], env: Mapping[str, str]
) -> Pass:
    passed = all(result.passed for result in results if result.required)
    made = Pass(at=time.time(), tree=tree, check_set=set_id(chosen), passed=passed, checks=results)
    path = make_folder(plan_state(ref, env), private=True) / _FILE
    write_bytes(path, msgspec.json.encode(redact_struct(made)), mode=0o600)
    return made


def read_pass(ref: PlanRef, env: Mapping[str, str]) -> Pass | None:
    path = plan_state(ref, env) / _FILE
    if not path.exists():
        return None
    try:
        return msgspec.json.decode(read_bytes(path), type=Pass)
    except msgspec.DecodeError:
        keep_aside(path)
        return None
