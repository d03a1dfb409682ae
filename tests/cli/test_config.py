"""`ralph config`, as it is called."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.cli import ralph, ralph_here


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A workspace with one plan, so that the layout's profile counts."""
    root = tmp_path / "work"
    (root / ".ralph" / "login").mkdir(parents=True)
    (root / ".ralph" / "login" / "tasks.json").write_text(
        '{"project": "p", "branchName": "b", "description": "d", "verifyCommands": ["make check"], "userStories": ['
        '{"id": "US-001", "title": "t", "description": "d", "acceptanceCriteria": ["c"], "priority": 1, '
        '"passes": false, "reviewStatus": null, "reviewCount": 0, "reviewFeedback": "", "notes": "", "dependsOn": []}]}'
    )
    return root


def project(root: Path) -> Path:
    return root / ".ralph" / "config.yaml"


def test_show_lists_every_setting_with_its_origin(work: Path) -> None:
    project(work).write_text("# c\nreview:\n  cap: 2\n")
    done = ralph_here("config", "show", "--origin", cwd=work, env={"RALPH_PUSH": "after-story"})
    lines = {line.split()[0]: " ".join(line.split()[1:]) for line in done.out.splitlines()}
    assert done.code == 0
    assert lines["review.cap"] == "2 # .ralph/config.yaml:3"
    assert lines["review.when"] == "always # profile tasks.json"
    assert lines["push"] == "after-story # RALPH_PUSH"
    assert lines["timeout"] == "15m # default"
    assert lines["checks"] == "[] # default"


def test_show_as_json_is_one_document(work: Path) -> None:
    project(work).write_text("timeout: 20m\nchecks: [{name: a, command: b}]\n")
    shown = ralph_here("config", "show", "--json", cwd=work).json
    assert shown["timeout"] == 1200
    assert shown["checks"][0]["command"] == "b"
    with_origin = ralph_here("config", "show", "--json", "--origin", cwd=work).json
    assert with_origin["timeout"] == {
        "value": 1200,
        "origin": {"kind": "project", "file": str(project(work)), "line": 1, "name": "timeout"},
    }


def test_show_works_where_there_is_no_workspace(tmp_path: Path) -> None:
    done = ralph_here("config", "show", cwd=tmp_path)
    assert done.code == 0
    assert "max_iterations" in done.out


def test_get_prints_the_value_and_where_it_was_set(work: Path) -> None:
    project(work).write_text("defaults: {timeout_minutes: 20}\nquality_checks: {unit: pytest -q}\n")
    assert ralph_here("config", "get", "timeout", cwd=work).out == "20m\n"
    assert ralph_here("config", "get", "defaults.timeout_minutes", cwd=work).out == "20m\n"
    assert ralph_here("config", "get", "quality_checks.unit", cwd=work).out == "pytest -q\n"
    done = ralph_here("config", "get", "timeout", "--origin", cwd=work, env={"RALPH_TIMEOUT": "5m"})
    assert done.out == "5m\n"
    assert done.err.splitlines() == ["  RALPH_TIMEOUT: 5m", "  .ralph/config.yaml:1: 20m", "  default: 15m"]
    found = ralph_here("config", "get", "timeout", "--json", cwd=work).json
    assert (found["value"], found["origin"]["line"]) == (1200, 1)


def test_an_unknown_key_gets_the_nearest_one(work: Path) -> None:
    for action in (["get", "max_iteration"], ["set", "max_iteration", "3"], ["unset", "max_iteration"]):
        done = ralph_here("config", *action, cwd=work)
        assert done.code == 64
        assert "did you mean max_iterations?" in done.err
    missing = ralph_here("config", "get", "quality_checks.x", cwd=work)
    assert (missing.code, "no entry 'x'" in missing.err) == (64, True)


def test_a_wrong_file_is_an_error_with_its_line(work: Path) -> None:
    project(work).write_text("name: x\nmax_iteration: 3\n")
    done = ralph_here("config", "show", cwd=work)
    assert done.code == 65
    assert f"{project(work)}:2:1 (max_iteration): unknown key 'max_iteration'" in done.err
    assert "did you mean max_iterations?" in done.err


def test_warnings_go_to_stderr(work: Path) -> None:
    done = ralph_here("config", "get", "prompt", cwd=work, env={"RALPH_PROMT": "x"})
    assert (done.code, done.out) == (0, "\n")
    assert "warning: RALPH_PROMT" in done.err
    assert "did you mean RALPH_PROMPT?" in done.err


def test_set_changes_one_line_of_the_projects_file(work: Path) -> None:
    before = b"\xef\xbb\xbf# ours\r\nmax_iterations: 3  # few\r\nname: x"
    project(work).write_bytes(before)
    project(work).chmod(0o640)
    assert ralph_here("config", "set", "max_iterations", "30", cwd=work).code == 0
    assert project(work).read_bytes() == before.replace(b": 3 ", b": 30 ")
    assert project(work).stat().st_mode & 0o777 == 0o640
    assert ralph_here("config", "get", "max_iterations", cwd=work).out == "30\n"


def test_set_makes_the_file_when_it_is_missing(work: Path) -> None:
    assert ralph_here("config", "set", "review.cap", "2", cwd=work).code == 0
    assert project(work).read_text() == "review:\n  cap: 2\n"
    assert ralph_here("config", "set", "--user", "agent.model", "opus", cwd=work).code == 0
    assert Path(os.environ["HOME"], ".ralph", "config.yaml").read_text() == "agent:\n  model: opus\n"
    assert ralph_here("config", "set", "--config", "fast", "max_iterations", "2", cwd=work).code == 0
    assert (work / ".ralph" / "configs" / "fast.yaml").read_text() == "max_iterations: 2\n"
    assert ralph_here("config", "set", "--config", "old.json", "max_iterations", "2", cwd=work).code == 0
    assert (work / ".ralph" / "configs" / "old.json").read_text() == '{\n  "max_iterations": 2\n}\n'
    assert ralph_here("config", "get", "max_iterations", "--config", "fast", cwd=work).out == "2\n"


