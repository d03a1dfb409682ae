"""The word about a context that fills up: at 50, 60, 70, 80 and 90 percent, each once."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from support.hook_calls import Answered, LiveRun, call

WORDS = {
    50: ("NOTICE", "Plan to finish this story"),
    60: ("NOTICE", "as a new story"),
    70: ("WARNING", "start nothing else"),
    80: ("WARNING", "write what the next session needs to know"),
    90: ("CRITICAL", "end your turn"),
}


class Transcript:
    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_text("")

    def add(self, **record: Any) -> None:
        with self.path.open("a") as stream:
            stream.write(json.dumps(record) + "\n")

    def usage(self, tokens: int, **more: Any) -> None:
        counts = {"input_tokens": 10, "cache_read_input_tokens": tokens - 30, "cache_creation_input_tokens": 5}
        message = {"role": "assistant", "usage": counts | {"output_tokens": 15}}
        self.add(type="assistant", message=message, **more)


@pytest.fixture
def run(tmp_path: Path) -> LiveRun:
    return LiveRun(tmp_path)


@pytest.fixture
def transcript(tmp_path: Path) -> Transcript:
    return Transcript(tmp_path / "transcript.jsonl")


def after_tool(run: LiveRun, transcript: Transcript | None = None, **values: Any) -> Answered:
    path = str(transcript.path) if transcript else ""
    return run.call("PostToolUse", tool_name="Read", tool_input={}, transcript_path=path, **values)


def percents(run: LiveRun, transcript: Transcript, *wanted: int) -> list[str]:
    """The first word of what is said at each of these, of a window of 200,000."""
    said = []
    for percent in wanted:
        transcript.usage(percent * 2000)
        said.append(after_tool(run, transcript).reason.partition(":")[0])
    return said


def test_each_threshold_is_told_once(run: LiveRun, transcript: Transcript) -> None:
    steps = [10, 49, 50, 51, 59, 60, 69, 70, 70, 80, 89, 90, 95, 99]
    said = percents(run, transcript, *steps)
    assert said == ["", "", "NOTICE", "", "", "NOTICE", "", "WARNING", "", "WARNING", "", "CRITICAL", "", ""]


def test_thresholds_that_were_jumped_over_are_not_told_later(run: LiveRun, transcript: Transcript) -> None:
    assert percents(run, transcript, 10, 85, 60, 88, 91) == ["", "WARNING", "", "", "CRITICAL"]


@pytest.mark.parametrize("mark", WORDS)
def test_the_word_gives_the_number_and_what_to_do(run: LiveRun, transcript: Transcript, mark: int) -> None:
    transcript.usage(mark * 2000)
    done = after_tool(run, transcript)
    assert done.values["hookSpecificOutput"]["hookEventName"] == "PostToolUse"
    words, advice = WORDS[mark]
    told = f"{words}: about {mark}% of the context is used ({mark * 2},000 of 200,000 tokens)"
    assert done.reason.startswith(told)
    assert advice in done.reason
    record = run.recorded()[-1]
    assert (record["answer"], record["category"]) == ("context", "context")


@pytest.mark.parametrize("mark", WORDS)
def test_a_reviewer_is_not_told_to_add_stories_or_write_the_log(
    tmp_path: Path, transcript: Transcript, mark: int
) -> None:
    transcript.usage(mark * 2000)
    told = after_tool(LiveRun(tmp_path, mode="review"), transcript).reason
    assert told.startswith(f"{WORDS[mark][0]}: about {mark}%")
    assert "review" in told or "verdict" in told
    assert "new stor" not in told
    assert "progress log" not in told


def test_a_failed_tool_counts_too(run: LiveRun, transcript: Transcript) -> None:
    transcript.usage(120_000)
    done = run.call("PostToolUseFailure", tool_name="Bash", error="x", transcript_path=str(transcript.path))
    assert done.values["hookSpecificOutput"]["hookEventName"] == "PostToolUseFailure"
    assert done.kind == "context"


def test_sessions_are_told_apart_and_a_new_one_is_told_again(run: LiveRun, transcript: Transcript) -> None:
    transcript.usage(120_000)
    assert after_tool(run, transcript, session_id="one").kind == "context"
    assert after_tool(run, transcript, session_id="one").kind == ""
    assert after_tool(run, transcript, session_id="two").kind == "context"
    run.call("UserPromptSubmit", prompt="go on", session_id="one")
    assert after_tool(run, transcript, session_id="one").kind == ""
    run.call("SessionStart", source="startup", session_id="one")
    assert after_tool(run, transcript, session_id="one").kind == "context"


def test_after_a_compaction_the_context_is_counted_anew(run: LiveRun, transcript: Transcript) -> None:
    assert percents(run, transcript, 90) == ["CRITICAL"]
    (run.state / "context-tokens").write_text("180000")
    run.call("SessionStart", source="compact")
    transcript.add(type="system", subtype="compact_boundary", content="Conversation compacted")
    transcript.add(type="user", message={"content": "a summary"})
    assert after_tool(run, transcript).kind == "", "the old count is no longer true"
    assert percents(run, transcript, 20, 55) == ["", "NOTICE"]


def test_a_sub_agents_context_is_another_one(run: LiveRun, transcript: Transcript) -> None:
    transcript.usage(20_000)
    transcript.usage(190_000, isSidechain=True)
    assert after_tool(run, transcript).kind == ""


def test_without_counts_the_size_is_taken(run: LiveRun, transcript: Transcript) -> None:
    for _ in range(4):
        transcript.add(type="user", message={"content": "x" * 100_000})
    assert after_tool(run, transcript).reason.startswith("NOTICE: about 50%")
    transcript.add(type="user", message={"content": 'a text with "usage" in it'})
    transcript.add(type="assistant", message={"usage": "odd"})
    assert after_tool(run, transcript).kind == ""


def test_what_was_before_a_compaction_has_no_size(run: LiveRun, transcript: Transcript) -> None:
    transcript.add(type="user", message={"content": "x" * 700_000})
    transcript.add(type="system", subtype="compact_boundary")
    assert after_tool(run, transcript).kind == ""
    transcript.add(type="user", message={"content": "x" * 410_000})
    assert after_tool(run, transcript).reason.startswith("NOTICE: about 51%")


def test_a_count_is_found_behind_megabytes_of_output(run: LiveRun, transcript: Transcript) -> None:
    transcript.usage(122_000)
    transcript.add(type="user", message={"content": "x" * 3_000_000})
    for _ in range(50):
        transcript.add(type="user", message={"content": "y" * 20_000})
    assert "(122,000 of 200,000 tokens)" in after_tool(run, transcript).reason


def test_a_torn_last_line_does_no_harm(run: LiveRun, transcript: Transcript) -> None:
    transcript.usage(130_000)
    with transcript.path.open("ab") as stream:
        stream.write(b'{"type": "assistant", "message": {"usage": {"input_tok\xff\n\n')
        stream.write(b'{"half": "usage')
    assert "(130,000 of" in after_tool(run, transcript).reason


def test_the_loops_own_count_comes_first(run: LiveRun, transcript: Transcript) -> None:
    """A session that is not kept has no transcript; the loop has read the client's stream."""
    transcript.usage(20_000)
    (run.state / "context-tokens").write_text("150000")
    assert "about 75%" in after_tool(run, transcript).reason
    for odd in ("", "x", "-5"):
        (run.state / "context-tokens").write_text(odd)
        assert after_tool(run).kind == ""


