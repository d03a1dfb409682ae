"""Every command block of the documentation is run as it stands, or says why it cannot be."""

from __future__ import annotations

import json
import re
from pathlib import Path
from textwrap import dedent

import pytest
import yaml

from ralph.config.keys import options
from support.cli import ralph_here
from support.doc_projects import REASONS, ROOT, DocProject, blocks, expecting

GENERATED = "docs/cli.md"
PAGES = sorted(
    str(path.relative_to(ROOT))
    for where in ("*.md", "docs/*.md", "examples/*/README.md")
    for path in ROOT.glob(where)
    if "```sh\n" in path.read_text() and str(path.relative_to(ROOT)) != GENERATED
)
RUN = [page for page in PAGES if page != "README.md" and not all(block.why_not for block in blocks(page))]
"""`test_readme.py` runs the README."""


def settings(page: str) -> list[str]:
    """The `yaml` blocks that are settings: those of other files begin with a key that is no setting."""
    found = re.findall(r"^ *```yaml\n(.*?)^ *```", (ROOT / page).read_text(), re.M | re.S)
    keys = {key.partition(".")[0] for key in options()}
    return [text for text in map(dedent, found) if set(yaml.safe_load(text)) <= keys]


PAGES_WITH_SETTINGS = sorted(page for path in ROOT.glob("docs/*.md") if settings(page := str(path.relative_to(ROOT))))


def test_a_comment_names_the_exit_code() -> None:
    assert expecting("ralph guard 'git push'  # denied: exit code 1") == "{ ralph guard 'git push'; } || test $? = 1"
    assert expecting("ralph check  # exit code 0") == "ralph check  # exit code 0"


@pytest.mark.parametrize("page", PAGES)
def test_a_block_that_is_not_run_has_a_reason_from_the_list(page: str) -> None:
    for block in blocks(page):
        assert not block.why_not or block.why_not.startswith(REASONS), block
        if (test := block.why_not.partition("another test runs it: ")[2]) and test:
            assert (ROOT / test).is_file(), block


@pytest.mark.parametrize("page", PAGES_WITH_SETTINGS)
def test_settings_that_a_page_shows_are_understood(page: str, tmp_path: Path) -> None:
    config = tmp_path / ".ralph" / "config.yaml"
    config.parent.mkdir()
    for text in settings(page):
        config.write_text(text)
        shown = ralph_here("config", "show", cwd=tmp_path, env={"TEAM_HOOK": "https://hooks.example.com"})
        assert (shown.code, shown.err) == (0, ""), text


@pytest.mark.defaults
@pytest.mark.parametrize("page", RUN)
def test_every_command_block_of_a_page_runs(page: str, tmp_path: Path) -> None:
    projects: list[DocProject] = []
    for block in blocks(page):
        if block.why_not:
            continue
        if block.where or not projects:
            projects.append(DocProject(tmp_path / str(len(projects)), block.where or "a plan"))
        projects[-1].play(block)
    for project in projects:
        project.wait()


@pytest.mark.defaults
def test_prompts_are_as_short_as_the_questions_page_says(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "faq.md").read_text()
    told = dict(re.findall(r"^\| (.*?) \| about (\d+)", page, re.M))
    modes = {
        "implement a story": "implement",
        "review a story": "review",
        "fix what a review found": "fix",
        "write acceptance tests first": "acceptance",
        "write end-to-end tests": "exam",
    }
    assert set(told) == set(modes)
    project = DocProject(tmp_path, "a plan")
    for session, mode in modes.items():
        tokens = json.loads(project.do(f"ralph explain prompt --story US-001 --mode {mode} --json"))["tokens"]
        assert 0.75 * int(told[session]) < sum(tokens.values()) < 1.25 * int(told[session]), mode
