"""The guards in real runs: what they do to the plan, what one sees of it, and what the next run knows."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ralph.core.events import Decided, IterationEnded, LimitAnswered, RunEnded, RunStarted, StorySetAside, WaitStarted
from ralph.core.moves import Reason
from ralph.core.verdict import Kind
from support import stunts
from support.cli import Completed, ralph_here
from support.loops import LoopProject, Scenario, finish, run_ralph, start_ralph
from support.processes import wait_for

CONFIG = {
    "agent": {"name": "scripted", "script": ".ralph/script.yaml"},
    "review": {"enabled": False},
    "checks": [{"name": "words", "command": "sh check.sh"}],
}


def good(story: str) -> list[Any]:
    return [{"write": {"path": f"src/{story}.txt", "text": "fine\n"}}, "claim"]


def project(folder: Path, play: dict[str, list[Any]], stories: int = 2, **config: Any) -> LoopProject:
    names = [f"US-00{number}" for number in range(1, stories + 1)]
    script = {"acts": stunts.__file__, "stories": {name: [good(name)] for name in names} | play}
    return LoopProject.make(
        folder,
        Scenario(
            "tasks.json", dict.fromkeys(names, "Say it"), json.dumps(script), [], config=json.dumps(CONFIG | config)
        ),
    )


def verdicts(made: LoopProject) -> list[tuple[str, Kind]]:
    return [(e.story, e.kind) for e in made.events() if isinstance(e, IterationEnded)]


def waits(made: LoopProject) -> list[float]:
    return [event.until for event in made.events() if isinstance(event, WaitStarted)]


def here(made: LoopProject, *arguments: str) -> Completed:
    """A command that only looks, without a process of its own."""
    return ralph_here(*arguments, cwd=made.root, env=made.env)


def why(made: LoopProject) -> list[Reason]:
    return [e.reason for e in made.events() if isinstance(e, RunEnded)]


def test_a_story_that_gets_nowhere_is_set_aside_until_the_circuit_is_reset(tmp_path: Path) -> None:
    broken = [[{"write": {"path": "src/x.txt", "text": "BROKEN\n"}}, "claim"]] * 3
    made = project(tmp_path / "p", {"US-001": [*broken, good("US-001")]})
    done = run_ralph(made)
    assert done.code == 5
    back = [("US-001", Kind.REJECTED)] * 2
    assert verdicts(made) == [*[("US-001", Kind.REJECTED)] * 3, ("US-002", Kind.ACCEPTED), *back], "twice back"
    assert done.out.count("↻ no other story is ready: retrying US-001") == 2
    assert "⊘ US-001 set aside: 3 iterations in a row without progress" in done.out
    assert sum(isinstance(event, StorySetAside) for event in made.events()) == 3
    assert "without progress" in here(made, "task", "show", "US-001").out

    shown = here(made, "circuit")
    assert "US-001       open — 3 iterations in a row without progress" in shown.out
    told = here(made, "circuit", "--json").json
    assert (told["whole"]["position"], told["stories"]["US-001"]["position"]) == ("closed", "open")
    assert "0 differ" in here(made, "replay").out

    again = run_ralph(made, "run", "--plain", "--reset-circuit")
    assert "retrying failed stories: US-001" in again.out
    assert again.code == 5, "it is played from the first attempt on, and trips once more"


def test_an_agent_that_dies_at_once_stops_the_run_and_blames_no_story(tmp_path: Path) -> None:
    made = project(tmp_path / "p", {"US-001": [[{"crash": {"code": 3, "message": "cannot load libfoo"}}]]})
    done = run_ralph(made)
    assert (done.code, why(made)) == (78, [Reason.CRASH_LOOP])
    assert "crashed within a second of starting, 3 times in a row: exit code 3, cannot load libfoo" in done.out
    assert not any(isinstance(event, StorySetAside) for event in made.events())


def test_a_wait_for_a_limit_survives_a_restart(tmp_path: Path) -> None:
    made = project(tmp_path / "p", {"US-001": [[{"limit": 3600}]]}, stories=1)
    first = start_ralph(made)
    wait_for(lambda: waits(made))
    first.kill()
    finish(first)
    second = start_ralph(made)
    wait_for(lambda: len(waits(made)) == 2)
    second.terminate()
    assert finish(second).code == 143
    (reset,) = (event.resets_at for event in made.events() if isinstance(event, IterationEnded))
    assert reset is not None
    assert all(reset <= until <= reset + 30 for until in waits(made)), "no agent was started to find out"
    assert "0 differ" in here(made, "replay").out


def test_the_rate_is_kept_across_runs(tmp_path: Path) -> None:
    made = project(tmp_path / "p", {}, rate_limit_per_hour=1)
    assert run_ralph(made, "run", "--plain", "-n", "1").code == 1
    second = start_ralph(made)
    wait_for(lambda: sum(isinstance(event, WaitStarted) for event in made.events()))
    second.terminate()
    done = finish(second)
    assert done.code == 143
    assert "⏸ 1 agent start in the last hour; the cap is 1: waiting until " in done.out
    begun = [event for event in made.events() if isinstance(event, RunStarted)]
    assert [len(event.calls) for event in begun] == [0, 1]


def test_at_a_share_of_the_limit_no_new_story_is_begun(tmp_path: Path) -> None:
    news = {"limit": {"seconds": 3, "status": "allowed_warning", "utilization": 0.85}}
    made = project(tmp_path / "p", {"US-001": [[news, *good("US-001")]]}, limit_share=0.8)
    done = run_ralph(made)
    assert done.code == 0, done.out
    assert "85% of the five-hour limit is used; no new work starts above 80%: waiting until" in done.out
    assert verdicts(made) == [("US-001", Kind.ACCEPTED), ("US-002", Kind.ACCEPTED)]


def test_an_iteration_that_cost_nothing_leaves_room_for_one_more(tmp_path: Path) -> None:
    made = project(tmp_path / "p", {"US-001": [["empty"], good("US-001")]}, stories=1)
    done = run_ralph(made, "run", "--plain", "-n", "1")
    assert done.code == 0, done.out
    assert "▶ iteration 1/1: implement" in done.out
    assert "▶ iteration 2/2: implement" in done.out
    assert ", attempt 2" not in done.out


def test_a_running_tool_is_no_silence_and_real_silence_is(tmp_path: Path) -> None:
    made = project(
        tmp_path / "p",
        {"US-001": [[{"sleep": 2}, *good("US-001")]], "US-002": [[{"silent": 30}]]},
        idle_timeout="1s",
    )
    done = run_ralph(made, "run", "--plain", "-n", "2")
    assert verdicts(made) == [("US-001", Kind.ACCEPTED), ("US-002", Kind.TIMED_OUT)], done.out


def test_no_session_outlives_the_ceiling_nor_the_run(tmp_path: Path) -> None:
    endless = project(tmp_path / "a", {"US-001": [[{"silent": 30}]]}, timeout=0, idle_timeout=0, time_ceiling="1s")
    run_ralph(endless, "run", "--plain", "-n", "1")
    assert verdicts(endless) == [("US-001", Kind.TIMED_OUT)]
    short = project(tmp_path / "b", {"US-001": [[*good("US-001"), {"silent": 30}]]})
    done = run_ralph(short, "run", "--plain", "--max-time", "3s")
    assert verdicts(short) == [("US-001", Kind.ACCEPTED)], "what was finished is judged, not thrown away"
    assert (done.code, why(short)) == (6, [Reason.TIME_CAP])


def at_the_question(made: LoopProject, do: Callable[[int], object]) -> tuple[int, str]:
    """Run it in a terminal, and do something when it asks whether to wait."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-W", "error", "-m", "ralph", "run"]
    running = subprocess.Popen(command, cwd=made.root, env=made.env, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    seen, until, answered = b"", time.monotonic() + 30, False
    while time.monotonic() < until:
        if select.select([ours], [], [], 0.2)[0]:
            try:
                seen += os.read(ours, 65536)
            except OSError:  # everybody at the other end has gone
                break
        if b"Wait, or exit?" in seen and not answered:
            answered = True
            do(ours)
    code = running.wait(10)
    os.close(ours)
    return code, seen.decode()


def test_whoever_is_at_the_terminal_is_asked_at_a_limit(tmp_path: Path) -> None:
    made = project(tmp_path / "p", {"US-001": [[{"limit": 3600}]]}, stories=1)
    code, seen = at_the_question(made, lambda terminal: os.write(terminal, b"what\ne\n"))
    assert code == 2, seen
    assert "w waits, e exits" in seen
    assert [event.answer for event in made.events() if isinstance(event, LimitAnswered)] == ["exit"]
    assert why(made) == [Reason.USAGE_LIMIT]
    assert sum(isinstance(event, Decided) for event in made.events()) == 3


def test_a_stop_from_another_terminal_does_not_wait_for_the_answer(tmp_path: Path) -> None:
    made = project(tmp_path / "p", {"US-001": [[{"limit": 3600}]]}, stories=1)
    told: list[str] = []
    code, seen = at_the_question(made, lambda _: told.append(run_ralph(made, "stop").out))
    assert (code, why(made)) == (1, [Reason.ON_REQUEST]), seen
    assert "has ended: on-request" in told[0]
    assert not [event for event in made.events() if isinstance(event, LimitAnswered | WaitStarted)]
