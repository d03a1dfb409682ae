"""Re-verify every finished story from proofs and commits: which still hold on the current tree."""

from __future__ import annotations

import os
from collections.abc import Mapping
from enum import StrEnum

import msgspec
from msgspec import Struct

from ralph.config.checks import choose, set_id
from ralph.core.plan import Story
from ralph.core.proof import KEPT_UNPROVEN, Grade
from ralph.host.git.command import ask, line
from ralph.host.git.repo import Repo
from ralph.proof.commit_records import from_commits
from ralph.proof.records import Proof, Proofs, gather
from ralph.proof.verify import current_tree, differs, read_pass
from ralph.state.places import workspace_state
from ralph.workspace.find import OpenPlan
from ralph.workspace.own_files import bookkeeping


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
    found = gather(workspace_state(opened.root, env), opened.ref.path, read_pass(opened.ref, env))
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
