"""`config set` and `unset`, on the text of a file."""

from __future__ import annotations

import pytest

from ralph.config.editing import assign, target, unassign
from ralph.core.errors import ConfigError, UsageError


def set_in(text: str, key: str, value: str, file: str = "c.yaml") -> str:
    return assign(text, file, target(key), value, {"HOME": "/h"})


@pytest.mark.parametrize(
    ("key", "value", "written"),
    [
        ("max_iterations", "30", "max_iterations: 30\n"),
        ("timeout", "20m", "timeout: 20m\n"),
        ("review.enabled", "no", "review:\n  when: never\n"),
        ("agent.model", "opus", "agent:\n  model: opus\n"),
        ("agent.model", "5", 'agent:\n  model: "5"\n'),
        ("agent.allowed_tools", "Write,Bash(git *)", 'agent:\n  allowed_tools: "Write,Bash(git *)"\n'),
        ("agent.command", "[a, b c]", 'agent:\n  command: ["a", "b c"]\n'),
        ("completion.promise", "done: yes # really", 'completion:\n  promise: "done: yes # really"\n'),
        ("quality_checks.unit", "pytest -q", "quality_checks:\n  unit: pytest -q\n"),
        ("quality_checks.a.b", "x: y", 'quality_checks:\n  a.b: "x: y"\n'),
        ("checks", "[{name: a, command: 'b #c'}]", 'checks: [{"name": "a", "command": "b #c"}]\n'),
        ("defaults.timeout_minutes", "5", "defaults:\n  timeout_minutes: 5\n"),
        ("prompt", "${HOME}/p.md", 'prompt: "${HOME}/p.md"\n'),
        ("beads", "off", 'beads: "off"\n'),
    ],
)
def test_a_value_is_written_as_it_was_typed(key: str, value: str, written: str) -> None:
    assert set_in("", key, value) == written


@pytest.mark.parametrize(
    ("before", "key", "value", "after"),
    [
        ("defaults:\n  max_iterations: 3\n", "max_iterations", "5", "defaults:\n  max_iterations: 5\n"),
        ("max_iterations: 3\n", "defaults.max_iterations", "5", "max_iterations: 5\n"),
        ("defaults: {timeout_minutes: 3}\n", "timeout", "2m", "defaults: {timeout_minutes: 2}\n"),
        ("defaults: {timeout_minutes: 3}\n", "timeout", "90s", 'defaults: {timeout_minutes: "1m30s"}\n'),
        ("timeout: 20m\n", "defaults.timeout_minutes", "5", "timeout: 5m\n"),
        ("claude:\n  allowed_tools: a\n", "agent.allowed_tools", "b", "claude:\n  allowed_tools: b\n"),
    ],
)
def test_the_spelling_of_the_file_is_kept(before: str, key: str, value: str, after: str) -> None:
    assert set_in(before, key, value) == after


@pytest.mark.parametrize(
    ("before", "key", "value", "after"),
    [
        ("", "agent.dangerously_skip_permissions", "yes", "permissions: skip\n"),
        ("permissions: client\n", "agent.dangerously_skip_permissions", "true", "permissions: skip\n"),
        ("name: x\nclaude:\n  dangerously_skip_permissions: true\n", "permissions", "client", "permissions: client"),
        ("agent: {dangerously_skip_permissions: true}\n", "permissions", "guard", "permissions: guard"),
    ],
)
def test_a_switch_is_replaced_by_the_key_it_stands_for(before: str, key: str, value: str, after: str) -> None:
    written = set_in(before, key, value)
    assert after in written
    assert "dangerously" not in written


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("max_iterations", "lots", "whole number"),
        ("timeout", "1:30", "duration"),
        ("push", "x", "one of"),
        ("checks", "[{name: a}]", "command is missing"),
        ("checks", "[", "not valid YAML"),
        ("checks", "pytest", "expected a list"),
        ("review.enabled", "maybe", "true or false"),
        ("name", "${NOT_THERE}", "not set"),
    ],
)
def test_a_wrong_value_is_refused_before_anything_is_changed(key: str, value: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        set_in("", key, value)


def test_null_is_no_value_to_set() -> None:
    with pytest.raises(UsageError, match="null"):
        set_in("", "max_iterations", "null")


@pytest.mark.parametrize("key", ["max_iteration", "agent", "defaults", "quality_checks.", "", ".", "checks[0]", "a\nb"])
def test_an_unknown_key_is_refused(key: str) -> None:
    with pytest.raises(UsageError):
        target(key)


def test_unset_removes_whatever_spelling_is_there() -> None:
    before = "# c\ndefaults:\n  timeout_minutes: 3\n  max_iterations: 4\nquality_checks:\n  a: b\n  c: d\n"
    after = unassign(before, "c.yaml", target("timeout"))
    assert after == "# c\ndefaults:\n  max_iterations: 4\nquality_checks:\n  a: b\n  c: d\n"
    assert unassign(after, "c.yaml", target("quality_checks.a")).endswith("quality_checks:\n  c: d\n")
    assert unassign(after, "c.yaml", target("timeout")) == after


def test_a_json_file_stays_json() -> None:
    before = '{\n  "name": "x", // c\n  "steps": []\n}\n'
    after = '{\n  "agent": {"model": "opus"},\n  "name": "x", // c\n  "steps": []\n}\n'
    assert set_in(before, "agent.model", "opus", "c.json") == after
