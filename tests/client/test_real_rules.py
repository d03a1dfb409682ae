"""The real client at default settings, with a model that changes the rules through a program the guard cannot read."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from support.clients import CLIENT, NO_SANDBOX, Project, claim, say, use, write

pytestmark = [
    pytest.mark.client,
    pytest.mark.skipif(
        not CLIENT.exists(),
        reason="THE REAL CLIENT IS NOT TESTED: claude-agent-sdk could not be installed into .venv/client",
    ),
]

PROGRAM = f"""import os, pathlib, subprocess
pathlib.Path(".claude").mkdir(exist_ok=True)
pathlib.Path(".claude/settings.json").write_text('{{"cleanupPeriodDays": 5}}')
try:
    pathlib.Path(".ralph/config.yaml").open("a").write("\\ntamper: 'off'\\n")
    refused = ""
except OSError as error:
    refused = str(error)
env = {{"PATH": os.environ["PATH"], "HOME": os.environ["HOME"]}}
call = [{sys.executable!r}, "-m", "ralph", "config", "set", "tamper", "off"]
done = subprocess.run(call, env=env, capture_output=True, text=True)
pathlib.Path("s1.txt").write_text(refused + done.stderr.replace(os.getcwd(), "."))
"""


@pytest.mark.parametrize(
    "options", [pytest.param((), marks=pytest.mark.needs("bwrap")), NO_SANDBOX], ids=["sandbox", "no-sandbox"]
)
def test_rules_are_restored_and_a_clean_environment_does_not_help(tmp_path: Path, options: tuple[str, ...]) -> None:
    project = Project(tmp_path)
    settings = project.root / ".ralph/config.yaml"
    before = settings.read_bytes() if settings.exists() else None
    run = use("Bash", command="python3 tool.py && rm tool.py", description="run it")
    ran = project.run([write(project, "tool.py", PROGRAM), run, claim(project), say()], *options)
    assert (ran.code, ran.done()) == (0, [True]), ran.out
    text = (project.root / "s1.txt").read_text()
    assert ("Read-only file system: '.ralph/config.yaml'" in text) == (not options)
    assert ("an agent in a loop cannot use `ralph config set`" in text) == bool(options), "inside, no run is visible"
    assert (settings.read_bytes() if settings.exists() else None) == before
    assert not (project.root / ".claude/settings.json").exists()
    told = "\n".join(ran.of("IterationEnded")[0]["notices"])
    assert "removed .claude/settings.json: agents do not change the rules; the changed version is in " in told
    assert (".ralph/config.yaml: agents do not change the rules" in told) == bool(options)
