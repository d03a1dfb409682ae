"""Files made to break a reader: each is refused with a sentence that names the file, or read, and soon."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from importing.test_coming_from import EXAMPLES
from ralph.core.errors import RalphError
from ralph.importing.kinds import KINDS
from ralph.importing.sources import read
from ralph.importing.stories import Batch
from support.cli import ralph_here

FRONT = b"---\nid: TASK-1\ntitle: x\nstatus: To Do\n"
BOMB = FRONT + b"a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n---\n"
SPICE = [
    *(b"\0", b"\xff", b"\r", b"\xef\xbb\xbf", b"\x1b[31m", b"{", b"[", b'"', b"]", b",", b"- [ ] ", b"---\n", b"```\n"),
    *(b"null", b"-1", b"1e999", b"\\ud800", b"&a [*a]", b"<<: *a", b": ", b"### Task 1: ", b"[-] ", b"[" * 3000),
]
edits = st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 60), st.sampled_from(SPICE)), min_size=1, max_size=4)


def outcome(data: bytes, place: str, kind: str = "") -> Batch | RalphError:
    try:
        return read(data, place, kind)
    except RalphError as error:
        return error


@settings(max_examples=150)
@given(place=st.sampled_from(sorted(EXAMPLES)), changes=edits)
def test_a_damaged_file_is_refused_or_read(place: str, changes: list[tuple[int, int, bytes]]) -> None:
    data = EXAMPLES[place]["text"].encode()
    for where, gone, spice in changes:
        at = where % (len(data) + 1)
        data = data[:at] + spice + data[at + gone :]
    found = outcome(data, place)
    assert place in str(found) if isinstance(found, RalphError) else all(item.title for item in found.items)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ["Just a text.\n", "{}", "[]", "a,b,c,d\n1,2,3,4\n", "[7]", '"x"', "---\n---\n"])
def test_what_is_not_of_the_kind_that_was_named_is_refused(kind: str, text: str) -> None:
    found = outcome(text.encode(), "the-file", kind)
    assert "the-file" in str(found) if isinstance(found, RalphError) else found.items or found.left


@pytest.mark.parametrize(
    ("place", "data", "words"),
    [
        ("tasks/tasks.json", b'{"tasks":' * 100_000, "nested too deeply"),
        (
            "tasks/tasks.json",
            b'{"tasks": [{"id": 1, "title": "x", "status": "a", "details": '
            + b"[" * 900
            + b'"x"'
            + b"]" * 900
            + b"}]}",
            "nested too deeply",
        ),
        ("backlog/tasks/a.md", BOMB, "alias"),
        ("backlog/tasks/a.md", FRONT + b"a: " + b"[" * 5000 + b"\n---\n", "nested too deeply"),
        ("backlog/tasks/a.md", FRONT + b"a: {\n---\n", "not YAML"),
        ("jira.csv", b'Summary,Issue key,Status,X\n"' + b"a" * 300_000 + b'",A-1,,\n', "not valid CSV"),
        ("TODO.md", b"# x\n- [ ] caf\xe9\n", "UTF-8"),
    ],
)
def test_it_is_said_what_is_wrong_and_where(place: str, data: bytes, words: str) -> None:
    begun = time.monotonic()
    with pytest.raises(RalphError, match=words) as raised:
        read(data, place)
    assert str(raised.value).startswith(place)
    assert time.monotonic() - begun < 20


@pytest.mark.parametrize("data", [b"### Task 1: x\n" * 20_000, b"".join(b"  " * n + b"- [ ] x\n" for n in range(800))])
def test_many_and_deep_tasks_take_moments(data: bytes) -> None:
    begun = time.monotonic()
    assert read(data, "docs/plans/a.md").items
    assert time.monotonic() - begun < 60  # 50,000 headings once took minutes


def test_control_characters_a_mark_and_line_ends_do_not_reach_the_plan() -> None:
    text = "\ufeff# A\r\n\r\n- [ ] one\x1b[31m \u202etwo\r\n  - three\x07\r\n"
    [item] = read(text.encode(), "TODO.md").items
    assert (item.title, item.criteria) == ("one two", ("three",))


def test_equal_ids_and_circles_are_told_with_their_line(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "twice.json").write_text('[\n{"number": 1, "title": "a"},\n{"number": 1, "title": "b"}]')
    told = ralph_here("import", "twice.json", "--dry-run", cwd=tmp_path)
    assert (told.code, "twice.json:3: warning[left-out]: github:#1 occurs twice" in told.out) == (0, True)
    tasks = '{"tasks": [\n{"id": 1, "title": "a", "status": "pending", "dependencies": [2]},\n'
    tasks += '{"id": 2, "title": "b", "status": "pending", "dependencies": [1]}]}'
    (tmp_path / "tasks.json").write_text(tasks)
    told = ralph_here("import", "tasks.json", "--dry-run", cwd=tmp_path)
    assert told.code == 65
    assert "tasks.json:2" in told.err
    assert "circular dependency" in told.err
