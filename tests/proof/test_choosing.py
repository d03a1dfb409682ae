from __future__ import annotations

from typing import Any

import pytest

from ralph.config.checks import choose, proof_needed, set_id
from ralph.config.schema import Check, Config, Review
from ralph.config.sections import Proof
from ralph.core.plan import Plan, State, Story

DONE = Story(id="A", title="", state=State.DONE, verify=("test -f a",))
OPEN = Story(id="B", title="", verify=("test -f b", "pytest"))
LATER = Story(id="C", title="", verify=("test -f c",))
PLAN = Plan(name="p", stories=(DONE, OPEN, LATER), verify=("pytest",))
CONFIG = Config(
    checks=(
        Check(name="lint", command="ruff check", when=("story",)),
        Check(name="slow", command="make e2e", when=("final",)),
        Check(name="nice", command="make nice", allow_failure=True),
    ),
    quality_checks={"types": "mypy"},
)


def test_a_story_is_proven_by_the_plan_its_own_checks_those_of_done_stories_and_the_settings() -> None:
    names = [check.name for check in choose(CONFIG, PLAN, OPEN, "story")]
    assert names == ["pytest", "B: test -f b", "A: test -f a", "types", "lint", "nice"]


def test_the_final_pass_takes_every_story_and_what_is_meant_for_the_end() -> None:
    names = [check.name for check in choose(CONFIG, PLAN, None, "final")]
    assert names == ["pytest", "A: test -f a", "B: test -f b", "C: test -f c", "types", "slow", "nice"]


def test_a_check_that_may_fail_is_not_required() -> None:
    required = {check.name: check.required for check in choose(CONFIG, PLAN, OPEN, "story")}
    assert required["lint"]
    assert not required["nice"]


def test_the_identity_of_a_set_changes_with_what_is_run_and_not_with_its_names() -> None:
    one = choose(CONFIG, PLAN, OPEN, "story")
    renamed = Config(
        checks=(Check(name="other", command="ruff check", when=("story",)), *CONFIG.checks[1:]),
        quality_checks={"t": "mypy"},
    )
    assert set_id(one) == set_id(choose(renamed, PLAN, OPEN, "story"))
    assert set_id(one) != set_id(choose(Config(), PLAN, OPEN, "story"))
    assert set_id(one) != set_id(choose(CONFIG, PLAN, LATER, "story"))


@pytest.mark.parametrize(
    ("when", "minimum", "needs"),
    [
        ("when-unproven", "reviewed", "it needs a test that fails without the change, or one review session"),
        ("never", "reviewed", "it needs a test that fails without the change, or it stays unproven (reviews are off)"),
        ("always", "witnessed", "it needs a test that fails without the change"),
        ("always", "proven", "proof.minimum is proven, so it needs one (`verify`)"),
    ],
)
def test_what_a_story_without_its_own_check_needs(when: Any, minimum: Any, needs: str) -> None:
    bare = Story(id="D", title="")
    config = Config(review=Review(when=when), proof=Proof(minimum=minimum))
    assert proof_needed(config, PLAN) == ""
    told = proof_needed(config, Plan(name="p", stories=(DONE, OPEN, bare)))
    assert told == f"1 of 2 open stories has no check of its own: {needs}"
    assert "2 of 2 open stories have no check of their own" in proof_needed(
        config, Plan(name="p", stories=(bare, bare))
    )


@pytest.mark.parametrize(("when", "minimum"), [("always", "reviewed"), ("never", "unproven")])
def test_nothing_is_said_where_every_story_is_reviewed_or_no_proof_is_asked_for(when: Any, minimum: Any) -> None:
    config = Config(review=Review(when=when), proof=Proof(minimum=minimum))
    assert proof_needed(config, Plan(name="p", stories=(Story(id="D", title=""),))) == ""
