"""Stories that the plan calls done although their work is not on this branch: it is on another one, or was reset."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from ralph.core.plan import Plan
from ralph.core.ports import PlanRef
from ralph.core.text import one_line
from ralph.host.git.command import ask
from ralph.host.git.objects import TreeEntry, changes, entries
from ralph.host.git.repo import Repo
from ralph.plans.store import PlanStore
from ralph.proof.commit_records import commits_by_story
from ralph.proof.records import gather
from ralph.state.places import workspace_state
from ralph.workspace.plan_edit import reopen

_FEW = 5


def reopen_lost(
    store: PlanStore, ref: PlanRef, repo: Repo, env: Mapping[str, str], is_ours: Callable[[str], bool]
) -> list[str]:
    """Reopen them, and return messages."""
    reading = store.load()
    lost = find_lost(reading.plan, ref, repo, env, is_ours)
    if lost:
        changed = [reopen(reading.plan, story) for story in lost]
        store.write(store.planned(reading, changed, dict.fromkeys(lost, "")))
    return describe_lost(lost, "is open again")


def find_lost(
    plan: Plan, ref: PlanRef, repo: Repo, env: Mapping[str, str], is_ours: Callable[[str], bool]
) -> dict[str, str]:
    """The stories, each with its commit. A squash or a rebase keeps the message or the files, so its stories stay done.

    The journals are only read if a finished story has no commit here.
    """
    done = [story.id for story in plan.stories if story.is_done]
    if not done:
        return {}
    here = commits_by_story(repo, os.path.relpath(ref.path, repo.root), "")
    unknown = [story for story in done if story not in here]
    proofs = gather(workspace_state(ref.root, env), ref.path).stories if unknown else {}
    return {s: p.commit for s in unknown if (p := proofs.get(s)) and p.commit and _is_lost(repo, p.commit, is_ours)}


def describe_lost(lost: Mapping[str, str], state: str) -> list[str]:
    messages = [
        f"{one_line(story, 40)} {state}: its commit {commit[:9]} is not on this branch; merge it to keep it"
        for story, commit in list(lost.items())[:_FEW]
    ]
    return [*messages, f"and {len(lost) - _FEW} more"] if len(lost) > _FEW else messages


def _is_lost(repo: Repo, commit: str, is_ours: Callable[[str], bool]) -> bool:
    """Whether a commit exists, is no ancestor of HEAD, and every file it changed is as it was before it."""
    if ask(repo, "cat-file", "-e", f"{commit}^{{commit}}").code:
        return False
    if ask(repo, "merge-base", "--is-ancestor", commit, "HEAD").code != 1:
        return False
    if ask(repo, "rev-parse", "--verify", "--quiet", f"{commit}^").code:
        return False
    work = [change for change in changes(repo, f"{commit}^", commit) if not is_ours(change.path)]
    now = entries(repo, "HEAD")
    nothing = TreeEntry("000000", repo.no_object)
    return bool(work) and all(now.get(c.raw, nothing) == TreeEntry(c.old_mode, c.old_id) for c in work)
