"""Nights with the real client: what killed and cut sessions cost, and what does not end a run."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ralph.host.process.tree import marked
from support.clients import CLIENT, NO_SANDBOX, Project, claim, say, use, write
from support.processes import wait_for

pytestmark = [
    pytest.mark.client,
    pytest.mark.skipif(not CLIENT.exists(), reason="the real client is not installed in .venv/client"),
]

READ = {"usage": {"input_tokens": 4_000, "output_tokens": 20}}


def ask(project: Project, *args: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "ralph", *args],
        cwd=project.root,
        env=project.environment(),
        capture_output=True,
        check=True,
        timeout=60,
    )
    return done.stdout.decode()


def cost(project: Project, *args: str) -> Any:
    return json.loads(ask(project, "cost", "--json", *args))


def kill_when(project: Project, process: subprocess.Popen[bytes], requests: int) -> None:
    """Kill the loop and its client, as a system without memory does, once the model was asked so often."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        lines = project.requests.read_text().split("\n")[:-1] if project.requests.exists() else []
        if sum(bool(json.loads(line)["request"].get("tools")) for line in lines) >= requests:
            break
        time.sleep(0.05)
    else:
        raise AssertionError("the model was not asked")
    time.sleep(0.5)  # the last answer is on its way through the client to the raw log
    kill(project, process)


def kill(project: Project, process: subprocess.Popen[bytes]) -> None:
    run = next(project.state.glob("*/runs/*")).name
    (inside,) = [int(pid) for pid in _children(process.pid)]
    os.kill(inside, signal.SIGKILL)
    for left in marked("RALPH_RUN", run):
        os.kill(left.pid, signal.SIGKILL)
    process.communicate(timeout=30)


def _children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


@pytest.mark.skipif(sys.platform != "linux", reason="finds the loop below the model server in /proc")
def test_a_killed_session_costs_what_its_raw_output_shows(tmp_path: Path) -> None:
    project = Project(tmp_path)
    turns = [*[use("Bash", command=f"echo {n}") | READ for n in range(3)], {"say": "never", "wait": 60}]
    process = project.start(turns, "--max-cost", "2")
    kill_when(project, process, 4)
    total = cost(project)["total"]
    assert total["tokens"]["input"] == 12_000, "three answers of 4,000 tokens each were read"
    assert total["usd"] == pytest.approx(total["estimated_usd"])
    assert 0.01 < total["usd"] < 0.5, "neither nothing nor the $2.00 that were set aside"
    assert "~$0" in ask(project, "cost")
    ran = project.run([write(project, "s1.txt"), claim(project), say()], "--max-cost", "2")
    assert (ran.code, ran.done()) == (0, [True]), ran.out
    assert re.search(r"was killed during a session; \$0\.\d+ are counted for it \(from its raw output\)", ran.out)
    killed, finished = ran.of("Charged")
    assert (killed["basis"], finished["basis"]) == ("estimated", "reported")
    after = cost(project)["total"]
    assert after["usd"] == pytest.approx(killed["usd"] + finished["usd"], abs=1e-6)
    assert killed["usd"] == pytest.approx(total["usd"], abs=1e-6), "the same figure before and after the recovery"


def test_a_session_that_runs_out_of_time_costs_what_it_read_and_the_summary_agrees(tmp_path: Path) -> None:
    project = Project(tmp_path)
    turns = [*[use("Bash", command=f"echo {n}") | READ for n in range(3)], {"say": "never", "wait": 60}]
    ran = project.run(turns, "-n", "1", "-t", "8s")
    assert ran.verdicts() == [("S-1", "timed-out")], ran.out
    (charged,) = ran.of("Charged")
    assert charged["basis"] == "estimated"
    assert charged["tokens"] >= 12_000
    assert charged["usd"] > 0.01
    total = cost(project)["total"]
    assert total["usd"] == pytest.approx(charged["usd"], abs=1e-6)
    summary = next(line for line in ran.out.splitlines() if "used" in line)
    assert f"${charged['usd']:.2f}" in summary, "the summary and `ralph runs cost` show the same"


def test_two_refusals_after_accepted_work_do_not_end_the_night(tmp_path: Path) -> None:
    """A service answers 401 twice, half a second apart, to a key that worked before and works again."""
    project = Project(tmp_path, stories=2)
    first = [write(project, "s1.txt"), claim(project), say()]
    second = [write(project, "s2.txt"), claim(project), say()]
    ran = project.run([*first, {"error": 401, "times": 2}, *second])
    assert ran.verdicts() == [("S-1", "accepted"), ("S-2", "accepted")], ran.out
    assert ran.code == 0


@pytest.mark.slow
def test_a_key_that_stays_refused_is_tried_once_more_after_a_pause_and_then_ends_the_run(tmp_path: Path) -> None:
    project = Project(tmp_path, stories=2)
    first = [write(project, "s1.txt"), claim(project), say()]
    ran = project.run([*first, {"error": 401, "times": 0, "headers": {"x-should-retry": "false"}}])
    assert ran.verdicts() == [("S-1", "accepted"), ("S-2", "transport"), ("S-2", "misconfigured")], ran.out
    (wait,) = ran.of("WaitStarted")
    assert "refused the agent's key, which had worked before" in wait["why"]
    assert ran.code == 78
    assert "log the agent in" in ran.of("IterationEnded")[-1]["headline"]


