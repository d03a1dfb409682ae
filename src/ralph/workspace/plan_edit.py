"""Changes that users and agents make to a plan by command: legal ones only.

What the loop would undo after an iteration is refused right away when an agent asks for it. A plan may come from
anywhere and is only sanitised for display; texts from the command line are validated before they become part of one.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from ralph.core.changes import Change, SetFields, apply
from ralph.core.errors import IllegalChange, UsageError
from ralph.core.lazy_pattern import lazy_pattern
from ralph.core.plan import Mode, Order, Plan, State, Story
from ralph.core.review import NO_REVIEW, Review, ReviewStatus
from ralph.core.text import one_line
from ralph.core.transitions import check_move
from ralph.plans.integrity import problems_of
from ralph.workspace.trust import is_inside_loop

_FREE_FOR_AGENTS = frozenset({"notes", "priority"})
_STUCK = (State.FAILED, State.BLOCKED)


class Editor(Struct, frozen=True):
    """Who makes the change. From an agent inside a loop it is a claim."""

    is_agent: bool = False
    story: str = ""
    """The one story an agent works on; empty if unknown."""
    mode: str = ""

    @classmethod
    def of(cls, env: Mapping[str, str]) -> Editor:
        if not is_inside_loop(env):
            return cls()
        return cls(True, env.get("RALPH_STORY", ""), env.get("RALPH_MODE", ""))

    def refuse_to(self, what: str, hint: str = "describe in the notes what should be done; the user decides") -> None:
        if self.is_agent:
            raise IllegalChange(f"an agent in a loop cannot {what}", hint=hint)

    def refuse_to_add(self) -> None:
        if self.is_agent and self.mode == Mode.REVIEW:
            raise IllegalChange(
                "a review must not add stories", hint="report what is missing as a finding in the verdict"
            )


PERSON = Editor()


def find_story(plan: Plan, story_id: str) -> Story:
    if story := plan.story(story_id):
        return story
    if close := _close_ids(plan, story_id):
        hint = f"did you mean {' or '.join(close)}?"
    else:
        hint = "`ralph task list` shows the IDs"
    raise UsageError(f"no story {one_line(repr(story_id), 60)} in the plan", hint=hint)


def _close_ids(plan: Plan, wanted: str) -> list[str]:
    """IDs that differ only in case, punctuation or leading zeros, else similar ones."""
    same = {story.id: _loose(story.id) for story in plan.stories}
    if exact := [name for name, loose in same.items() if loose == _loose(wanted)]:
        return exact[:3]
    from difflib import get_close_matches  # for mistakes only

    return get_close_matches(wanted, same, 3, 0.7) if len(wanted) <= 100 else []


def _loose(story_id: str) -> str:
    head = story_id.rstrip("0123456789")
    return "".join(filter(str.isalnum, head.casefold())) + story_id[len(head) :].lstrip("0")


def finish(plan: Plan, story_id: str, note: str = "", *, editor: Editor = PERSON, force: bool = False) -> SetFields:
    """Mark a story done. In a reviewed plan an agent submits it for review; the user approves it."""
    story = find_story(plan, story_id)
    if editor.is_agent:
        _refuse_other_story(story, editor)
        _refuse_reviewer(editor)
        if force:
            editor.refuse_to("use --force")
    check_move(story, State.DONE)
    waiting = [d for d in story.depends_on if (other := plan.story(d)) is not None and not other.is_done]
    if waiting and not story.is_done and not force:
        raise IllegalChange(
            f"story {story_id} depends on {', '.join(waiting[:5])}{' …' if waiting[5:] else ''} (not done yet)",
            hint="finish it first" + ("" if editor.is_agent else ", or use --force"),
        )
    fields: dict[str, Any] = {}
    if note:
        fields["notes"] = f"{story.notes}\n{note}".strip()
    if not plan.reviewed:
        return SetFields(story_id, fields | {"state": State.DONE})
    if editor.is_agent:
        return SetFields(story_id, fields | {"review": _submitted(story)})
    if not (note or story.notes.strip()):
        raise IllegalChange(
            f"story {story_id} needs a note on what was done",
            hint=f'`ralph task done {story_id} --note "what was done"`',
        )
    approved = Review(ReviewStatus.APPROVED, story.review.count, story.review.feedback)
    return SetFields(story_id, fields | {"state": State.DONE, "review": approved})


def _refuse_other_story(story: Story, editor: Editor) -> None:
    if editor.story and story.id != editor.story:
        raise IllegalChange(
            f"one story per iteration: this one is for {editor.story}, not {story.id}",
            hint="leave the other one to a later iteration",
        )


def _refuse_reviewer(editor: Editor) -> None:
    if editor.mode == Mode.REVIEW:
        raise IllegalChange(
            "a review cannot submit a story; it approves the story or requests changes",
            hint="write the verdict to $RALPH_REQUEST_FILE, or to the story's review fields if it has any",
        )


def _submitted(story: Story) -> Review:
    if story.review.status is ReviewStatus.APPROVED:
        raise IllegalChange(f"story {story.id} is already approved", hint="nothing more to do for it in this iteration")
    return Review(ReviewStatus.NEEDS_REVIEW, story.review.count)


def reopen(plan: Plan, story_id: str, *, editor: Editor = PERSON) -> SetFields:
    """Reopen a story from the start: attempts and review are reset, but not the number of reviews."""
    story = find_story(plan, story_id)
    editor.refuse_to("reopen a story")
    fields: dict[str, Any] = {"state": State.TODO, "attempts": 0}
    if story.review != NO_REVIEW:
        fields["review"] = Review(None, story.review.count)
    if story.grade:
        fields["grade"] = ""
    return SetFields(story_id, fields)


def try_again(plan: Plan, story_id: str) -> SetFields:
    """Reopen a story with all its attempts, but keep an open review: accepted work continues with its review or fix."""
    change = reopen(plan, story_id)
    if find_story(plan, story_id).review.status is not ReviewStatus.APPROVED:
        change.fields.pop("review", None)
    return change


def change_state(
    plan: Plan, story_id: str, state: State, *, editor: Editor = PERSON, sayable: Iterable[State], force: bool = False
) -> SetFields:
    """`sayable`: the states that the plan file can represent. An agent cannot write anywhere else."""
    if state is State.DONE:
        return finish(plan, story_id, editor=editor, force=force)
    story = find_story(plan, story_id)
    if state in _STUCK or state is State.TODO or state not in sayable:
        editor.refuse_to(f"set a story to {state.value}")
    if editor.is_agent:
        _refuse_other_story(story, editor)
    check_move(story, state)
    if state is State.TODO and not story.is_open:
        return reopen(plan, story_id, editor=editor)
    return SetFields(story_id, {"state": state})


def change_fields(plan: Plan, story_id: str, fields: Mapping[str, Any], *, editor: Editor = PERSON) -> SetFields:
    find_story(plan, story_id)
    if wrong := sorted(set(fields) - _FREE_FOR_AGENTS):
        editor.refuse_to(f"change the {wrong[0].replace('_', ' ')} of a story")
    return SetFields(story_id, dict(fields))


def refuse_broken(plan: Plan, changes: Sequence[Change]) -> None:
    """Refuse changes that would break the plan: duplicate IDs, unknown dependencies, cycles."""
    after = apply(plan, changes)
    if problems := problems_of(after.stories, ""):
        raise IllegalChange(f"the change would break the plan: {problems[0].message}", hint=problems[0].hint)


def reasons(changes: Sequence[Change], why: str) -> dict[str, str]:
    """The reason kept beside a failed or blocked story; empty for a story that no longer is."""
    told = {}
    for change in changes:
        if isinstance(change, SetFields) and ("state" in change.fields or "review" in change.fields):
            told[change.story] = why if change.fields.get("state") in _STUCK else ""
    return told


def waits_for_later(plan: Plan, story_id: str) -> list[str]:
    """Open stories that this one depends on but that come later in the plan's order."""
    by_priority = plan.order is Order.PRIORITY
    turn = {s.id: (s.priority if by_priority else 0, number) for number, s in enumerate(plan.stories)}
    open_ones = {s.id for s in plan.stories if not s.is_done}
    return [d for d in find_story(plan, story_id).depends_on if d in open_ones and turn[d] > turn[story_id]]


