from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from ralph.config.document import decode, parse
from ralph.config.json_schema import json_schema
from ralph.config.keys import ALIASES, options
from ralph.config.reading import read_file


def schema() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(json.dumps(json_schema()))
    return loaded


def accepts(text: str) -> bool:
    return bool(Draft202012Validator(schema()).is_valid(yaml.safe_load(text)))


def is_read(text: str) -> bool:
    _, problems = read_file(parse(decode(text.encode(), "c.yaml"), "c.yaml"), "c.yaml", {"N": "3"})
    return not problems


def test_the_schema_is_a_schema() -> None:
    Draft202012Validator.check_schema(schema())


def test_every_key_and_spelling_is_in_it_with_a_description() -> None:
    for key in (*options(), *ALIASES):
        at = schema()
        for name in key.split("."):
            at = at["properties"][name]
        assert at["description"]


@pytest.mark.parametrize(
    "text",
    [
        "max_iterations: 3",
        "max_iterations: '${N}'",
        "timeout: 90s\nidle_timeout: 1h30m\nmax_run_time: 0",
        "timeout: 1.5h",
        "defaults: {max_iterations: 3, timeout_minutes: 1.5, rate_limit_per_hour: 0}",
        "claude: {allowed_tools: 'Write,Read', dangerously_skip_permissions: false}",
        "agent: {command: [a, b], allowed_tools: [Read], env: 'A,B'}",
        "checks: [{name: a, command: b, timeout: 5m, when: [final], cwd: x, allow_failure: true}]",
        "steps: [{type: agent, timeout: 20m, circuit_breaker: {threshold: 3, reset_after: 60s}, config: {x: [1, {}]}}]",
        "quality_checks: {backend: pytest}",
        "checks: ['pytest -q', {name: lint, command: ruff check .}]",
        "prd: 3\nreview: {enabled: true, cap: 2}\npush: after-story",
        "reviewers: [quality, tests]\non_cap: fail\non_stalemate: approve",
    ],
)
def test_what_ralph_reads_an_editor_accepts(text: str) -> None:
    assert is_read(text)
    assert accepts(text)


@pytest.mark.parametrize(
    "text",
    [
        "max_iteration: 3",
        "max_iterations: -1",
        "max_iterations: '3'",
        "timeout: 20x",
        "timeout: ''",
        "timeout: -1",
        "agent: {modell: x}",
        "defaults: {timeout: 3}",
        "checks: [{name: a}]",
        "checks: [{name: '', command: a}]",
        "checks: ['']",
        "checks: [[pytest]]",
        "checks: [{name: a, command: b, when: [never]}]",
        "steps: [{type: agent, timeot: 3}]",
        "quality_checks: {a: [b]}",
        "push: x",
        "prd: 0",
        "review: {enabled: 'x'}",
    ],
)
def test_what_ralph_refuses_an_editor_marks(text: str) -> None:
    assert not is_read(text)
    assert not accepts(text)
