"""All runs of this machine, for a first page."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralph.core.events import IterationEnded
from ralph.core.verdict import Kind
from ralph.views.catalog import card_of, cards, find_journal
from ralph.workspace.runs import Standing
from support.hostile_runs import journal_of, tell
from support.loops import LoopProject, run_ralph

RUNS = tuple(f"2023020{day}-000000-aaaa" for day in range(1, 5))


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    return {"RALPH_STATE_HOME": str(tmp_path / "state"), "HOME": str(tmp_path)}


def test_runs_are_listed_newest_first_with_what_they_do(tmp_path: Path, home: dict[str, str]) -> None:
    state = tmp_path / "state"
    assert cards(home) == []
    tell(state, RUNS[0]).stop()
    tell(state, RUNS[1]).iterate(1)
    running = tell(state, RUNS[2], is_alive=True)
    running.begin(1)
    found = cards(home)
    assert [(card.run, card.standing) for card in found] == [
        (RUNS[2], Standing.RUNNING),
        (RUNS[1], Standing.UNFINISHED),
        (RUNS[0], Standing.ENDED),
    ]
    assert (found[0].doing, found[2].doing) == ("implement US-001", "")
    assert [card.is_live for card in found] == [True, False, False]
    assert cards(home, most=1) == found[:1]


def test_a_card_follows_its_run(tmp_path: Path, home: dict[str, str]) -> None:
    told = tell(tmp_path / "state", RUNS[0], is_alive=True)
    for number, kind in enumerate((Kind.ACCEPTED, Kind.REJECTED), 1):
        told.iterate(number, kind)
        [card] = cards(home)
        assert card.iterations == number
    told.stop()
    [card] = cards(home)
    assert (card.standing, card.reason, card.cost_usd, card.tokens) == (Standing.ENDED, "complete", 0.5, 254)


def test_a_journal_that_a_recovery_has_cut_is_read_again(tmp_path: Path, home: dict[str, str]) -> None:
    told = tell(tmp_path / "state", RUNS[0])
    told.iterate(1)
    assert cards(home)[0].iterations == 1
    lines = told.journal.path.read_bytes().splitlines(keepends=True)
    at = next(n for n, line in enumerate(lines) if IterationEnded.__name__.encode() in line)
    told.journal.path.write_bytes(b"".join(lines[:at]))
    assert cards(home)[0].iterations == 0


def test_damage_is_said_and_what_stands_before_it_is_shown(tmp_path: Path, home: dict[str, str]) -> None:
    told = tell(tmp_path / "state", RUNS[0])
    told.iterate(1)
    whole = told.journal.path.read_bytes()
    told.journal.path.write_bytes(whole + b'{"no record"}\n')
    [card] = cards(home)
    assert card.iterations == 1
    assert "damaged" in card.damage
    told.journal.path.write_bytes(whole)
    assert cards(home)[0].damage == ""
    told.journal.path.write_bytes(b"\x00\xff\n")
    [card] = cards(home)
    assert (card.run, card.standing) == (RUNS[0], Standing.UNREADABLE)


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../../etc/passwd", "20230201-000000-aaaa/../x", "*", "20230201", "2023020१-000000-aaaa"]
)
def test_nothing_but_the_id_of_a_run_finds_a_journal(name: str, tmp_path: Path, home: dict[str, str]) -> None:
    tell(tmp_path / "state", RUNS[0])
    assert find_journal(name, home) is None
    assert find_journal(RUNS[0], home) == journal_of(tmp_path / "state", RUNS[0])
    assert find_journal(RUNS[1], home) is None


def test_a_question_waits_until_it_is_answered(made: LoopProject, env: dict[str, str], journal: Path) -> None:
    card = card_of(journal, env)
    assert card is not None
    assert (card.questions, card.failures) == ({"US-003": "Which <colour>?"}, {})
    assert (card.workspace, card.done, card.total) == (str(made.root), 2, 3)
    assert run_ralph(made, "answer", "US-003", "Red").code == 0
    card = card_of(journal, env)
    assert card is not None
    assert card.questions == {}
