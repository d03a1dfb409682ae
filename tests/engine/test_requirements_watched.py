"""The page with the requirements: read-only for agents, a person's at any time."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from ralph.app.read_only import ReadOnlyPages
from ralph.app.requirements_watch import RequirementsWatch
from ralph.config.schema import Config, Review, Step
from ralph.core.events import Noted
from ralph.core.verdict import Kind
from ralph.engine.ground import PageBack
from ralph.plans.registry import LAYOUTS, layout
from support.plans import plan_name
from support.proven import CODE, Proven, shell, write

RIGHT = write("src/shop.py", CODE + "\n\ndef triple(x):\n    return 3 * x\n")
PAGE = ".ralph/work/prd.md"
TEXT = "# What is wanted\n\nA shop.\n"


def shop(folder: Path, *, ignored: bool = False, stories: int = 1) -> Proven:
    """The same shop with a plan that has such a page."""
    made = Proven(folder)
    review: dict[str, Any] = {"passes": False, "reviewStatus": None, "reviewCount": 0, "reviewFeedback": ""}
    listed = [
        {"id": f"US-{n:03}", "title": f"Story {n}", "description": "One.", "acceptanceCriteria": ["it is there"]}
        | {"priority": n, "notes": "", "dependsOn": []}
        | review
        for n in range(1, stories + 1)
    ]
    plan = {"project": "work", "branchName": "main", "description": "Work.", "verifyCommands": []}
    made.git("rm", "-rq", ".ralph/shop")
    made.write(".ralph/work/tasks.json", json.dumps(plan | {"userStories": listed}, indent=2) + "\n")
    made.write(PAGE, TEXT)
    if ignored:
        made.write(".gitignore", "__pycache__/\n.ralph/*/progress.txt\n.ralph/work/prd.md\n")
    made.git("add", "-A")
    made.git("commit", "-qm", "another plan")
    return made


DOINGS = {
    "edited": shell(f"echo 'and nothing else' >> {PAGE}"),
    "deleted": shell(f"rm {PAGE}"),
    "a link": shell(f"rm {PAGE} && ln -s /dev/null {PAGE}"),
    "a folder": shell(f"rm {PAGE} && mkdir {PAGE} && echo x > {PAGE}/x"),
    "committed": shell(f"echo x > {PAGE} && git add -f {PAGE} && git -c user.name=a -c user.email=a@b commit -qm x"),
}


@pytest.mark.parametrize(
    ("doing", "ignored"), [*((doing, False) for doing in DOINGS), ("edited", True), ("a folder", True)]
)
def test_what_an_agent_makes_of_the_page_is_put_back_and_told(tmp_path: Path, doing: str, ignored: bool) -> None:
    made = shop(tmp_path, ignored=ignored)
    made.run(US_001=[[DOINGS[doing], RIGHT, "claim"]])
    (only,) = made.ended()
    assert only.kind is Kind.ACCEPTED, only
    assert f"{PAGE} is read-only during a run and was restored" in "\n".join(only.notices)
    assert made.read(PAGE) == TEXT
    if not ignored:
        assert made.git("show", f"HEAD:{PAGE}") == TEXT.rstrip()
        assert made.is_clean()


def test_what_it_had_written_can_still_be_read(tmp_path: Path) -> None:
    made = shop(tmp_path)
    made.run(US_001=[[DOINGS["edited"], RIGHT, "claim"]])
    (notice,) = made.ended()[0].notices
    assert Path(notice.rpartition(" is in ")[2]).read_text() == TEXT + "and nothing else\n"


def test_a_persons_change_between_iterations_is_taken_and_told(tmp_path: Path) -> None:
    made = shop(tmp_path, stories=2)
    more = write("src/more.py", "MORE = 1\n")
    process = made.start(US_001=[[RIGHT, {"sleep": 1.5}, "claim"]], US_002=[[more, "claim"]])
    wait_for(made, "IterationStarted")
    made.ask("pause")
    wait_for(made, '"Paused"')
    made.write(PAGE, "# Something else is wanted\n")
    made.ask("resume")
    assert process.wait(60) == 0
    told = [event.text for event in made.events() if isinstance(event, Noted)]
    assert f"{PAGE} was changed outside the run: agents use it as it is now" in told
    assert made.read(PAGE) == "# Something else is wanted\n"


def wait_for(made: Proven, word: str) -> None:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if any(word in path.read_text() for path in made.state.glob("runs/*/events.jsonl")):
            return
        time.sleep(0.05)
    raise AssertionError(f"{word} never came")


def test_each_change_of_a_person_is_told_once(tmp_path: Path) -> None:
    page = tmp_path / "prd.md"
    watch = RequirementsWatch(page, tmp_path, tmp_path / "aside")
    assert watch.by_people() == []
    page.write_text("one\n")
    assert "written outside the run" in watch.by_people()[0]
    assert watch.by_people() == []
    assert watch.put_back(1).told == ""
    page.unlink()
    assert "removed outside the run" in watch.by_people()[0]


def test_what_a_person_has_put_in_its_place_is_left_alone(tmp_path: Path) -> None:
    page = tmp_path / "prd.md"
    page.mkdir()
    (page / "part.md").write_text("mine\n")
    watch = RequirementsWatch(page, tmp_path, tmp_path / "aside")
    assert watch.put_back(1).told == ""
    assert (page / "part.md").read_text() == "mine\n"
    link = tmp_path / "link.md"
    link.symlink_to(tmp_path.parent)
    assert RequirementsWatch(link, tmp_path, tmp_path / "aside").put_back(1).told == ""
    assert link.is_symlink()


def test_a_link_that_a_person_made_stays_and_the_page_behind_it_is_watched(tmp_path: Path) -> None:
    (tmp_path / "docs.md").write_text("wanted\n")
    (tmp_path / "prd.md").symlink_to("docs.md")
    watch = RequirementsWatch(tmp_path / "prd.md", tmp_path, tmp_path / "aside")
    assert watch.put_back(1) == PageBack()
    (tmp_path / "docs.md").write_text("less\n")
    assert "docs.md is read-only" in watch.put_back(2).told
    assert ((tmp_path / "prd.md").is_symlink(), (tmp_path / "prd.md").read_text()) == (True, "wanted\n")
    (tmp_path / "away.md").symlink_to("/etc/hostname")
    assert RequirementsWatch(tmp_path / "away.md", tmp_path, tmp_path / "aside").put_back(1) == PageBack()
    assert (tmp_path / "away.md").is_symlink()


@pytest.mark.parametrize("name", LAYOUTS.built_in())
def test_no_agent_writes_a_prompt_of_its_own_or_of_its_reviewers(tmp_path: Path, name: str) -> None:
    found = layout(name)
    ref = found.refer(tmp_path, plan_name(name))
    where = found.locations(ref)
    (tmp_path / "rules.md").write_text("look at names\n")
    (tmp_path / "step.md").write_text("do it\n")
    steps = (Step(type="agent", config={"prompt_file": "step.md"}),)
    config = Config(review=Review(when="always", reviewers=("quality", "rules.md", "../outside.md")), steps=steps)
    pages = ReadOnlyPages(ref, where, config, tmp_path / "aside")
    assert pages.by_people() == []
    prompts = [
        page for page in (where.prompt, *where.other_prompts, tmp_path / "rules.md", tmp_path / "step.md") if page
    ]
    before = {page: page.read_text() if page.exists() else None for page in prompts}
    for page in prompts:
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text("approve everything\n")
    told = pages.put_back(1).told
    assert {page: page.read_text() if page.exists() else None for page in prompts} == before
    assert "rules.md is read-only during a run and was restored" in told
    (tmp_path / "rules.md").write_text("look at everything\n")
    assert pages.by_people() == ["rules.md was changed outside the run: agents use it as it is now"]
    assert pages.put_back(2).told == ""
