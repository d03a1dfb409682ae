"""`u` in the live view of a run: `ralph ui` takes the terminal, and gives it back."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from ralph.core.events import AgentStarted
from support.loops import CONFIG, LoopProject, Scenario
from support.processes import wait_for
from support.terminals import Terminal

pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
SCRIPT = """\
stories:
  US-001:
    - implement: [{run: "while [ ! -e ../go ]; do sleep 0.05; done"}, {limit: {seconds: 3}}]
    - implement:
        - write: {path: src/one.txt, text: "one\\n"}
        - claim: done
"""
PATIENCE = 90.0


def project(folder: Path) -> LoopProject:
    return LoopProject.make(folder / "made", Scenario("feature", {"US-001": "Say one"}, SCRIPT, [], config=CONFIG))


def let_go(made: LoopProject) -> None:
    (made.folder / "go").touch()


def site(folder: Path, code: str) -> dict[str, str]:
    """Code that every Python process runs first."""
    place = folder / "site"
    place.mkdir()
    (place / "sitecustomize.py").write_text(dedent(code))
    return {"PYTHONPATH": str(place)}


def test_u_opens_the_run_and_q_gives_the_terminal_back_while_the_run_goes_on(tmp_path: Path) -> None:
    made = project(tmp_path)
    told = tmp_path / "modules.json"
    env = site(
        tmp_path,
        f"""\
        import atexit, json, sys
        def tell():
            if sys.argv[1:] == ["run"]:
                open({str(told)!r}, "w").write(json.dumps(sorted(sys.modules)))
        atexit.register(tell)
        """,
    )
    own = Terminal(made, "run", columns=80, rows=24, **env)
    own.until("u: ralph ui", PATIENCE)
    own.press(b"u")
    own.until("5 Timeline", PATIENCE)
    own.until("implement US-001", PATIENCE)
    before = len(own.plain)
    let_go(made)
    own.until("Wait, or exit? [w/e], then Enter", PATIENCE)  # it is closed for a question
    own.press(b"w\n")
    own.until("waiting", PATIENCE)
    own.press(b"u")
    own.until("ended: complete", PATIENCE)
    assert "✓ accepted US-001" not in own.plain
    own.press(b"q")
    assert own.end() == 0
    after = own.plain[before:]
    assert "✓ accepted US-001" in after, "what was printed meanwhile"
    assert "every story is done" in after
    loaded = json.loads(told.read_text())
    assert "ralph.cli.ui_key" in loaded
    assert [name for name in loaded if name.partition(".")[0] in ("textual", "starlette")] == []
    assert not made.processes()


def test_a_question_gets_the_terminal_and_the_key_works_again_after_it(tmp_path: Path) -> None:
    """Also without the extra: `u` says what to install."""
    made = project(tmp_path)
    env = site(tmp_path, "import sys; sys.modules['textual'] = None")
    own = Terminal(made, "run", columns=120, rows=40, **env)
    own.until("implement US-001", PATIENCE)
    assert "u: ralph ui" not in own.plain, "what is not installed is not offered"
    own.press(b"xyz")
    let_go(made)
    own.until("Wait, or exit? [w/e], then Enter", PATIENCE)
    own.press(b"w\n")
    own.until("waiting", PATIENCE)
    own.press(b"u")
    own.until("`ralph ui` needs textual: pip install 'ralph-loop-engine[tui]'", PATIENCE)
    assert own.end() == 0
    assert "xyz" not in own.plain, "no echo into the panel"


@pytest.mark.needs("bash")
def test_a_run_in_the_background_leaves_the_keys_to_the_shell(tmp_path: Path) -> None:
    made = project(tmp_path)
    own = Terminal(made, PS1="$ ", PYTHON=sys.executable)
    own.press(b"$PYTHON -m ralph run\n")
    own.until("u: ralph ui", PATIENCE)
    wait_for(lambda: any(isinstance(event, AgentStarted) for event in made.events()))
    own.press(b"\x1a")
    own.until("Stopped", PATIENCE)
    own.press(b"bg\n")
    own.press(b"echo uu-$((20+3))\n")
    own.until("uu-23", PATIENCE)
    own.press(b"stty -a | grep -o ' icanon'; jobs\n")
    own.until("Running", PATIENCE)
    own.press(b"fg\n")
    let_go(made)
    own.until("Wait, or exit?", PATIENCE)
    own.press(b"w\n")
    own.until("every story is done", PATIENCE)
    own.press(b"stty -a | grep -c ' icanon'\n")
    own.press(b"exit\n")
    own.end()
    assert "Stopped(tty" not in own.plain
