"""Two real runs of the scripted agent, made once: everything the models of the views are tested with."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ralph.views.run_view import RunView
from support.hostile_names import EVIL, ODD, SECRET
from support.loops import CHECK, LoopProject, Scenario, run_ralph

_NUL = "printf 'a\\000b\\001' > src/data.bin"


def _use(tool: str, answer: bool = True, **what: str) -> dict[str, Any]:
    return {"use": {"tool": tool, "input": what, "ok": answer, "seconds": 0.1}}


_FINDING = {"text": "never <closed>", "place": "src/a:1"}
_APPROVED = [{"verdict": "approved"}]
PLAY: dict[str, Any] = {
    "US-001": [
        {
            "implement": [
                {"say": "I look at \x1b[31mthe <b>words</b>\x1b[0m first."},
                {"say": f"The key is {SECRET}."},
                _use("Read", file_path="src/base.txt"),
                _use("Bash", answer=False, command="make needle"),
                {"run": f"git mv src/base.txt src/moved.txt; {_NUL}; printf 'no end' > src/tail.txt"},
                {"write": {"path": f"src/{ODD}", "text": "\x1b[31mred\n\u202ebackwards\n"}},
                {"delete": "src/zero.txt"},
                {"cost": {"usd": 0.25, "input": 1000, "output": 200}},
                "claim",
            ],
            "review": [{"verdict": {"what": "changes_requested", "findings": [_FINDING]}}],
            "fix": [
                {"write": {"path": "src/closed.txt", "text": "yes\n"}},
                {"fixes": [{"id": "F1", "fate": "fixed", "reason": "closed"}]},
                "claim",
            ],
        },
        {"review": _APPROVED},
    ],
    "US-002": [
        {"implement": [{"write": {"path": "src/two.txt", "text": "BROKEN\n"}}, {"cost": {"usd": 0.5}}, "claim"]},
        {"implement": [{"write": {"path": "src/two.txt", "text": "two\n"}}, "claim"], "review": _APPROVED},
    ],
    "US-003": [{"implement": [{"ask": "Which <colour>?"}]}],
}
_BOTH = "if [ -e src/US-001.flag ] && [ -e src/US-002.flag ]; then echo both; exit 1; fi\n"
_SETTINGS: dict[str, Any] = {
    "agent": {"name": "scripted", "script": ".ralph/script.yaml"},
    "review": {"enabled": True},
    "archive": {"on_complete": False},
    "checks": [{"name": "words", "command": "sh check.sh"}],
}


def _made(folder: Path, play: dict[str, Any], title: str, *arguments: str, **config: Any) -> LoopProject:
    titles = {name: title if name == "US-001" else f"Say {name}" for name in play}
    script, settings = json.dumps({"stories": play}), json.dumps(_SETTINGS | config)
    scenario = Scenario("tasks.json", titles, script, [], check=f"echo checking\n{_BOTH}{CHECK}", config=settings)
    made = LoopProject.make(folder / "made", scenario)
    done = run_ralph(made, "run", "--plain", *arguments, **PROOF)
    assert "Traceback" not in done.err, done.err
    assert made.journals(), done.err
    return made


PROOF = {"RALPH_PROOF_WHERE": "checkout", "RALPH_PROOF_MINIMUM": "unproven", "RALPH_SANDBOX": "none"}


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> LoopProject:
    """Reviewed and fixed; rejected and then done; and a question. Its first title, a file and a message are hostile."""
    return _made(tmp_path_factory.mktemp("seen"), PLAY, EVIL)


@pytest.fixture(scope="session")
def many(tmp_path_factory: pytest.TempPathFactory) -> LoopProject:
    """Two workers. What the first two stories make is green alone and red merged, until the later one repairs it."""
    folder = tmp_path_factory.mktemp("many")
    meet = (
        f"touch {folder}/$RALPH_STORY; while [ ! -e {folder}/US-001 ] || [ ! -e {folder}/US-002 ]; do sleep 0.02; done"
    )
    first = [{"run": f"{meet}; echo x > src/$RALPH_STORY.flag"}, "claim"]
    again = [{"run": "rm -f src/*.flag; echo x > src/$RALPH_STORY.txt"}, "claim"]
    play = {name: [{"implement": first}, {"implement": again}] for name in ("US-001", "US-002")}
    play["US-003"] = [{"implement": [{"write": {"path": "src/three.txt", "text": "x"}}, "claim"]}]
    return _made(folder, play, "One of many", "--parallel", "2", review={"enabled": False})


@pytest.fixture(scope="session")
def journal(made: LoopProject) -> Path:
    return made.journals()[-1]


@pytest.fixture(scope="session")
def lines(journal: Path) -> list[bytes]:
    return journal.read_bytes().splitlines(keepends=True)


@pytest.fixture(scope="session")
def many_lines(many: LoopProject) -> list[bytes]:
    return many.journals()[-1].read_bytes().splitlines(keepends=True)


@pytest.fixture
def view(journal: Path) -> RunView:
    return RunView(journal).catch_up()


@pytest.fixture
def many_view(many: LoopProject) -> RunView:
    return RunView(many.journals()[-1]).catch_up()


@pytest.fixture
def env(made: LoopProject) -> dict[str, str]:
    return {**os.environ, **made.env}
