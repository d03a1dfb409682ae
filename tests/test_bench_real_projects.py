"""bench/real_projects.py: the recorded attempts, and one project from `ralph init` to its report."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).resolve().parent.parent / "bench"
sys.path.insert(0, str(BENCH))

import real_attempts  # type: ignore[import-not-found]  # noqa: E402
import real_projects  # type: ignore[import-not-found]  # noqa: E402

KINDS = {"lie", "elsewhere", "breaks", "weakens", "partial", "hard-coded", "no tests"}


@pytest.mark.parametrize("name", real_attempts.names())
def test_a_project_is_pinned_and_has_stories_with_bad_attempts_and_hidden_tests(name: str) -> None:
    spec: dict[str, Any] = real_attempts.spec_of(name)
    text = (BENCH / "real_projects" / f"{name}.toml").read_text()
    assert spec["version"].partition("-")[0] in spec["archive"]
    assert len(spec["sha256"]) == 64
    assert "://" not in text, "the registry is what this machine is configured for"
    assert 3 <= len(spec["stories"]) <= 5
    for story in spec["stories"]:
        assert set(story["attempts"]) <= KINDS
        assert story["criteria"]
        assert story["hidden"]["text"]
        honest = real_attempts.edits_of(spec, story, "honest")
        for attempt in story["attempts"]:
            edits = real_attempts.edits_of(spec, story, attempt)
            assert edits != honest
            assert not any(story["hidden"]["path"] == path for path, _, _ in edits), "it stays hidden"


def test_five_projects_in_three_languages() -> None:
    kinds = [real_attempts.spec_of(name)["kind"] for name in real_attempts.names()]
    assert sorted(kinds) == ["debian", "npm", "pypi", "pypi", "pypi"]
    played = {
        kind for name in real_attempts.names() for s in real_attempts.spec_of(name)["stories"] for kind in s["attempts"]
    }
    assert played == KINDS


@pytest.mark.slow
@pytest.mark.needs("projects")
def test_the_oracle_knows_good_attempts_from_bad_ones() -> None:
    assert list(real_attempts.labels_hold("shortuuid")) == []


@pytest.mark.slow
@pytest.mark.defaults
@pytest.mark.needs("projects")
def test_a_project_that_knows_nothing_of_ralph_gets_only_true_dones() -> None:
    found = real_projects.run("shortuuid")
    assert found.problem == ""
    assert (found.is_right, found.place, found.has_report) == (True, "checkout", True)
    assert (found.true, found.stories, found.false) == (3, 3, ())
    assert found.false_rejections == 0
    outcomes = [(one.attempt, one.mode, one.kind) for one in found.sessions]
    assert outcomes == [
        ("elsewhere", "implement", "accepted"),
        ("honest", "fix", "accepted"),
        ("partial", "implement", "accepted"),
        ("honest", "fix", "accepted"),
        ("weakens", "implement", "rejected"),
        ("no tests", "implement", "accepted"),
    ]
    assert found.grades == ("witnessed", "witnessed", "reviewed")
