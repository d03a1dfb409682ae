"""The answer of a planning agent, questions or a plan: its form, its problems, and the order of its stories. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from ralph.core.errors import UsageError
from ralph.core.problems import Place, Problem
from ralph.session.json_answer import object_schema, read_json_answer
from ralph.workspace import plan_edit as given

LAYERS = ("schema", "backend", "api", "frontend", "integration")
"""In the order in which stories are done."""
_MOST_QUESTIONS = 10
_MOST_STORIES = 200


class Question(Struct, frozen=True, forbid_unknown_fields=True):
    question: str
    why: str = ""
    """What depends on the answer."""
    choices: tuple[str, ...] = ()
    several: bool = False
    """The user may select more than one choice."""


class DraftStory(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A story as an agent proposes it. Its id is only a label: the plan assigns its own."""

    id: str
    title: str
    description: str
    acceptance_criteria: tuple[str, ...]
    depends_on: tuple[str, ...] = ()
    verify: tuple[str, ...] = ()
    layer: str = ""
    touches: tuple[str, ...] = ()


class Answer(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    questions: tuple[Question, ...] = ()
    requirements: str = ""
    description: str = ""
    verify_commands: tuple[str, ...] = ()
    stories: tuple[DraftStory, ...] = ()


class Form(Struct, frozen=True):
    """What an answer must contain."""

    may_ask: bool = True
    requirements: bool = False
    """The requirements page has to be written too."""
    known: frozenset[str] = frozenset()
    """Stories already in the plan: new ones may depend on them."""
    only_one: bool = False
    """Exactly one story, with its own command that proves it."""


def schema_for(form: Form) -> dict[str, Any]:
    """A JSON Schema of the answer. `read_answer` also checks what a schema cannot express."""
    text = {"type": "string"}
    texts = {"type": "array", "items": text}
    asked = {"question": text, "why": text, "choices": texts, "several": {"type": "boolean"}}
    question = object_schema(asked, ["question"])
    story = object_schema(
        {
            "id": text,
            "title": text,
            "description": text,
            "acceptanceCriteria": texts | {"minItems": 1},
            "dependsOn": texts,
            "verify": texts | ({"minItems": 1} if form.only_one else {}),
            "touches": texts,
            "layer": {"type": "string", "enum": list(LAYERS)},
        },
        ["id", "title", "description", "acceptanceCriteria", *(["verify"] if form.only_one else [])],
    )
    stories: dict[str, Any] = {"type": "array", "items": story} | ({"maxItems": 1} if form.only_one else {})
    fields: dict[str, Any] = {"description": text, "verifyCommands": texts, "stories": stories}
    if form.requirements:
        fields = {"requirements": text} | fields
    if form.may_ask:
        fields = {"questions": {"type": "array", "items": question}} | fields
    return object_schema(fields, [] if form.may_ask else ["stories"])


def read_answer(text: str, form: Form) -> Answer:
    """The answer in an agent's output. Raises Unusable."""
    return read_json_answer(text, Answer, lambda answer: _problems(answer, form))


def _problems(answer: Answer, form: Form) -> Iterator[Problem]:
    if answer.questions and not form.may_ask:
        yield _wrong(
            "questions", ("questions cannot be answered now"), "decide yourself, and write down what you assumed"
        )
    if answer.questions and answer.stories:
        yield _wrong(
            "questions", ("the answer has both questions and stories"), "give one or the other; ask first if you must"
        )
    if not answer.questions and not answer.stories:
        yield _wrong("stories", "the answer has no stories", "give at least one story" + (", or ask" * form.may_ask))
    if len(answer.questions) > _MOST_QUESTIONS:
        yield _wrong(
            "questions", f"{len(answer.questions)} questions at once", (f"ask at most {_MOST_QUESTIONS} per round")
        )
    for number, question in enumerate(answer.questions):
        yield from _text_problems(f"questions[{number}].question", question.question)
        for at, choice in enumerate(question.choices):
            yield from _text_problems(f"questions[{number}].choices[{at}]", choice)
    if answer.stories:
        yield from _plan_problems(answer, form)


def _plan_problems(answer: Answer, form: Form) -> Iterator[Problem]:
    if form.requirements and not answer.requirements.strip():
        yield _wrong(
            "requirements", "the requirements are empty", ("write the requirements that the stories are derived from")
        )
    if len(answer.stories) > (most := 1 if form.only_one else _MOST_STORIES):
        yield _wrong("stories", f"there are {len(answer.stories)} stories", f"give at most {most}")
    yield from _prose_problems("description", answer.description)
    yield from _prose_problems("requirements", answer.requirements, is_page=True)
    for number, command in enumerate(answer.verify_commands):
        yield from _text_problems(f"verifyCommands[{number}]", command)
    labels = [story.id for story in answer.stories]
    for number, story in enumerate(answer.stories):
        at = f"stories[{number}]"
        yield from _story_problems(at, story, form)
        if labels.index(story.id) != number:
            yield _wrong(f"{at}.id", f"the id {story.id!r} is used more than once", "give each story its own id")
        if story.id in form.known:
            yield _wrong(f"{at}.id", f"the id {story.id!r} already exists in the plan", "give new stories new ids")
        for wanted in story.depends_on:
            if wanted == story.id:
                yield _wrong(f"{at}.dependsOn", f"{story.id} depends on itself")
            elif wanted not in labels and wanted not in form.known:
                yield _wrong(
                    f"{at}.dependsOn", f"{wanted!r} is not a story", ("use the id of a story in the answer or the plan")
                )
    if circle := _circle(answer.stories):
        yield _wrong("stories", f"circular dependency: {' → '.join(circle)}", ("remove one of these dependencies"))


def _story_problems(at: str, story: DraftStory, form: Form) -> Iterator[Problem]:
    yield from _text_problems(f"{at}.id", story.id)
    yield from _text_problems(f"{at}.title", story.title)
    yield from _prose_problems(f"{at}.description", story.description)
    if not story.acceptance_criteria:
        yield _wrong(f"{at}.acceptanceCriteria", "a story needs at least one criterion that can be checked")
    for name, lines in (("acceptanceCriteria", story.acceptance_criteria), ("verify", story.verify)):
        for number, line in enumerate(lines):
            yield from _text_problems(f"{at}.{name}[{number}]", line)
    if story.layer and story.layer not in LAYERS:
        yield _wrong(f"{at}.layer", f"{story.layer!r} is not a layer", f"use one of {', '.join(LAYERS)}")
    if form.only_one and not story.verify:
        yield _wrong(f"{at}.verify", "the story needs a command that fails now and passes when it is done")


def _text_problems(at: str, text: str) -> Iterator[Problem]:
    """The command line's rules for texts that become part of a plan."""
    try:
        given.line("it", text)
    except UsageError as error:
        yield _wrong(at, error.message, error.hint)


def _prose_problems(at: str, text: str, *, is_page: bool = False) -> Iterator[Problem]:
    """The same for multi-line texts. A page may be longer than a description: it is checked in parts."""
    size = 10_000
    for part in [text[n : n + size] for n in range(0, len(text), size)] if is_page else [text]:
        try:
            given.prose("it", part)
        except UsageError as error:
            yield _wrong(at, error.message, error.hint)
            return


def _circle(stories: tuple[DraftStory, ...]) -> list[str]:
    waits = {story.id: [d for d in story.depends_on if d != story.id] for story in stories}
    ready = True
    while ready:
        ready = False
        for label in [label for label, needs in waits.items() if not any(need in waits for need in needs)]:
            del waits[label]
            ready = True
    walked: list[str] = []
    at = next(iter(waits), "")
    while at and at not in walked:
        walked.append(at)
        at = next(need for need in waits[at] if need in waits)
    return [*walked[walked.index(at) :], at] if at else []


def _wrong(path: str, message: str, hint: str = "") -> Problem:
    return Problem("answer", message, Place(path=path), hint)


def in_order(stories: Sequence[DraftStory]) -> list[DraftStory]:
    """Dependencies first. Among independent stories the layer decides if every story names one, else the given order.

    There are no cycles: an answer with one is rejected.
    """
    by_layer = all(story.layer for story in stories)
    labels = {story.id: number for number, story in enumerate(stories)}
    waits = [{labels[d] for d in story.depends_on if d in labels} for story in stories]
    needed_by: dict[int, list[int]] = {}
    for number, needs in enumerate(waits):
        for need in needs:
            needed_by.setdefault(need, []).append(number)

    def rank(number: int) -> tuple[int, int]:
        return (LAYERS.index(stories[number].layer) if by_layer else 0, number)

    free = [rank(number) for number, needs in enumerate(waits) if not needs]
    heapq.heapify(free)
    ordered: list[DraftStory] = []
    while free:
        _, number = heapq.heappop(free)
        ordered.append(stories[number])
        for other in needed_by.get(number, ()):
            waits[other].discard(number)
            if not waits[other]:
                heapq.heappush(free, rank(other))
    return ordered
