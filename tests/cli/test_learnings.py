"""`ralph memory add` and `ralph memory` by a person."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.cli import ralph_here
from support.workspaces import difference, story_id, workspace

LAYOUTS = ("plan.md", "tasks.json", "steps", "feature", "spec.md")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_learning_is_kept_once_and_listed(tmp_path: Path, layout: str) -> None:
    workspace(tmp_path, layout)
    story = story_id(layout, 1)
    assert ralph_here("learn", "--story", story, "Redis has to run", cwd=tmp_path).code == 0
    assert ralph_here("learn", "redis has to run.", cwd=tmp_path).out == "known already\n"
    assert ralph_here("learn", "Prices are in cents", cwd=tmp_path).code == 0
    everything = ralph_here("learnings", "--json", cwd=tmp_path).json["learnings"]
    assert [(one["text"], one["story"]) for one in everything] == [
        ("Redis has to run", story),
        ("Prices are in cents", ""),
    ]
    assert [
        one["text"] for one in ralph_here("learnings", "--story", story, "--json", cwd=tmp_path).json["learnings"]
    ] == ["Redis has to run"]
    found = ralph_here("learnings", "--search", "price cents", cwd=tmp_path)
    assert "Prices are in cents" in found.out
    assert "Redis" not in found.out
    assert "1 of 2 learnings" in found.err


def test_nobodys_text_is_touched(tmp_path: Path) -> None:
    ref = workspace(tmp_path, "tasks.json")
    log = ref.folder / "progress.txt"
    before = "\ufeff# Mine\r\n\r\n## Codebase Patterns\r\n- Use the pool \r\n\r\n---\r\nentry \xff\r\n".encode(
        "latin-1", "replace"
    )
    log.write_bytes(before)
    assert ralph_here("learn", "One more", cwd=tmp_path).code == 0
    after = log.read_bytes()
    start = after.index(b"- One more")
    end = after.index(b"\r\n", start) + 2
    assert after[:start] + after[end:] == before
    assert after[:start].endswith(b"- Use the pool \r\n")


def test_lasting_rules_go_where_every_session_reads_them_and_only_when_asked(tmp_path: Path) -> None:
    workspace(tmp_path, "tasks.json")
    ralph_here("learn", "Prices are in cents", cwd=tmp_path)
    assert not list(tmp_path.glob("*.md"))
    assert ralph_here("learn", "--repo", "Use bun", cwd=tmp_path).code == 0
    assert (tmp_path / "CLAUDE.md").read_text().startswith("## Learned\n\n- Use bun (")
    (tmp_path / "CLAUDE.md").unlink()
    (tmp_path / "AGENTS.md").write_text("# Rules\n\n- Be kind\n")
    assert ralph_here("learn", "--repo", "Use bun", "be kind!", cwd=tmp_path).out == "1 learning kept in AGENTS.md\n"
    ralph_here("learn", "--repo", "Use pnpm never", cwd=tmp_path)
    lines = difference(b"# Rules\n\n- Be kind\n", (tmp_path / "AGENTS.md").read_bytes())
    assert [line[:13] for line in lines] == ["+", "+## Learned", "+", "+- Use bun (2", "+- Use pnpm n"]
    env = {"RALPH_MEMORY_REPO_FILE": "../outside.md"}
    assert ralph_here("learn", "--repo", "x", cwd=tmp_path, env=env).code != 0
    assert not (tmp_path.parent / "outside.md").exists()


@pytest.mark.parametrize("text", ["", "  ", "x" * 601, "a\x00b"])
def test_what_is_no_sentence_is_refused(tmp_path: Path, text: str) -> None:
    workspace(tmp_path, "steps")
    assert ralph_here("learn", text, cwd=tmp_path).code == 64
    assert ralph_here("learn", "--story", "nobody", "x", cwd=tmp_path).code == 64
    assert ralph_here("learnings", cwd=tmp_path).out == "No learnings yet.\n"
