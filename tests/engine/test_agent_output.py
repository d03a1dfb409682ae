"""What an agent prints and how it starts, through `ralph run`: floods, torn streams, missing programs, editors."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ralph.core.events import AgentEnded, IterationEnded, Noted
from support.loops import LoopProject, finish, run_ralph, shell_project, start_ralph
from support.processes import wait_for

BENCH = Path(__file__).parents[2] / "bench" / "agent_output.py"


def notes(made: LoopProject) -> list[str]:
    return [event.text for event in made.events() if isinstance(event, Noted)]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "most"), [("yes", 12), ("yes-claude", 12), ("short-lines", 25), ("json-text", 150)])
def test_reading_costs_a_small_multiple_of_a_bare_read(kind: str, most: float) -> None:
    """Measured as CPU time against a loop that only reads: about 4, 5, 8 and 50 here."""
    argv = [sys.executable, str(BENCH), "--json", "--mb", "60", "--kind", kind]
    result = json.loads(subprocess.run(argv, capture_output=True, check=True, timeout=300).stdout)
    assert result["code"] == 0
    assert result["cpu_ratio"] < most, result


def test_a_flood_of_output_is_read_to_its_end_and_the_cut_log_is_reported(tmp_path: Path) -> None:
    body = "yes | head -c 150000000\necho one > src/one.txt\necho '<promise>COMPLETE</promise>'\n"
    made = shell_project(tmp_path, body)
    begun = time.monotonic()
    done = run_ralph(made)
    assert done.code == 0, done
    assert time.monotonic() - begun < 60
    assert [text for text in notes(made) if "150 MB of output; only the first 25 MB and the last" in text]
    assert "only the first 25 MB" in done.out + done.err


def test_a_stream_that_breaks_off_in_its_last_line_is_named(tmp_path: Path) -> None:
    event = '{"type":"assistant","message":{"content":[{"type":"text","text":"I am hal'
    made = shell_project(tmp_path, f"printf '%s' '{event}'\nexit 1\n", name="claude", canary="off", max_iterations=1)
    done = run_ralph(made)
    ended = next(event for event in made.events() if isinstance(event, IterationEnded))
    assert "breaks off in the middle of its last line" in ended.headline
    assert "breaks off in the middle of its last line" in done.out + done.err


def test_a_complete_last_line_needs_no_newline(tmp_path: Path) -> None:
    event = '{"type":"result","subtype":"success","is_error":false,"result":"done"}'
    made = shell_project(tmp_path, f"printf '%s' '{event}'\n", name="claude", canary="off", max_iterations=1)
    run_ralph(made)
    assert next(event for event in made.events() if isinstance(event, AgentEnded)).outcome.finished
    assert not [text for text in notes(made) if "breaks off" in text]


@pytest.mark.parametrize(
    "body",
    [
        "sleep 1; exec no-such-agent --now\n",
        "echo starting; sleep 1; exit 126\n",
        "echo 'wrapper: ./agent: cannot execute: required file not found' >&2; exit 1\n",
    ],
)
def test_an_agent_that_cannot_be_executed_ends_the_run_at_once(tmp_path: Path, body: str) -> None:
    made = shell_project(tmp_path, body)
    done = run_ralph(made)
    ended = [event for event in made.events() if isinstance(event, IterationEnded)]
    assert [event.kind.value for event in ended] == ["misconfigured"]
    assert "could not be executed" in done.out + done.err
    assert "agent.command" in done.out + done.err


def test_work_that_ends_with_an_unknown_command_is_judged_as_work(tmp_path: Path) -> None:
    made = shell_project(tmp_path, "echo one > src/one.txt\necho '<promise>COMPLETE</promise>'\nno-such-program\n")
    assert run_ralph(made).code == 0
    assert next(event for event in made.events() if isinstance(event, IterationEnded)).kind.value == "accepted"


def test_nothing_an_agent_or_a_check_starts_waits_for_a_person(tmp_path: Path) -> None:
    """An editor that would never return is configured by the user; git must not start it."""
    body = (
        "echo one > src/one.txt && git add -A && git commit -q -m one && git commit -q --amend\n"
        "git rebase -q -i HEAD~1 && git log > /dev/null\n"
        "echo '<promise>COMPLETE</promise>'\n"
    )
    made = shell_project(tmp_path, body, checks=["git var GIT_EDITOR | grep -x true && test $GIT_TERMINAL_PROMPT = 0"])
    config = made.home / ".gitconfig"
    config.write_text(
        config.read_text() + "[core]\n\teditor = sleep 600; true\n[sequence]\n\teditor = sleep 600; true\n"
    )
    begun = time.monotonic()
    done = run_ralph(made, EDITOR="sleep 600", VISUAL="sleep 600")
    assert done.code == 0, done
    assert time.monotonic() - begun < 60


def test_a_promise_in_a_code_block_is_no_claim(tmp_path: Path) -> None:
    body = "echo one > src/one.txt\nprintf 'I would write\\n```\\n<promise>COMPLETE</promise>\\n```\\nlater.\\n'\n"
    made = shell_project(tmp_path, body, max_iterations=1)
    run_ralph(made)
    ended = next(event for event in made.events() if isinstance(event, IterationEnded))
    assert ended.kind.value == "partial"


ADD = """
{python} - <<'END'
import json
path = "{plan}"
text = open(path).read()
if path.endswith(".json"):
    plan = json.loads(text)
    story = plan["userStories"][0]
    plan["userStories"] += [dict(story, id="US-%06d" % n, title="More %d" % n, priority=n) for n in range(10, 100010)]
    text = json.dumps(plan, indent=2)
else:
    items = "".join("- [ ] US-%06d: More %d\\n" % (n, n) for n in range(10, 100010))
    text = text.replace("\\n## Details", items + "\\n## Details")
open(path, "w").write(text)
END
echo one > src/one.txt
echo '<promise>COMPLETE</promise>'
"""


@pytest.mark.parametrize("layout", ["tasks.json", "plan.md"])
def test_a_hundred_thousand_added_stories_are_refused_in_bounded_time(tmp_path: Path, layout: str) -> None:
    made = shell_project(tmp_path, "", layout=layout, max_iterations=1)
    add = ADD.format(python=sys.executable, plan=made.plan.relative_to(made.root))
    (tmp_path / "agent.sh").write_text(f"cat > /dev/null\n{add}")
    begun = time.monotonic()
    done = run_ralph(made)
    assert time.monotonic() - begun < 60
    ended = next(event for event in made.events() if isinstance(event, IterationEnded))
    assert ended.kind.value == "accepted", done
    assert "100,000 stories were added to the plan; one session may add 1,000" in done.out + done.err
    assert made.plan.stat().st_size < 10_000
    assert sum(path.stat().st_size for path in made.journals()) < 1_000_000


def test_a_signal_while_such_a_plan_is_judged_is_obeyed_at_once(tmp_path: Path) -> None:
    made = shell_project(tmp_path, "", max_iterations=1)
    add = ADD.format(python=sys.executable, plan=made.plan.relative_to(made.root))
    (tmp_path / "agent.sh").write_text(f"cat > /dev/null\n{add}")
    process = start_ralph(made)
    wait_for(lambda: any(isinstance(event, AgentEnded) for event in made.events()))
    begun = time.monotonic()
    process.terminate()
    assert finish(process).code == 143
    assert time.monotonic() - begun < 30
