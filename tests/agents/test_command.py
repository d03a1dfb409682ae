from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from ralph.agents import command
from ralph.core.agent import Outcome, Text, add
from ralph.core.errors import ConfigError, SetupError
from ralph.core.plan import Mode
from ralph.core.ports import Session
from support.sessions import session_of


def session(cwd: Path, *words: str, **fields: Any) -> Session:
    return session_of(**{"prompt": "Do it.", "cwd": cwd, "command": words, **fields})


def fill(cwd: Path, *words: str, **fields: Any) -> tuple[str, ...]:
    return command.launch(session(cwd, "agent", *words, **fields), "/bin/agent").argv[1:]


def test_placeholders_are_filled_in_word_by_word(tmp_path: Path) -> None:
    words = fill(
        tmp_path,
        *("{story}", "--title={title}", "{mode}/{iteration}/{attempt}", "{model}", "{plan}", "{cwd}"),
        story="US-001",
        title='Say "hi"; rm -rf ~ $(x)',
        mode=Mode.FIX,
        iteration=7,
        attempt=2,
        model="m1",
        plan=tmp_path / "plan.md",
    )
    assert words == (
        *("US-001", '--title=Say "hi"; rm -rf ~ $(x)', "fix/7/2", "m1"),
        *(str(tmp_path / "plan.md"), str(tmp_path)),
    )


def test_other_braces_stay_as_they_are(tmp_path: Path) -> None:
    words = ('{"a": 1}', "{print $1}", "{{}}", "{}", "{STORY}", "${HOME}", "{prompt}")
    assert fill(tmp_path, *words) == words


def test_what_a_placeholder_brings_is_not_filled_again(tmp_path: Path) -> None:
    assert fill(tmp_path, "{title}", title="{story}", story="US-001") == ("{story}",)


def test_a_misspelled_placeholder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"\{storey\}") as caught:
        command.find(session(tmp_path, "sh", "{storey}"), "/bin:/usr/bin")
    assert caught.value.hint == "did you mean {story}?"


def test_a_nul_in_a_title_does_not_break_the_command_line(tmp_path: Path) -> None:
    assert fill(tmp_path, "{title}", title="a\0b") == ("ab",)


def test_the_program_is_found_or_told_to_be_missing(tmp_path: Path) -> None:
    own = tmp_path / "agent.sh"
    own.write_text("#!/bin/sh\ncat\n")
    with pytest.raises(SetupError, match="not installed"):
        command.find(session(tmp_path, "./agent.sh"), "")
    own.chmod(0o755)
    assert Path(command.find(session(tmp_path, "./agent.sh"), "")) == own
    with pytest.raises(SetupError, match="no command line") as caught:
        command.find(session(tmp_path), "/bin")
    assert "agent.command" in caught.value.hint


def test_the_prompt_comes_in_by_stdin_and_every_line_out_is_said(tmp_path: Path) -> None:
    chosen = session(tmp_path, "sh", "-c", "cat; echo; echo '<promise>X</promise>'", prompt="one\ntwo")
    launch = command.launch(chosen, command.find(chosen, "/bin:/usr/bin"))
    done = subprocess.run(launch.argv, input=launch.stdin, capture_output=True, check=True)
    read = command.reader()
    outcome = Outcome()
    events = [event for line in done.stdout.splitlines() for event in read(line)]
    for event in events:
        outcome = add(outcome, event, "<promise>X</promise>")
    assert events == [Text(line, more=True) for line in ("one", "two", "<promise>X</promise>")]
    assert (outcome.promised, outcome.finished) == (True, False)


def test_bytes_that_are_no_text_are_read(tmp_path: Path) -> None:
    assert list(command.reader()(b"caf\xff\r")) == [Text("caf�", more=True)]
    assert list(command.reader()(b"  \r")) == []


def test_what_is_meant_for_the_system_prompt_comes_first(tmp_path: Path) -> None:
    """In the layout `steps` that is the task."""
    launch = command.launch(session(tmp_path, "agent", system="Current task: T-1"), "/bin/agent")
    assert launch.stdin == b"Current task: T-1\n\nDo it."
