"""`bench/views.py` measures every view of a small journal to its end; how fast they are is no matter of a test."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parent.parent / "bench" / "views.py"


@pytest.mark.skipif(sys.platform != "linux", reason="memory and CPU time of other processes are read from /proc")
def test_every_view_is_opened_and_shows_what_happens() -> None:
    command = [sys.executable, str(BENCH), "--max", "300", "--marks", "1", "--viewers", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.stderr == ""
    for view in ("fold", "ralph serve", "ralph ui"):
        assert re.search(rf"^  {view} +\d+ ms", done.stdout, re.MULTILINE), done.stdout
    assert done.stdout.count("event to screen ") >= 2
    assert re.findall(r"^ +(\d+) viewers ", done.stdout, re.MULTILINE) == ["0", "1", "2"]
