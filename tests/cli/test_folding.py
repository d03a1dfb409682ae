"""Long lines are broken between words on a terminal, and nowhere else."""

from __future__ import annotations

import fcntl
import os
import struct
import termios
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import pytest

from ralph.cli.output import folded, is_too_wide
from ralph.views.columns import progress_bar
from ralph.views.paint import paint, unpainted

MAY = "  the agent may: everything inside its sandbox (bubblewrap, network: listed hosts); may not: reach anything else"


@pytest.fixture
def terminal() -> Iterator[TextIO]:
    """80 columns wide."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    with os.fdopen(theirs, "w") as stream:
        yield stream
    os.close(ours)


def test_no_word_is_broken_and_what_follows_is_indented(terminal: TextIO) -> None:
    first, second = folded(paint(MAY, "dim"), terminal).split("\n")
    assert len(unpainted(first)) <= 80
    assert unpainted(second).startswith("      ")
    assert f"{unpainted(first)} {unpainted(second).strip()}" == MAY
    assert first.startswith("\x1b[2m")
    assert second.endswith("\x1b[0m"), "each part has the style of the line"
    assert folded("x " * 60, terminal, 13).split("\n")[1].startswith(" " * 13 + "x")


def test_a_bar_stays_in_one_piece(terminal: TextIO) -> None:
    bar = progress_bar(3, 40)
    for length in range(45, 80):
        lines = folded(f"{'x' * length} {paint(bar, 'green')}", terminal).split("\n")
        assert sum(bar in line for line in lines) == 1


def test_a_file_gets_the_line_as_it_is(tmp_path: Path, terminal: TextIO) -> None:
    with (tmp_path / "log").open("w") as stream:
        assert folded(MAY, stream) == MAY
    assert folded("short", terminal) == "short"
    assert is_too_wide("語" * 41, 80)
    assert not is_too_wide("語" * 40, 80)
