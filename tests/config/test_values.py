"""Wrong keys and types: an error with file, line, key and what is right."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralph.config.display import is_duration, show
from ralph.config.keys import option, options
from ralph.config.layers import load
from ralph.config.schema import Config, Step, StepBreaker
from ralph.core.errors import ConfigError
from ralph.core.problems import Problem


def config(tmp_path: Path, text: str, env: dict[str, str] | None = None, file: str = "config.yaml") -> Config:
    folder = tmp_path / ".ralph"
    folder.mkdir(exist_ok=True)
    (folder / file).write_text(text)
    return load(root=tmp_path, layout="", name=None, env={"HOME": "/nowhere", **(env or {})}, flags={}).config


def problems(tmp_path: Path, text: str, env: dict[str, str] | None = None) -> list[Problem]:
    with pytest.raises(ConfigError) as caught:
        config(tmp_path, text, env)
    for problem in caught.value.problems:
        assert problem.where.file == str(tmp_path / ".ralph" / "config.yaml")
    return list(caught.value.problems)


@pytest.mark.parametrize("key", [o.key for o in options().values() if is_duration(o)])
def test_a_duration_without_a_unit_is_an_error_that_shows_both(key: str, tmp_path: Path) -> None:
    section, _, name = key.rpartition(".")
    problem = problems(tmp_path, f"{section}: {{{name}: 90}}" if section else f"{name}: 90")[0]
    assert problem.hint == "use 90s for seconds or 90m for minutes"


@pytest.mark.parametrize(
    ("text", "line", "key", "says", "hint"),
    [
        ("max_iteration: 3", 1, "max_iteration", "unknown key", "max_iterations"),
        ("iterations: 3", 1, "iterations", "unknown key", "max_iterations"),
        ("model: x", 1, "model", "unknown key", "agent.model"),
        ("name: a\nreview_cap: 3", 2, "review_cap", "unknown key", "review.cap"),
        ("agnet:\n  model: x", 1, "agnet", "unknown key", "agent"),
        ("agent:\n  modell: x", 2, "agent.modell", "unknown key", "agent.model"),
        ("review.cap: 3", 1, "review.cap", "unknown key", "review: cap: …"),
        ("defaults:\n  timeout: 3", 2, "defaults.timeout", "unknown key", "timeout"),
        (
            "max_iterations: lots",
            1,
            "max_iterations",
            "expected a whole number of at least 0, found the text 'lots'",
            "",
        ),
        ("max_iterations: -1", 1, "max_iterations", "at least 0, found the number -1", ""),
        ("max_iterations: 2.5", 1, "max_iterations", "found the number 2.5", ""),
        ("max_iterations: 0777", 1, "max_iterations", "found the text '0777'", ""),
        ("max_iterations: 1_000", 1, "max_iterations", "found the text '1_000'", ""),
        ("max_iterations: 99999999999", 1, "max_iterations", "at most 1,000,000,000", ""),
        ("max_iterations: '5'", 1, "max_iterations", "found the text '5'", "remove the quotes"),
        ("max_iterations: [5]", 1, "max_iterations", "found a list", ""),
        ("max_iterations: true", 1, "max_iterations", "found true", ""),
        ("review: 5", 1, "review", "expected a mapping with agent, cap, command, enabled", ""),
        ("review: {enabled: 1}", 1, "review.enabled", "expected true or false, found the number 1", ""),
        ("review: {enabled: 'true'}", 1, "review.enabled", "found the text 'true'", ""),
        (
            "\n\ntimeout: 1:30",
            3,
            "timeout",
            "expected a duration such as 90s, 90m or 1h30m, found the text",
            "",
        ),
        ("timeout: -5", 1, "timeout", "expected a duration", ""),
        ("defaults: {timeout_minutes: soon}", 1, "defaults.timeout_minutes", "expected a number of minutes", ""),
        ("push: allways", 1, "push", "expected one of after-story, never", ""),
        ("push: after_story", 1, "push", "found the text 'after_story'", "did you mean after-story?"),
        ("beads: [br]", 1, "beads", "expected one of auto, bd, br, off, found a list", ""),
        ("name: [a]", 1, "name", "expected text, found a list", ""),
        (
            "agent: {allowed_tools: {a: b}}",
            1,
            "agent.allowed_tools",
            "a list of strings, or one string with commas",
            "",
        ),
        ("agent: {command: 'x \"y'}", 1, "agent.command", "not a valid command line: No closing quotation", ""),
        ("quality_checks: [a]", 1, "quality_checks", "expected a mapping, found a list", ""),
        ("quality_checks:\n  a: [b]", 2, "quality_checks.a", "expected text, found a list", ""),
        ("quality_checks:\n  a:", 2, "quality_checks.a", "found nothing", ""),
        ("checks: pytest", 1, "checks", "expected a list, found the text 'pytest'", ""),
        ("checks:\n  - [pytest]", 2, "checks[0]", "expected a command, or a mapping with name, command", ""),
        ("checks:\n  - name: a", 2, "checks[0]", "command is missing", ""),
        ("checks:\n  - {name: a, command: ''}", 2, "checks[0].command", "expected text, found nothing", ""),
        ("checks:\n  - {name: a, command: b, wen: [story]}", 2, "checks[0].wen", "unknown key", "did you mean when?"),
        (
            "checks:\n  - {name: a, command: b, when: [never]}",
            2,
            "checks[0].when[0]",
            "one of final, review, story",
            "",
        ),
        ("checks:\n  - {name: a, command: b}\n  -", 3, "checks[1]", "found nothing", ""),
        ("steps:\n  - type: agent\n    timeout: x", 3, "steps[0].timeout", "expected a duration", ""),
        (
            "steps:\n  - type: agent\n    circuit_breaker:\n      treshold: 3",
            4,
            "steps[0].circuit_breaker.treshold",
            "unknown key",
            "threshold",
        ),
        (
            "max_iterations: 5\ndefaults:\n  max_iterations: 6",
            3,
            "defaults.max_iterations",
            "set twice, first in line 1",
            "",
        ),
        ("name: ${NOT_THERE}", 1, "name", "NOT_THERE is not set", "${NOT_THERE:-default}"),
        ("name: ${a b}", 1, "name", "is not a valid variable reference", "$${"),
        ("name: '${'", 1, "name", "is not a valid variable reference", "$${"),
    ],
)
def test_a_wrong_key_or_value_is_named(tmp_path: Path, text: str, line: int, key: str, says: str, hint: str) -> None:
    problem = problems(tmp_path, text)[0]
    assert (problem.where.line, problem.where.path) == (line, key)
    assert says in problem.message
    assert hint in problem.hint


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("checks: [{name: a, command: b, run: c}]", "available: name, command, timeout, when, cwd, allow_failure"),
        ("branch: {qqq: 1}", "available: prefix, auto_create"),
        ("zzz: 1", "`ralph config show` lists the keys"),
    ],
)
def test_a_key_that_is_like_no_other_is_told_which_there_are(tmp_path: Path, text: str, hint: str) -> None:
    [problem] = problems(tmp_path, text)
    assert problem.hint == hint


def test_every_problem_is_found_not_only_the_first(tmp_path: Path) -> None:
    text = "max_iterations: x\nagent:\n  modell: y\nchecks:\n  - {name: 1, comand: z}\n  - {}\npush: 3\n"
    found = problems(tmp_path, text)
    assert [(p.code, p.where.line) for p in found] == [
        ("wrong-type", 1),
        ("unknown-key", 3),
        ("missing", 5),
        ("unknown-key", 5),
        ("missing", 6),
        ("missing", 6),
        ("wrong-type", 7),
    ]


@pytest.mark.parametrize("word", ["true", "True", "yes", "on", "ON"])
def test_truth_has_the_words_of_yaml(tmp_path: Path, word: str) -> None:
    assert config(tmp_path, f"archive: {{on_complete: {word}}}").archive.on_complete is True
    assert config(tmp_path, "review: {enabled: off}").review.enabled is False


def test_text_is_taken_as_it_is_written(tmp_path: Path) -> None:
    read = config(tmp_path, "name: 1.10\nchecks: [{name: ok, command: true}]\nquality_checks: {a: no}\nbeads: off\n")
    assert (read.name, read.checks[0].command, read.quality_checks, read.beads) == ("1.10", "true", {"a": "no"}, "off")


def test_null_is_as_if_it_were_not_there(tmp_path: Path) -> None:
    assert config(tmp_path, "max_iterations:\nagent:\n  # model: x\nfeature: ~\nprd: null\n") == Config()


def test_durations_and_lists_have_their_forms(tmp_path: Path) -> None:
    read = config(
        tmp_path, "timeout: 1h30m\nidle_timeout: 90s\nagent:\n  command: foo --x 'a b' {prompt}\n  env: A, B\n"
    )
    assert (read.timeout, read.idle_timeout) == (5400, 90)
    assert read.agent.command == ("foo", "--x", "a b", "{prompt}")
    assert read.agent.env == ("A", "B")
    assert config(tmp_path, "agent: {command: [a, 'b c']}").agent.command == ("a", "b c")


def test_tools_are_split_outside_of_parentheses(tmp_path: Path) -> None:
    read = config(tmp_path, 'claude: {allowed_tools: "Write,Bash(git *, npm),Read"}')
    assert read.agent.allowed_tools == ("Write", "Bash(git *, npm)", "Read")


def test_variables_are_put_into_values(tmp_path: Path) -> None:
    text = 'name: "${A}-${B:-b}-$${C}"\nmax_iterations: "${N}"\nreview: {enabled: "${T}"}\nprompt: ${E:-x}\n'
    read = config(tmp_path, text, {"A": "a", "N": "7", "T": "yes", "E": ""})
    assert (read.name, read.max_iterations, read.review.enabled, read.prompt) == ("a-b-${C}", 7, True, "x")


def test_what_is_put_in_is_not_looked_at_again(tmp_path: Path) -> None:
    assert config(tmp_path, "name: ${A}", {"A": "${B}", "B": "secret"}).name == "${B}"


def test_a_step_file_with_every_key_and_comments_is_read(tmp_path: Path) -> None:
    """The whole of a step file, with `//` comments, as one finds them."""
    (tmp_path / ".ralph" / "configs").mkdir(parents=True)
    (tmp_path / ".ralph" / "configs" / "default.json").write_text(
        """{
  "name": "default-loop",
  "description": "What it is for",
  "max_loops_per_task": 10,  // attempts
  "steps": [
    {
      "type": "agent",           // the kind
      "name": "run-claude",
      "enabled": true,
      "timeout": "20m",
      "max_retries": 1,
      "retry_delay": "30s",
      "continue_on_error": false,
      "circuit_breaker": { "threshold": 3, "reset_after": "60s" },
      "config": {
        "prompt_file": ".ralph/prompts/LOOP_PROMPT.md",
        "model": "${MODEL:-sonnet}",
        "timeout": "15m",
        "retries": 2
      }
    },
    { "name": "git-commit", "type": "git-commit", "enabled": true }
  ]
}
"""
    )
    read = load(root=tmp_path, layout="steps", name=None, env={"HOME": "/nowhere"}, flags={}).config
    assert (read.name, read.max_loops_per_task) == ("default-loop", 10)
    assert read.steps == (
        Step(
            type="agent",
            name="run-claude",
            timeout=1200,
            max_retries=1,
            retry_delay=30,
            circuit_breaker=StepBreaker(threshold=3, reset_after=60),
            config={
                "prompt_file": ".ralph/prompts/LOOP_PROMPT.md",
                "model": "sonnet",
                "timeout": "15m",
                "retries": 2,
            },
        ),
        Step(type="git-commit", name="git-commit"),
    )


def test_money_is_a_number_and_no_length_of_time(tmp_path: Path) -> None:
    assert config(tmp_path, "agent: {budget_usd: 90.5}").agent.budget_usd == 90.5
    assert config(tmp_path, "agent: {budget_usd: '${MOST}'}", {"MOST": "2"}).agent.budget_usd == 2.0
    assert show(90.0, option("agent.budget_usd")) == "90"
    assert show(90.0, option("timeout")) == "1m30s"
    (problem,) = problems(tmp_path, "agent: {budget_usd: 5m}")
    assert "expected a number of at least 0" in problem.message
