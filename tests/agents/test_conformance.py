"""What holds for every agent in the table, and for those that are added to it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ralph.agents.registry import AGENTS, agent
from ralph.core.agent import AgentEvent
from ralph.core.errors import UsageError
from ralph.core.plan import Mode
from ralph.core.ports import Session
from support.sessions import session_of

NAMES = [
    "aider",
    "claude",
    "cline",
    "codex",
    "command",
    "copilot",
    "droid",
    "gemini",
    "goose",
    "opencode",
    "pi",
    "qwen",
    "scripted",
]
PROMPT = "Work on the story.\nThen say so — briefly."


def session(folder: Path) -> Session:
    script = folder / "script.yaml"
    script.write_text("stories: {'*': [[say: hello]]}\n")
    return session_of(
        prompt=PROMPT,
        system="Some context.",
        cwd=folder,
        model="m1",
        command=("sh", "-c", "cat"),
        script=script,
        story="US-001",
        title="A title",
        mode=Mode.REVIEW,
        plan=folder / "plan.md",
        request=folder / "request.json",
    )


def test_the_table_has_these_agents() -> None:
    assert sorted(AGENTS.built_in()) == NAMES


def test_an_unknown_agent_is_told_with_the_nearest_name() -> None:
    with pytest.raises(UsageError, match="unknown agent 'cluade'") as caught:
        agent("cluade")
    assert caught.value.hint == "did you mean claude?"


@pytest.mark.parametrize("name", NAMES)
def test_an_agent_says_what_it_is(name: str) -> None:
    found = agent(name)
    assert name == found.NAME
    assert found.TITLE
    assert not found.TITLE.endswith(".")
    assert all(word.removesuffix("*").isidentifier() for word in found.ENV)


@pytest.mark.parametrize("name", NAMES)
def test_a_launch_is_the_same_each_time_and_hides_the_prompt_from_the_process_list(name: str, tmp_path: Path) -> None:
    found, chosen = agent(name), session(tmp_path)
    program = found.find(chosen, "/bin:/usr/bin")
    launch = found.launch(chosen, program)
    assert launch == found.launch(chosen, program)
    assert launch.argv[0] == program
    assert Path(program).is_absolute()
    assert any(text.endswith(PROMPT) for text in (launch.stdin.decode(), *launch.files.values()))
    assert not [word for word in (*launch.argv, *launch.env.values()) if PROMPT in word]
    assert not [word for word in launch.env if word.startswith(("GIT_", "CLAUDECODE"))]


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=40)
@given(lines=st.lists(st.binary(max_size=60) | st.text(max_size=30).map(str.encode), max_size=6))
def test_a_reader_never_fails_and_its_events_can_be_kept(name: str, lines: list[bytes]) -> None:
    read = agent(name).reader()
    for line in lines:
        for event in read(line):
            assert msgspec.json.decode(msgspec.json.encode(event), type=AgentEvent) == event


@pytest.mark.parametrize("name", NAMES)
def test_readers_do_not_share_what_they_remember(name: str) -> None:
    first, second = agent(name).reader(), agent(name).reader()
    line = b'{"type":"result","is_error":false,"result":"x","total_cost_usd":1}'
    assert list(first(line)) == list(second(line))
