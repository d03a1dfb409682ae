"""The command by which a client calls a hook: any shell takes it, and it denies nothing when Ralph is gone."""

from __future__ import annotations

import ast
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ralph.hooks
from ralph.session import hook_policy as hooking
from ralph.session.hook_policy import EVENTS, _literal, client_settings, hook_command

CALL = '{"tool_name":"Read","tool_input":{"file_path":"/tmp/test"}}'


def run(command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["sh", "-c", command], input=CALL, capture_output=True, text=True, check=False)


@given(st.text(max_size=20))
def test_any_folder_is_written_so_that_python_reads_it(text: str) -> None:
    assert ast.literal_eval(_literal(text)) == text


@pytest.mark.parametrize("name", ["plain", "with space", "o'clock", 'a "quote"', "back\\slash", "$HOME `id` é"])
def test_a_folder_may_have_any_name(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / name
    package = folder / "ralph"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    shutil.copytree(Path(ralph.hooks.__file__).parent, package / "hooks", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(hooking, "_INSTALLED_IN", folder)
    done = run(f"{hook_command()} PreToolUse")
    assert (done.returncode, done.stdout, done.stderr) == (0, '{"decision": "allow"}\n', "")


def test_a_ralph_that_is_gone_denies_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client takes exit code 2 for a denial, of every tool, in every session. Any other code is passed over."""
    monkeypatch.setattr(hooking, "_INSTALLED_IN", tmp_path / "gone")
    assert run(f"{hook_command()} PreToolUse").returncode == 1
    _, *rest = shlex.split(hook_command())
    assert run(f"{shlex.join([str(tmp_path / 'python'), *rest])} PreToolUse").returncode == 127


def test_every_event_has_one_entry_with_a_time_limit() -> None:
    hooks = client_settings()["hooks"]
    assert set(hooks) == set(EVENTS)
    for event, [entry] in hooks.items():
        [hook] = entry["hooks"]
        assert hook["type"] == "command"
        assert shlex.split(hook["command"])[-1] == event
        assert 0 < hook["timeout"] <= 30
        assert ("matcher" in entry) == ("Tool" in event)