def test_set_twice_changes_nothing_the_second_time(work: Path) -> None:
    ralph_here("config", "set", "review.cap", "2", cwd=work)
    before = project(work).stat()
    assert "already so" in ralph_here("config", "set", "review.cap", "2", cwd=work).err
    assert project(work).stat().st_mtime_ns == before.st_mtime_ns
    assert project(work).stat().st_ino == before.st_ino


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["max_iterations", "lots"], 65),
        (["max_iterations", "null"], 64),
        (["--config", "../x", "max_iterations", "3"], 64),
        (["--user", "--config", "x", "max_iterations", "3"], 64),
        (["max_iterations"], 64),
        (["quality_checks", "[a]"], 65),
    ],
)
def test_a_refused_set_writes_nothing(work: Path, arguments: list[str], code: int) -> None:
    project(work).write_text("# mine\n")
    done = ralph_here("config", "set", *arguments, cwd=work)
    assert done.code == code
    assert project(work).read_text() == "# mine\n"
    assert not (work / ".ralph" / "configs").exists()


def test_a_broken_file_is_not_touched(work: Path) -> None:
    project(work).write_text("a: [\n")
    assert ralph_here("config", "set", "max_iterations", "3", cwd=work).code == 65
    assert project(work).read_text() == "a: [\n"


def test_what_cannot_be_set_alone_is_said_with_what_to_write(work: Path) -> None:
    project(work).write_text("checks:\n  # the one that counts\n  - {name: a, command: b}\n")
    done = ralph_here("config", "set", "checks", "[]", cwd=work)
    assert done.code == 65
    assert "edit the file by hand: checks: []" in done.err


def test_a_link_out_of_the_workspace_is_not_followed(work: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (work / ".ralph" / "configs").symlink_to(tmp_path / "elsewhere")
    done = ralph_here("config", "set", "--config", "x", "max_iterations", "3", cwd=work)
    assert done.code == 65
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_unset_removes_one_key(work: Path) -> None:
    project(work).write_text("# c\nname: x\nreview:\n  cap: 3\n")
    assert ralph_here("config", "unset", "name", cwd=work).code == 0
    assert project(work).read_text() == "# c\nreview:\n  cap: 3\n"
    assert "not set there" in ralph_here("config", "unset", "name", cwd=work).err


def test_an_agent_in_the_loop_cannot_change_settings(work: Path) -> None:
    for action in (["set", "review.when", "never"], ["unset", "review.when"], ["set", "--user", "name", "x"]):
        done = ralph_here("config", *action, cwd=work, env={"RALPH_LOOP": "1"})
        assert done.code == 78
        assert "only the user can do this" in done.err
    assert not project(work).exists()
    assert ralph_here("config", "get", "review.when", cwd=work, env={"RALPH_LOOP": "1"}).out == "always\n"


def test_the_old_name_of_a_setting_is_still_known(work: Path) -> None:
    """Scripts and notes of users say `review.enabled`; the setting is `review.when` now."""
    project(work).write_text("review:\n  enabled: false\n")
    assert ralph_here("config", "get", "review.when", cwd=work).out == "never\n"
    assert ralph_here("config", "set", "review.enabled", "true", cwd=work).code == 0
    assert ralph_here("config", "get", "review.enabled", cwd=work).out == "always\n"


def test_a_new_command_reminds_of_trust(work: Path) -> None:
    assert "ralph trust" in ralph_here("config", "set", "quality_checks.unit", "pytest", cwd=work).err
    assert "ralph trust" not in ralph_here("config", "set", "max_iterations", "3", cwd=work).err


def test_schema_is_a_json_schema(tmp_path: Path) -> None:
    found = ralph_here("config", "schema", cwd=tmp_path).json
    assert found["$schema"].endswith("2020-12/schema")
    assert found["properties"]["review"]["properties"]["cap"]["description"]


def test_outside_of_a_workspace_set_says_so(tmp_path: Path) -> None:
    done = ralph_here("config", "set", "max_iterations", "3", cwd=tmp_path)
    assert done.code == 78


@pytest.mark.parametrize("action", ["show", "get", "set", "unset", "schema"])
def test_every_action_has_an_example(action: str, tmp_path: Path) -> None:
    done = ralph_here("config", action, "--help", cwd=tmp_path)
    assert done.code == 0
    assert f"examples:\n  ralph config {action}" in done.out


def test_a_mistyped_action_gets_the_nearest_one(tmp_path: Path) -> None:
    done = ralph("config", "shwo", cwd=tmp_path)
    assert done.code == 64
    assert "did you mean show?" in done.err


def test_plain_commands_are_set_run_and_trusted_as_checks(work: Path) -> None:
    assert ralph_here("config", "set", "checks", '["true", "echo hi"]', cwd=work).code == 0
    assert "checks.echo hi: echo hi" in ralph_here("trust", "--show", cwd=work).out
    assert ralph_here("trust", "-y", cwd=work).code == 0
    (work / ".ralph/login/tasks.json").write_text(
        (work / ".ralph/login/tasks.json").read_text().replace("make check", "true")
    )
    done = ralph_here("verify", "--trust", cwd=work)
    assert done.code == 0, done.err
    assert "echo hi" in done.out
    assert ralph_here("verify", cwd=work, env={"RALPH_CHECKS": '["exit 3"]'}).code != 0
