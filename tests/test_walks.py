"""The walks of ARCHITECTURE.md are what happens: each function is called, in the order of the list."""

from __future__ import annotations

import json
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import ralph
from ralph.hooks.entry import respond
from ralph.hooks.policy import find_policy
from support.cli import ralph_here
from support.hook_calls import LiveRun
from support.loops import shell_project

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = str(Path(ralph.__file__).parent) + "/"
Call = tuple[str, str]


def walk(title: str) -> list[Call]:
    """The lines of the block below a heading: a file of the package, and one or more functions in it."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    block = re.search(rf"^#+ {re.escape(title)}\n.*?^```\n(.*?)^```", text, re.M | re.S)
    assert block, f"ARCHITECTURE.md has no walk {title!r}"
    calls = []
    for line in block[1].splitlines():
        words = line.split("#")[0].split()
        if len(words) > 1:
            *_, file = (word for word in words if word.endswith(".py"))
            calls += [(file, word) for word in words[words.index(file) + 1 :]]
    return calls


@contextmanager
def recorded() -> Iterator[list[Call]]:
    """The functions of Ralph in the order of their first call, in all threads of this process."""
    calls: list[Call] = []
    seen: set[Call] = set()

    def trace(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE):
            call = (code.co_filename.removeprefix(PACKAGE), code.co_name)
            if call not in seen:
                seen.add(call)
                calls.append(call)

    threading.setprofile(trace)
    sys.setprofile(trace)
    try:
        yield calls
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def check(title: str, calls: list[Call]) -> None:
    listed = walk(title)
    assert [call for call in listed if call not in calls] == [], "listed, but not called"
    places = [calls.index(call) for call in listed]
    order = [calls[place] for place in sorted(places)]
    assert listed == order, "called in another order"


def hook_call(tmp_path: Path) -> None:
    live = LiveRun(tmp_path)
    policy, _ = find_policy(live.env)
    call: dict[str, Any] = {
        "hook_event_name": "PreToolUse",
        "session_id": "s-1",
        "cwd": str(live.workspace),
        "tool_name": "Bash",
    }
    call["tool_input"] = {"command": "cd src && git push origin main"}
    assert '"deny"' in respond("PreToolUse", json.dumps(call).encode(), policy)


def iteration(tmp_path: Path) -> None:
    project = shell_project(tmp_path, "echo hello > done.txt; echo '<promise>COMPLETE</promise>'")
    done = ralph_here("run", "--plain", "--once", cwd=project.root, env=project.env)
    assert "accepted" in done.out + done.err, done


def status(tmp_path: Path) -> None:
    project = shell_project(tmp_path, "")
    assert ralph_here("status", cwd=project.root, env=project.env).code == 0


WALKS = {
    "From `ralph run` to a final iteration": iteration,
    "From a tool call to the hook's answer": hook_call,
    "From `ralph status` to the screen": status,
}


@pytest.mark.parametrize("title", WALKS)
def test_a_walk_is_what_happens(title: str, tmp_path: Path) -> None:
    with recorded() as calls:
        WALKS[title](tmp_path)
    check(title, calls)
