"""`ralph hooks`: installed and taken out without a trace, and told truthfully."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ralph.core.ports import PlanRef
from ralph.session.hook_policy import EVENTS, hook_command
from ralph.session.hook_settings import find_hooks
from ralph.state.locks import claim
from support.cli import Completed, ralph, ralph_here

SETTINGS = '{\r\n\t"env": {"TOKEN": "s3cret"},\r\n\t"hooks": { }\r\n}'


@pytest.fixture
def work(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    (root / ".ralph").mkdir(parents=True)
    return root


def hooks(work: Path, *arguments: str, **env: str) -> Completed:
    return ralph_here("hooks", *arguments, cwd=work, env=env)


def user_file() -> Path:
    return Path(os.environ["HOME"], ".claude", "settings.json")


def everything(*folders: Path) -> dict[str, str]:
    """Every file, folder and link below, and what is in it."""
    found = {}
    for path in (path for folder in folders for path in sorted(folder.rglob("*"))):
        mode = f"{path.lstat().st_mode:o}"
        what = str(path.readlink()) if path.is_symlink() else ""
        found[str(path)] = mode + what + (hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "")
    return found


@pytest.mark.parametrize("scope", ["--user", "--project"])
@pytest.mark.parametrize("before", [None, "", "{}", SETTINGS])
def test_uninstalling_gives_every_byte_back(work: Path, scope: str, before: str | None) -> None:
    file = user_file() if scope == "--user" else work / ".claude" / "settings.local.json"
    if before is not None:
        file.parent.mkdir()
        file.write_bytes(before.encode())
        file.chmod(0o600)
    was = everything(work, file.parent)
    done = hooks(work, "install", scope)
    assert done.code == 0, done.err
    assert find_hooks(file.read_bytes(), "").commands == {event: f"{hook_command()} {event}" for event in EVENTS}
    if before is not None:
        backup = file.with_name(file.name + ".before-ralph")
        assert backup.read_bytes() == before.encode()
        assert (backup.stat().st_mode & 0o777, file.stat().st_mode & 0o777) == (0o600, 0o600)
        assert str(backup) in done.out
    done = hooks(work, "uninstall", scope)
    assert done.code == 0, done.err
    assert everything(work, file.parent) == was
    assert "byte for byte" in done.out or "gone again" in done.out


def test_installing_twice_is_installing_once(work: Path) -> None:
    hooks(work, "install")
    was = everything(work, Path(os.environ["HOME"]))
    done = hooks(work, "install")
    assert (done.code, "already" in done.out) == (0, True)
    assert everything(work, Path(os.environ["HOME"])) == was


def in_json(program: str) -> str:
    """As a settings file has it: quoted for the shell, then for JSON."""
    return json.dumps(shlex.quote(program))[1:-1]


def test_another_name_of_the_same_interpreter_is_no_reason_to_write(work: Path) -> None:
    """`ralph` is started by python3, `python -m ralph` by python."""
    file = work / ".claude" / "settings.local.json"
    hooks(work, "install")
    program = shlex.split(hook_command())[0]
    other = str(Path(program).with_name("python3" if Path(program).name == "python" else "python"))
    file.write_text(file.read_text().replace(in_json(program), in_json(other)))
    was = everything(work)
    assert "already" in hooks(work, "install").out
    assert everything(work) == was
    assert "another Ralph" not in hooks(work, "status").out


def test_a_file_changed_meanwhile_loses_only_ralphs_entries(work: Path) -> None:
    file = user_file()
    file.parent.mkdir()
    file.write_text('{"theme": "dark"}\n')
    hooks(work, "install", "--user")
    now = json.loads(file.read_text())
    now["hooks"]["Stop"].append({"hooks": [{"type": "command", "command": "mine"}]})
    file.write_text(json.dumps(now, indent=1))
    done = hooks(work, "uninstall", "--user")
    assert done.code == 0
    assert "only Ralph's hooks were removed" in done.out
    kept = {"Stop": [{"hooks": [{"type": "command", "command": "mine"}]}]}
    assert json.loads(file.read_text()) == {"theme": "dark", "hooks": kept}
    assert file.with_name("settings.json.before-ralph").read_text() == '{"theme": "dark"}\n'


def test_without_its_record_ralph_still_finds_its_entries(work: Path) -> None:
    file = user_file()
    file.parent.mkdir()
    file.write_text('{\n  "theme": "dark"\n}\n')
    hooks(work, "install", "--user")
    for record in Path(os.environ["RALPH_STATE_HOME"], "hooks").iterdir():
        record.write_text("garbage")
    assert hooks(work, "uninstall", "--user").code == 0
    assert file.read_text() == '{\n  "theme": "dark"\n}\n'


def test_an_older_installation_is_replaced_not_doubled(work: Path) -> None:
    file = user_file()
    file.parent.mkdir()
    old = [{"matcher": "*", "hooks": [{"type": "command", "command": "/gone/python -I -m ralph.hooks PreToolUse"}]}]
    file.write_text(json.dumps({"hooks": {"PreToolUse": old, "Stop": []}, "theme": "dark"}))
    said = hooks(work, "status", "--user").out
    assert "/gone/python no longer exists" in said
    assert "another Ralph" in said
    assert "missing: PostToolUse" in said
    assert hooks(work, "install", "--user").code == 0
    assert len(json.loads(file.read_text())["hooks"]["PreToolUse"]) == 1
    assert "/gone/" not in file.read_text()
    assert hooks(work, "uninstall", "--user").code == 0
    assert json.loads(file.read_text()) == {"hooks": {"Stop": []}, "theme": "dark"}


def test_somebody_elses_copy_is_not_overwritten(work: Path) -> None:
    file = user_file()
    file.parent.mkdir()
    file.write_text("{}")
    other = file.with_name("settings.json.before-ralph")
    other.write_text("keep me")
    assert hooks(work, "install", "--user").code == 0
    assert other.read_text() == "keep me"
    assert hooks(work, "uninstall", "--user").code == 0
    assert (file.read_text(), other.read_text()) == ("{}", "keep me")


@pytest.mark.parametrize("broken", ["{", "[1]", '{"hooks": {"Stop": "/path/on-stop.sh"}}', b"\xff\xfe{}"])
@pytest.mark.parametrize("action", ["install", "uninstall"])
def test_settings_that_cannot_be_read_are_left_alone(work: Path, broken: str | bytes, action: str) -> None:
    file = user_file()
    file.parent.mkdir()
    file.write_bytes(broken.encode() if isinstance(broken, str) else broken)
    was = everything(Path(os.environ["HOME"]))
    done = hooks(work, action, "--user")
    if action == "uninstall" and isinstance(broken, str) and "hooks" in broken:
        assert done.code == 0  # nothing of Ralph's is in it
    else:
        assert done.code == 65
        assert str(file) in done.err
        assert "nothing was written" in done.err
    assert everything(Path(os.environ["HOME"])) == was


def test_a_pipe_in_the_place_of_the_settings_hangs_nothing(work: Path) -> None:
    user_file().parent.mkdir()
    os.mkfifo(user_file())
    for action in ("install", "uninstall"):
        assert hooks(work, action, "--user").code == 65
    assert "unreadable" in hooks(work, "status", "--user").out


def test_a_link_stays_a_link(work: Path, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.json"
    real.write_text('{"a": 1}')
    user_file().parent.mkdir()
    user_file().symlink_to(real)
    assert hooks(work, "install", "--user").code == 0
    assert user_file().is_symlink()
    assert "ralph.hooks" in real.read_text()
    assert hooks(work, "uninstall", "--user").code == 0
    assert real.read_text() == '{"a": 1}'


def test_a_link_does_not_lead_out_of_a_project(work: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (work / ".claude").symlink_to(outside)
    assert hooks(work, "install").code == 65
    assert list(outside.iterdir()) == []
    (work / ".claude").unlink()
    (work / ".claude").mkdir()
    (outside / "x.json").write_text("{}")
    (work / ".claude" / "settings.local.json").symlink_to(outside / "x.json")
    assert hooks(work, "install").code == 65
    assert (outside / "x.json").read_text() == "{}"


def test_the_clients_own_folder_is_honoured(work: Path, tmp_path: Path) -> None:
    assert hooks(work, "install", "--user", CLAUDE_CONFIG_DIR=str(tmp_path / "c")).code == 0
    assert (tmp_path / "c" / "settings.json").exists()
    assert not user_file().exists()


@pytest.mark.parametrize("action", ["install", "uninstall"])
def test_an_agent_in_a_loop_cannot_change_its_hooks(work: Path, action: str) -> None:
    hooks(work, "install")
    was = everything(work)
    done = hooks(work, action, RALPH_LOOP="1")
    assert done.code == 78
    assert "an agent in a loop cannot" in done.err
    assert everything(work) == was


def test_no_workspace_no_project_settings(tmp_path: Path) -> None:
    done = hooks(tmp_path, "install")
    assert done.code == 78
    assert list(tmp_path.iterdir()) == []
    assert hooks(tmp_path, "install", "-d", str(tmp_path)).code == 0
    assert (tmp_path / ".claude" / "settings.local.json").exists()


def standing(work: Path, *arguments: str) -> dict[str, Any]:
    return {one["scope"]: one for one in hooks(work, "status", "--json", *arguments).json}


def test_status_tells_what_is_where(work: Path) -> None:
    assert [one["installed"] for one in standing(work).values()] == [False, False]
    hooks(work, "install", "--project")
    found = standing(work)
    assert (found["user"]["installed"], found["project"]["installed"]) == (False, True)
    assert found["project"]["events"] == list(EVENTS)
    assert found["project"]["is_current"] is True
    assert found["project"]["would_act"] is False
    assert "do nothing" in found["project"]["why"]
    assert standing(work, "--user").keys() == {"user"}
    assert standing(work, "--project").keys() == {"project"}


def test_status_says_so_when_a_run_is_live(work: Path) -> None:
    hooks(work, "install")
    ref = PlanRef("tasks.json", work, work / "ralph", work / "ralph" / "tasks.json", "ralph")
    with claim(ref, os.environ, "20260101-000000-abcd"):
        found = standing(work)["project"]
    assert found["would_act"] is True
    assert "20260101-000000-abcd" in found["why"]


def test_status_sees_hooks_that_are_switched_off(work: Path) -> None:
    file = work / ".claude" / "settings.local.json"
    file.parent.mkdir()
    file.write_text('{"disableAllHooks": true}')
    hooks(work, "install")
    assert "disableAllHooks is set" in hooks(work, "status").out


def test_somebody_is_told_when_git_would_see_the_file(work: Path) -> None:
    subprocess.run(["git", "init", "-q", str(work)], check=True)
    assert "git lists .claude/settings.local.json" in hooks(work, "install").err
    hooks(work, "uninstall")
    (work / ".git" / "info").mkdir(exist_ok=True)
    (work / ".git" / "info" / "exclude").write_text(".claude/settings.local.json*\n")
    assert "git lists" not in hooks(work, "install").err


def test_at_stop_has_nothing_to_say_without_a_run(work: Path) -> None:
    assert hooks(work, "at-stop").json == []


def test_help_says_that_a_run_does_not_need_it(work: Path) -> None:
    said = ralph("hooks", "install", "--help", cwd=work).out
    assert "Only needed for interactive clients" in said
