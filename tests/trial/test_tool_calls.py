"""Turns of a script as calls of the tools that real clients offer. `tools.json` has what they sent, without prose."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ralph.trial.tool_calls import call_of, in_shell, tools_of

OFFERED: dict[str, list[dict[str, Any]]] = json.loads((Path(__file__).parent / "tools.json").read_text())
TURNS: dict[str, dict[str, Any]] = {
    "run": {"run": "ls"},
    "write": {"write": ["/w/a.txt", "new\n"]},
    "edit": {"edit": ["/w/a.txt", "old", "new"]},
    "read": {"read": "/w/a.txt"},
}


@pytest.mark.parametrize("kind", TURNS)
@pytest.mark.parametrize("client", OFFERED)
def test_every_client_has_a_tool_for_every_turn(client: str, kind: str) -> None:
    tools = tools_of({"tools": OFFERED[client]})
    call = call_of(TURNS[kind], tools)
    assert call is not None
    jsonschema.validate(call[1], tools[call[0]])
    told = json.dumps(call[1])
    assert all(word in told for word in (["ls"] if kind == "run" else ["/w/a.txt"]))
    assert ("old" in told) >= (kind == "edit")


@pytest.mark.parametrize(
    ("client", "kind", "name", "given"),
    [
        ("claude", "edit", "Edit", {"file_path": "/w/a.txt", "old_string": "old", "new_string": "new"}),
        ("cline", "run", "run_commands", {"commands": ["ls"]}),
        ("cline", "read", "read_files", {"files": [{"path": "/w/a.txt"}]}),
        ("cline", "write", "editor", {"path": "/w/a.txt", "new_text": "new\n"}),
        ("codex", "run", "exec_command", {"cmd": "ls"}),
        ("codex", "read", "exec_command", {"cmd": "cat /w/a.txt"}),
        ("goose", "edit", "edit", {"path": "/w/a.txt", "before": "old", "after": "new"}),
        ("pi", "edit", "edit", {"path": "/w/a.txt", "edits": [{"oldText": "old", "newText": "new"}]}),
    ],
)
def test_arguments_have_the_names_of_the_schema(client: str, kind: str, name: str, given: dict[str, Any]) -> None:
    assert call_of(TURNS[kind], tools_of({"tools": OFFERED[client]})) == (name, given)


def test_a_turn_that_names_a_tool_or_says_something_needs_no_schema() -> None:
    assert call_of({"use": ["Mine", {"x": 1}]}, {}) == ("Mine", {"x": 1})
    assert call_of({"say": "Done."}, {"Bash": {}}) is None


def test_a_client_without_a_shell_is_told_so() -> None:
    with pytest.raises(LookupError, match="no tool for commands among look"):
        call_of({"run": "ls"}, {"look": {}})


def test_tools_without_a_schema_are_left_out_and_nested_ones_found() -> None:
    inner = {"name": "exec_command", "parameters": {"properties": {"cmd": {"type": "string"}}}}
    request = {"tools": [{"type": "web_search"}, {"type": "namespace", "name": "shell", "tools": [inner]}]}
    assert [*tools_of(request)] == ["exec_command"]
    assert tools_of({}) == tools_of({"tools": None}) == {}


@pytest.mark.parametrize("text", ["x\n", 'it\'s "quoted" $HOME `id` %s\n', "naïve 日本語 🙂\n", ""])
def test_a_shell_writes_edits_and_reads_the_same(text: str, tmp_path: Path) -> None:
    file = tmp_path / "new folder" / "it's.txt"

    def shell(kind: str, given: Any) -> str:
        command = in_shell(kind, given)
        return subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True, timeout=10).stdout

    shell("write", [str(file), text])
    assert file.read_text(encoding="utf-8") == text
    assert shell("read", str(file)) == text
    file.write_text("old\n")
    shell("edit", [str(file), "old", "new"])
    assert file.read_text() == "new\n"
