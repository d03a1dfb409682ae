"""Edit a JSON plan: only the text of the changed story changes; every other byte stays."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

import msgspec
from msgspec import Struct

from ralph.core.changes import AddStory, Change, MoveStory, RemoveStory, SetFields
from ralph.core.errors import IllegalChange, PlanError
from ralph.core.lazy_pattern import lazy_pattern
from ralph.core.plan import Story
from ralph.core.text import one_line
from ralph.plans.integrity import checked_fields, problems_of, prove_written
from ralph.plans.json_plan import D, Fault, Format, Peers, S, fields_of, known_keys, read
from ralph.plans.json_text import BOM, Array, Object, Style, dump, escapes_non_ascii, last_line, style_of

_SAMPLE = 20
"""The number of stories sampled to learn the file's spelling."""


class _Id(Struct):
    id: str | int


def edit(source: bytes, changes: Sequence[Change], form: Format[D, S]) -> bytes:
    """The same bytes with only these changes. `source` must be a plan that was read before."""
    document = _Document(source, form)
    for change in changes:
        document.apply(change)
    return document.text()


class _Document:
    """A plan split into its stories for editing."""

    def __init__(self, source: bytes, form: Format[Any, Any]) -> None:
        self._form = form
        self._source = source
        start, end = source.index(b"{"), source.rindex(b"}") + 1
        self._before, self._after = source[:start], source[end:]
        self._top = Object.of(source[start:end])
        member = self._top.get(form.stories)
        assert member is not None, "the plan was read before"
        self._member = member
        self._array = Array.of(member.value)
        self._raw_ids = [wire.id for wire in msgspec.json.decode(member.value, type=list[_Id])]
        self._ids = [str(raw) for raw in self._raw_ids]

    def text(self) -> bytes:
        pieces = self._top.pieces()
        at = next(i for i, piece in enumerate(pieces) if piece is self._member.value)
        # All at once: a large plan is copied only one time.
        return b"".join([self._before, *pieces[:at], *self._array.pieces(), *pieces[at + 1 :], self._after])

    def apply(self, change: Change) -> None:
        story_id = change.story.id if isinstance(change, AddStory) else change.story
        try:
            self._apply(change)
        except (msgspec.MsgspecError, ValueError, TypeError, OverflowError) as error:
            # A value that JSON or the format has no way to write: NaN, half a surrogate pair, a wrong type.
            raise IllegalChange(
                f"story {one_line(story_id, 60)} would not be valid in {self._form.layout}: {error}",
                hint="`ralph check` shows what a story needs",
            ) from None
        except Fault as fault:
            raise IllegalChange(f"story {one_line(story_id, 60)}: {fault.message}", hint=fault.hint) from None

    def _apply(self, change: Change) -> None:
        match change:
            case SetFields(story_id, fields):
                self._set(story_id, fields)
            case AddStory(story, after):
                if story.id in self._ids:
                    raise IllegalChange(f"story {story.id} is already in the plan")
                self._add(story, len(self._ids) if after is None else self._position(after) + 1)
            case RemoveStory(story_id):
                at = self._position(story_id)
                self._array.remove(at)
                del self._ids[at], self._raw_ids[at]
            case MoveStory(story_id, before):
                at = self._position(story_id)
                self._move(at, len(self._ids) if before is None else self._position(before))

    def _position(self, story_id: str) -> int:
        try:
            return self._ids.index(story_id)
        except ValueError:
            raise IllegalChange(
                f"no story {one_line(story_id, 60)} in the plan", hint="`ralph task list` shows the IDs"
            ) from None

    def _move(self, at: int, before: int) -> None:
        if before == at:
            raise IllegalChange(f"story {self._ids[at]} cannot be moved before itself")
        to = before - 1 if before > at else before
        self._array.move(at, to)
        self._ids.insert(to, self._ids.pop(at))
        self._raw_ids.insert(to, self._raw_ids.pop(at))

    def _set(self, story_id: str, fields: dict[str, Any]) -> None:
        form = self._form
        values = checked_fields(story_id, fields, form.speaks, form.layout)
        at = self._position(story_id)
        item = self._array.items[at]
        old: dict[str, Any] = msgspec.json.decode(item)
        before = form.read_story(msgspec.convert(old, form.story), at + 1, {})
        after = msgspec.structs.replace(before, **values)
        was, will = form.write_story(before), form.write_story(after)
        keys = {key: value for key, value in will.items() if was[key] != value}
        if keys:
            keys = form.respell(after, keys, old, self._peers(at))
            self._array.items[at] = self._put(item, keys)
        self._prove(after, at, form.speaks)

    def _put(self, item: bytes, keys: dict[str, Any]) -> bytes:
        pieces = Object.of(item)
        style = self._style(pieces, keys)
        for key, value in keys.items():
            member = pieces.get(key)
            if member and isinstance(value, list) and member.value.startswith(b"["):
                member.value = _put_list(member.value, value, style, pieces.indent())
            elif member and isinstance(value, list) and len(value) == 1 and member.value.startswith(b'"'):
                member.value = dump(value[0], style)  # one command instead of a list of them
            else:
                pieces.set(key, dump(value, style, pieces.indent()), style)
        return pieces.join()

    def _add(self, story: Story, at: int) -> None:
        form, peers = self._form, self._peers()
        if wrong := problems_of([Story(id=story.id, title="")], ""):
            raise IllegalChange(wrong[0].message, hint=wrong[0].hint)
        wire: type[Struct] = form.story
        required = {field.encode_name for field in fields_of(wire) if field.required}
        written = form.write_story(story).items()
        keys = {k: v for k, v in written if k in required or peers.uses(k) or v not in ("", [], 0)}
        keys |= {key: value for key, value in story.extra.items() if key not in known_keys(wire)}
        keys = form.respell(story, keys, {}, peers)
        if self._array.items:
            neighbour = Object.of(self._array.items[min(at, len(self._ids) - 1)])
            style, indent = self._style(neighbour, keys), last_line(neighbour.tail)
        else:
            style = self._style(self._top, keys)
            indent = b"" if style.one_line else self._top.indent() + style.unit
        self._array.insert(at, dump(keys, style, indent), style, self._top.indent())
        self._ids.insert(at, story.id)
        self._raw_ids.insert(at, keys["id"])
        self._prove(story, at, form.speaks - (set() if "priority" in keys else {"priority"}))

    def _prove(self, story: Story, at: int, names: frozenset[str]) -> None:
        form = self._form
        read = form.read_story(msgspec.json.decode(self._array.items[at], type=form.story), at + 1, {})
        prove_written([story], [read], names, form.layout)

    def _peers(self, but: int = -1) -> Peers:
        sample = [item for at, item in enumerate(self._array.items[: _SAMPLE + 1]) if at != but]
        return Peers(tuple(self._raw_ids), tuple(map(msgspec.json.decode, sample)))

    def _style(self, sample: Object, written: object) -> Style:
        escape = not str(written).isascii() and self._escapes
        return msgspec.structs.replace(style_of(sample), escape=escape)

    @cached_property
    def _escapes(self) -> bool:
        return escapes_non_ascii(self._source)


