"""Commands below a live run: an agent that cleans its environment is still an agent."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from shlex import quote

import pytest

from ralph.core.events import AgentStarted
from ralph.core.verdict import Kind
from ralph.state.runs import list_runs
from support.cli import ralph
from support.proven import CODE, Proven, shell, write

pytestmark = pytest.mark.slow

RIGHT = write("src/shop.py", CODE + "\n\ndef triple(x):\n    return 3 * x\n")
CLEAN = f'env -i PATH="$PATH" HOME="$HOME" {quote(sys.executable)} -m ralph'


def said(made: Proven, *commands: str, clean: str = CLEAN) -> list[str]:
    """What these commands print to an agent without RALPH_* in its environment, with their exit codes."""
    out = made.folder / "out"
    lines = [
        shell(f"{clean} {command} > {out}-{n} 2>&1; echo code $? >> {out}-{n}") for n, command in enumerate(commands)
    ]
    made.run(US_001=[[*lines, RIGHT, "claim"]], apart=True)
    assert made.ended()[0].kind is Kind.ACCEPTED
    return [Path(f"{out}-{n}").read_text() for n in range(len(commands))]


def test_a_clean_environment_does_not_make_an_agent_the_user(tmp_path: Path) -> None:
    made = Proven(tmp_path, stories=({}, {}))
    settings = made.read(".ralph/config.yaml")
    changes = (
        "trust --revoke",
        "config set tamper off",
        "retry US-002",
        "task done US-002 --force",
        "task reopen US-001",
        "rescue drop 20260115-093012-a1b2/3",
        "archive",
    )
    shown = said(made, *changes, "status", "task list --ids", "task done US-001")
    for command, text in zip(changes, shown, strict=False):
        assert "an agent in a loop cannot" in text, (command, text)
        assert "code 0" not in text, (command, text)
    assert all("code 0" in text for text in shown[len(changes) :]), "read-only commands and claims work"
    assert made.read(".ralph/config.yaml") == settings


def test_an_agent_cannot_trust_the_commands_it_wrote(tmp_path: Path) -> None:
    made = Proven(tmp_path)
    widen = """sed -i 's/"checks": \\[/"checks": [{"name": "own", "command": "true"},/' .ralph/config.yaml && """
    (text,) = said(made, "trust -y", clean=widen + CLEAN)
    assert "an agent in a loop cannot trust a workspace" in text


def test_an_orphan_of_the_agent_is_refused_too(tmp_path: Path) -> None:
    made = Proven(tmp_path)
    out, script = tmp_path / "out", tmp_path / "orphan.sh"
    script.write_text(f"sleep 0.3\n{CLEAN} config set tamper off > {out} 2>&1\n")
    line = f"setsid sh -c 'sh {script} > /dev/null 2>&1 &'; sleep 3"
    made.run(US_001=[[shell(line), RIGHT, "claim"]], apart=True)
    assert "an agent in a loop cannot use `ralph config set`" in out.read_text()


def test_another_home_does_not_help_inside_the_workspace(tmp_path: Path) -> None:
    made = Proven(tmp_path)
    (text,) = said(made, "config set tamper off", clean=CLEAN.replace('"$HOME"', str(tmp_path)))
    assert "an agent in a loop cannot" in text


def test_a_program_under_test_may_use_ralph_elsewhere_with_its_own_home(tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / ".ralph").mkdir(parents=True)
    made = Proven(tmp_path)
    (text,) = said(made, "config set tamper off", clean=f"cd {other} && " + CLEAN.replace('"$HOME"', str(tmp_path)))
    assert "code 0" in text, text


def test_the_user_is_not_refused_while_a_run_works(tmp_path: Path) -> None:
    made = Proven(tmp_path)
    running = made.start(US_001=[[{"sleep": {"seconds": 6}}, RIGHT, "claim"]])
    try:
        for _ in range(200):
            if list_runs(made.state) and any(isinstance(event, AgentStarted) for event in made.events()):
                break
            time.sleep(0.1)
        assert ralph("config", "set", "timeout", "50s", cwd=made.root).code == 0
    finally:
        running.terminate()
        running.wait(30)
