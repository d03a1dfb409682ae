from __future__ import annotations

import re
from pathlib import Path

import pytest

from ralph.core.errors import BadData
from ralph.core.text import estimate_tokens
from ralph.prompts.templates import NAMES, PLANNING, REVIEWERS, VARIABLES, library, render

ROOT = Path(__file__).resolve().parents[2]
PROMPTS = [name for name in NAMES if name not in ("prd", "requirements")]
FILLED = {name: f"<{name.lower()}>" for name in VARIABLES} | {"MODE": "implement", "SKIP_REVIEW": False}


def test_variables_are_filled_in_as_they_are() -> None:
    text = render(
        "{{STORY_ID}}: {{ STORY_TITLE }}\n", {"STORY_ID": "US-1", "STORY_TITLE": "<a> & {{b}}"}, "prompt.html"
    )

    assert text == "US-1: <a> & {{b}}\n"


@pytest.mark.parametrize(
    ("template", "line", "column"),
    [
        ("{{STORY_IDD}}", 1, 3),
        ("first\n  ünï {{ STORY_IDD }}", 2, 10),
        ("{% if STORY_ID %}\n{% if STORY_IDD %}{% endif %}{% endif %}", 2, 7),
        ("a\r\nb\r\n{{ STORY_IDD }}", 3, 4),
    ],
)
def test_an_unknown_variable_is_an_error_with_line_and_column(template: str, line: int, column: int) -> None:
    with pytest.raises(BadData) as caught:
        render(template, {"STORY_ID": "US-1"}, "prompt.md")

    assert str(caught.value) == f"prompt.md:{line}:{column}: unknown variable STORY_IDD"
    assert caught.value.hint == "did you mean STORY_ID?"


@pytest.mark.parametrize("template", ["one\ntwo {{ STORY_ID }", "one\n{% if STORY_ID", "one\n{% nonsense %}"])
def test_a_template_that_cannot_be_read_names_its_line(template: str) -> None:
    with pytest.raises(BadData) as caught:
        render(template, {"STORY_ID": "US-1"}, "prompt.md")

    assert str(caught.value).startswith("prompt.md:2:")
    assert "raw" in caught.value.hint


@pytest.mark.parametrize(
    "template",
    [
        "{% for a in range(9999) %}{% for b in range(9999) %}x{% endfor %}{% endfor %}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% include '/etc/passwd' %}",
    ],
)
def test_a_template_can_neither_run_for_ever_nor_read_files(template: str) -> None:
    with pytest.raises(BadData, match=r"prompt\.md:1"):
        render(template, {}, "prompt.md")


@pytest.mark.parametrize("name", PROMPTS)
@pytest.mark.parametrize("mode", ["implement", "review", "fix"])
@pytest.mark.parametrize("skip", [True, False])
def test_a_shipped_prompt_uses_only_the_variables_that_are_promised(name: str, mode: str, skip: bool) -> None:
    text = render(library(name), FILLED | {"MODE": mode, "SKIP_REVIEW": skip}, name)

    assert "{{" not in text
    assert "{%" not in text
    assert "\n\n\n" not in text


@pytest.mark.parametrize("name", PROMPTS)
@pytest.mark.parametrize("mode", ["implement", "review", "fix"])
def test_a_prompt_states_the_rules_of_the_loop(name: str, mode: str) -> None:
    text = " ".join(render(library(name), FILLED | {"MODE": mode}, name).split())

    assert "unattended loop" in text
    assert "prd.md" in text or "<prd_path>" in text
    assert re.search(r"[Nn]ever push|not - push", text)
    assert "weaken" in text
    assert re.search(r"One (story|task|step) per session", text) or name == "exam", "it is about all of them"
    assert "need not commit" in text or mode == "review"


WORK = (
    "default-prompt",
    "tasks-prompt",
    "plan-prompt",
    "steps-loop",
    "feature-prompt",
    "feature-prompt-tdd",
    "spec-prompt",
    "fix",
)


@pytest.mark.parametrize("name", WORK)
@pytest.mark.parametrize("mode", ["implement", "fix"])
def test_an_agent_that_writes_code_reads_its_own_diff(name: str, mode: str) -> None:
    text = " ".join(render(library(name), FILLED | {"MODE": mode}, name).split())

    assert text.startswith("<story>")
    assert "your own `git diff` line by line" in text
    assert "weaken, skip or delete a test" in text


@pytest.mark.parametrize("name", ["tasks-prompt", "review"])
def test_a_reviewer_runs_each_criterion_and_edits_nothing(name: str) -> None:
    text = " ".join(render(library(name), FILLED | {"MODE": "review"}, name).split())

    for words in ("Somebody else wrote it", "acceptance criteria one at a time", "edge cases and error paths"):
        assert words in text
    assert re.search(r"A review that edits files.* is discarded", text)
    assert "Run the checks." in text


BUDGETS = {"tasks-prompt": 600, "prd": 800, "plan": 500, "plan-rules": 550, "spec-prompt": 350}
"""Tokens, where a template may have more than others, or has less. The one of tasks.json has three modes."""


@pytest.mark.parametrize("name", [*NAMES, *REVIEWERS.values(), *PLANNING])
def test_every_template_fits_its_budget(name: str) -> None:
    assert estimate_tokens(library(name)) <= BUDGETS.get(name, 320)


def test_the_prd_has_its_ten_sections_in_order() -> None:
    headings = re.findall(r"^## (\d+)\. (.+)$", library("prd"), re.MULTILINE)

    assert [number for number, _ in headings] == [str(n) for n in range(1, 11)]
    assert [title for _, title in headings] == [
        "Summary",
        "Problem Statement",
        "Goals",
        "Non-Goals",
        "Background & Context",
        "Technical Design",
        "Constraints",
        "Edge Cases & Error Handling",
        "Risks & Mitigations",
        "Open Questions",
    ]
    for part in library("prd").split("\n## ")[1:]:
        assert re.search(r"<!-- (Required|Recommended): [SML]", part), part


def test_every_shipped_template_is_in_the_table() -> None:
    from importlib.resources import files

    shipped = {item.name for item in files("ralph.prompts").joinpath("library").iterdir() if item.name.endswith(".md")}

    assert shipped == {f"{name}.md" for name in (*NAMES, *REVIEWERS.values(), *PLANNING)}
    with pytest.raises(KeyError):
        library("../templates")


def test_the_documentation_lists_every_variable() -> None:
    page = (ROOT / "docs" / "loop.md").read_text()
    assert [name for name, doc in VARIABLES.items() if f"| `{name}` | {doc} |" not in page] == []
