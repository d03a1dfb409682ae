"""Record docs/agents-night.md: Claude Code meets its limit, Codex goes on, Gemini reviews. The clients are real.

.venv/bin/python scripts/agents_night.py
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from fetch_clients import fetch, program_of

from ralph.agents.registry import agent
from ralph.trial.bench import TASKS
from ralph.trial.model import Turn
from ralph.trial.stage import REQUEST, Played, Stage, rehearsal_of

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "agents-night.md"
CLAUDE = ROOT / ".venv" / "client" / "claude_agent_sdk" / "_bundled" / "claude"
_FORMAT = "%s, %(trailers:key=Ralph-Agent,separator=%x2C)"
DONE, APPROVED = '{"claim": "done"}\n', '{"review": {"verdict": "approved"}}\n'


def programs() -> dict[str, Path]:
    return {"claude": CLAUDE, "codex": program_of("codex"), "gemini": program_of("gemini")}


def night(folder: Path) -> Played:
    """Two stories. The programs are put on PATH."""
    found = folder / "bin"
    found.mkdir()
    for name, path in programs().items():
        (found / name).symlink_to(path)
    os.environ["PATH"] = f"{found}:{os.environ['PATH']}"
    others = [agent("codex"), agent("gemini")]
    codex, gemini = (rehearsal_of(one, "http://127.0.0.1:9").model for one in others)
    config = {
        "fallback": [f"codex/{codex}" if codex else "codex"],
        "review": {"enabled": True, "agent": "gemini", "model": gemini},
        "on_limit": "wait",
    }
    tasks = TASKS[:2]
    stories = [
        {"title": task.title, "acceptanceCriteria": list(task.criteria), "verify": f"python3 -B -c '{task.check}'"}
        for task in tasks
    ]
    (folder / "night").mkdir()
    stage = Stage(folder / "night", agent("claude"), stories=stories, config=config, beside=others)
    turns: list[Turn] = [{"fail": "reset"}]
    for task in tasks:
        turns += [
            {"write": [stage.path(task.file), task.solution]},
            {"write": [stage.path(REQUEST), DONE]},
            {"say": "Done."},
            {"write": [stage.path(REQUEST), APPROVED]},
            {"say": "Approved."},
        ]
    return stage.play(turns)


def main() -> int:
    subprocess.run([sys.executable, str(ROOT / "scripts" / "fetch_client.py")], check=False)
    if fetch("codex") or fetch("gemini"):
        return 1
    with tempfile.TemporaryDirectory(prefix="ralph-night-") as name:
        played = night(Path(name))
        stage = played.stage
        parts = [
            _INTRODUCTION,
            _shown("ralph run", played.out),
            "Who did what is in the cost, and in the commits:\n",
            _shown("ralph runs cost --by agent", _ask(stage, "runs", "cost", "--by", "agent")),
            _shown(f"git log --format='{_FORMAT}'", _git(stage, "log", f"--format={_FORMAT}", "--grep=Ralph-Story")),
        ]
        text = "\n".join(parts).replace(str(stage.root), "~/project").replace(str(stage.folder), "~")
    PAGE.write_text(re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE))
    print(f"wrote {PAGE.relative_to(ROOT)}")
    return 0 if played.code == 0 else 1


_INTRODUCTION = """\
# A night with three vendors

<!-- Recorded by scripts/agents_night.py. -->

Claude Code meets its usage limit in the first session. The fallback, Codex, goes on at once instead of waiting for the
reset, and Gemini reviews what Codex wrote. All three are real clients at default settings, on a scripted model that
answers each in the form of its vendor. The settings:

```yaml
agent: {name: claude}
fallback: [codex]
review: {enabled: true, agent: gemini}
```
"""


def _shown(command: str, output: str) -> str:
    return f"```text\n$ {command}\n{output.strip()}\n```\n"


def _ask(stage: Stage, *words: str) -> str:
    command = [sys.executable, "-m", "ralph", *words]
    return subprocess.run(command, cwd=stage.root, env=stage.env(), capture_output=True, text=True, check=False).stdout


def _git(stage: Stage, *words: str) -> str:
    found = subprocess.run(["git", *words], cwd=stage.root, env=stage.env(), capture_output=True, text=True, check=True)
    return found.stdout


if __name__ == "__main__":
    sys.exit(main())