def test_a_key_that_never_worked_ends_the_run_at_the_second_refusal(tmp_path: Path) -> None:
    ran = Project(tmp_path).run([{"error": 401, "times": 0}])
    assert (ran.code, ran.verdicts()) == (78, [("S-1", "misconfigured")]), ran.out


def test_no_credit_is_not_a_missing_login(tmp_path: Path) -> None:
    low = {"error": 400, "kind": "invalid_request_error", "say": "Your credit balance is too low to access the API."}
    ran = Project(tmp_path).run([low | {"times": 0}])
    assert (ran.code, ran.verdicts()) == (78, [("S-1", "misconfigured")]), ran.out
    headline = ran.of("IterationEnded")[0]["headline"]
    assert "add credit to the agent's account" in headline
    assert "log the agent in" not in headline


def test_a_session_that_a_budget_cuts_uses_no_attempt_and_none_starts_that_the_rest_does_not_pay(
    tmp_path: Path,
) -> None:
    project = Project(tmp_path, stories=1)
    dear = {"usage": {"input_tokens": 60_000, "output_tokens": 20}}
    long = [use("Bash", command=f"echo {n}") | dear for n in range(20)]
    ran = project.run(long, "--max-cost", "1")
    assert ran.code == 4, ran.out
    (iteration,) = ran.of("IterationEnded")
    assert (iteration["kind"], iteration["attempts"]) == ("rejected", 0), "cut by the budget: no attempt is used"
    (charged,) = ran.of("Charged")
    assert charged["extent"] == "cut"
    again = project.run([say()], "--max-cost", "0.5")
    assert again.code == 4, again.out
    assert len(again.of("AgentStarted")) == 1, "only that of the first run"
    assert "do not pay for another session of S-1 (at least $1." in again.out


@pytest.mark.skipif(sys.platform != "linux", reason="finds the loop below the model server in /proc")
def test_a_kill_during_the_checks_repeats_the_checks_and_not_the_paid_session(tmp_path: Path) -> None:
    project = killed_during_checks(tmp_path)
    ran = project.run([say("nobody asks")], SLOW="0")
    assert (ran.code, ran.done()) == (0, [True]), ran.out
    assert len(ran.of("AgentStarted")) == 1, "the session was not repeated"
    assert ran.verdicts() == [("S-1", "accepted")]
    assert "was killed during its checks; they ran again, and its work was accepted" in ran.out


def killed_during_checks(tmp_path: Path, *options: str) -> Project:
    """The check of its story takes as long as SLOW says."""
    slow = {"name": "slow", "command": "test ! -f s1.txt || sleep $SLOW"}
    project = Project(tmp_path, checks=[slow], agent={"command": [str(CLIENT)], "env": ["SLOW"]})
    process = project.start([write(project, "s1.txt"), claim(project), say()], *options, SLOW="60")
    project.wait_for('"SessionTaken"', process)
    kill(project, process)
    wait_for(lambda: list(project.state.glob("*/runs/*/agents-ended")))
    return project


@pytest.mark.needs("bwrap")
@pytest.mark.skipif(sys.platform != "linux", reason="finds the loop below the model server in /proc")
def test_a_file_that_somebody_made_meanwhile_stays_and_the_work_waits_on_its_branch(tmp_path: Path) -> None:
    project = killed_during_checks(tmp_path)
    (project.root / "s1.txt").write_text("by a person\n")
    ran = project.run([say("nobody asks")], SLOW="0")
    assert ran.verdicts() == [("S-1", "accepted")], ran.out
    assert "your checkout: it has changes in the same files (" in ran.out
    assert "`git merge ralph/work/work` brings it in" in ran.out
    assert (project.root / "s1.txt").read_text() == "by a person\n"


@pytest.mark.skipif(sys.platform != "linux", reason="finds the loop below the model server in /proc")
def test_work_that_somebody_changed_after_the_kill_is_not_taken_for_the_sessions(tmp_path: Path) -> None:
    project = killed_during_checks(tmp_path, *NO_SANDBOX)
    time.sleep(0.2)  # file systems round the time of a write
    (project.root / "s1.txt").write_text("by a person\n")
    ran = project.run([], *NO_SANDBOX, SLOW="0")
    assert ran.verdicts() == [("S-1", "interrupted")], ran.out
    assert "left as they are, because the agent did not change them: s1.txt" in ran.out
    assert (project.root / "s1.txt").read_text() == "by a person\n"
    (project.root / "s1.txt").rename(project.root / "mine.txt")
    project.commit()
    ran = project.run([write(project, "s1.txt"), claim(project), say()], *NO_SANDBOX, SLOW="0")
    assert ran.verdicts()[-1] == ("S-1", "accepted"), ran.out