def _put_list(text: bytes, values: list[Any], style: Style, indent: bytes) -> bytes:
    """Change a list into another one; items that stay at its start and end are not touched."""
    old: list[Any] = msgspec.json.decode(text)
    if not old or not values:
        return dump(values, style, indent)
    array = Array.of(text)
    start = _same(zip(old, values, strict=False))
    rest = min(len(old), len(values)) - start
    end = min(_same(zip(reversed(old), reversed(values), strict=False)), rest)
    for at in range(start, start + rest - end):
        array.items[at] = dump(values[at], style)
    for _ in range(len(old) - len(values)):
        array.remove(start + rest - end)
    for at in range(start + rest - end, len(values) - end):
        array.insert(at, dump(values[at], style), style)
    return array.join()


def _same(pairs: Iterable[tuple[Any, Any]]) -> int:
    count = 0
    for old, new in pairs:
        if old != new:
            break
        count += 1
    return count


_CLAIMS = ("passes", "status", "reviewStatus", "reviewCount", "reviewFeedback", "notes")
_TRUE, _FALSE = ("true", "yes", "done", "complete", "completed", "passed", "1"), ("false", "no", "todo", "0", "")
_DONE = ("complete", "completed", "passed", "finished", "closed")
_LAST_COMMA = lazy_pattern(r",(?=\s*[}\]])")


def salvage(source: bytes, before: bytes, form: Format[D, S]) -> bytes | None:
    """What an agent meant by an edit that left its plan unreadable: the previous plan, with every usable new value.

    A claim counts whatever its form: `"passes": "true"`, `"notes": null`, a new story without its review fields. The
    file is restored from Ralph's own copy afterwards; here it is enough to see what was claimed.
    """
    document: dict[str, Any] = msgspec.json.decode(before.removeprefix(BOM))
    old = {str(story["id"]): story for story in document[form.stories]}
    listed = [story for story in _stories(source, form.stories) if isinstance(story, dict) and "id" in story]
    new = {str(story["id"]): story for story in reversed(listed)}
    if not new.keys() & old.keys():
        return None
    merged = [_merged(story, new.get(name, {}), form) for name, story in old.items()]
    added = [story for name in new if name not in old and (story := _completed(name, new[name], form))]
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


def _stories(source: bytes, key: str) -> list[Any]:
    text = source.decode("utf-8", "replace").removeprefix("\ufeff")
    for attempt in (text, _LAST_COMMA.sub("", text)):
        try:
            document = json.loads(attempt)
        except (ValueError, RecursionError):
            continue
        stories = document.get(key) if isinstance(document, dict) else document
        return stories if isinstance(stories, list) else []
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


def _completed(name: str, values: dict[str, Any], form: Format[D, S]) -> dict[str, Any] | None:
    """A new story with its missing values filled in; None if it is not usable."""
    blank = form.write_story(Story(id=name, title=""))
    bare = {key: values.get(key, value) for key, value in blank.items() if key not in ("verify", "touches")}
    bare = {key: value for key, value in bare.items() if value is not None or key == "reviewStatus"}
    story = _merged(bare, values, form)
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
