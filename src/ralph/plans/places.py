"""Where the stories of a plan are in its file: the line, and in JSON the key path."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import msgspec

from ralph.core.plan import Plan
from ralph.core.problems import Place
from ralph.plans.json_text import BOM, Locator, Path, show_path

_SPELLINGS = {"criteria": ("acceptanceCriteria", "acceptance_criteria", "criteria")}


class Places:
    """Places are computed on demand: most plans have no problem."""

    def __init__(self, plan: Plan, source: bytes, file: str) -> None:
        self.file = file
        self._plan = plan
        self._source = source

    def whole(self, key: str = "") -> Place:
        """The file, or a key at the top of a JSON document."""
        if not key or not self._document:
            return Place(self.file)
        if key not in self._document:
            return Place(self.file, path=key)
        return self._at((key,))

    def story(self, index: int, field: str = "", number: int | None = None) -> Place:
        """A story, one of its fields, or one entry of a field. In Markdown always the line where the story starts."""
        story = self._plan.stories[index]
        if story.line:
            return Place(self.file, story.line)
        if not self._stories:
            return Place(self.file, path=story.id)
        found = self._document[self._stories][index]
        key = next((name for name in _SPELLINGS.get(field, (field,)) if name in found), "")
        path: Path = (self._stories, index)
        if key:
            path = (*path, key) if number is None else (*path, key, number)
        return self._at(path)

    def _at(self, path: Path) -> Place:
        line, column = self._locator.position(path)
        return Place(self.file, line, column, show_path(path))

    @cached_property
    def _document(self) -> dict[str, Any]:
        text = self._source.removeprefix(BOM)
        if not text.lstrip().startswith(b"{"):
            return {}
        try:
            found = msgspec.json.decode(text)
        except msgspec.DecodeError:
            return {}
        return found if isinstance(found, dict) else {}

    @cached_property
    def _stories(self) -> str:
        """The key of the stories: the list of the same length with the same first ID."""
        ids = [story.id for story in self._plan.stories]
        for key, value in self._document.items():
            if not isinstance(value, list) or not value or len(value) != len(ids):
                continue
            if isinstance(value[0], dict) and str(value[0].get("id")) == ids[0]:
                return key
        return ""

    @cached_property
    def _locator(self) -> Locator:
        return Locator(self._source)