def test_the_window_is_the_models(run: LiveRun) -> None:
    (run.state / "context-tokens").write_text("150000")
    (run.state / "context-window").write_text("1000000")
    assert after_tool(run).kind == ""
    (run.state / "context-tokens").write_text("505000")
    assert "(505,000 of 1,000,000 tokens)" in after_tool(run).reason


def test_a_context_that_is_larger_than_the_window_has_a_larger_window(run: LiveRun) -> None:
    (run.state / "context-tokens").write_text("600000")
    assert "about 60% of the context is used (600,000 of 1,000,000 tokens)" in after_tool(run).reason


def test_no_transcript_no_word(run: LiveRun, tmp_path: Path) -> None:
    for path in ("", str(tmp_path / "none"), str(tmp_path), "\0", "/dev/null"):
        assert run.call("PostToolUse", tool_name="Read", transcript_path=path).kind == ""


def test_by_hand_it_works_without_a_run(tmp_path: Path, transcript: Transcript) -> None:
    """As the seed tries it: a fake transcript, the alert on stdout, each once; the window from the environment."""
    transcript.usage(5_500)
    given = {"session_id": "x", "transcript_path": str(transcript.path), "tool_name": "Read"}
    env = {"TMPDIR": str(tmp_path), "CLAUDE_CONTEXT_WINDOW": "10000"}
    assert "about 55%" in call("PostToolUse", given, env).reason
    assert call("PostToolUse", given, env).out == ""
    transcript.usage(9_100)
    assert call("PostToolUse", given, env).reason.startswith("CRITICAL")
    call("SessionStart", {"session_id": "x"}, env)
    assert call("PostToolUse", given, env).reason.startswith("CRITICAL")


def test_by_hand_a_link_in_the_temporary_folder_is_not_followed(tmp_path: Path, transcript: Transcript) -> None:
    transcript.usage(190_000)
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / f"ralph-context-{os.getuid()}-x").symlink_to(victim)
    given = {"session_id": "x", "transcript_path": str(transcript.path), "tool_name": "Read"}
    call("PostToolUse", given, {"TMPDIR": str(tmp_path)})
    assert victim.read_text() == "precious"
