"""`.ralph/todo.txt`: one story per line, as todo.txt writes tasks. A layout for Ralph.

    (A) Export the report as CSV id:US-001
    x (B) Print the report id:US-002 needs:US-001

A layout is anything with the names below; a module will do. `parse` is strict, `edit` changes only the bytes it must,
and `detect` looks at names only. What the format cannot hold (`SPEAKS`) Ralph keeps in its state folder.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ralph.core.changes import AddStory, Change, MoveStory, RemoveStory, SetFields, apply
from ralph.core.errors import IllegalChange, PlanError
from ralph.core.names import safe_name
from ralph.core.plan import EXAMPLE_TITLE, Order, Plan, State, Story
from ralph.core.ports import Locations, Naming, PlanRef, ProjectFacts, Traits
from ralph.core.problems import Place, Problem

NAME = "todo.txt"
TITLE = "one line per story: .ralph/todo.txt"
SPEAKS = frozenset({"id", "title", "state", "priority", "depends_on"})
STATES = frozenset({State.TODO, State.DONE})
TRAITS = Traits(naming=Naming.SINGLE)

_LINE = re.compile(
    r"(?P<done>x )?(?:\((?P<priority>[A-Z])\) )?(?P<title>.+?) id:(?P<id>\S+)(?: needs:(?P<needs>\S+))?\s*"
)


def parse(source: bytes, file: str) -> Plan:
    stories: list[Story] = []
    problems: list[Problem] = []
    for number, line in enumerate(_text(source, file).splitlines(), 1):
        if not line.strip():
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            hint = "write it as: (A) Title id:US-001 needs:US-000"
            problems.append(Problem("bad-line", "this line is not a story", Place(file, number), hint))
        elif any(story.id == match["id"] for story in stories):
            hint = "give each story an id of its own"
            problems.append(Problem("duplicate-id", f"{match['id']} is used twice", Place(file, number), hint))
        else:
            stories.append(_story(match, number))
    known = {story.id for story in stories}
    for story in stories:
        for wanted in story.depends_on:
            if wanted not in known:
                where, hint = Place(file, story.line), "correct the id after needs:"
                problems.append(Problem("unknown-dependency", f"{story.id} needs {wanted}", where, hint))
    if problems:
        raise PlanError.of(problems)
    return Plan(name="todo", stories=tuple(stories), order=Order.PRIORITY)


def edit(source: bytes, changes: Sequence[Change]) -> bytes:
    lines = source.decode().splitlines(keepends=True)
    for change in changes:
        lines = _edited(lines, change)
    return "".join(lines).encode()


def detect(root: Path) -> list[PlanRef]:
    ref = refer(root, "todo")
    is_there = not ref.folder.is_symlink() and (ref.path.is_file() or ref.path.is_symlink())
    return [ref] if is_there else []


def refer(root: Path, name: str) -> PlanRef:
    return PlanRef(NAME, root, root / ".ralph", root / ".ralph" / "todo.txt", safe_name(name or "todo"))


def locations(ref: PlanRef) -> Locations:
    return Locations(plan=ref.path, archive=ref.folder / "archive", progress=ref.folder / "progress.txt")


def scaffold(ref: PlanRef, facts: ProjectFacts) -> dict[str, str]:
    return {ref.path.relative_to(ref.root).as_posix(): f"(A) {EXAMPLE_TITLE} id:US-001\n"}


def _text(source: bytes, file: str) -> str:
    try:
        return source.decode()
    except UnicodeDecodeError as error:
        line = source.count(b"\n", 0, error.start) + 1
        problem = Problem("not-text", "this is not UTF-8 text", Place(file, line), "save the file as UTF-8")
        raise PlanError.of([problem]) from None


def _story(match: re.Match[str], line: int) -> Story:
    letter = match["priority"]
    return Story(
        id=match["id"],
        title=match["title"],
        priority=ord(letter) - ord("A") + 1 if letter else 27,
        depends_on=tuple((match["needs"] or "").split(",")) if match["needs"] else (),
        state=State.DONE if match["done"] else State.TODO,
        line=line,
    )


def _written(story: Story) -> str:
    letter = f"({chr(ord('A') + int(story.priority) - 1)}) " if 1 <= story.priority <= 26 else ""
    needs = f" needs:{','.join(story.depends_on)}" if story.depends_on else ""
    return f"{'x ' if story.is_done else ''}{letter}{story.title} id:{story.id}{needs}\n"


def _edited(lines: list[str], change: Change) -> list[str]:
    """The lines after one change. `apply` says whether it is legal, and what the story is afterwards."""
    before = parse("".join(lines).encode(), NAME)
    after = apply(before, [change])
    at = {story.id: story.line - 1 for story in before.stories}
    match change:
        case SetFields(name, fields):
            story = after.story(name)
            if story is None or not set(fields) <= SPEAKS or story.state not in STATES:
                raise IllegalChange(f"{NAME} cannot hold this", hint="see SPEAKS and STATES of the layout")
            if story != before.story(name):
                lines[at[name]] = _written(story)
        case AddStory(story, place):
            lines.insert(at[place] + 1 if place else len(lines), _written(story))
        case RemoveStory(name):
            del lines[at[name]]
        case MoveStory(name, place):
            line = lines.pop(at[name])
            shift = 1 if place and at[place] > at[name] else 0
            lines.insert(at[place] - shift if place else len(lines), line)
    return lines
