"""The person at the other end, as a planning dialogue sees one. A terminal is one; nobody is another."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from ralph.app.planning.answer import Answer, Question
from ralph.app.planning.composing import Composed
from ralph.app.planning.target import Target
from ralph.core.problems import Problem, Severity
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
        """What a person says. None: ask no more, plan with what there is."""
        ...

    def decide(self, proposal: Proposal) -> Decision: ...

    def edit(self, text: str, name: str) -> str:
        """The text as a person left it in an editor."""
        ...

    def may_run(self, command: str) -> bool:
        """Whether a command that an agent proposes may be run right now."""
        ...

    def tell(self, text: str, *, warning: bool = False) -> None: ...


class Nobody:
    """For CI: nothing is asked. What is told goes to somebody who reads logs."""

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
