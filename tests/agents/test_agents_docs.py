"""The page about the contract for any command line: its shell script does what it says, its facts are the code's."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ralph.config.keys import RESERVED_VARIABLES
from ralph.core.environment import child_environment
from ralph.core.plan import Mode
from support.cli import ralph_here
from support.proven import Proven

TEXT = (Path(__file__).parents[2] / "docs" / "agents.md").read_text()
SCRIPT = next(block for block in re.findall(r"(?ms)^```sh\n(.*?)^```$", TEXT) if "my-agent.sh" in block)


def project(folder: Path, script: str, **config: object) -> Proven:
    agent = folder / "my-agent.sh"
    agent.write_text(script)
    agent.chmod(0o755)
    settings = {"agent": {"name": "command", "command": [str(agent)]}, "review": {"enabled": True}}
    return Proven(folder, stories=({}, {}), **(settings | config))


def test_the_shell_script_of_the_documentation_finishes_a_plan_with_reviews(tmp_path: Path) -> None:
    made = project(tmp_path, SCRIPT)
    done = made.ask("run", "--plain", "--trust")
    assert done.code == 0, done.out + done.err
    assert made.read("WORK.txt") == "US-001, attempt 1\nUS-002, attempt 1\n"
    assert [event.mode.value for event in made.ended()] == ["implement", "review"] * 2


def test_every_variable_of_the_contract_is_on_the_page() -> None:
    given = RESERVED_VARIABLES - {"RALPH_TRUST", "RALPH_NONCE"}
    assert given <= set(re.findall(r"RALPH_\w+", TEXT))


def test_every_mode_is_on_the_page() -> None:
    [row] = re.findall(r"^\| `RALPH_MODE` \|(.*)\|$", TEXT, re.MULTILINE)
    assert {mode.value for mode in Mode} == set(re.findall(r"`(\w+)`", row))


def test_an_agent_and_a_check_get_the_callers_environment(tmp_path: Path) -> None:
    script = SCRIPT.replace("set -eu", f"set -eu\nenv > {tmp_path}/agent-$RALPH_MODE.env")
    made = project(tmp_path, script, checks=[f"env > {tmp_path}/check.env"])
    extra = {"DATABASE_URL": "postgres://u:secret@db/x", "CLAUDECODE": "1", "GIT_DIR": "/nowhere", "RALPH_MODEL": "m"}
    done = ralph_here("run", "--plain", "--trust", "-n", "1", cwd=made.root, env=dict(os.environ) | extra)
    assert done.code == 1, done.out + done.err
    for name in ("agent-implement.env", "check.env"):
        got = dict(line.split("=", 1) for line in (tmp_path / name).read_text().splitlines() if "=" in line)
        assert got["DATABASE_URL"] == "postgres://u:secret@db/x"
        assert not {"CLAUDECODE", "GIT_DIR", "RALPH_MODEL"} & set(got)
    told = ralph_here("preflight", cwd=made.root, env=dict(os.environ) | extra)
    assert "DATABASE_URL" in told.out
    assert "secret" not in told.out.replace("secrets", "")


def test_a_minimal_environment_leaves_out_what_nobody_named(tmp_path: Path) -> None:
    script = SCRIPT.replace("set -eu", f"set -eu\nenv > {tmp_path}/agent.env")
    agent = {"name": "command", "command": [str(tmp_path / "my-agent.sh")], "env": ["NAMED"]}
    made = project(tmp_path, script, agent=agent, env="minimal", checks=["true"])
    extra = {"DATABASE_URL": "x", "NAMED": "y"}
    ralph_here("run", "--plain", "--trust", "-n", "1", cwd=made.root, env=dict(os.environ) | extra)
    got = (tmp_path / "agent.env").read_text()
    assert "NAMED=y" in got
    assert "DATABASE_URL" not in got
    assert not child_environment(extra).keys() & extra.keys()
