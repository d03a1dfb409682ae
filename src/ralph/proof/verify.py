"""Runs checks by hand, as the loop does, and records a full pass for `ralph proof audit`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path

import msgspec
from msgspec import Struct

from ralph.config.checks import ChosenCheck, When, choose, set_id
from ralph.config.schema import Config
from ralph.core.environment import child_environment
from ralph.core.events import Baseline
from ralph.core.evidence import CheckResult
from ralph.core.plan import Plan, Story
from ralph.core.ports import PlanRef
from ralph.core.proof import KEPT_UNPROVEN, Grade
from ralph.host.files import keep_aside, make_folder, read_bytes, read_state, write_bytes
from ralph.host.git.command import ask, git, line
from ralph.host.git.objects import changes
from ralph.host.git.repo import Repo
from ralph.host.git.snapshot import snapshot_tree
from ralph.host.redaction import redact_struct
from ralph.proof.check_run import keeper, run_check
from ralph.proof.records import Pass, Proof, Proofs, from_commits, gather
from ralph.state.names import AUDIT_INDEX, BASELINE, CHECK_OUTPUTS, VERIFIED
from ralph.state.places import plan_state, workspace_state
from ralph.workspace.find import OpenPlan
from ralph.workspace.own_files import bookkeeping


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
            keep=keeper(plan_state(ref, env) / CHECK_OUTPUTS, "verify", check),
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
    return snapshot_tree(repo, make_folder(plan_state(ref, env), private=True) / AUDIT_INDEX)


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
    path = make_folder(plan_state(ref, env), private=True) / VERIFIED
    write_bytes(path, msgspec.json.encode(redact_struct(made)), mode=0o600)
    return made


def read_pass(ref: PlanRef, env: Mapping[str, str]) -> Pass | None:
    path = plan_state(ref, env) / VERIFIED
    if not path.exists():
        return None
    try:
        return msgspec.json.decode(read_bytes(path), type=Pass)
    except msgspec.DecodeError:
        keep_aside(path)
        return None


class Standing(StrEnum):
    HOLDS = "holds"
    """Proven, committed, and every check passed on exactly this tree."""
    LAPSED = "lapsed"
    """Proven and committed, but the tree or the checks changed since the last full pass."""
    UNPROVEN = "unproven"
    """Accepted by a run without any check, or committed and waiting for a review."""
    BY_HAND = "by hand"
    """Marked done by the user: no run accepted it."""
    LOST = "lost"
    """Proven, but its commit is not part of this branch."""


class Audited(Struct, frozen=True):
    story: str
    standing: Standing
    detail: str = ""
    run: str = ""
    commit: str = ""
    is_from_commit: bool = False
    """Its proof is known only from the commit message."""
    grade: str = ""
    where: str = ""
    """`checkout` or `in-place`: where it was proven; empty: unknown."""


class Audit(Struct, frozen=True):
    stories: tuple[Audited, ...]
    last_pass: float | None
    changed_since: tuple[str, ...]
    """Files that differ from the tree of the last full pass."""
    damaged: tuple[str, ...] = ()

    @property
    def is_clean(self) -> bool:
        return all(one.standing is Standing.HOLDS for one in self.stories)


def audit(opened: OpenPlan, repo: Repo, env: Mapping[str, str]) -> Audit:
    found = gather(workspace_state(opened.root, env), opened.ref, read_pass(opened.ref, env))
    why, changed = _why_lapsed(opened, repo, found, env)
    told = from_commits(repo, os.path.relpath(opened.ref.path, repo.root), found.runs)
    stories = tuple(
        _stand(story, found.stories.get(story.id) or told.get(story.id), repo, why)
        for story in opened.plan.stories
        if story.is_done or story.grade == Grade.UNPROVEN
    )
    return Audit(stories, found.last_pass.at if found.last_pass else None, changed, found.damaged)


def _why_lapsed(opened: OpenPlan, repo: Repo, found: Proofs, env: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """Empty: the last full pass covers this tree and these checks."""
    last = found.last_pass
    if last is None:
        return "all checks have never passed together", ()
    if not last.passed:
        return "the last full pass failed", ()
    where = opened.layout.locations(opened.ref)
    own = bookkeeping(opened.ref, where, repo.root, opened.settings.config)
    changed = differs(repo, last.tree, current_tree(repo, opened.ref, env), own.covers)
    if changed is None:
        return "the tree of the last full pass is no longer known", ()
    if changed:
        some = ", ".join(changed[:3]) + (" …" if len(changed) > 3 else "")
        return f"changed since the last full pass: {some}", changed
    chosen = choose(opened.settings.config, opened.plan, None, "final")
    if last.check_set and last.check_set != set_id(chosen):
        return "the configured checks changed since the last full pass", ()
    return "", ()


def _stand(story: Story, proof: Proof | None, repo: Repo, why: str) -> Audited:
    grade = (proof.grade if proof else "") or story.grade
    return msgspec.structs.replace(_stand_of(story, proof, repo, why), grade=grade, where=proof.where if proof else "")


def _stand_of(story: Story, proof: Proof | None, repo: Repo, why: str) -> Audited:
    if not story.is_done:
        run, commit = (proof.run, proof.commit) if proof else ("", "")
        return Audited(story.id, Standing.UNPROVEN, KEPT_UNPROVEN, run, commit)
    if proof is None:
        return Audited(story.id, Standing.BY_HAND, "no run accepted it")
    if not proof.is_proven:
        return Audited(story.id, Standing.UNPROVEN, "no check ran for it", proof.run, proof.commit)
    if proof.commit and not _is_here(repo, proof.commit) and not _has_trailer(repo, story.id, proof):
        detail = f"commit {proof.commit[:9]} is not part of this branch"
        return Audited(story.id, Standing.LOST, detail, proof.run, proof.commit)
    told = proof.is_from_commit
    if why:
        detail = f"{why} (proven according to commit {proof.commit[:9]})" if told else why
        return Audited(story.id, Standing.LAPSED, detail, proof.run, proof.commit, told)
    detail = f"proven according to commit {proof.commit[:9]}" if told else ""
    return Audited(story.id, Standing.HOLDS, detail, proof.run, proof.commit, told)


def _is_here(repo: Repo, commit: str) -> bool:
    return ask(repo, "merge-base", "--is-ancestor", commit, "HEAD").code == 0


def _has_trailer(repo: Repo, story: str, proof: Proof) -> bool:
    """A rebase or squash changes a commit's hash but keeps its message."""
    wanted = f"Ralph-Run: {proof.run}\nRalph-Iteration: {proof.iteration}\n"
    found = ask(repo, "log", "--format=%B", "--fixed-strings", f"--grep=Ralph-Story: {story}", "HEAD")
    return found.code == 0 and wanted.strip().splitlines()[0] in line(found.out)
