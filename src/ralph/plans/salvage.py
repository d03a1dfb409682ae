"""What an agent meant by an edit that left its plan unreadable.

A claim counts whatever its form: `"passes": "true"`, `"notes": null`, a new story without its review fields, a second
list of ticked stories. The file is restored from Ralph's own copy afterwards; here it is enough to see what was
claimed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from ralph.core.changes import SetFields
from ralph.core.errors import PlanError
from ralph.core.plan import Plan, State, Story
from ralph.plans.json_plan import D, Fault, Format, S, read
from ralph.plans.json_text import BOM
from ralph.plans.markdown_edit import edit
from ralph.plans.markdown_stories import Dialect

_CLAIMS = ("passes", "status", "reviewStatus", "reviewCount", "reviewFeedback", "notes")
_TRUE, _FALSE = ("true", "yes", "done", "complete", "completed", "passed", "1"), ("false", "no", "todo", "0", "")
_DONE = ("complete", "completed", "passed", "finished", "closed")
_LAST_COMMA = re.compile(r",(?=\s*[}\]])")


def from_json(source: bytes, before: bytes, form: Format[D, S]) -> bytes | None:
    """A valid plan: the previous one, with every usable value of the new one."""
    document: dict[str, Any] = msgspec.json.decode(before.removeprefix(BOM))
    old = {str(story["id"]): story for story in document[form.stories]}
    listed = [story for story in _stories(source, form.stories) if isinstance(story, dict) and "id" in story]
    new = {str(story["id"]): story for story in reversed(listed)}
    if not new.keys() & old.keys():
        return None
    merged = [_merged(story, new.get(name, {}), form) for name, story in old.items()]
    added = [story for name, given in new.items() if name not in old and (story := _completed(name, given, form))]
    whole = msgspec.json.encode(document | {form.stories: [*merged, *added]})
    try:
        read(whole, "", form)
    except PlanError:  # stories that are readable one by one, and not together: only what is claimed is taken
        claims = [
            _merged(story, {key: value for key, value in new.get(name, {}).items() if key in _CLAIMS}, form)
            for name, story in old.items()
        ]
        return msgspec.json.encode(document | {form.stories: claims})
    return whole


def from_markdown(source: bytes, before: bytes, plan: Plan, dialect: Dialect) -> bytes | None:
    """The previous plan, with those stories ticked that have a ticked line anywhere in the new text."""
    text = source.decode("utf-8", "replace")
    ticked = []
    for story in plan.stories:
        line = rf"^\s*(?:[-*+]|\d+[.)]|#+)\s*\[[xX✓✔✅]\][^\n]*?(?<![\w.-]){re.escape(story.id)}(?![\w-]|\.\w)"
        if not story.is_done and re.search(line, text, re.MULTILINE):
            ticked.append(SetFields(story.id, {"state": State.DONE}))
    return edit(before, ticked, dialect) if ticked else None


def _stories(source: bytes, key: str) -> list[Any]:
    text = source.decode("utf-8", "replace").removeprefix("\ufeff")
    for attempt in (text, _LAST_COMMA.sub("", text)):
        try:
            document = json.loads(attempt)
        except (ValueError, RecursionError):
            continue
        found = document.get(key) if isinstance(document, dict) else document
        return found if isinstance(found, list) else []
    return []


def _merged(old: dict[str, Any], new: dict[str, Any], form: Format[D, S]) -> dict[str, Any]:
    story = dict(old)
    for key, value in new.items():
        for candidate in _readings(value):
            changed = story | {key: candidate}
            if key != "id" and (story.get(key) == candidate or _is_readable(changed, form)):
                story = changed
                break
    return story


def _completed(name: str, given: dict[str, Any], form: Format[D, S]) -> dict[str, Any] | None:
    """A new story with its missing values filled in; None if it is not usable."""
    blank = form.write_story(Story(id=name, title=""))
    bare = {key: given.get(key, value) for key, value in blank.items() if key != "verify"}
    bare = {key: value for key, value in bare.items() if value is not None or key == "reviewStatus"}
    story = _merged(bare, given, form)
    return story if _is_readable(story, form) else None


def _readings(value: object) -> Iterator[object]:
    """The possible meanings of a value, most likely first."""
    yield value
    if value is None:
        yield ""
    word = str(value).strip().lower()
    if isinstance(value, str | int):
        if word in _TRUE:
            yield True
        elif word in _FALSE:
            yield False
    if isinstance(value, str):
        yield "done" if word in _DONE else re.sub(r"[\s-]+", "_", word)
    if isinstance(value, list):
        yield "\n".join(map(str, value))


def _is_readable(story: dict[str, Any], form: Format[D, S]) -> bool:
    try:
        form.read_story(msgspec.convert(story, form.story), 1, {})
    except (msgspec.ValidationError, Fault, ValueError, TypeError):
        return False
    return True
