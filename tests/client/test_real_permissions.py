"""Who permits a tool call: the three modes with the real client, at default settings unless a test is about another.

At default settings the client runs in a sandbox and asks nobody. Tests about the guard alone use `--no-sandbox`.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.clients import CLIENT, INSIDE, NO_SANDBOX, ROOT, Project, claim, say, use, write
from support.doc_projects import DocProject, blocks
from support.tools import is_installed

pytestmark = [
    pytest.mark.client,
    pytest.mark.skipif(
        not CLIENT.exists(),
        reason="THE REAL CLIENT IS NOT TESTED: claude-agent-sdk could not be installed into .venv/client",
    ),
]

FLAG = "--dangerously-skip-permissions"


@pytest.fixture
def outside() -> Iterator[Path]:
    """A folder outside of the project that is not a temporary one for the guard, and can be written to."""
    for parent in (ROOT.parent, Path("/var/lib"), Path("/opt")):
        if os.access(parent, os.W_OK) and not str(parent.resolve()).startswith(("/tmp", "/var/tmp", "/private")):
            with tempfile.TemporaryDirectory(prefix="ralph-test-", dir=parent) as name:
                yield Path(name)
            return
    pytest.skip("there is no folder outside of the temporary ones that this user may write to")


def started_with(ran: Any) -> list[str]:
    return [" ".join(event["argv"]) for event in ran.of("AgentStarted")]


def test_the_readme_as_it_stands_ends_in_a_finished_run(tmp_path: Path) -> None:
    """Its first run with nothing else set: the client is found on PATH."""
    [steps] = [block for block in blocks("README.md") if not block.why_not]
    project = DocProject(tmp_path / "there", steps.where)
    (project.home / ".ralph" / "config.yaml").unlink()  # the scripted agent
    for folder in (tmp_path / "bin", tmp_path / "tmp"):
        folder.mkdir()
    (tmp_path / "bin" / "claude").symlink_to(CLIENT)
    own = {
        "PATH": f"{tmp_path}/bin:{project.env['PATH']}",
        "TMPDIR": f"{tmp_path}/tmp",
        "ANTHROPIC_API_KEY": "test-key",
    }
    project.env |= own
    turns = [
        use("Write", file_path=str(project.root / "login.py"), content="PASSKEYS = True\n"),
        use("Write", file_path=str(project.root / ".ralph/user-login/request.json"), content='{"claim": "done"}'),
        say(),
        use("StructuredOutput", review={"verdict": "approved"}),
    ]
    (tmp_path / "script.json").write_text(json.dumps(turns))
    served = [sys.executable, *INSIDE, str(tmp_path / "script.json"), str(tmp_path / "requests.jsonl")]
    project.shell = [*served, *project.shell]
    said = project.play(steps)
    [plan] = project.root.glob(".ralph/*/tasks.json")
    assert [story["passes"] for story in json.loads(plan.read_text())["userStories"]] == [True], said
    journal = "".join(path.read_text() for path in (tmp_path / "there" / "state").glob("*/runs/*/events.jsonl"))
    assert ("may: everything inside its sandbox" in said) == (FLAG in journal) == is_installed("bwrap")


def test_the_guard_permits_what_stays_inside(tmp_path: Path) -> None:
    project = Project(tmp_path)
    old = str(project.root / "old.txt")
    turns = [
        use("Read", file_path="/etc/hostname"),
        use("Read", file_path=old),
        use("Edit", file_path=old, old_string="old", new_string="new"),
        use("Bash", command="echo x > s1.txt && mkdir -p sub && touch sub/a && python3 -c 'print(1)'"),
        use("Bash", command="cp s1.txt $TMPDIR/copy.txt"),
        claim(project),
        say(),
    ]
    ran = project.run(turns, *NO_SANDBOX)
    assert (ran.code, ran.done()) == (0, [True]), ran.out
    assert (project.root / "old.txt").read_text() == "new\n"
    assert (project.root / "sub" / "a").exists()
    assert (tmp_path / "tmp" / "copy.txt").exists()
    assert [event for event in ran.of("HookAnswered") if event["answer"] == "deny"] == []
    assert all(event["outcome"]["denials"] == [] for event in ran.of("AgentEnded"))
    assert all(FLAG not in words for words in started_with(ran))


def test_the_guard_denies_what_leaves_the_project_unless_a_path_is_allowed(tmp_path: Path, outside: Path) -> None:
    def turns(project: Project) -> list[dict[str, Any]]:
        return [
            use("Write", file_path=str(outside / "written.txt"), content="x\n"),
            use("Bash", command=f"echo x > {outside}/redirected.txt"),
            use("Write", file_path=str(project.root / "link" / "linked.txt"), content="x\n"),
            use("Bash", command="echo x > link/through.txt"),
            use("Bash", command=f"cd {outside} && touch touched.txt"),
            *(write(project, "s1.txt"), claim(project), say()),
        ]

    denied = Project(tmp_path / "denied")
    (denied.root / "link").symlink_to(outside)
    denied.commit()
    ran = denied.run(turns(denied), *NO_SANDBOX)
    assert (ran.code, ran.done()) == (0, [True]), ran.out
    tools = [event["tool"] for event in ran.of("HookAnswered") if event["answer"] == "deny"]
    assert tools == ["Write", "Bash", "Write", "Bash", "Bash"]
    assert list(outside.iterdir()) == []
    assert "allow_paths" in ran.told()

    allowed = Project(tmp_path / "allowed", allow_paths=[str(outside)])
    (allowed.root / "link").symlink_to(outside)
    allowed.commit()
    ran = allowed.run(turns(allowed), *NO_SANDBOX)
    assert (ran.code, ran.done()) == (0, [True]), ran.out
    assert sorted(path.name for path in outside.iterdir()) == [
        *("linked.txt", "redirected.txt", "through.txt", "touched.txt", "written.txt"),
    ]
    assert f"edit inside the project and in {outside}" in ran.out


def test_the_web_is_denied_where_the_settings_say_so(tmp_path: Path) -> None:
    project = Project(tmp_path, web="deny")
    fetch = use("WebFetch", url="http://127.0.0.1:9/x", prompt="read it")
    ran = project.run([fetch, write(project, "s1.txt"), claim(project), say()])
    assert (ran.code, ran.done()) == (0, [True]), ran.out
    assert [e["category"] for e in ran.of("HookAnswered") if e["answer"] == "deny"] == ["web"]
    assert "use the web tools" in ran.out


def test_a_sub_agent_is_permitted_and_its_calls_are_judged_too(tmp_path: Path) -> None:
    project = Project(tmp_path)
    turns = [
        use("Agent", description="write it", prompt="write s1.txt", subagent_type="general-purpose"),
        use("Bash", command="git push origin main"),
        write(project, "s1.txt"),
        say("It is written."),
        claim(project),
        say(),
    ]
    ran = project.run(turns)
    assert (ran.code, ran.done()) == (0, [True]), ran.out
    assert [e["category"] for e in ran.of("HookAnswered") if e["answer"] == "deny"] == ["git-push"]
    said = ran.told()
    assert "write s1.txt" in said
    assert all(event["outcome"]["denials"] == [] for event in ran.of("AgentEnded"))


def test_a_file_that_the_client_protects_is_reported_and_ends_nothing(tmp_path: Path) -> None:
    project = Project(tmp_path)
    turns = [write(project, ".vscode/settings.json", "{}\n"), write(project, "s1.txt"), claim(project), say()]
    ran = project.run(turns, *NO_SANDBOX)
    assert (ran.code, ran.done()) == (0, [True]), ran.out
    assert not (project.root / ".vscode").exists()
    [denial] = ran.of("AgentEnded")[0]["outcome"]["denials"]
    assert (denial["tool"], denial["subject"], denial["why"]) == ("Write", ".vscode/settings.json", "protected")
    assert ran.out.count("the client refused Write .vscode/settings.json: the client protects this file") == 2
    line = "ralph run --permissions skip"
    assert line in ran.out
    again = Project(tmp_path / "again")
    turns = [write(again, ".vscode/settings.json", "{}\n"), write(again, "s1.txt"), claim(again), say()]
    ran = again.run(turns, *NO_SANDBOX, *shlex.split(line)[2:])
    assert ran.done() == [True], ran.out
    assert (again.root / ".vscode" / "settings.json").exists(), "the line that is printed works"
    assert all(FLAG in words for words in started_with(ran))


MCP_SERVER = """
import json, sys
for line in sys.stdin:
    call = json.loads(line)
    if "id" not in call:
        continue
    info = {"capabilities": {"tools": {}}, "serverInfo": {"name": "t", "version": "1"}}
    schema = {"type": "object", "properties": {}}
    answers = {
        "initialize": {"protocolVersion": "2024-11-05", **info},
        "tools/list": {"tools": [{"name": "greet", "description": "d", "inputSchema": schema}]},
        "tools/call": {"content": [{"type": "text", "text": "hello from the server"}]},
    }
    print(json.dumps({"jsonrpc": "2.0", "id": call["id"], "result": answers.get(call["method"], {})}), flush=True)
