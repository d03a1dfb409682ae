"""The user as a planning dialogue sees one: a terminal, or `Nobody` when nothing can be asked."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from ralph.core.problems import Problem, Severity
from ralph.planning.answer import Answer, Question
from ralph.planning.compose import Composed
from ralph.planning.target import Target
from ralph.plans.store import Loaded


class Proposal(Struct, frozen=True):
    """A plan that could be written."""

    target: Target
    answer: Answer
    composed: Composed
    after: Loaded
    problems: tuple[Problem, ...] = ()

    @property
    def errors(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.severity is Severity.ERROR)


class Word(StrEnum):
    ACCEPT = "accept"
    EDIT = "edit"
    EDIT_REQUIREMENTS = "edit-requirements"
    REVISE = "revise"
    DROP = "drop"


class Decision(Struct, frozen=True):
    word: Word
    feedback: str = ""


class Person(Protocol):
    @property
    def can_be_asked(self) -> bool: ...

    def answer(self, question: Question, number: int, total: int) -> str | None:
        """The user's answer. None: ask no more, plan with what is known."""
        ...

    def decide(self, proposal: Proposal) -> Decision: ...

    def edit(self, text: str, name: str) -> str:
        """The text as the user saved it in the editor."""
        ...

    def may_run(self, command: str) -> bool:
        """Whether a command that an agent proposes may run right now."""
        ...

    def tell(self, text: str, *, warning: bool = False) -> None: ...


class Nobody:
    """For CI: asks nothing. Messages go to the log."""

    can_be_asked = False

    def __init__(self, tell: Person | None = None, *, trusts: bool = False) -> None:
        self._tell = tell
        self._trusts = trusts

    def answer(self, question: Question, number: int, total: int) -> str | None:
        return None

    def decide(self, proposal: Proposal) -> Decision:
        return Decision(Word.ACCEPT)

    def edit(self, text: str, name: str) -> str:
        return text

    def may_run(self, command: str) -> bool:
        return self._trusts

    def tell(self, text: str, *, warning: bool = False) -> None:
        if self._tell is not None:
            self._tell.tell(text, warning=warning)
