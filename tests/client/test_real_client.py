"""The real Claude Code client, offline, driven by a scripted model on loopback. What it does here, it does for people.

No command in these scripts would do harm if a hook let it through.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.clients import CLIENT, NO_SANDBOX, Project, Ran, Turn, claim, say, use, write
from support.tools import is_everything

pytestmark = [
    pytest.mark.client,
    pytest.mark.skipif(
        not CLIENT.exists(),
        reason="THE REAL CLIENT IS NOT TESTED: claude-agent-sdk could not be installed into .venv/client",
    ),
]


FAILING = """import unittest

class T(unittest.TestCase):
    def test_it(self):
        self.fail()
"""


def sound(ran: Ran) -> None:
    """What holds after every run, whatever happened in it."""
    assert "Traceback" not in ran.out
    assert ran.leftovers() == []
    assert ran.of("RunEnded"), ran.out


def strays() -> set[Path]:
    """Where the client would leave files if it were not told another place.

    Not its `cc-socks-UID`, which all its processes share: it is there if the path of TMPDIR is too long for a socket,
    as in tests that run beside this one.
    """
    return {path for pattern in ("*claude*", "fswatch-probe*") for path in Path("/tmp").glob(pattern)}


def test_three_stories_from_start_to_end(tmp_path: Path) -> None:
    project = Project(tmp_path, stories=3)
    turns = [turn for n in (1, 2, 3) for turn in (write(project, f"s{n}.txt"), claim(project), say())]
    ran = project.run(turns)
    sound(ran)
    assert ran.code == 0, ran.out
    assert ran.done() == [True, True, True]
    assert ran.verdicts() == [("S-1", "accepted"), ("S-2", "accepted"), ("S-3", "accepted")]
    [first, *_] = ran.of("AgentEnded")
    assert first["outcome"]["tokens"]["input"] > 0
    assert first["outcome"]["cost_usd"] > 0
    assert first["outcome"]["model"]


def test_a_file_is_read_before_it_is_edited_and_a_new_one_is_free(tmp_path: Path) -> None:
    project = Project(tmp_path)
    old = str(project.root / "old.txt")
    turns = [
        use("Edit", file_path=old, old_string="old", new_string="new"),
        use("Write", file_path=old, content="overwritten\n"),
        use("Read", file_path=old),
        use("Edit", file_path=old, old_string="old", new_string="new"),
        write(project, "s1.txt"),
        use("Edit", file_path=str(project.root / "s1.txt"), old_string="x", new_string="y"),
        claim(project),
        say(),
    ]
    ran = project.run(turns)
    sound(ran)
    assert ran.code == 0, ran.out
    assert (project.root / "old.txt").read_text() == "new\n"
    assert (project.root / "s1.txt").read_text() == "y\n"
    denied = [e for e in ran.of("HookAnswered") if e["category"] == "read-before-edit"]
    assert [e["tool"] for e in denied] == ["Edit", "Write"]
    assert "has not been read in this session" in ran.told()


DENIED = [
    (use("Bash", command="git push origin main"), "push"),
    (use("Bash", command="rm -rf /var/lib/ralph-test-that-is-not-there"), "outside"),
    (use("Write", file_path="{root}/.ralph/config.yaml", content="{}\n"), "must not change"),
    (use("Write", file_path="{outside}/note.txt", content="x\n"), "outside the workspace"),
    (use("Bash", command="echo exit 0 > {root}/.git/hooks/pre-commit"), "git's hooks"),
]


@pytest.mark.parametrize(("call", "words"), DENIED)
@pytest.mark.needs("bwrap")
def test_what_is_denied_does_not_happen_and_the_model_is_told_why(tmp_path: Path, call: Turn, words: str) -> None:
    ran = _denied(tmp_path, call, words)
    assert "everything inside its sandbox" in ran.out


@pytest.mark.parametrize(
    ("call", "words"),
    [*DENIED, (use("Write", file_path="{root}/.git/hooks/pre-commit", content="exit 0\n"), "belongs to git")],
)
def test_without_a_sandbox_the_same_is_denied(tmp_path: Path, call: Turn, words: str) -> None:
    ran = _denied(tmp_path, call, words, *NO_SANDBOX)
    assert "inside its sandbox" not in ran.out


def _denied(tmp_path: Path, call: Turn, words: str, *options: str) -> Ran:
    project = Project(tmp_path)
    outside = Path("/var/lib") / f"ralph-test-{os.getpid()}"
    text = json.dumps(call).replace("{root}", str(project.root)).replace("{outside}", str(outside))
    before = (project.root / ".ralph/config.yaml").read_text()
    ran = project.run([json.loads(text), write(project, "s1.txt"), claim(project), say()], *options)
    sound(ran)
    assert ran.code == 0, ran.out
    assert [e for e in ran.of("HookAnswered") if e["answer"] == "deny"], ran.out
    assert words in ran.told()
    assert (project.root / ".ralph/config.yaml").read_text() == before
    assert not (project.root / ".git/hooks/pre-commit").exists()
    assert not outside.exists()
    return ran


@pytest.mark.needs("bwrap")
def test_what_the_sandbox_itself_refuses_the_model_is_told_too(tmp_path: Path) -> None:
    """The client looks at a path before it asks a hook: inside, `.git` is a file."""
    project = Project(tmp_path)
    ran = project.run([write(project, ".git/hooks/pre-commit"), write(project, "s1.txt"), claim(project), say()])
    sound(ran)
    assert ran.done() == [True], ran.out
    assert "ENOTDIR: not a directory" in ran.told()
    assert not (project.root / ".git/hooks/pre-commit").exists()


def test_the_stop_hook_says_no_until_the_plan_can_be_read(tmp_path: Path) -> None:
    project = Project(tmp_path)
    plan = project.root / ".ralph/work/prd.json"
    good = plan.read_text()
    turns = [
        write(project, "s1.txt"),
        use("Read", file_path=str(plan)),
        use("Write", file_path=str(plan), content="{broken"),
        say("Finished!"),
        say("Really."),
        use("Write", file_path=str(plan), content=good),
        claim(project),
        say(),
    ]
    ran = project.run(turns)
    sound(ran)
    assert ran.code == 0, ran.out
    blocks = [e for e in ran.of("HookAnswered") if e["answer"] == "block"]
    assert len(blocks) == 2
    assert "Stop hook feedback" in ran.told()


def test_a_client_that_overrides_the_stop_hook_does_not_get_past_the_loop(tmp_path: Path) -> None:
    project = Project(tmp_path, max_loops_per_task=1)
    plan = project.root / ".ralph/work/prd.json"
    turns = [
        use("Read", file_path=str(plan)),
        use("Write", file_path=str(plan), content="{broken"),
        {"say": "Finished!\n<promise>COMPLETE</promise>", "times": 0},
    ]
    ran = project.run(turns, CLAUDE_CODE_STOP_HOOK_BLOCK_CAP="2")
    sound(ran)
    assert ran.code == 5, ran.out
    assert ran.done() == [False]
    assert "could not be read and was restored" in ran.out


def test_the_model_is_warned_when_its_context_fills_up(tmp_path: Path) -> None:
    project = Project(tmp_path)
    full = {"usage": {"input_tokens": 150_000}}
    turns = [
        use("Read", file_path=str(project.root / "old.txt")) | full,
        use("Glob", pattern="*.txt") | full,
        write(project, "s1.txt"),
        claim(project),
        say(),
    ]
    ran = project.run(turns)
    sound(ran)
    assert ran.code == 0, ran.out
    warned = [e for e in ran.of("HookAnswered") if e["category"] == "context"]
    assert len(warned) == 1, "each threshold is told once"
    assert "WARNING: about 75% of the context is used" in ran.told()


def test_a_usage_limit_is_waited_for_and_costs_no_attempt(tmp_path: Path) -> None:
    project = Project(tmp_path)
    reset = int(time.time()) + 12
    limited = {
        "anthropic-ratelimit-unified-status": "rejected",
        "anthropic-ratelimit-unified-reset": str(reset),
        "anthropic-ratelimit-unified-representative-claim": "five_hour",
    }
    turns = [{"error": 429, "headers": limited}, write(project, "s1.txt"), claim(project), say()]
    ran = project.run(turns, CLAUDE_CODE_OAUTH_TOKEN="any", ANTHROPIC_API_KEY="")
    sound(ran)
    assert ran.code == 0, ran.out
    assert ran.verdicts() == [("S-1", "limit"), ("S-1", "accepted")]
    assert [e["attempt"] for e in ran.of("IterationStarted")] == [1, 1]
    assert reset <= ran.of("WaitStarted")[0]["until"] <= reset + 1


def test_a_usage_limit_in_the_middle_of_the_work_saves_it_and_costs_no_attempt(tmp_path: Path) -> None:
    project = Project(tmp_path)
    limited = {
        "anthropic-ratelimit-unified-status": "rejected",
        "anthropic-ratelimit-unified-reset": str(int(time.time()) + 14),
        "anthropic-ratelimit-unified-representative-claim": "five_hour",
    }
    turns = [write(project, "half.txt"), {"error": 429, "headers": limited}]
    turns += [write(project, "s1.txt"), claim(project), say()]
    ran = project.run(turns, CLAUDE_CODE_OAUTH_TOKEN="any", ANTHROPIC_API_KEY="")
    sound(ran)
    assert ran.code == 0, ran.out
    assert ran.verdicts() == [("S-1", "limit"), ("S-1", "accepted")]
    assert [e["attempt"] for e in ran.of("IterationStarted")] == [1, 1]
    assert len(ran.of("RescueSaved")) == len(ran.of("WaitStarted")) == 1


def test_a_wrong_key_stops_at_once_with_the_fix(tmp_path: Path) -> None:
    project = Project(tmp_path, stories=2)
    ran = project.run([{"error": 401, "times": 0}])
    sound(ran)
    assert ran.code == 78, ran.out
    assert ran.verdicts() == [("S-1", "misconfigured")]
    [ended] = ran.of("AgentEnded")
    assert ended["ended"]["seconds"] < 25, "the client alone takes half a minute and more"
    assert "log the agent in" in ran.out


def test_an_overloaded_model_is_tried_again(tmp_path: Path) -> None:
    project = Project(tmp_path)
    ran = project.run([{"error": 529, "times": 2}, write(project, "s1.txt"), claim(project), say()])
    sound(ran)
    assert ran.code == 0, ran.out
    assert "S-1" in ran.verdicts()[-1]


def test_an_empty_answer_is_no_answer(tmp_path: Path) -> None:
    project = Project(tmp_path)
    ran = project.run([{"nothing": True, "times": 2}, write(project, "s1.txt"), claim(project), say()])
    sound(ran)
    assert ran.code == 0, ran.out
    assert ran.verdicts() == [("S-1", "transport"), ("S-1", "accepted")]


def test_finished_work_is_kept_when_the_time_is_up(tmp_path: Path) -> None:
    project = Project(tmp_path, timeout="12s")
    ran = project.run([write(project, "s1.txt"), claim(project), say() | {"wait": 60}])
    sound(ran)
    assert ran.code == 0, ran.out
    assert ran.of("AgentEnded")[0]["ended"]["how"] == "timed-out"
    assert ran.verdicts() == [("S-1", "accepted")]


def test_sigterm_leaves_nothing_alive_and_the_next_run_goes_on(tmp_path: Path) -> None:
    project = Project(tmp_path)
    slow = use("Bash", command="python3 -c 'import time; time.sleep(300)'")
    process = project.start([slow])
    project.wait_for('"tool_use"', process)
    time.sleep(1)
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=60)
    ran = Ran(project, process.returncode, out.decode())
    sound(ran)
    assert ran.code == 143, ran.out
    assert ran.verdicts() == [("S-1", "interrupted")]
    again = project.run([write(project, "s1.txt"), claim(project), say()])
    assert again.code == 0, again.out


@pytest.mark.parametrize("how", ["bare", "disabled"])
def test_a_client_without_our_hooks_is_ended_before_it_does_harm(tmp_path: Path, how: str) -> None:
    agent = {"command": [str(CLIENT), *(["--bare"] if how == "bare" else [])]}
    project = Project(tmp_path, agent=agent)
    if how == "disabled":
        (project.root / ".claude").mkdir()
        (project.root / ".claude/settings.json").write_text('{"disableAllHooks": true}')
        project.commit()
    ran = project.run([use("Bash", command="sleep 2; touch harm.txt"), write(project, "s1.txt"), claim(project), say()])
    sound(ran)
    assert ran.code == 78, ran.out
    assert "without Ralph's hooks" in ran.out
    assert not (project.root / "harm.txt").exists()


def test_hooks_of_the_project_that_crash_or_hang_disturb_neither_client_nor_loop(tmp_path: Path) -> None:
    project = Project(tmp_path)
    broken = [{"type": "command", "command": "exit 3"}, {"type": "command", "command": "sleep 60", "timeout": 1}]
    (project.root / ".claude").mkdir()
    (project.root / ".claude/settings.json").write_text(
        json.dumps({"hooks": {"PreToolUse": [{"matcher": "*", "hooks": broken}]}})
    )
    project.commit()
    ran = project.run([write(project, "s1.txt"), claim(project), say()])
    sound(ran)
    assert ran.code == 0, ran.out


def test_failing_tests_undo_the_work_at_once_where_that_is_wanted(tmp_path: Path) -> None:
    project = Project(tmp_path, rollback="immediate", max_loops_per_task=1)
    (project.root / "test_it.py").write_text(FAILING)
    project.commit()
    failing = use("Bash", command="python3 -m unittest -q")
    late = say("Oh.") | {"wait": 8}  # a scripted model is faster than any loop
    ran = project.run([write(project, "s1.txt"), failing, late, claim(project), say()])
    sound(ran)
    assert ran.code == 5, ran.out
    assert "the iteration is rolled back at once" in ran.out
    assert not (project.root / "s1.txt").exists()


def test_a_client_that_stays_after_its_result_is_closed(tmp_path: Path) -> None:
    wrapper = tmp_path / "lingering"
    wrapper.write_text(f'#!/bin/sh\n"{CLIENT}" "$@"\nexec sleep 300\n')
    wrapper.chmod(0o755)
    project = Project(tmp_path, agent={"command": [str(wrapper)]})
    ran = project.run([write(project, "s1.txt"), claim(project), say()])
    sound(ran)
    assert ran.code == 0, ran.out
    assert ran.of("AgentEnded")[0]["ended"]["how"] == "lingered"


def test_a_long_night_runs_through_at_default_settings_and_leaves_no_file_elsewhere(tmp_path: Path) -> None:
    count = 30 if is_everything() else 8
    project = Project(tmp_path, stories=count)
    before = strays()
    turns = [turn for n in range(1, count + 1) for turn in (write(project, f"s{n}.txt"), claim(project), say())]
    ran = project.run(turns, seconds=400)
    sound(ran)
    assert ran.code == 0, ran.out
    assert ran.done() == [True] * count
    assert strays() == before
    assert not list((project.home / ".claude").glob("projects/**/*.jsonl")), "sessions are not kept"


def test_a_claim_is_made_in_the_file_that_the_prompt_names(tmp_path: Path) -> None:
    """At default settings: nothing is set but which program the client is."""
    project = Project(tmp_path, stories=2, agent={"command": [str(CLIENT)]})
    command = [sys.executable, "-m", "ralph", "prompt"]
    printed = subprocess.run(command, cwd=project.root, env=project.environment(), capture_output=True, check=True)
    [place] = re.findall(r"write one JSON object to `([^`]+)` \(`\$RALPH_REQUEST_FILE`\)", printed.stdout.decode())
    told = [write(project, place, '{"claim": "done", "learn": ["story files live at the top"]}'), say()]
    ran = project.run([write(project, "s1.txt"), *told, write(project, "s2.txt"), *told])
    sound(ran)
    assert ran.code == 0, ran.out
    assert ran.done() == [True, True]
    assert f"write one JSON object to `{place}`" in ran.told()
    assert "story files live at the top" in (project.root / ".ralph/work/progress.txt").read_text()
    assert not (project.root / place).exists()


def test_a_worker_does_a_story_and_the_merge_queue_takes_it(tmp_path: Path) -> None:
    project = Project(tmp_path)
    ran = project.run([write(project, "s1.txt"), claim(project), say()], "--parallel", "2")
    sound(ran)
    assert ran.code == 0, ran.out
    assert ran.done() == [True]
    assert ran.verdicts() == [("S-1", "accepted")]
    assert [event["story"] for event in ran.of("Queued")] == ["S-1"]
    assert [event["iteration"] for event in ran.of("Landing")] == [1]
    assert (project.root / "s1.txt").is_file()
