"""What keeps an agent from stopping: the loop's rules, reported while the agent can still act.

Whatever passes here is checked again by the loop after the agent has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ralph.core.errors import BadData, PlanError, SetupError
from ralph.core.plan import Mode, Plan, State, Story
from ralph.core.problems import Problem
from ralph.core.requests import read_request
from ralph.core.review import Review, ReviewStatus
from ralph.core.transitions import Violation, broken_invariants, illegal_transitions
from ralph.host.files import read_bytes, read_state
from ralph.host.git.repo import identify
from ralph.host.git.situation import situation
from ralph.plans.registry import layout
from ralph.state.names import ANSWERED, PLAN_BEFORE

MARKER = ".ralph-active"
_LAYOUT = "tasks.json"
_LARGEST = 8 * 1024 * 1024
_MODES = {"implement": Mode.IMPLEMENT, "review": Mode.REVIEW, "review-fix": Mode.FIX}


class _Before(Struct, rename="camel"):
    passes: bool = False
    review_status: ReviewStatus | None = None
    review_count: int = 0


class _Marker(Struct, rename="camel"):
    skip_review: bool = False
    review_cap: int = 5
    iteration_mode: str = "implement"
    pre_iteration_snapshot: dict[str, _Before] | None = None


def problems_by_marker(root: Path) -> tuple[list[str], str]:
    """What keeps an agent from stopping, and a warning. Both empty without a marker."""
    try:
        marker = msgspec.json.decode(read_bytes(root / MARKER, within=root, limit=_LARGEST) or b"{}", type=_Marker)
    except (BadData, OSError):
        return [], ""
    except msgspec.DecodeError as error:
        return [], f"{MARKER} could not be read: {error}"
    refs = layout(_LAYOUT).detect(root) or [layout(_LAYOUT).refer(root, "")]
    policy = StopPolicy(
        workspace=str(root),
        layout=_LAYOUT,
        plan=str(refs[0].path),
        state="",
        mode=_MODES.get(marker.iteration_mode, Mode.IMPLEMENT),
        review=not marker.skip_review,
        review_cap=marker.review_cap,
        require_commit=True,
    )
    snapshot = marker.pre_iteration_snapshot
    if snapshot is None:
        warning = f"{MARKER} has no preIterationSnapshot: only the plan as it is now is checked, not what changed"
        return problems_at_stop(policy), "" if marker.skip_review else warning
    return problems_at_stop(policy, lambda now: _plan_before(now, snapshot)), ""


def _plan_before(now: Plan, snapshot: dict[str, _Before]) -> Plan:
    """The current plan with the review fields as they were; everything else may be changed."""
    known = {story.id: story for story in now.stories}
    stories = [_story_before(known.get(name) or Story(id=name, title=""), old) for name, old in snapshot.items()]
    return msgspec.structs.replace(now, stories=tuple(stories))


def _story_before(story: Story, old: _Before) -> Story:
    review = Review(old.review_status, old.review_count, story.review.feedback)
    return msgspec.structs.replace(story, state=State.DONE if old.passes else State.TODO, review=review)


_MOST = 10
_LARGEST_REQUEST = 64 * 1024


class StopPolicy(msgspec.Struct, frozen=True):
    """The part of a session's policy that these rules need."""

    workspace: str
    layout: str
    plan: str
    state: str
    mode: Mode
    review: bool = False
    review_cap: int = 5
    require_commit: bool = False
    unreviewed: tuple[str, ...] = ()
    """Stories finished in a run without reviews. This agent need not fix them."""
    request: str = ""
    """The request file, where the agent may leave its answer."""
    story: str = ""
    """The story of the session, if it has one."""


def read_policy(env: Mapping[str, str]) -> StopPolicy | None:
    """None: not called from a run."""
    path = env.get("RALPH_POLICY")
    if not path:
        return None
    try:
        return msgspec.json.decode(read_state(Path(path)), type=StopPolicy)
    except (OSError, msgspec.DecodeError):
        return None