_LONGEST_LINE = 500
_LONGEST_TEXT = 20_000
_LARGEST_NUMBER = 1_000_000_000
_ID = lazy_pattern(r"\w[\w.:-]{0,99}")
_JOINERS = "\u200c\u200d"
"""Invisible, but needed in some scripts and emoji."""
_UNFIT = {"Cc": "a control character", "Cs": "a byte that is not UTF-8", "Zl": "a line break", "Zp": "a line break"}


def line(what: str, text: str) -> str:
    """A text on one line: a title, a criterion, a command."""
    text = text.strip()
    if not text:
        raise UsageError(f"{what} is empty", hint="describe it in a few words")
    if "\n" in text or "\r" in text:
        raise UsageError(f"{what} has a line break: {_shown(text)}", hint="put it on one line")
    _refuse_unfit(what, text)
    if len(text) > _LONGEST_LINE:
        raise UsageError(
            f"{what} has {len(text)} characters; the limit is {_LONGEST_LINE}", hint="move the details to --description"
        )
    return text


def prose(what: str, text: str) -> str:
    """A text that may have several lines. Empty removes it."""
    text = text.replace("\r\n", "\n").strip()
    _refuse_unfit(what, text.replace("\n", "").replace("\t", ""))
    if len(text) > _LONGEST_TEXT:
        raise UsageError(
            f"{what} has {len(text):,} characters; the limit is {_LONGEST_TEXT:,}",
            hint="write it to a file in the project and name the file here",
        )
    return text


def lines(what: str, texts: Sequence[str]) -> tuple[str, ...]:
    """A single empty text removes all of them."""
    if [text.strip() for text in texts] == [""]:
        return ()
    return tuple(line(what, text) for text in texts)


def new_id(text: str) -> str:
    if not _ID.fullmatch(text):
        raise UsageError(
            f"{_shown(text)} is not a valid story ID",
            hint="use up to 100 letters, digits, '-', '_', '.' and ':', e.g. US-012",
        )
    return text


def priority(number: float) -> float:
    if not math.isfinite(number) or not 0 < number <= _LARGEST_NUMBER:
        raise UsageError(f"invalid priority {number:g}", hint="use a number above 0; 1 is the highest priority")
    return int(number) if number == int(number) else number


def _refuse_unfit(what: str, text: str) -> None:
    for char in text:
        kind = unicodedata.category(char)
        if kind in _UNFIT or (kind == "Cf" and char not in _JOINERS):
            name = _UNFIT.get(kind, "an invisible character")
            raise UsageError(f"{what} has {name} (U+{ord(char):04X}): {_shown(text)}", hint="remove it; use plain text")


def _shown(text: str) -> str:
    return one_line(repr(text), 60)
