from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ralph.agents import aider
from ralph.agents.aider_output import LOG, AiderOutput
from ralph.core.agent import AgentEvent, Init, Outcome, Result, Text, Tokens, ToolUse, Trouble, add
from ralph.core.errors import SetupError
from ralph.core.ports import ClientEnd, Launch
from support.sessions import session_of

HEAD = """
Aider v0.86.2
Model: openai/gpt-4o with diff edit format
Git repo: .git with 1 files
Repo-map: disabled
Added .ralph/work/request.json to the chat.

"""
EDIT = "a.py\n```\n<<<<<<< SEARCH\n=======\nx = 1\n>>>>>>> REPLACE\n```\n\nAdded a variable.\n"
USED = "\nTokens: 1.9k sent, 52 received. Cost: $0.01 message, $0.01 session.\n"


def launch(folder: Path, **fields: Any) -> Launch:
    session = session_of(prompt="Do the work.", cwd=folder, **fields)
    return aider.launch(msgspec.structs.replace(session, folder=folder / "own"), "/opt/aider")


def heard(output: str, code: int | None = 0, folder: Path = Path("/nonexistent")) -> list[AgentEvent]:
    read = AiderOutput()
    events = [event for line in output.encode().split(b"\n") for event in read(line)]
    return events + read.finish(ClientEnd(code=code, folder=folder))


def outcome(output: str, **end: Any) -> Outcome:
    found = Outcome()
    for event in heard(output, **end):
        found = add(found, event, "<promise>COMPLETE</promise>")
    return found


def test_the_prompt_is_a_file_and_the_request_file_is_in_the_chat(tmp_path: Path) -> None:
    found = launch(tmp_path, system="Know this.", model="gpt-4o", request=tmp_path / "request.json")
    assert found.files["message.md"].endswith("\n\nKnow this.\n\nDo the work.")
    assert "request.json" in found.files["message.md"]
    assert found.argv[found.argv.index("--file") + 1] == str(tmp_path / "request.json")
    assert found.argv[found.argv.index("--message-file") + 1] == str(tmp_path / "own/message.md")
    assert not [word for word in found.argv if "Do the work" in word]
    assert {"--yes-always", "--no-auto-commits", "--no-gitignore", "--no-analytics"} <= set(found.argv)


def test_the_map_of_the_repository_needs_a_place_that_git_ignores(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / "a.py").touch()
    subprocess.run(["git", "add", "a.py"], cwd=tmp_path, check=True)
    found = launch(tmp_path)
    assert found.argv[found.argv.index("--map-tokens") + 1] == "0"
    assert "\na.py\n" in found.files["files.txt"]
    (tmp_path / ".gitignore").write_text(".aider*\n")
    assert "--map-tokens" not in launch(tmp_path).argv


def test_a_missing_program_is_told_with_the_fix(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="aider is not installed"):
        aider.find(session_of(prompt="", cwd=tmp_path), str(tmp_path))


def test_the_users_own_address_replaces_the_hosts() -> None:
    assert aider.hosts({"OPENAI_API_BASE": "http://localhost:1234/v1"}) == ("localhost:1234",)
    assert aider.hosts({"GEMINI_API_KEY": "k"}) == ("generativelanguage.googleapis.com",)


def test_an_answer_with_edits(tmp_path: Path) -> None:
    events = heard(f"{HEAD}{EDIT}{USED}\na.py\nApplied edit to a.py\n")
    assert events[:3] == [Init(model="gpt-4o"), Text(EDIT.strip()), ToolUse("edit", "edit a.py", path="a.py")]
    found = outcome(f"{HEAD}{EDIT}{USED}")
    assert (found.ok, found.tokens, found.model) == (True, Tokens(1900, 52), "gpt-4o")
    sent = {"event": "message_send", "properties": {"prompt_tokens": 1910, "completion_tokens": 52, "cost": 0.01}}
    (tmp_path / LOG).write_text(f"{json.dumps(sent)}\n")
    found = outcome(f"{HEAD}{EDIT}{USED}", folder=tmp_path)
    assert (found.tokens, found.cost_usd) == (Tokens(1910, 52), 0.01)


@pytest.mark.parametrize(
    ("line", "trouble"),
    [
        ("AuthenticationError: AuthenticationError: OpenAIException - Incorrect API key", Trouble.AUTHENTICATION),
        ("NotFoundError: OpenAIException - The model `nope` does not exist", Trouble.MODEL),
        ("BadRequestError: LLM Provider NOT provided. You passed model=nope", Trouble.OTHER),
    ],
)
def test_an_error_comes_as_text_with_exit_code_0(line: str, trouble: Trouble) -> None:
    assert outcome(f"{HEAD}litellm.{line}\n").trouble is trouble


def test_retries_in_vain_are_ended() -> None:
    busy = "litellm.RateLimitError: RateLimitError: OpenAIException - Rate limit reached for requests\n"
    assert not [
        event for event in heard(f"{HEAD}{busy}Retrying in 0.2 seconds...\n", None) if isinstance(event, Result)
    ]
    *_, last = heard(f"{HEAD}{busy}Retrying in 4.0 seconds...\n{busy}", None)
    assert isinstance(last, Result)
    assert (last.trouble, last.gives_up) == (Trouble.TRANSPORT, True)
    used_up = busy.replace("Rate limit reached", "You exceeded your current quota")
    *_, last = heard(f"{HEAD}{used_up}Retrying in 0.2 seconds...\n", None)
    assert isinstance(last, Result)
    assert (last.trouble, last.gives_up) == (Trouble.LIMIT, True)


def test_it_recovers_from_an_error() -> None:
    error = "litellm.InternalServerError: OpenAIException - The server had an error\nRetrying in 0.2 seconds...\n"
    found = outcome(f"{HEAD}{error}{EDIT}{USED}")
    assert (found.ok, found.trouble) == (True, None)
    assert "Retrying" not in found.text


def test_no_login_is_not_waited_for_in_a_browser() -> None:
    found = heard("No LLM model was specified and no API keys were provided.\nWaiting for login\n", None)
    assert [(event.trouble, event.gives_up) for event in found if isinstance(event, Result)] == [
        (Trouble.AUTHENTICATION, True)
    ]


def test_an_empty_answer() -> None:
    empty = "Empty response received from LLM. Check your provider account?\n"
    assert outcome(f"{HEAD}{empty}{USED}").trouble is Trouble.EMPTY
