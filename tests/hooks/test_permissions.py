"""`permissions: guard`: every call that Ralph knows is answered, with allow or with deny."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from support.hook_calls import LiveRun


@pytest.fixture
def run(tmp_path: Path) -> LiveRun:
    return LiveRun(tmp_path, permissions="guard")


def ask(run: LiveRun, tool: str, cwd: Path | None = None, **given: Any) -> str:
    return run.call("PreToolUse", tool_name=tool, tool_input=given, cwd=str(cwd or run.workspace)).kind


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("Read", {"file_path": "/etc/hostname"}),
        ("Grep", {"pattern": "x", "path": "/usr/share"}),
        ("Grep", {"pattern": "x"}),
        ("Glob", {"pattern": "**/*.py"}),
        ("LS", {"path": "/"}),
        ("NotebookRead", {"notebook_path": "a.ipynb"}),
        ("Write", {"file_path": "new.txt"}),
        ("NotebookEdit", {"notebook_path": "new.ipynb"}),
        ("Bash", {"command": "echo x > a.txt && python3 -c 'print(1)'"}),
        ("Monitor", {"command": "tail -f log.txt"}),
        ("Agent", {"prompt": "do it"}),
        ("Task", {"prompt": "do it"}),
        ("TodoWrite", {"todos": []}),
        ("Skill", {"skill": "x"}),
        ("StructuredOutput", {"claim": "done"}),
        ("WebFetch", {"url": "https://example.com"}),
        ("WebSearch", {"query": "x"}),
    ],
)
def test_what_the_policy_passes_is_permitted(run: LiveRun, tool: str, given: dict[str, Any]) -> None:
    assert ask(run, tool, **given) == "allow"


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("Write", {"file_path": "{out}/new.txt"}),
        ("Write", {"file_path": "../elsewhere/new.txt"}),
        ("Write", {"file_path": "sub/../../elsewhere/new.txt"}),
        ("Write", {"file_path": "link/new.txt"}),
        ("Write", {"file_path": "~/new.txt"}),
        ("Write", {"file_path": ".git/hooks/pre-commit"}),
        ("Write", {"file_path": ".GIT/config"}),
        ("Write", {"file_path": ".ralph/config.yaml"}),
        ("Write", {"file_path": ".Ralph/Config.yaml"}),
        ("MultiEdit", {"file_path": "{out}/new.txt"}),
        ("NotebookEdit", {"notebook_path": "{out}/new.ipynb"}),
        ("NotebookEdit", {"file_path": "new.ipynb", "notebook_path": "{out}/new.ipynb"}),
        ("Edit", {"file_path": "old.txt"}),
        ("Write", {}),
        ("Write", {"file_path": ["a.txt"]}),
        ("Edit", {"file_path": {"path": "a.txt"}}),
        ("Bash", {}),
        ("Bash", {"command": ["rm", "-rf", "/"]}),
        ("Bash", {"command": "git push"}),
        ("Bash", {"command": "touch /srv/x"}),
        ("Bash", {"command": "cd /srv && echo x > y"}),
        ("Bash", {"command": "echo x >> /home/somebody/notes.txt"}),
        ("Monitor", {"command": "git push"}),
        ("Read", {"file_path": "~/.ssh/id_ed25519"}),
        ("Read", {"file_path": "key"}),
        ("Grep", {"pattern": "KEY", "path": "~/.ssh", "output_mode": "content"}),
    ],
)
def test_what_it_does_not_is_denied_with_a_reason(run: LiveRun, tool: str, given: dict[str, Any]) -> None:
    run.file("old.txt")
    (run.workspace / "link").symlink_to(run.elsewhere)
    (run.workspace / "key").symlink_to(Path(os.environ["HOME"]) / ".ssh" / "id_rsa")
    filled = {k: v.replace("{out}", str(run.elsewhere)) if isinstance(v, str) else v for k, v in given.items()}
    denied = run.call("PreToolUse", tool_name=tool, tool_input=filled)
    assert denied.kind == "deny"
    assert len(denied.reason) > 10


@pytest.mark.parametrize("given", [None, [], "text", 5])
def test_an_input_that_is_no_mapping_permits_nothing(run: LiveRun, given: object) -> None:
    for tool in ("Write", "Edit", "Bash", "Monitor"):
        assert run.call("PreToolUse", tool_name=tool, tool_input=given).kind == "deny"


@pytest.mark.parametrize("tool", ["mcp__github__push_files", "PowerShell", "SomethingNew", ""])
def test_an_unknown_tool_is_left_to_the_clients_rules(run: LiveRun, tool: str) -> None:
    assert ask(run, tool, command="anything", file_path="/etc/passwd") == ""


@pytest.mark.parametrize("mode", ["client", "skip", ""])
def test_in_the_other_modes_nothing_is_permitted_here_and_denials_stay(tmp_path: Path, mode: str) -> None:
    run = LiveRun(tmp_path, permissions=mode)
    assert ask(run, "Write", file_path="new.txt") == ""
    assert ask(run, "Bash", command="ls") == ""
    assert ask(run, "WebFetch", url="https://example.com") == ""
    assert ask(run, "Bash", command="git push") == "deny"
    assert ask(run, "Write", file_path=str(run.elsewhere / "x")) == "deny"


@pytest.mark.parametrize("mode", ["guard", "client", "skip"])
def test_the_web_can_be_switched_off_in_every_mode(tmp_path: Path, mode: str) -> None:
    run = LiveRun(tmp_path, permissions=mode, web="deny")
    assert ask(run, "WebFetch", url="https://example.com") == "deny"
    assert ask(run, "WebSearch", query="x") == "deny"


def test_a_folder_that_is_allowed_can_be_written_to(tmp_path: Path) -> None:
    run = LiveRun(tmp_path, permissions="guard", writable=["/srv/data", str(tmp_path / "elsewhere")])
    assert ask(run, "Write", file_path=str(run.elsewhere / "x")) == "allow"
    assert ask(run, "Bash", command="mkdir -p /srv/data/a && cp a.txt /srv/data/a") == "allow"
    assert ask(run, "Bash", command="touch /srv/database") == "deny"
    assert ask(run, "Bash", command="rm -rf /srv/data") == "deny"


def test_a_command_is_judged_by_where_links_lead(run: LiveRun) -> None:
    (run.workspace / "link").symlink_to("/srv")
    (run.workspace / "own").symlink_to(run.workspace / "sub")
    for command in ("echo x > link/a", "cp a link/", "cd link && touch a", "rm link/a", "rm -rf link/"):
        assert ask(run, "Bash", command=command) == "deny", command
    for command in ("rm link", "ls link/", "cat link/a", "echo x > own/a"):
        assert ask(run, "Bash", command=command) == "allow", command


def test_a_workspace_behind_a_link_is_one_place(tmp_path: Path) -> None:
    run = LiveRun(tmp_path, permissions="guard")
    behind = tmp_path / "behind"
    behind.symlink_to(run.workspace)
    run.policy["workspace"] = str(behind)
    run.write()
    for cwd in (behind, run.workspace):
        assert ask(run, "Write", cwd, file_path="a.txt") == "allow"
        assert ask(run, "Bash", cwd, command="echo x > a.txt") == "allow"
        assert ask(run, "Bash", cwd, command=f"echo x > {behind}/a.txt && echo x > {run.workspace}/b.txt") == "allow"
        assert ask(run, "Bash", cwd, command="echo x > .git/config") == "deny"


def test_a_relative_path_is_seen_from_where_the_session_is(run: LiveRun) -> None:
    (run.workspace / "sub").mkdir()
    assert ask(run, "Write", run.workspace / "sub", file_path="../a.txt") == "allow"
    assert ask(run, "Write", run.elsewhere, file_path="a.txt") == "deny"
    assert ask(run, "Bash", Path("/srv"), command="touch a.txt") == "deny"


def test_with_the_command_guard_off_commands_are_permitted(tmp_path: Path) -> None:
    run = LiveRun(tmp_path, permissions="guard", guard={"enabled": False})
    assert ask(run, "Bash", command="git push") == "allow"
    assert ask(run, "Write", file_path=str(run.elsewhere / "x")) == "deny"


def test_a_hook_that_fails_permits_nothing(run: LiveRun) -> None:
    assert ask(run, "Write", file_path="a\0b") == "deny"
    assert "ValueError" in run.recorded()[-1]["error"]


def test_the_answers_are_on_record_by_the_id_of_the_call(run: LiveRun) -> None:
    for number, command in enumerate(("ls", "git push")):
        run.call("PreToolUse", tool_name="Bash", tool_input={"command": command}, tool_use_id=f"t{number}")
    assert [(r["id"], r["answer"]) for r in run.recorded()] == [("t0", "allow"), ("t1", "deny")]
