"""What the rest of a change says about a change to the tests: was the code they were about removed as well?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

from ralph.checks.tamper.paths import language_of, stem_words, words_of
from ralph.checks.tamper.source import text_of
from ralph.checks.tamper.story import StoryWords
from ralph.checks.tamper.values import FileChange, Severity

_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_MOST = 2_000_000


class Evidence:
    """The story and the changed code, consulted whenever something looks wrong."""

    def __init__(self, story: StoryWords, code: Sequence[FileChange]) -> None:
        self.story = story
        self._code = code

    @property
    def code_changed(self) -> bool:
        return any(language_of(change.path) for change in self._code)

    @cached_property
    def _gone(self) -> frozenset[str]:
        """Words that occur less often in the code than before."""
        before: Counter[str] = Counter()
        after: Counter[str] = Counter()
        read = 0
        for change in self._code:
            for count, text in ((before, text_of(change.old)), (after, text_of(change.new))):
                if text is not None and read < _MOST:
                    read += len(text)
                    count.update(word.lower() for word in _IDENTIFIER.findall(text))
            if change.new is None:
                before.update(stem_words(change.path))
        fewer = before - after
        return frozenset(fewer) | {part for word in fewer for part in words_of(word)}

    def removal_is_asked_for(self, words: Iterable[str]) -> bool:
        """The story says to remove this, and related code was removed."""
        if not self.story.sentences:
            return False
        about = [word.lower() for word in words if len(word) > 2]
        return self.story.removes(about) and any(word in self._gone for word in about)

    def change_is_asked_for(self, names: Iterable[str]) -> bool:
        return bool(self.story.sentences) and self.story.changes(names)


def high_unless(excused: bool | Callable[[], bool]) -> Severity:
    return "low" if (excused() if callable(excused) else excused) else "high"
