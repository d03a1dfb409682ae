"""`ralph bench review`: the planted defects, and the figures of reviewers whose verdicts are known."""

from __future__ import annotations

import math
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec
import pytest

from ralph.agents.registry import agent
from ralph.trial.review_bench import (
    Judgement,
    Rate,
    Result,
    Reviewer,
    Said,
    cap_for,
    measure,
    objections,
    settings_for,
    together,
    wilson,
)
from ralph.trial.review_cases import Planted, check, draw, kinds, project, stories

KNOWING = """
import json, os, sys
from pathlib import Path
from ralph.trial.review_cases import stories

character, title = sys.argv[1:]
story = next(story for story in stories() if story.title == title)
bad = all(Path(name).read_text() == text for name, text in story.work(is_defective=True).items())
if character == "crashing":
    sys.exit(3)
if character == "undecided":
    sys.exit(print("There is much to be said for it, and much against it."))
objects = {"perfect": bad, "blind": False, "paranoid": True}[character]
finding = {"text": f"found: {story.kind}"}
verdict = {"verdict": "changes_requested", "findings": [finding]} if objects else {"verdict": "approved"}
Path(os.environ["RALPH_REQUEST_FILE"]).write_text(json.dumps({"review": verdict}))
"""


def run(program: list[str], folder: Path) -> int:
    return subprocess.run(program, cwd=folder, capture_output=True, check=False).returncode


@pytest.mark.parametrize("story", stories(), ids=lambda story: story.kind)
def test_a_defect_passes_the_checks_and_is_one(story: Planted, tmp_path: Path) -> None:
    for is_defective in (False, True):
        folder = tmp_path / str(is_defective)
        for name, text in {**project(), **story.work(is_defective=is_defective)}.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        assert run(["sh", "-c", check()], folder) == 0
        assert run([sys.executable, "-B", "-c", f"import sys; sys.path.insert(0, '')\n{story.shows}"], folder) == (
            1 if is_defective else 0
        )


def test_each_story_is_judged_good_and_bad_in_an_order_that_the_seed_decides() -> None:
    assert len(set(kinds())) == len(stories()) >= 12
    first, second = draw(7)
    assert (first, second) == draw(7) != draw(8)
    assert [case.story.kind for case in first] != kinds()
    assert sum(case.is_defective for case in first) == len(first) / 2
    for case in first:
        [other] = [one for one in second if one.story is case.story]
        assert other.is_defective is not case.is_defective


def test_nothing_but_the_defect_tells_bad_work_from_good() -> None:
    for story in stories():
        good, bad = story.work(is_defective=False), story.work(is_defective=True)
        changed = {name for name in bad if bad[name] != good.get(name, project().get(name))}
        assert changed == {change.file for change in story.defect}
        assert not any(word in text.lower() for text in bad.values() for word in ("defect", "planted", story.kind))


def reviewer(character: str, folder: Path) -> Reviewer:
    script = folder / "reviewer.py"
    script.write_text(KNOWING)
    command = (sys.executable, str(script), character, "{title}")
    return Reviewer(name=character, agent=agent("command"), command=command)


@pytest.mark.slow
@pytest.mark.defaults
@pytest.mark.parametrize(
    ("character", "found", "alarms", "undecided"),
    [("perfect", 1, 0, 0), ("blind", 0, 0, 0), ("paranoid", 1, 1, 0), ("undecided", 0, 0, 2), ("crashing", 0, 0, 2)],
)
def test_the_figures_of_a_reviewer_are_those_of_its_verdicts(
    character: str, found: int, alarms: int, undecided: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    result = measure(reviewer(character, tmp_path), 3, only=["unrelated change"], max_cost=1.0)
    assert (result.problem, result.cases, len(result.judgements)) == ("", 2, 2)
    assert (result.recall.count, result.recall.of) == (found, 1)
    assert (result.false_alarms.count, result.false_alarms.of) == (alarms, 1)
    assert result.undecided == undecided
    if character == "perfect":
        objected = [one for one in result.judgements if one.said is Said.OBJECTED]
        assert [one.findings for one in objected] == [("found: unrelated change",)]
    assert not [*tmp_path.glob("project-*")]


@pytest.mark.slow
def test_a_reviewer_that_cannot_start_has_no_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    gone = Reviewer(name="gone", agent=agent("command"), command=("no-such-reviewer",))
    result = measure(gone, 1, only=["race"], max_cost=1.0)
    assert result.problem
    assert (Path(result.kept) / "output").is_file()
    assert (result.recall, result.judgements) == (Rate(0, 0, 0.0, 1.0), ())


def test_the_bounds_are_those_of_wilson() -> None:
    """Figures from Brown, Cai and DasGupta (2001), and the limits."""
    assert wilson(0, 0) == (0.0, 1.0)
    assert [round(bound, 3) for bound in wilson(0, 10)] == [0, 0.278]
    assert [round(bound, 3) for bound in wilson(10, 10)] == [0.722, 1]
    assert [round(bound, 3) for bound in wilson(8, 16)] == [0.28, 0.72]


def result(found: str, alarms: str, **more: str) -> Result:
    """`x` is an objection."""
    said = [(one == "x", True) for one in found] + [(one == "x", False) for one in alarms]
    judgements = tuple(
        Judgement(kind="race", story="s", is_defective=bad, said=Said.OBJECTED if objects else Said.APPROVED)
        for objects, bad in said
    )
    named = {"reviewer": "r", "agent": "claude", "model": "haiku", "page": ""} | more
    return Result(
        **named,
        recall=objections(one for one in judgements if one.is_defective),
        false_alarms=objections(one for one in judgements if not one.is_defective),
        undecided=0,
        cases=len(judgements),
        judgements=judgements,
        cost_usd=None,
        is_estimated=False,
        seconds=1,
        is_scripted=False,
    )


def test_two_reviewers_together_find_what_either_finds() -> None:
    recall, alarms = together([result("xx..", "x..."), result(".xx.", "..x.")])
    assert (recall.count, recall.of, alarms.count, alarms.of) == (3, 4, 2, 4)


@pytest.mark.parametrize(("alarms", "cap"), [(0, 3), (4, 5), (8, 7), (15, 10), (16, 10)])
def test_the_cap_lets_good_work_through(alarms: int, cap: int) -> None:
    """With 4 false alarms of 16, 3 reviews approve good work with a probability of 98 %."""
    measured = result("x" * 16, "x" * alarms + "." * (16 - alarms))
    assert cap_for(measured) == cap
    if 0 < alarms < 15:
        assert (alarms / 16) ** (cap - 2) <= 0.05 < (alarms / 16) ** (cap - 3)
    assert math.isclose(measured.gain, 1 - alarms / 16)


def test_the_settings_name_the_reviewer_as_it_was_measured() -> None:
    plain = {"review.agent": "claude", "review.model": "haiku", "review.reviewers": "", "review.cap": "3"}
    assert settings_for(result("x", ".")) == plain
    named = settings_for(result("x", ".", page="security"))
    assert named == {"review.reviewers": "security@claude/haiku", "review.cap": "3"}


def test_a_reviewer_that_objects_to_everything_tells_nothing() -> None:
    assert not result("x" * 16, "x" * 16).tells_good_from_bad
    assert not result("xx", "..").tells_good_from_bad, "two cases show nothing"
    assert result("x" * 16, "." * 16).tells_good_from_bad
    assert not msgspec.structs.replace(result("x" * 16, "." * 16), recall=Rate(0, 0, 0, 1)).tells_good_from_bad
