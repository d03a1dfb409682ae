"""The benchmark of the cost of proof works, and its stories are accepted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parent.parent / "bench" / "proof.py"


def test_the_command_tells_how_it_is_used() -> None:
    done = subprocess.run([sys.executable, BENCH, "--help"], capture_output=True, text=True, check=True)
    assert "--change" in done.stdout


@pytest.mark.slow
def test_both_changes_are_accepted_and_compared_with_the_plain_checks() -> None:
    command = [sys.executable, str(BENCH), "--files", "20", "--seconds", "0.1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    lines = done.stdout.splitlines()
    assert [line.partition(";")[0] for line in lines if "; plain checks" in line] == [
        "source: accepted",
        "tests: accepted",
    ]
    assert sum("x the plain checks (target" in line for line in lines) == 2, done.stderr
