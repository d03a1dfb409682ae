"""A failing check: what it wrote is found again, whole, and a story that it breaks is named."""

from __future__ import annotations

from pathlib import Path

from ralph.core.verdict import Kind
from support.proven import Proven, write

NOISY = "seq 1 5000; ! grep -rqs bad src"


def noisy(folder: Path) -> Proven:
    made = Proven(folder, checks=[{"name": "noisy", "command": NOISY}, {"name": "calm", "command": "true"}])
    made.run("-n", "1", US_001=[[write("src/a.py", "bad = 1\n"), "claim"]])
    return made


def test_all_that_a_failing_check_wrote_can_be_read_after_the_run(tmp_path: Path) -> None:
    made = noisy(tmp_path)
    whole = "".join(f"{n}\n" for n in range(1, 5001))
    assert made.ask("log", "--check").out == whole
    assert made.ask("log", "--check", "NOIS").out == whole
    calm = made.ask("log", "--check", "calm")
    assert (calm.code, "no check with 'calm' in its name has failed" in calm.err) == (64, True)
    (told,) = [line for line in made.ask("log", "-v").out.splitlines() if "check noisy" in line]
    assert Path(told.split()[-1]).read_text() == whole


def test_where_the_file_is_gone_the_end_is_still_known(tmp_path: Path) -> None:
    made = noisy(tmp_path)
    for path in made.state.glob("runs/*/checks/*"):
        path.unlink()
    told = made.ask("log", "--check")
    assert "only the end of its output was kept" in told.err
    assert told.out.startswith("4901\n")


def test_verify_says_where_the_rest_of_a_long_output_is(tmp_path: Path) -> None:
    made = Proven(tmp_path, checks=[{"name": "noisy", "command": "seq 1 50; false"}])
    told = made.ask("verify", "--trust")
    assert told.code == 1
    (where,) = [line for line in told.out.splitlines() if "full output:" in line]
    assert Path(where.split(": ")[1]).read_text().startswith("1\n2\n")


def test_a_change_that_breaks_a_done_story_is_rejected_and_that_story_named(tmp_path: Path) -> None:
    made = Proven(tmp_path, stories=[{"verify": ["test -f src/one.py"]}, {}], checks=[])
    breaks = [{"run": "rm src/one.py"}, write("src/two.py", "TWO = 2\n"), "claim"]
    made.run("-n", "2", US_001=[[write("src/one.py", "ONE = 1\n"), "claim"]], US_002=[breaks])
    first, second = made.ended()
    assert (first.kind, second.kind) == (Kind.ACCEPTED, Kind.REJECTED)
    assert second.headline.startswith("US-001 was done and is now broken: check 'US-001: test -f src/one.py' failed")
