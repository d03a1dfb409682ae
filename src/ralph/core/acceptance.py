"""The acceptance tests of a story: written by another session, before the story is implemented. Values."""

from __future__ import annotations

from msgspec import Struct


class Acceptance(Struct, frozen=True, kw_only=True):
    story: str
    key: str
    """What the story asked for when they were written (`Story.content_key`): an edited story gets new ones."""
    files: dict[str, bytes] = {}
    tests: tuple[str, ...] = ()
    """Those that failed then: names, or files where the runner reports no names."""
    is_hidden: bool = False
    sessions: int = 0
    """Sessions that failed to write them."""
    is_exam: bool = False
    """Failing tests of an exam, for which the story was added."""
    has_joined: bool = False
    """The story was finished with them, so they are in the repository."""

    @property
    def is_visible(self) -> bool:
        return bool(self.files) and (self.has_joined or not self.is_hidden)


def exam_failure(headline: str) -> str:
    """Why a round of the exam has no result, for the user: without what the session was told to do about it."""
    return headline.removesuffix(": add one that the checks run")
