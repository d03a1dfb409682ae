"""Record the conformance suite again: run it on real clients, and keep what they print for `scripts/test`.

.venv/bin/python scripts/record_agents.py [NAME …]

Then `scripts/write_docs.py` writes the tables of docs/agents.md from the recordings. A scenario that failed keeps its
old recording.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from fetch_clients import CLIENTS, fetch, program_of

ROOT = Path(__file__).resolve().parent.parent
RECORDED = ROOT / "tests" / "agents" / "recorded"
CLAUDE = ROOT / ".venv" / "client" / "claude_agent_sdk" / "_bundled" / "claude"


def main(names: list[str]) -> int:
    worst = 0
    for name in names or ["claude", *CLIENTS]:
        if name == "claude":
            subprocess.run([sys.executable, str(ROOT / "scripts" / "fetch_client.py")], check=False)
        elif fetch(name):
            worst = 1
            continue
        program = CLAUDE if name == "claude" else program_of(name)
        command = [sys.executable, "-m", "ralph", "agents", "test", name]
        command += ["--program", str(program), "--record", str(RECORDED)]
        worst = max(worst, subprocess.run(command, cwd=ROOT, check=False).returncode)
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
