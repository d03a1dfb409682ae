"""`ralph log --agent`: a session's transcript, and where its raw output is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.loops import CONFIG, LoopProject, Scenario, run_ralph

LONG = "\\n".join(f"line {number}" for number in range(1, 31))
SCRIPT = f"""\
stories:
  US-001:
    - implement:
        - say: "I start.\\n\\e]0;owned\\aSecond line."
        - run: printf '{LONG}'
        - run: "echo broken; exit 3"
        - say: Not finished.
    - implement:
        - write: {{path: src/one.txt, text: "one\\n"}}
        - claim: done
"""
COMMAND = """\
agent: {name: command, command: [sh, agent.sh]}
review: {enabled: false}
archive: {on_complete: false}
"""
AGENT = """\
echo "reading the prompt"
printf 'half \\033[2J a screen\\n'
echo "a warning" >&2
echo two > src/two.txt
echo '{"claim": "done"}' > "$RALPH_REQUEST_FILE"
printf 'without an end of line'
"""


@pytest.fixture
def made(tmp_path: Path) -> LoopProject:
    return LoopProject.make(tmp_path / "made", Scenario("feature", {"US-001": "Say one"}, SCRIPT, [], config=CONFIG))


def test_text_calls_and_results_are_readable(made: LoopProject) -> None:
    assert run_ralph(made).code == 0
    shown = run_ralph(made, "log", "--agent", "1")
    assert (shown.code, shown.err) == (0, "")
    lines = shown.out.splitlines()
    assert lines[0] == "iteration 1: implement US-001 Say one"
    for line in ("I start.", "Second line.", "    line 8", "    … 22 more lines", "    broken", "Not finished."):
        assert line in lines
    assert "    line 9" not in lines
    assert any(line.startswith("⚙ Bash printf") for line in lines)
    assert "failed" in lines[lines.index("    broken") + 1]
    assert any(line.startswith("result: ok, 0 tokens, $0.00") for line in lines)
    assert "\x1b" not in shown.out
    assert "owned" not in shown.out
    last = run_ralph(made, "log", "--agent")
    assert last.out.startswith("iteration 2: implement US-001 Say one, attempt 2\n")


def test_the_transcript_of_any_command_line_is_what_it_printed(made: LoopProject) -> None:
    made.write(".ralph/config.yaml", COMMAND)
    made.write("agent.sh", AGENT)
    made.git("add", "-A")
    made.git("commit", "-qm", "another agent")
    done = run_ralph(made, "run", "--plain", "--verbose")
    assert done.code == 0, done.out + done.err
    assert "  reading the prompt" in done.out
    lines = run_ralph(made, "log", "--agent").out.splitlines()
    for line in ("reading the prompt", "half  a screen", "without an end of line", "stderr:", "    a warning"):
        assert line in lines


def test_a_number_that_is_none_is_refused_with_the_way_to_say_it(made: LoopProject) -> None:
    assert run_ralph(made).code == 0
    for wanted, words in (("nine", "is not the number of an iteration"), ("9", "iteration 9 has no session")):
        refused = run_ralph(made, "log", "--agent", wanted)
        assert refused.code == 64
        assert words in refused.err
    assert run_ralph(made, "log", "--agent", "--follow").code == 64
    events = [json.loads(line) for line in run_ralph(made, "log", "--agent", "1", "--json").out.splitlines()]
    assert [event["type"] for event in events if event["type"] != "usage"][:2] == ["init", "text"]


def test_paths_name_the_raw_output_of_the_last_run(made: LoopProject) -> None:
    assert "raw_output" not in run_ralph(made, "paths", "--json").json
    assert run_ralph(made).code == 0
    raw = Path(run_ralph(made, "paths", "--json").json["raw_output"])
    assert b"I start." in (raw / "0001-agent.log").read_bytes()
