"""An agent wants to stop: not before the plan is sound, its review fields are legal, and everything is committed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.hook_calls import Answered, LiveRun, call

Fields = dict[str, Any]


def story(id: str = "US-001", **fields: Any) -> Fields:
    return {
        "id": id,
        "title": "A title",
        "acceptanceCriteria": ["it works"],
        "priority": 1,
        "passes": False,
        "reviewStatus": None,
        "reviewCount": 0,
        "reviewFeedback": "",
        "notes": "what was done",
        **fields,
    }


def document(*stories: Fields) -> str:
    head = {"project": "p", "branchName": "b", "description": "d"}
    return json.dumps(head | {"userStories": list(stories)}, indent=2)


class Session(LiveRun):
    """A live run on a `tasks.json` plan, at the end of a session."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, layout="tasks.json", review=True, review_cap=5, require_commit=False)
        self.plan = self.workspace / "ralph" / "tasks.json"
        self.plan.parent.mkdir()
        self.policy["plan"] = str(self.plan)
        self.write()

    def stop(self, before: str | None, after: str, mode: str = "implement", active: bool = False) -> Answered:
        if before is not None:
            (self.state / "plan.before").write_text(before)
        self.plan.write_text(after)
        self.policy["mode"] = mode
        self.write()
        return self.call("Stop", stop_hook_active=active, last_assistant_message="Done.")


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(tmp_path)


# Review integrity. The same story before and after: nothing was changed, and it is wrong all the same.


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"passes": True, "reviewStatus": None}, "reviewStatus is null, not 'approved'"),
        ({"passes": True, "reviewStatus": "needs_review"}, "reviewStatus is 'needs_review', not 'approved'"),
        ({"passes": True, "reviewStatus": "changes_requested"}, "reviewStatus is 'changes_requested', not 'approved'"),
        ({"passes": True, "reviewStatus": "approved", "reviewCount": 1}, ""),
        ({"reviewStatus": "changes_requested", "reviewFeedback": ""}, "feedback is required"),
        ({"reviewStatus": "approved"}, "out of sync"),
        ({"reviewCount": -1}, "reviewCount"),
    ],
    ids=str,
)
def test_review_fields_agree_with_each_other(session: Session, fields: Fields, words: str) -> None:
    text = document(story(**fields))
    done = session.stop(text, text)
    assert done.kind == ("block" if words else "")
    assert words in done.reason


def test_a_count_that_jumps_is_told_and_one_that_people_let_grow_is_not(session: Session) -> None:
    """Where a person lets a story go on past the cap, the loop itself counts on."""
    many = document(story(reviewStatus="needs_review", reviewCount=7))
    assert "reviewCount 0 → 7" in session.stop(document(story(reviewStatus="needs_review")), many).reason
    assert "between 0 and 6" in session.stop("garbage", many).reason
    assert session.stop(many, many).kind == ""
    approved = document(story(passes=True, reviewStatus="approved", reviewCount=8))
    assert session.stop(many, approved, "review").kind == ""


def test_without_reviews_the_review_rules_are_skipped(session: Session) -> None:
    session.policy["review"] = False
    assert session.stop(document(story()), document(story(passes=True))).kind == ""


# Transitions: what each mode may change.

NEEDS: Fields = {"reviewStatus": "needs_review", "reviewCount": 1}
APPROVED: Fields = {"reviewStatus": "approved", "reviewCount": 2, "passes": True}
CHANGES: Fields = {"reviewStatus": "changes_requested", "reviewCount": 1, "reviewFeedback": "off by one"}


@pytest.mark.parametrize(
    ("mode", "before", "after", "words"),
    [
        ("implement", [story()], [story(passes=True)], "implement iterations cannot set passes"),
        ("implement", [story()], [story(reviewStatus="approved")], "implement iterations cannot approve"),
        ("implement", [story()], [story(**APPROVED)], "implement iterations cannot approve"),
        ("implement", [story()], [story(reviewCount=1)], "implement iterations cannot change reviewCount"),
        ("implement", [story()], [story(reviewStatus="needs_review")], ""),
        ("implement", [story()], [story(), story("US-002")], ""),
        ("implement", [story()], [story(), story("US-002", passes=True)], "a new story starts with passes false"),
        ("implement", [story(), story("US-002")], [story()], "stories cannot be removed"),
        ("review", [story(**NEEDS)], [story(**APPROVED)], ""),
        ("review", [story(**NEEDS)], [story(**CHANGES | {"reviewCount": 2})], ""),
        ("review", [story(**NEEDS)], [story(**APPROVED | {"reviewCount": 1})], "must increment reviewCount"),
        ("review", [story(**NEEDS)], [story(**NEEDS)], "must increment reviewCount"),
        ("review", [story(**NEEDS)], [story(**APPROVED), story("US-002")], "a review cannot add stories"),
        (
            "review",
            [story(**NEEDS), story("US-002", **NEEDS)],
            [story(**APPROVED), story("US-002", **APPROVED)],
            "may only change the one story",
        ),
        ("fix", [story(**CHANGES)], [story(**CHANGES | {"passes": True})], "cannot approve"),
        ("fix", [story(**CHANGES)], [story(**NEEDS)], ""),
        ("fix", [story(**CHANGES)], [story(**NEEDS | {"reviewCount": 2})], "cannot change reviewCount"),
    ],
)
def test_each_mode_changes_only_what_it_may(
    session: Session, mode: str, before: list[Fields], after: list[Fields], words: str
) -> None:
    done = session.stop(document(*before), document(*after), mode)
    assert done.kind == ("block" if words else ""), done.reason
    assert words in done.reason


