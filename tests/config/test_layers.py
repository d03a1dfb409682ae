"""Which value wins, and where it says it comes from."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ralph.config.keys import ALIASES, BUILD_VARIABLES, RESERVED_VARIABLES, options
from ralph.config.layers import Kind, Origin, Settings, load
from ralph.config.profiles import PROFILES
from ralph.config.schema import Config
from ralph.core.errors import BadData, ConfigError, UsageError
from ralph.core.problems import Severity

NOWHERE = {"HOME": "/nowhere"}


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def settings_of(root: Path | None, env: Mapping[str, str] = NOWHERE, layout: str = "", **more: Any) -> Settings:
    return load(root=root, layout=layout, name=more.pop("name", None), env=env, flags=more.pop("flags", {}), **more)


# One sample key per type, with values that are written the same in YAML, in a variable and on the command line.
SAMPLES: dict[str, st.SearchStrategy[Any]] = {
    "max_iterations": st.integers(1, 90),
    "review.cap": st.integers(1, 90),
    "feature": st.text("abcdefg", min_size=1, max_size=5),
    "push": st.sampled_from(["never", "after-story"]),
    "agent.model": st.text("xyz", min_size=1, max_size=5),
    "archive.on_complete": st.booleans(),
    "timeout": st.integers(1, 10_000).map("{}s".format),
}
LAYERS = [Kind.USER, Kind.PROJECT, Kind.NAMED, Kind.ENVIRONMENT, Kind.FLAG]
layer_values = st.fixed_dictionaries({}, optional=SAMPLES)
all_layers = st.fixed_dictionaries(dict.fromkeys(LAYERS, layer_values))


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for key, value in values.items():
        head, _, tail = key.partition(".")
        if tail:
            tree.setdefault(head, {})[tail] = value
        else:
            tree[head] = value
    return tree


@settings(max_examples=80, deadline=None)
@given(all_layers, st.sampled_from(["", *PROFILES]))
def test_the_highest_layer_that_sets_a_key_wins_and_is_named(values: dict[Kind, dict[str, Any]], layout: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home, root = Path(folder, "home"), Path(folder, "work")
        files = {
            Kind.USER: home / ".ralph" / "config.yaml",
            Kind.PROJECT: root / ".ralph" / "config.yaml",
            Kind.NAMED: root / ".ralph" / "configs" / "x.yaml",
        }
        for kind, file in files.items():
            write(file, yaml.safe_dump(nested(values[kind])))
        variables = {options()[key].variable: str(value).lower() for key, value in values[Kind.ENVIRONMENT].items()}
        env = {"HOME": str(home), **variables}
        loaded = load(root=root, layout=layout, name="x", env=env, flags=values[Kind.FLAG])
        for key in SAMPLES:
            setters = [kind for kind in reversed(LAYERS) if key in values[kind]]
            if setters:
                written = values[setters[0]][key]
                assert loaded.value(key) == (float(written[:-1]) if key == "timeout" else written)
                assert loaded.origin(key).kind is setters[0]
                assert loaded.origin(key).file == str(files.get(setters[0], ""))
            else:
                in_profile = key in PROFILES.get(layout, {})
                assert loaded.origin(key).kind is (Kind.PROFILE if in_profile else Kind.DEFAULT)
            assert [origin.kind for _, origin in loaded.history(key)][: len(setters)] == setters


def test_without_any_source_the_schema_is_the_answer() -> None:
    assert settings_of(None, {}).config == Config()
    assert {origin.kind for _, _, origin in settings_of(None, {}).items()} == {Kind.DEFAULT}


def test_origins_name_file_line_variable_flag_and_profile(tmp_path: Path) -> None:
    file = write(tmp_path / ".ralph" / "config.yaml", "# c\n\nreview:\n  cap: 3\n")
    env = {**NOWHERE, "RALPH_MAX_ITERATIONS": "4"}
    loaded = settings_of(tmp_path, env, layout="steps", flags={"push": "never"})
    assert loaded.origin("review.cap") == Origin(Kind.PROJECT, str(file), 4, "review.cap")
    assert str(loaded.origin("review.cap")) == f"{file}:4"
    assert str(loaded.origin("max_iterations")) == "RALPH_MAX_ITERATIONS"
    assert str(loaded.origin("push")) == "--push"
    assert str(loaded.origin("agent.model")) == "profile steps"
    assert str(loaded.origin("prompt")) == "default"


@pytest.mark.parametrize("layout", PROFILES)
def test_profiles_are_valid_settings(layout: str) -> None:
    loaded = settings_of(None, {}, layout=layout)
    for key in PROFILES[layout]:
        assert loaded.origin(key).kind is Kind.PROFILE


def test_profiles_are_those_of_the_layouts_origins() -> None:
    assert settings_of(None, {}, layout="plan.md").config.timeout == 3600
    assert settings_of(None, {}, layout="plan.md").config.max_allowed_iterations == 100
    assert settings_of(None, {}, layout="steps").config.agent.model == "sonnet"
    assert settings_of(None, {}, layout="feature").config.archive.on_complete is True
    assert [settings_of(None, {}, layout=name).config.review.when for name in PROFILES] == [
        "when-unproven",
        "always",
        "when-unproven",
        "when-unproven",
        "when-unproven",
        "when-unproven",
    ]
    assert {settings_of(None, {}, layout=name).config.push for name in PROFILES} == {"never"}


def test_the_old_spellings_work_and_keep_their_line(tmp_path: Path) -> None:
    file = write(
        tmp_path / ".ralph" / "config.yaml",
        "defaults:\n  max_iterations: 30\n  timeout_minutes: 15\n  rate_limit_per_hour: 7\n"
        "claude:\n  dangerously_skip_permissions: true\n  allowed_tools: 'Write,Bash(git *),Read'\n"
        "circuit_breaker:\n  no_progress_threshold: 4\n  same_error_threshold: 6\n"
        "completion:\n  promise: '<promise>DONE</promise>'\n"
        "quality_checks:\n  backend: pytest tests/\nbranch:\n  prefix: topic/\n  auto_create: true\n",
    )
    loaded = settings_of(tmp_path)
    config = loaded.config
    assert (config.max_iterations, config.timeout, config.rate_limit_per_hour) == (30, 900, 7)
    assert config.permissions == "skip"
    assert config.agent.allowed_tools == ("Write", "Bash(git *)", "Read")
    assert (config.circuit_breaker.no_progress_threshold, config.circuit_breaker.same_error_threshold) == (4, 6)
    assert config.completion.promise == "<promise>DONE</promise>"
    assert config.quality_checks == {"backend": "pytest tests/"}
    assert (config.branch.prefix, config.branch.auto_create) == ("topic/", True)
    assert loaded.origin("timeout") == Origin(Kind.PROJECT, str(file), 3, "defaults.timeout_minutes")
    assert loaded.origin("defaults.timeout_minutes") == loaded.origin("timeout")


def test_the_variable_of_the_old_switch_still_counts() -> None:
    old = {"RALPH_AGENT_DANGEROUSLY_SKIP_PERMISSIONS": "true"}
    assert settings_of(None, old).config.permissions == "skip"
    assert settings_of(None, old | {"RALPH_PERMISSIONS": "client"}).config.permissions == "client"


@pytest.mark.parametrize("path", ["/", "//", "/tmp/.."])
def test_the_whole_file_system_is_no_path_to_allow(tmp_path: Path, path: str) -> None:
    write(tmp_path / ".ralph" / "config.yaml", f"allow_paths: [{path}]\n")
    with pytest.raises(ConfigError, match="whole file system"):
        settings_of(tmp_path)


def test_every_alias_stands_for_a_key() -> None:
    assert {alias.key for alias in ALIASES.values()} <= set(options())
    assert set(BUILD_VARIABLES.values()) <= set(options())
    assert not set(ALIASES) & set(options())


def test_every_key_has_a_variable_of_its_own() -> None:
    variables = [option.variable for option in options().values()]
    assert len(set(variables)) == len(variables)
    assert not set(variables) & RESERVED_VARIABLES
    assert options()["review.cap"].variable == "RALPH_REVIEW_CAP"


def test_variables_hold_lists_and_mappings_as_yaml() -> None:
    env = {
        "RALPH_CHECKS": "[{name: a, command: pytest}]",
        "RALPH_QUALITY_CHECKS": "{b: ruff check}",
        "RALPH_AGENT_ALLOWED_TOOLS": "Read, Bash(a, b)",
        "RALPH_AGENT_COMMAND": "foo 'b c'",
        "RALPH_TIMEOUT": "20m",
        "RALPH_REVIEW_ENABLED": "off",
        "RALPH_COMPLETION_PROMISE": "a: b # ${c}",
        "RALPH_FEATURE": "",
    }
    config = settings_of(None, env).config
    assert (config.checks[0].name, config.checks[0].command) == ("a", "pytest")
    assert config.quality_checks == {"b": "ruff check"}
    assert config.agent.allowed_tools == ("Read", "Bash(a, b)")
    assert config.agent.command == ("foo", "b c")
    assert (config.timeout, config.review.enabled, config.feature) == (1200, False, "")
    assert config.completion.promise == "a: b # ${c}"


def test_a_wrong_variable_is_an_error_that_names_it() -> None:
    with pytest.raises(ConfigError) as caught:
        settings_of(None, {"RALPH_MAX_ITERATIONS": "lots", "RALPH_CHECKS": "[", "RALPH_PUSH": "x"})
    named = {problem.where.file for problem in caught.value.problems}
    assert named == {"RALPH_MAX_ITERATIONS", "RALPH_CHECKS", "RALPH_PUSH"}


def test_an_unknown_variable_is_a_warning_with_the_nearest_name() -> None:
    loaded = settings_of(None, {"RALPH_MAX_ITERATION": "3", **dict.fromkeys(RESERVED_VARIABLES, "1"), "OTHER": "x"})
    (warning,) = loaded.warnings
    assert warning.severity is Severity.WARNING
    assert (warning.where.file, warning.hint) == ("RALPH_MAX_ITERATION", "did you mean RALPH_MAX_ITERATIONS?")


def test_the_variables_of_build_count_only_when_asked_for_and_yield_to_ralphs_own() -> None:
    env = {"MAX_ITERATIONS": "5", "TIMEOUT_AGENT": "60", "PRD_NUMBER": "3", "RALPH_PRD": "4"}
    assert settings_of(None, env).config.max_iterations == 0
    config = settings_of(None, env, extra_env=BUILD_VARIABLES).config
    assert (config.max_iterations, config.timeout, config.prd) == (5, 60, 4)
    with pytest.raises(ConfigError, match="PRD_NUMBER"):
        settings_of(None, {"PRD_NUMBER": "../1"}, extra_env=BUILD_VARIABLES)


def test_a_wrong_flag_is_wrong_usage() -> None:
    with pytest.raises(UsageError, match="--max-iterations"):
        settings_of(None, {}, flags={"max_iterations": -1})
    with pytest.raises(UsageError, match="unknown key"):
        settings_of(None, {}, flags={"max_iteration": 1})
    assert settings_of(None, {}, flags={"prd": "7", "timeout": "2m"}).config.prd == 7


def test_a_cap_above_the_hard_cap_is_said() -> None:
    assert not settings_of(None, {}, flags={"max_iterations": 500}).warnings
    (warning,) = settings_of(None, {}, layout="plan.md", flags={"max_iterations": 500}).warnings
    assert "500 exceeds max_allowed_iterations (100)" in str(warning)


def test_two_checks_cannot_have_one_name(tmp_path: Path) -> None:
    write(tmp_path / ".ralph" / "config.yaml", "quality_checks: {a: x}\nchecks: [{name: a, command: y}]\n")
    with pytest.raises(ConfigError, match="two checks have the name 'a'"):
        settings_of(tmp_path)


@pytest.mark.parametrize("suffix", [".yaml", ".yml", ".json"])
def test_a_named_config_is_found_with_and_without_its_suffix(tmp_path: Path, suffix: str) -> None:
    write(tmp_path / ".ralph" / "configs" / f"fast{suffix}", '{"max_iterations": 2}')
    for name in ("fast", f"fast{suffix}"):
        loaded = settings_of(tmp_path, name=name)
        assert (loaded.config.max_iterations, loaded.origin("max_iterations").kind) == (2, Kind.NAMED)
    assert settings_of(tmp_path).config.max_iterations == 0


def test_a_named_config_that_is_not_there_is_wrong_usage(tmp_path: Path) -> None:
    write(tmp_path / ".ralph" / "configs" / "fast.yaml", "")
    with pytest.raises(UsageError) as caught:
        settings_of(tmp_path, name="fats")
    assert caught.value.hint == "did you mean fast?"
    for name in ("../fast", "/etc/passwd", "a\0b", ""):
        with pytest.raises(UsageError):
            settings_of(tmp_path, name=name)
    with pytest.raises(UsageError):
        settings_of(None, name="fast")


def test_two_named_configs_of_one_name_are_refused(tmp_path: Path) -> None:
    write(tmp_path / ".ralph" / "configs" / "a.yaml", "")
    write(tmp_path / ".ralph" / "configs" / "a.json", "")
    with pytest.raises(UsageError, match=r"a\.yaml and a\.json"):
        settings_of(tmp_path, name="a")


def test_the_steps_layout_reads_its_default_config_when_it_is_there(tmp_path: Path) -> None:
    write(tmp_path / ".ralph" / "configs" / "default.json", '{"max_loops_per_task": 9}')
    assert settings_of(tmp_path, layout="steps").config.max_loops_per_task == 9
    assert settings_of(tmp_path, layout="tasks.json").config.max_loops_per_task == 5


def test_a_config_with_the_wrong_suffix_is_not_overlooked(tmp_path: Path) -> None:
    write(tmp_path / ".ralph" / "config.yml", "max_iterations: 2")
    (warning,) = settings_of(tmp_path).warnings
    assert "rename it to config.yaml" in warning.hint


def test_in_the_home_folder_the_users_config_is_not_the_projects(tmp_path: Path) -> None:
    write(tmp_path / ".ralph" / "config.yaml", "checks: [{name: a, command: b}]")
    loaded = settings_of(tmp_path, {"HOME": str(tmp_path)})
    assert loaded.origin("checks").kind is Kind.USER


def test_odd_files_are_refused_before_they_are_read(tmp_path: Path) -> None:
    outside = write(tmp_path / "outside.yaml", "name: x")
    file = tmp_path / "work" / ".ralph" / "config.yaml"
    file.parent.mkdir(parents=True)
    file.symlink_to(outside)
    with pytest.raises(BadData, match="outside"):
        settings_of(tmp_path / "work")
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(BadData, match="regular file"):
        settings_of(tmp_path / "work")
    file.unlink()
    file.write_text("#" * 1_000_001)
    with pytest.raises(BadData, match="the limit is"):
        settings_of(tmp_path / "work")
    file.unlink()
    file.mkdir()
    with pytest.raises(BadData):
        settings_of(tmp_path / "work")


def test_problems_of_all_files_come_together(tmp_path: Path) -> None:
    write(tmp_path / "home" / ".ralph" / "config.yaml", "naem: x")
    write(tmp_path / "work" / ".ralph" / "config.yaml", "pushh: x")
    with pytest.raises(ConfigError) as caught:
        settings_of(tmp_path / "work", {"HOME": str(tmp_path / "home"), "RALPH_PRD": "x"})
    assert [problem.where.path for problem in caught.value.problems] == ["naem", "pushh", "prd"]


def test_a_plain_command_is_a_check_named_after_it(tmp_path: Path) -> None:
    write(
        tmp_path / ".ralph" / "config.yaml", 'checks: ["pytest -q", {name: lint, command: ruff check .}, make test]\n'
    )
    checks = settings_of(tmp_path).config.checks
    assert [(check.name, check.command) for check in checks] == [
        ("pytest -q", "pytest -q"),
        ("lint", "ruff check ."),
        ("make test", "make test"),
    ]
    write(tmp_path / ".ralph" / "config.yaml", "checks: [[pytest]]\n")
    with pytest.raises(ConfigError, match="a command, or a mapping with name, command"):
        settings_of(tmp_path)