"""


def test_a_tool_that_ralph_does_not_know_needs_a_rule_of_the_client(tmp_path: Path) -> None:
    server, servers = tmp_path / "server.py", tmp_path / "servers.json"
    server.write_text(MCP_SERVER)
    servers.write_text(json.dumps({"mcpServers": {"t": {"command": sys.executable, "args": [str(server)]}}}))
    project = Project(tmp_path / "one", agent={"command": [str(CLIENT), "--mcp-config", str(servers)]})
    turns = [use("mcp__t__greet"), write(project, "s1.txt"), claim(project), say()]
    ran = project.run(turns, *NO_SANDBOX)
    assert (ran.code, ran.done()) == (0, [True]), ran.out
    assert "hello from the server" not in ran.told()
    line = "ralph config set agent.allowed_tools mcp__t__greet"
    assert f"the client refused mcp__t__greet: allow it with `{line}`" in ran.out
    (project.root / ".ralph/work/prd.json").write_text(
        (project.root / ".ralph/work/prd.json").read_text().replace('"passes": true', '"passes": false')
    )
    command = [sys.executable, "-m", *shlex.split(line)]
    subprocess.run(command, cwd=project.root, env=project.environment(), check=True, capture_output=True)
    (project.root / "s1.txt").unlink()
    project.commit()
    ran = project.run(turns, *NO_SANDBOX)
    assert "hello from the server" in ran.told(), ran.out


@pytest.mark.needs("bwrap")
def test_in_a_sandbox_a_file_that_the_command_names_can_be_read(tmp_path: Path) -> None:
    """And nobody is asked about tools of a server, which is in the home folder: `sandbox.files` lists it."""
    servers = tmp_path / "servers.json"
    agent = {"command": [str(CLIENT), "--mcp-config", str(servers)]}
    project = Project(tmp_path / "one", agent=agent, sandbox={"files": ["~/server.py"]})
    server = project.home / "server.py"
    server.write_text(MCP_SERVER)
    servers.write_text(json.dumps({"mcpServers": {"t": {"command": "python3", "args": [str(server)]}}}))
    ran = project.run([use("mcp__t__greet"), write(project, "s1.txt"), claim(project), say()])
    assert (ran.code, ran.done()) == (0, [True]), ran.out
    assert "everything inside its sandbox" in ran.out
    assert "hello from the server" in ran.told()


def test_a_rule_of_the_project_stays_in_force(tmp_path: Path) -> None:
    project = Project(tmp_path)
    (project.root / ".claude").mkdir()
    (project.root / ".claude" / "settings.json").write_text('{"permissions": {"deny": ["Bash(touch *)"]}}')
    project.commit()
    ran = project.run([use("Bash", command="touch no.txt"), write(project, "s1.txt"), claim(project), say()])
    assert (ran.code, ran.done()) == (0, [True]), ran.out
    assert not (project.root / "no.txt").exists()
    assert "the client refused Bash touch no.txt: a permission rule in .claude/settings.json" in ran.out


def test_in_client_mode_the_line_that_is_printed_allows_what_was_refused(tmp_path: Path) -> None:
    project = Project(tmp_path, permissions="client")
    turns = [
        *(write(project, "s1.txt"), use("Bash", command="echo x > s1.txt"), say("I may not.")),
        *(write(project, "s1.txt"), use("Bash", command="echo y > more.txt"), claim(project), say()),
    ]
    ran = project.run(turns[:3])
    assert ran.done() == [False]
    assert "may: what the client's own rules allow (permissions: client; agent.allowed_tools: none)" in ran.out
    assert [d["tool"] for d in ran.of("AgentEnded")[0]["outcome"]["denials"]] == ["Write", "Bash"]
    line = "ralph config set agent.allowed_tools Write,Bash"
    assert f"`{line}`" in ran.out
    command = [sys.executable, "-m", *shlex.split(line)]
    subprocess.run(command, cwd=project.root, env=project.environment(), check=True, capture_output=True)
    project.commit()
    ran = project.run(turns[3:])
    assert ran.done() == [True], ran.out
    assert (project.root / "more.txt").read_text() == "y\n"
    assert all(FLAG not in words for words in started_with(ran))


def test_skip_passes_the_flag_and_the_hooks_still_deny(tmp_path: Path) -> None:
    project = Project(tmp_path, agent={"command": [str(CLIENT)], "dangerously_skip_permissions": True})
    turns = [use("Bash", command="git push origin main"), write(project, "s1.txt"), claim(project), say()]
    ran = project.run(turns, *NO_SANDBOX)
    assert (ran.code, ran.done()) == (0, [True]), ran.out
    assert all(FLAG in words for words in started_with(ran))
    assert [e["category"] for e in ran.of("HookAnswered") if e["answer"] == "deny"] == ["git-push"]
    assert "may: everything, without asking" in ran.out