def test_a_block_names_the_story_the_field_and_both_values(session: Session) -> None:
    done = session.stop(document(story()), document(story(passes=True, reviewStatus="approved")))
    assert done.values["decision"] == "block"
    assert "story US-001: passes false → true" in done.reason
    assert "story US-001: reviewStatus null → 'approved'" in done.reason
    record = session.recorded()[-1]
    assert (record["event"], record["answer"], record["category"]) == ("Stop", "block", "stop")


def test_without_the_snapshot_the_invariants_still_hold(session: Session) -> None:
    assert session.stop(None, document(story(**APPROVED))).kind == ""
    assert "only its content is checked" in session.recorded()[-2]["error"]
    assert "not 'approved'" in session.stop(None, document(story(passes=True))).reason
    assert session.stop("garbage", document(story(**APPROVED))).kind == ""


# Schema.


@pytest.mark.parametrize("text", ["", "{", "[]", document(story()).replace('"passes"', '"done"')])
def test_a_plan_that_cannot_be_read_is_told(session: Session, text: str) -> None:
    done = session.stop(document(story()), text)
    assert done.kind == "block"
    assert str(session.plan) in done.reason


def test_a_removed_plan_is_told(session: Session) -> None:
    session.plan.unlink(missing_ok=True)
    done = session.call("Stop", stop_hook_active=False)
    assert "does not exist" in done.reason


# Uncommitted work.


def test_uncommitted_work_is_told_where_commits_are_required(session: Session, git_identity: tuple[str, str]) -> None:
    text = document(story())

    def git(*words: str) -> None:
        subprocess.run(["git", *words], cwd=session.workspace, check=True, capture_output=True)

    git("init", "-q")
    session.plan.write_text(text)
    git("add", "-A")
    git("commit", "-qm", "start")
    session.policy["require_commit"] = True
    assert session.stop(text, text).kind == ""
    session.file("new.txt")
    done = session.stop(text, text)
    assert "uncommitted changes (new.txt)" in done.reason
    git("add", "-A")
    assert session.stop(text, text).kind == "block", "staged is not committed"
    git("commit", "-qm", "work")
    assert session.stop(text, text).kind == ""
    session.policy["require_commit"] = False
    session.file("new.txt", "changed")
    assert session.stop(text, text).kind == ""


# Patience.


def test_it_gives_in_before_the_client_overrides_it(session: Session) -> None:
    """The client overrides the ninth block in a row, and then loses the agent's last words."""
    session.policy["stop_command"] = [sys.executable, "-S", "-c", "print('[\"not yet\"]')"]
    text = document(story())
    kinds = [session.stop(text, text, active=n > 0).kind for n in range(9)]
    assert kinds == ["block"] * 7 + ["", ""]
    assert session.stop(text, text).kind == "block", "another turn, another count"


@pytest.mark.parametrize(
    "command",
    [
        ["/none/such"],
        [sys.executable, "-S", "-c", "raise SystemExit(3)"],
        [sys.executable, "-S", "-c", "print('no JSON')"],
        [sys.executable, "-S", "-c", "print('{\"a\": 1}')"],
        [sys.executable, "-S", "-c", "print('[1, null]')"],
        [],
        [1, 2],
    ],
    ids=str,
)
def test_rules_that_cannot_be_asked_stop_nobody(session: Session, command: list[Any]) -> None:
    session.policy["stop_command"] = command
    text = document(story())
    assert session.stop(text, text).kind == ""


def test_a_workspace_that_is_gone_stops_nobody(session: Session) -> None:
    session.policy["workspace"] = str(session.workspace / "gone")
    text = document(story())
    assert session.stop(text, text).kind == ""


def test_many_problems_are_cut_short(session: Session) -> None:
    many = [story(f"US-{n:03}", passes=True) for n in range(40)]
    done = session.stop(None, document(*many))
    assert done.reason.count("\n- ") == 10


def test_by_hand_a_stop_says_nothing(session: Session) -> None:
    assert call("Stop", '{"stop_reason": "max_tokens"}', {"RALPH_LOOP": "1"}) == (0, "", "")


def test_a_review_in_the_request_file_needs_no_field_of_the_plan(session: Session) -> None:
    waiting = document(story("US-001", reviewStatus="needs_review"))
    request = session.plan.parent / "request.json"
    session.policy["request"] = str(request)
    assert session.stop(waiting, waiting, "review").kind == "block"
    request.write_text('{"review": {"verdict": "approved"}}')
    assert session.stop(waiting, waiting, "review").kind == ""
    request.write_text('{"review": {"verdict": "perhaps"}}')
    assert session.stop(waiting, waiting, "review").kind == "block"


def test_what_was_done_without_a_review_before_is_not_this_agents_to_mend(session: Session) -> None:
    done = document(story("US-001", passes=True), story("US-002"))
    session.policy["unreviewed"] = ["US-001"]
    assert session.stop(done, done).kind == ""
    both = document(story("US-001", passes=True), story("US-002", passes=True))
    assert session.stop(done, both).kind == "block"
