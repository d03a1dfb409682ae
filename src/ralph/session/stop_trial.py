"""The rules of the Stop hook when it is tried by hand: `.ralph-active` of seed 001 stands for the run."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct

from ralph.core.errors import BadData
from ralph.core.plan import Mode, Plan, State, Story
from ralph.core.review import Review, ReviewStatus
from ralph.host.files import read_bytes
from ralph.plans.registry import layout
from ralph.session.stop_rules import StopPolicy, problems_at_stop

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