def problems_at_stop(policy: StopPolicy, plan_before: Callable[[Plan], Plan] | None = None) -> list[str]:
    """Messages for the agent: the story, the exact field, old → new, and what to do. Empty: it may stop.

    `plan_before` derives the plan before the session from the current one, if no copy was kept.
    """
    found = layout(policy.layout)
    try:
        now = found.parse(read_bytes(Path(policy.plan), within=Path(policy.workspace)), policy.plan)
    except BadData as error:
        problems = error.problems if isinstance(error, PlanError) else ()
        return [_problem(each) for each in problems[:_MOST]] or [str(error)]
    before = plan_before(now) if plan_before else _before(policy, found)
    listed = _missing_notes(before, now) if now.reviewed else []
    listed += _review_rules(policy, before, now) if now.reviewed and policy.review else []
    if policy.require_commit:
        listed += _uncommitted(policy)
    return listed[:_MOST]


def _problem(found: Problem) -> str:
    story = f"story {found.story}: " if found.story and found.story not in found.message else ""
    return f"{story}{found}" + (f" ({found.hint})" if found.hint else "")


def _before(policy: StopPolicy, found: Any) -> Plan | None:
    """Without a snapshot only the invariants can be checked; the loop checks the transitions afterwards."""
    try:
        plan: Plan = found.parse(read_state(Path(policy.state) / PLAN_BEFORE), policy.plan)
    except (OSError, PlanError):
        return None
    return plan


def _missing_notes(before: Plan | None, now: Plan) -> list[str]:
    """Stories finished in this session whose notes are empty."""
    old = {story.id for story in before.stories if story.is_done} if before else set()
    return [
        f"story {story.id}: passes false → true, but notes is empty: describe in notes what was done"
        for story in now.stories
        if story.is_done and not story.notes.strip() and story.id not in old
    ]


def _review_rules(policy: StopPolicy, before: Plan | None, now: Plan) -> list[str]:
    # If the user let it continue past the cap, the loop itself has counted further.
    cap = max([policy.review_cap, *(story.review.count for story in (before.stories if before else ()))])
    violations = illegal_transitions(before, now, policy.mode) if before is not None else []
    changed = {(found.story, found.field) for found in violations}
    violations += [
        found
        for found in broken_invariants(now, cap)
        if found.story not in policy.unreviewed and (found.story, found.field) not in changed
    ]
    if policy.mode is Mode.REVIEW and before is not None and before.stories == now.stories:
        return [] if _has_answered(policy) else [_no_verdict(policy)]
    return [str(_about_story(violation, policy.story)) for violation in violations]


def _about_story(violation: Violation, story: str) -> Violation:
    """A violation without a story, such as a review that changed nothing, is about the story under review."""
    return violation if violation.story else msgspec.structs.replace(violation, story=story or "under review")


def _no_verdict(policy: StopPolicy) -> str:
    """Names the request file first, as the prompts do; seed 001's own prompt has the reviewer edit the plan."""
    story = f"story {policy.story}: " if policy.story else ""
    form = '{"review": {"verdict": "approved"}}'
    file = f"write {form} or your findings to {policy.request}" if policy.request else "set reviewStatus"
    return f"{story}the review has no verdict yet: {file} (in the plan, a review must increment reviewCount by 1)"


def _has_answered(policy: StopPolicy) -> bool:
    """Whether the verdict was given through the client's schema or in the request file, so the plan need not change."""
    if policy.state and Path(policy.state, ANSWERED).exists():
        return True
    if not policy.request:
        return False
    try:
        answer = read_request(read_bytes(Path(policy.request), within=Path(policy.workspace), limit=_LARGEST_REQUEST))
    except (BadData, OSError):
        return False
    return answer.review is not None


def _uncommitted(policy: StopPolicy) -> list[str]:
    try:
        dirty = situation(identify(Path(policy.workspace))).dirty
    except SetupError:
        return []
    if not dirty:
        return []
    some = ", ".join(entry.path for entry in dirty[:5])
    more = f" and {len(dirty) - 5} more" if len(dirty) > 5 else ""
    story = f"story {policy.story}: " if policy.story else ""
    return [f"{story}there are uncommitted changes ({some}{more}): add a progress entry and commit everything"]
