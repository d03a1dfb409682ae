"""`ralph hooks plugin`: files that the real client takes, and nobody else's file is lost."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import ralph as ralph_package
from ralph import __version__
from ralph.cli.main import parser_of
from ralph.cli.table import resolve
from ralph.core.errors import UsageError
from ralph.session.hook_policy import EVENTS, client_settings
from ralph.session.plugin import COMMANDS, HOOK, SKILLS, plugin_files
from support.cli import Completed, ralph_here
from support.clients import CLIENT, INSIDE

PAGES = (*(f"skills/{name}/SKILL.md" for name in SKILLS), *(f"commands/{name}.md" for name in COMMANDS))
FILES = (".claude-plugin/plugin.json", ".claude-plugin/marketplace.json", "hooks/hooks.json", *PAGES, "README.md")


def write(folder: Path, *arguments: str, **env: str) -> Completed:
    return ralph_here("plugin", "write", folder, *arguments, cwd=folder.parent, env=env)


def tree(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_it_is_a_plugin_and_a_marketplace_with_that_plugin(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "plugin"
    folder.parent.mkdir()
    done = write(folder)
    assert done.code == 0, done.err
    assert set(tree(folder)) == {*FILES, ".claude-plugin/written-by-ralph.json"}
    manifest, market, hooks = (json.loads((folder / name).read_text()) for name in FILES[:3])
    assert (manifest["name"], manifest["version"]) == ("ralph", __version__)
    assert [(one["name"], one["source"], one["version"]) for one in market["plugins"]] == [("ralph", "./", __version__)]
    assert hooks["hooks"] == client_settings(HOOK)["hooks"]
    assert set(hooks["hooks"]) == set(EVENTS)


def test_it_can_be_shared_because_it_names_no_path_of_this_machine(tmp_path: Path) -> None:
    write(tmp_path / "plugin")
    everything = b"".join(tree(tmp_path / "plugin").values()).decode()
    places = {sys.executable, sys.prefix, str(Path.home()), str(tmp_path), str(Path(ralph_package.__file__).parent)}
    assert [place for place in places if place in everything] == []
    for name in (*SKILLS, *COMMANDS):
        assert f"/ralph:{name} " in everything


def call_hook(event: str, path: str, **env: str) -> subprocess.CompletedProcess[str]:
    """As the client calls it."""
    hooks = json.loads(plugin_files()["hooks/hooks.json"])["hooks"]
    call = ["/bin/sh", "-c", hooks[event][0]["hooks"][0]["command"]]
    given = json.dumps({"hook_event_name": event, "tool_name": "Bash", "tool_input": {"command": "ls"}})
    return subprocess.run(call, input=given, env={"PATH": path, **env}, capture_output=True, text=True, check=False)


def test_its_hooks_are_those_of_the_ralph_on_path(tmp_path: Path) -> None:
    """A session of a run whose policy is gone may change nothing: only Ralph says so."""
    path = f"{Path(sys.executable).parent}{os.pathsep}/usr/bin:/bin"
    done = call_hook("PreToolUse", path, RALPH_POLICY=str(tmp_path / "gone.json"), RALPH_NONCE="0")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["hookSpecificOutput"]["permissionDecision"] == "deny"


@pytest.mark.parametrize("event", EVENTS)
def test_where_ralph_is_not_installed_its_hooks_do_nothing(event: str) -> None:
    done = call_hook(event, "/usr/bin:/bin", RALPH_POLICY="/gone.json")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("page", PAGES)
def test_every_page_says_what_it_is_for_and_names_only_commands_that_exist(page: str) -> None:
    _, head, text = plugin_files()[page].decode().split("---\n", 2)
    values = yaml.safe_load(head)
    assert len(values["description"]) > 40
    if page.startswith("skills/"):
        assert values["name"] == page.split("/")[1]
        assert f"/{values['name']}" in values["description"], "by what a person says"
    for command in re.findall(r"ralph ([a-z][a-z-]+)", re.sub(r"```.*?```", "", head + text, flags=re.DOTALL)):
        assert resolve([command])[0] or command in ("loop", "here", "prd"), command


def why_not(line: str) -> str:
    """What its parser says against a command line, unless only a word is missing that the sentence leaves out."""
    name, rest = resolve(shlex.split(line))
    try:
        parser_of(name).parse_args(rest)
    except (UsageError, KeyError) as error:
        return "" if "arguments are required" in str(error) else f"ralph {line}: {error}"
    return ""


@pytest.mark.parametrize("line", ["plan --nope", "nope", "import x --done maybe", "task nope"])
def test_a_command_line_that_is_wrong_is_seen(line: str) -> None:
    assert why_not(line)


@pytest.mark.parametrize("page", PAGES)
def test_every_command_line_on_a_page_is_one_that_ralph_takes(page: str) -> None:
    """In backticks, and in the rules for what the client may call without asking."""
    text = plugin_files()[page].decode()
    lines = [*re.findall(r"`ralph ([^`]+)`", text), *re.findall(r"Bash\(ralph ([^)]+?)(?: \*)?\)", text)]
    assert len(lines) > 5
    assert [said for line in lines if (said := why_not(line))] == []


def test_what_people_say_calls_the_planner() -> None:
    """The phrases of seed 001, and a description that is YAML: a client that reads it strictly would see none."""
    head = yaml.safe_load((plugin_files()["skills/ralph-plan/SKILL.md"]).decode().split("---\n", 2)[1])
    for phrase in ("/ralph-plan", "plan this feature for ralph", "create a ralph prd", "generate tasks for ralph"):
        assert phrase in head["description"]


def test_writing_it_again_changes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "plugin"
    write(folder)
    was = tree(folder)
    done = write(folder, "--json")
    assert done.json["files"] == []
    assert sorted(done.json["same"]) == sorted(FILES)
    assert tree(folder) == was


def test_a_plugin_of_an_older_ralph_is_brought_up_to_date(tmp_path: Path) -> None:
    folder = tmp_path / "plugin"
    write(folder)
    listed = json.loads((folder / ".claude-plugin/written-by-ralph.json").read_text())
    for name, data in plugin_files("/gone/python -I -m ralph.hooks").items():
        (folder / name).write_bytes(data)
        listed[name] = hashlib.sha256(data).hexdigest()
    (folder / ".claude-plugin/written-by-ralph.json").write_text(json.dumps(listed))
    done = write(folder)
    assert done.code == 0, done.err
    assert b"/gone/" not in b"".join(tree(folder).values())


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("force", [(), ("--force",)])
def test_a_foreign_file_is_never_replaced(tmp_path: Path, name: str, force: tuple[str, ...]) -> None:
    folder = tmp_path / "plugin"
    (folder / name).parent.mkdir(parents=True)
    (folder / name).write_text("mine\n")
    done = write(folder, *force)
    assert done.code == 65
    assert "was not written by Ralph" in done.err
    assert tree(folder) == {name: b"mine\n"}


def test_an_edited_file_is_replaced_only_by_force(tmp_path: Path) -> None:
    folder = tmp_path / "plugin"
    write(folder)
    was = tree(folder)
    (folder / "README.md").write_text("edited\n")
    (folder / "notes.txt").write_text("mine\n")
    done = write(folder)
    assert (done.code, "--force" in done.err) == (65, True)
    assert (folder / "README.md").read_text() == "edited\n"
    assert write(folder, "--force").code == 0
    assert tree(folder) == {**was, "notes.txt": b"mine\n"}


@pytest.mark.parametrize("link", [".claude-plugin", "hooks", "hooks/hooks.json"])
def test_a_link_does_not_lead_out_of_the_folder(tmp_path: Path, link: str) -> None:
    folder, outside = tmp_path / "plugin", tmp_path / "outside"
    outside.mkdir()
    (folder / link).parent.mkdir(parents=True)
    (folder / link).symlink_to(outside / "hooks.json" if link.endswith("json") else outside)
    done = write(folder)
    assert done.code == 65, done.err
    assert list(outside.iterdir()) == []
    assert tree(folder) == {}


def test_a_damaged_list_is_no_permission(tmp_path: Path) -> None:
    folder = tmp_path / "plugin"
    write(folder)
    (folder / ".claude-plugin/written-by-ralph.json").write_text("{")
    (folder / "README.md").write_text("edited\n")
    assert write(folder, "--force").code == 65
    assert (folder / "README.md").read_text() == "edited\n"


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "plugin").write_text("x")
    done = write(tmp_path / "plugin")
    assert done.code == 78
    assert "is a file" in done.err


def test_an_agent_in_a_loop_writes_no_plugin(tmp_path: Path) -> None:
    assert write(tmp_path / "plugin", RALPH_LOOP="1").code == 78
    assert not (tmp_path / "plugin").exists()


needs_client = pytest.mark.skipif(
    not CLIENT.exists(),
    reason="THE REAL CLIENT IS NOT TESTED: claude-agent-sdk could not be installed into .venv/client",
)


class Offline:
    """The real client in a folder of its own, with a model that says one word, and no network."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("home", "tmp", "project"):
            (folder / name).mkdir()
        (folder / "script.json").write_text('[{"say": "Done."}]')
        self.env = {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(folder / "home"),
            "TMPDIR": str(folder / "tmp"),
            "CLAUDE_CODE_TMPDIR": str(folder / "tmp"),
            "SHELL": "/bin/bash",
            "ANTHROPIC_API_KEY": "test-key",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "IS_SANDBOX": "1",
        }

    def run(self, *arguments: str) -> str:
        inside = [sys.executable, *INSIDE, str(self.folder / "script.json"), str(self.folder / "requests.jsonl")]
        done = subprocess.run(
            [*inside, str(CLIENT), *arguments],
            cwd=self.folder / "project",
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def session(self, *arguments: str) -> list[dict[str, Any]]:
        flags = ("--output-format", "stream-json", "--verbose", "--include-hook-events")
        return [json.loads(line) for line in self.run("-p", "hi", *flags, *arguments).splitlines()]


def sound(events: list[dict[str, Any]]) -> None:
    """The plugin is there, without an error, and its hooks were called and were silent: no run is live."""
    [start] = [event for event in events if event.get("subtype") == "init"]
    assert not start.get("plugin_errors")
    assert [one["version"] for one in start["plugins"] if one["name"] == "ralph"] == [__version__]
    called = [event for event in events if event.get("subtype") == "hook_response"]
    assert {event["hook_event"] for event in called} >= {"SessionStart", "UserPromptSubmit", "Stop"}
    assert {(event["exit_code"], event["stdout"], event["stderr"]) for event in called} == {(0, "", "")}


@pytest.mark.client
@needs_client
def test_the_real_client_takes_the_plugin(tmp_path: Path) -> None:
    write(tmp_path / "plugin")
    client = Offline(tmp_path)
    events = client.session("--plugin-dir", str(tmp_path / "plugin"))
    sound(events)
    [start] = [event for event in events if event.get("subtype") == "init"]
    assert {f"ralph:{name}" for name in SKILLS} <= set(start["skills"])
    assert {f"ralph:{name}" for name in (*SKILLS, *COMMANDS)} <= set(start["slash_commands"])


@pytest.mark.client
@needs_client
@pytest.mark.parametrize(
    ("typed", "told", "command"),
    [
        ("ralph-plan a to-do list", "Input from the user: a to-do list", "ralph plan --answer FILE"),
        ("ralph-fix the total is wrong", "The bug: the total is wrong", "ralph fix --answer FILE"),
    ],
)
def test_the_real_client_is_told_what_a_page_says_with_the_words_that_were_given(
    typed: str, told: str, command: str, tmp_path: Path
) -> None:
    write(tmp_path / "plugin")
    client = Offline(tmp_path)
    client.run("-p", f"/ralph:{typed}", "--plugin-dir", str(tmp_path / "plugin"))
    asked = (tmp_path / "requests.jsonl").read_text()
    assert told in asked
    assert command in asked


@pytest.mark.client
@needs_client
def test_the_real_client_installs_it_from_the_folder_as_a_marketplace(tmp_path: Path) -> None:
    write(tmp_path / "plugin")
    client = Offline(tmp_path)
    assert "Validation passed" in client.run("plugin", "validate", "--strict", str(tmp_path / "plugin"))
    client.run("plugin", "marketplace", "add", str(tmp_path / "plugin"))
    client.run("plugin", "install", "ralph@ralph")
    sound(client.session())
