"""Who changed a file, and who moved a branch, by what can be known."""

from __future__ import annotations

import pytest

from ralph.core.authorship import (
    Author,
    Branch,
    CallLog,
    Move,
    Session,
    Span,
    branch_after,
    file_author,
    move_author,
)

AGENT, OTHER, UNKNOWN = Author.AGENT, Author.OTHER, Author.UNKNOWN
CHECKPOINT = 90.0
TYPED = Session(
    life=Span(100, 200),
    reports_calls=True,
    calls=(Span(100, 105), Span(130, 140), Span(190, 200)),
    paths=frozenset({"/w/named"}),
    quiet=(Span(132, 138),),
)
SILENT = Session(life=Span(100, 200), quiet=(Span(150, 170),))
CHECKS = Session(life=Span(201, 230), is_agent=False)

FILES: list[tuple[str, float, list[Session], Author]] = [
    ("/w/new", 95, [TYPED], OTHER),  # before the agent started
    ("/w/new", 210, [TYPED], OTHER),  # after its process tree had ended
    ("/w/new", 210, [TYPED, CHECKS], UNKNOWN),  # a check may have written it
    ("/w/new", 240, [TYPED, CHECKS], OTHER),
    ("/w/new", 120, [TYPED], OTHER),  # between two tool calls
    ("/w/new", 131, [TYPED], UNKNOWN),  # during a tool call
    ("/w/new", 140.5, [TYPED], UNKNOWN),  # its result arrives late
    ("/w/new", 135, [TYPED], OTHER),  # during a tool call that did nothing
    ("/w/named", 135, [TYPED], AGENT),
    ("/w/named", 120, [TYPED], AGENT),
    ("/w/named", 210, [TYPED], UNKNOWN),  # both
    ("/w/new", 80, [TYPED], UNKNOWN),  # older than the checkpoint: moved with its folder
    ("/w/new", 120, [SILENT], UNKNOWN),
    ("/w/new", 160, [SILENT], OTHER),
    ("/w/new", 250, [SILENT], OTHER),
    ("/w/new", 120, [], OTHER),  # no agent has run
]


@pytest.mark.parametrize(("path", "written", "sessions", "author"), FILES)
def test_who_wrote_a_file(path: str, written: float, sessions: list[Session], author: Author) -> None:
    assert file_author(path, written, CHECKPOINT, sessions) is author


MOVES: list[tuple[float, list[Span], list[Session], Author]] = [
    (120, [Span(119, 121)], [TYPED], AGENT),  # a git command of the agent ran
    (250, [Span(249, 251)], [TYPED], AGENT),  # even of one that outlived its loop
    (95, [], [TYPED], OTHER),
    (210, [], [TYPED], OTHER),
    (210, [], [TYPED, CHECKS], OTHER),  # checks do not commit
    (120, [], [TYPED], OTHER),  # between two tool calls
    (131, [], [TYPED], UNKNOWN),
    (134, [], [TYPED], OTHER),  # while the whole tree did nothing
    (137.5, [], [TYPED], UNKNOWN),  # git's seconds are too coarse
    (120, [], [SILENT], UNKNOWN),
    (160, [], [SILENT], OTHER),
    (120, [], [], OTHER),
]


@pytest.mark.parametrize(("at", "traced", "sessions", "author"), MOVES)
def test_who_moved_a_branch(at: float, traced: list[Span], sessions: list[Session], author: Author) -> None:
    assert move_author(at, traced, sessions) is author


ON_TOP = "there are commits on top of the agent's that may be yours"
WHO = "there are new commits that may be yours or the agent's"
SWITCHED = "the branch was switched while the agent worked"
BRANCHES: list[tuple[list[Author], bool, Branch]] = [
    ([], False, Branch(0)),
    ([AGENT], False, Branch(0)),
    ([AGENT, AGENT], False, Branch(0)),
    ([OTHER], False, Branch(1)),
    ([OTHER, OTHER], False, Branch(2)),
    ([OTHER, AGENT], False, Branch(1)),
    ([AGENT, OTHER], False, Branch(0, ON_TOP, can_undo=False)),
    ([OTHER, AGENT, OTHER], False, Branch(1, ON_TOP, can_undo=False)),
    ([UNKNOWN], False, Branch(1, WHO)),
    ([OTHER, UNKNOWN], False, Branch(2, WHO)),
    ([UNKNOWN, AGENT], False, Branch(1, WHO)),
    ([AGENT, UNKNOWN], False, Branch(0, ON_TOP, can_undo=False)),
    ([OTHER], True, Branch(1, SWITCHED, can_undo=False)),
    ([AGENT], True, Branch(0)),  # the agent's own switch is undone
]


@pytest.mark.parametrize(("authors", "is_switch", "branch"), BRANCHES)
def test_what_becomes_of_the_branch(authors: list[Author], is_switch: bool, branch: Branch) -> None:
    moves = [Move(str(n), str(n + 1), n, is_switch=is_switch) for n in range(len(authors))]
    assert branch_after(moves, authors) == branch


def test_calls_are_collected_from_the_events_of_a_session() -> None:
    log = CallLog(100)
    log.begin("1", "Read", "/w/read", "", 105)
    log.begin("2", "Edit", "/w/edited", "", 110)
    log.end("2", 111)
    log.begin("3", "Bash", "", "cd x && pytest 2>&1 | tail", 130)
    log.end("3", 140)
    log.speak(190)
    session = log.session(200, reports_calls=True)
    assert session.calls == (Span(100, 110), Span(110, 111), Span(130, 140), Span(190, 200))
    assert session.paths == {"/w/edited"}


@pytest.mark.parametrize(
    ("tool", "command"),
    [("Bash", "npm start &"), ("Bash", "nohup ./serve"), ("Task", ""), ("mcp__files__write", "")],
)
def test_a_call_that_may_leave_a_process_lasts_until_the_end(tool: str, command: str) -> None:
    log = CallLog(100)
    log.begin("1", tool, "", command, 120)
    log.end("1", 121)
    log.speak(190)
    assert log.session(200, reports_calls=True).calls[-1] == Span(120, 200)
