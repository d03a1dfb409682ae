"""The question at a usage limit: who answers, who does not, and who is not there at all."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from ralph.cli import run
from ralph.cli.run import LimitQuestion
from ralph.host.process.signals import StopSignal


@pytest.fixture
def keyboard(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """What is written here is what somebody types."""
    reader, writer = os.pipe()
    with os.fdopen(reader) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        monkeypatch.setattr(run, "SECONDS", 0.3)
        yield writer
    os.close(writer)


def asked(stop: StopSignal | None = None, *, is_enough: bool = False) -> str:
    question = LimitQuestion(stop or StopSignal(), nullcontext)
    return question("the usage limit is reached", time.time() + 60, lambda: is_enough)


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        (b"w\n", "wait"),
        (b"WAIT\n", "wait"),
        (b"e\n", "exit"),
        (b" exit \n", "exit"),
        (b"hm?\n", "nobody"),
        (b"", "nobody"),
    ],
)
def test_an_answer_is_taken_and_silence_is_nobody(keyboard: int, typed: bytes, answer: str) -> None:
    os.write(keyboard, typed)
    assert asked() == answer


def test_it_says_until_when_and_what_happens_without_an_answer(
    keyboard: int, capsys: pytest.CaptureFixture[str]
) -> None:
    asked()
    told = capsys.readouterr().err
    assert "the usage limit is reached, until " in told
    assert ", in 1 m 00 s." in told
    assert "without an answer" in told


def test_a_request_to_stop_ends_the_question(keyboard: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "SECONDS", 30.0)
    stop = StopSignal()
    stop.request()
    begun = time.monotonic()
    assert asked(stop) == "nobody"
    assert time.monotonic() - begun < 5


def test_the_question_is_given_up_when_somebody_pauses_or_stops_the_run(
    keyboard: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "SECONDS", 30.0)
    begun = time.monotonic()
    assert asked(is_enough=True) == ""
    assert time.monotonic() - begun < 5


def test_a_keyboard_that_has_gone_is_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    os.close(writer)
    with os.fdopen(reader) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        assert asked() == "nobody"
