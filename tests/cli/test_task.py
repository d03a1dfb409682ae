"""`ralph task` in every layout: what it shows, what it changes, and what it refuses."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ralph.core.exit_codes import ExitCode
from ralph.core.ports import PlanRef
from ralph.plans.registry import LAYOUTS
from ralph.state.locks import claim
from ralph.state.places import plan_state
from support.cli import Completed, ralph_here
from support.workspaces import difference, story_id, workspace

LAYOUT_NAMES = LAYOUTS.built_in()
BY_FILE = ("plan.md", "spec.md")
LOOP = {"RALPH_LOOP": "1", "RALPH_MODE": "implement"}


@pytest.fixture(params=LAYOUT_NAMES)
def ref(request: pytest.FixtureRequest, tmp_path: Path) -> PlanRef:
    """Six stories, three of them done."""
    return workspace(tmp_path / "w", request.param)


@pytest.fixture
def tasks(tmp_path: Path) -> PlanRef:
    return workspace(tmp_path / "w", "tasks.json")


@pytest.fixture
def steps(tmp_path: Path) -> PlanRef:
    return workspace(tmp_path / "w", "steps")


@pytest.fixture
def spec(tmp_path: Path) -> PlanRef:
    lines = ["1.1** One", "1.2** Two", "1.R** Review", "", "## Phase 2", "", "2.1** Three", "2.R** Review"]
    text = "\n".join(f"- [ ] **{line}" if "**" in line else line for line in lines)
    return workspace(tmp_path / "w", "spec.md", source=f"# Spec\n\n## Phase 1\n\n{text}\n")


def task(ref: PlanRef, *arguments: str, env: dict[str, str] | None = None) -> Completed:
    return ralph_here("task", *arguments, cwd=ref.root, env=env)


def ids(ref: PlanRef) -> list[str]:
    return task(ref, "list", "--ids").out.split()


def sid(ref: PlanRef, number: int) -> str:
    return story_id(ref.layout, number)


def refused(done: Completed, code: ExitCode, words: str) -> None:
    assert (done.code, done.out) == (code, "")
    assert words in done.err
    assert "Traceback" not in done.err


# --- looking ---------------------------------------------------------------------------------------------------------


def test_list_has_a_line_for_each_story(ref: PlanRef) -> None:
    done = task(ref, "list")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert [line.split()[:2] for line in lines] == [["✓" if n <= 3 else "·", sid(ref, n)] for n in range(1, 7)]
    assert all(f"Export report {n} as a file" in line for n, line in enumerate(lines, 1))


def test_list_can_be_narrowed_and_read_by_programs(ref: PlanRef) -> None:
    assert [s["id"] for s in task(ref, "list", "--state", "todo", "--json").json] == [sid(ref, n) for n in (4, 5, 6)]
    assert task(ref, "list", "--ids", "--json").json == [sid(ref, n) for n in range(1, 7)]
    assert task(ref, "list", "--state", "failed") == Completed(0, "", "")


def test_show_tells_everything(ref: PlanRef) -> None:
    out = task(ref, "show", sid(ref, 4)).out
    assert out.startswith(f"{sid(ref, 4)}  Export report 4 as a file\nstate      todo\n")
    assert ("priority" in out) == (ref.layout not in BY_FILE)
    if ref.layout != "spec.md":
        assert "description:\n  As a user, I want" in out
        assert "criteria:\n  - `report export 4` writes report-4.csv\n" in out
    found = task(ref, "show", sid(ref, 4), "--json").json
    assert (found["id"], found["state"], found["why"]) == (sid(ref, 4), "todo", "")


def test_next_is_the_first_ready_story(ref: PlanRef) -> None:
    assert task(ref, "next").out.startswith(sid(ref, 4))
    found = task(ref, "next", "--json").json
    assert (found["id"], found["mode"]) == (sid(ref, 4), "implement")


def test_next_says_when_there_is_nothing_to_do(ref: PlanRef) -> None:
    for number in (4, 5, 6):
        assert task(ref, "set", sid(ref, number), "--state", "blocked").code == 0
    done = task(ref, "next")
    assert done.code == ExitCode.UNFINISHED
    assert done.out.startswith(f"Nothing is ready: {sid(ref, 4)} is blocked; ")
    assert task(ref, "next", "--json") == Completed(ExitCode.UNFINISHED, "null\n", "")
    for number in (4, 5, 6):
        assert task(ref, "set", sid(ref, number), "--state", "done", "--notes", "n").code == 0
    assert task(ref, "next") == Completed(0, "Every story is done.\n", "")


def test_next_is_what_waits_for_review_when_there_is_review(tasks: PlanRef) -> None:
    task(tasks, "done", "US-004", env=LOOP)
    assert task(tasks, "next", "--json").json["mode"] == "review"
    assert "mode       review" in task(tasks, "next").out
    (tasks.root / ".ralph" / "config.yaml").write_text("review:\n  enabled: false\n")
    assert task(tasks, "next", "--json").json["mode"] == "implement"


# --- done and reopen -------------------------------------------------------------------------------------------------


def test_done_changes_the_bytes_that_say_so_and_no_others(ref: PlanRef) -> None:
    before = ref.path.read_bytes()
    done = task(ref, "done", sid(ref, 4))
    assert (done.code, done.out.split()[:2]) == (0, ["✓", sid(ref, 4)])
    changed = difference(before, ref.path.read_bytes())
    expected = {
        "plan.md": ["-- [ ] US-004: Export report 4 as a file", "+- [x] US-004: Export report 4 as a file"],
        "spec.md": [
            "-- [ ] **1.4** Export report 4 as a file [TASK-0004]",
            "+- [x] **1.4** Export report 4 as a file [TASK-0004]",
        ],
        "steps": ['-      "status": "todo",', '+      "status": "done",'],
        "feature": ['-      "passes": false,', '+      "passes": true,'],
        "snarktank": ['-      "passes": false,', '+      "passes": true,'],
        "tasks.json": [
            '-      "passes": false,',
            '+      "passes": true,',
            '-      "reviewStatus": null,',
            '+      "reviewStatus": "approved",',
        ],
    }
    assert changed == expected[ref.layout]
    assert ralph_here("check", cwd=ref.root).code == 0


def test_done_twice_changes_nothing(ref: PlanRef) -> None:
    task(ref, "done", sid(ref, 4))
    before = ref.path.read_bytes()
    again = task(ref, "done", sid(ref, 4))
    assert (again.code, again.err) == (0, "nothing to change\n")
    assert ref.path.read_bytes() == before


def test_a_note_is_kept_in_the_notes(ref: PlanRef) -> None:
    assert task(ref, "done", sid(ref, 4), "--note", "see tests/test_export.py").code == 0
    assert task(ref, "show", sid(ref, 4), "--json").json["notes"].endswith("see tests/test_export.py")


def test_reopen_undoes_done(ref: PlanRef) -> None:
    before = ref.path.read_bytes()
    task(ref, "done", sid(ref, 4))
    assert task(ref, "reopen", sid(ref, 4)).out.startswith("·")
    assert ref.path.read_bytes() == before


def test_a_done_story_cannot_fail(ref: PlanRef) -> None:
    for state in ("failed", "blocked", "in_progress"):
        refused(
            task(ref, "set", sid(ref, 1), "--state", state), ExitCode.BAD_DATA, f"is done and cannot become {state}"
        )


@pytest.mark.parametrize("name", ["tasks.json", "steps", "feature"])
def test_a_story_is_not_done_before_what_it_depends_on(name: str, tmp_path: Path) -> None:
    ref = workspace(tmp_path, name)
    refused(task(ref, "done", "US-005"), ExitCode.BAD_DATA, "depends on US-004 (not done yet)")
    refused(task(ref, "set", "US-005", "--state", "done"), ExitCode.BAD_DATA, "depends on US-004 (not done yet)")
    assert task(ref, "done", "US-005", "--force").code == 0


def test_a_person_says_what_was_done(tasks: PlanRef) -> None:
    assert task(tasks, "set", "US-004", "--notes", "").code == 0
    refused(task(tasks, "done", "US-004"), ExitCode.BAD_DATA, "needs a note")
    assert task(tasks, "set", "US-004", "--state", "done", "--notes", "all of it").code == 0
    assert task(tasks, "show", "US-004", "--json").json["notes"] == "all of it"


# --- an agent inside a loop ------------------------------------------------------------------------------------------


def test_done_by_an_agent_is_a_claim(ref: PlanRef) -> None:
    env = {**LOOP, "RALPH_STORY": sid(ref, 4)}
    assert task(ref, "done", sid(ref, 4), "--note", "did it", env=env).code == 0
    found = task(ref, "show", sid(ref, 4), "--json").json
    if ref.layout == "tasks.json":
        assert (found["state"], found["review"]["status"]) == ("todo", "needs_review")
        story = json.loads(ref.path.read_bytes())["userStories"][3]
        assert (story["passes"], story["reviewStatus"]) == (False, "needs_review")
    else:
        assert found["state"] == "done"


@pytest.mark.parametrize(
    "arguments",
    [
        ["reopen", "{1}"],
        ["done", "{5}", "--force"],
        ["set", "{4}", "--state", "failed"],
        ["set", "{4}", "--state", "blocked", "--why", "x"],
        ["set", "{4}", "--title", "Something easier"],
        ["set", "{4}", "--criterion", "It is there"],
        ["set", "{4}", "--verify", "true"],
        ["split", "{4}", "a", "b"],
        ["move", "{6}", "--first"],
    ],
    ids=" ".join,
)
def test_an_agent_is_refused_what_the_loop_would_put_back(ref: PlanRef, arguments: list[str]) -> None:
    before = ref.path.read_bytes()
    words = [sid(ref, int(word[1])) if word.startswith("{") else word for word in arguments]
    done = task(ref, *words, env={**LOOP, "RALPH_STORY": sid(ref, 4)})
    assert done.code == ExitCode.BAD_DATA
    assert "an agent in a loop cannot" in done.err or "one story per iteration" in done.err
    assert ref.path.read_bytes() == before
    assert not (plan_state(ref, os.environ) / "beside.json").exists()


@pytest.mark.parametrize(
    "arguments", [["done", "{4}"], ["set", "{4}", "--state", "done"], ["add", "x", "--criterion", "y"]]
)
def test_a_reviewer_gives_its_verdict_and_does_nothing_else(ref: PlanRef, arguments: list[str]) -> None:
    before = ref.path.read_bytes()
    words = [sid(ref, int(word[1])) if word.startswith("{") else word for word in arguments]
    done = task(ref, *words, env={**LOOP, "RALPH_STORY": sid(ref, 4), "RALPH_MODE": "review"})
    assert (done.code, "a review " in done.err) == (ExitCode.BAD_DATA, True)
    assert ref.path.read_bytes() == before


def test_an_agent_takes_notes_and_adds_stories(ref: PlanRef) -> None:
    env = {**LOOP, "RALPH_STORY": sid(ref, 4)}
    assert task(ref, "set", sid(ref, 4), "--notes", "half way", env=env).code == 0
    assert task(ref, "add", "Found on the way", "--criterion", "x is 1", env=env).code == 0
    assert len(ids(ref)) == 7


def test_an_agent_that_cannot_reach_the_state_folder_still_makes_its_claim(ref: PlanRef, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    env = {**LOOP, "RALPH_STORY": sid(ref, 4), "RALPH_STATE_HOME": str(tmp_path / "file" / "state")}
    assert task(ref, "done", sid(ref, 4), env=env).code == 0


def test_a_person_is_told_that_a_run_is_at_work(ref: PlanRef) -> None:
    with claim(ref, os.environ, "20261115-120000-abcd"):
        done = task(ref, "done", sid(ref, 4))
        assert done.code == 0
        assert "warning: a run is working on this plan" in done.err
        assert task(ref, "list").err == ""
        assert "a run is working" not in task(ref, "set", sid(ref, 4), "--notes", "x", env=LOOP).err


# --- stuck stories ---------------------------------------------------------------------------------------------------


def test_why_a_story_is_stuck_is_kept_and_shown_until_it_no_longer_is(ref: PlanRef) -> None:
    four = sid(ref, 4)
    done = task(ref, "set", four, "--state", "blocked", "--why", "waits for the API key")
    assert done.out.splitlines()[1].strip() == "waits for the API key"
    assert "waits for the API key" in task(ref, "list").out
    assert "state      blocked: waits for the API key" in task(ref, "show", four).out
    assert task(ref, "show", four, "--json").json["why"] == "waits for the API key"
    assert task(ref, "list", "--state", "blocked", "--json").json[0]["why"] == "waits for the API key"
    assert task(ref, "reopen", four).code == 0
    assert task(ref, "set", four, "--state", "failed").code == 0
    assert "API key" not in task(ref, "show", four).out


def test_a_reason_needs_a_stuck_story(ref: PlanRef) -> None:
    refused(task(ref, "set", sid(ref, 4), "--why", "x", "--title", "y"), ExitCode.USAGE, "--why belongs to --state")


def test_states_the_file_cannot_say_are_kept_beside_it(ref: PlanRef) -> None:
    before = ref.path.read_bytes()
    for state in ("in_progress", "failed", "todo", "blocked", "done"):
        if state == "todo":
            task(ref, "reopen", sid(ref, 4))
        assert task(ref, "set", sid(ref, 4), "--state", state).code == 0
        assert task(ref, "show", sid(ref, 4), "--json").json["state"] == state
        if ref.layout != "steps" and state != "done":
            assert ref.path.read_bytes() == before


# --- add -------------------------------------------------------------------------------------------------------------


def test_add_gives_a_fresh_id_and_keeps_everything_else(ref: PlanRef) -> None:
    before = ref.path.read_bytes()
    done = task(
        ref,
        "add",
        "Export as PDF",
        "--criterion",
        "`report export 1 --pdf` writes report-1.pdf",
        "--criterion",
        "The file starts with %PDF",
        "--description",
        "As a user, I want a PDF.",
        "--depends-on",
        sid(ref, 1),
        "--verify",
        "make pdf",
        "--touches",
        "src/pdf.py",
        "--touches",
        "docs/",
        "--json",
    )
    assert done.code == 0, done.err
    [story] = done.json
    assert story["id"] == sid(ref, 7)
    assert story["depends_on"] == [sid(ref, 1)]
    assert story["verify"] == ["make pdf"]
    assert story["touches"] == ["src/pdf.py", "docs/"]
    assert "touches    src/pdf.py, docs/" in task(ref, "show", sid(ref, 7)).out
    assert len(story["criteria"]) == 2
    gone = [line for line in difference(before, ref.path.read_bytes()) if line.startswith("-")]
    assert gone == []
    assert ralph_here("check", cwd=ref.root).code == 0


def test_add_after_puts_it_there(ref: PlanRef) -> None:
    assert task(ref, "add", "In between", "--criterion", "x is 1", "--after", sid(ref, 4)).code == 0
    assert ids(ref) == [sid(ref, n) for n in (1, 2, 3, 4, 7, 5, 6)]
    task(ref, "done", sid(ref, 4))
    if ref.layout != "spec.md":
        task(ref, "set", sid(ref, 5), "--depends-on", sid(ref, 7))
    assert task(ref, "next", "--json").json["id"] == sid(ref, 7)


def test_plans_by_file_order_keep_no_priority_anywhere(tmp_path: Path) -> None:
    for name in BY_FILE:
        ref = workspace(tmp_path / name, name)
        assert task(ref, "add", "New", "--criterion", "x is 1").code == 0
        assert not (plan_state(ref, os.environ) / "beside.json").exists()
        refused(task(ref, "add", "New", "--priority", "1"), ExitCode.USAGE, "uses the order in the file")
        refused(task(ref, "set", sid(ref, 1), "--priority", "1"), ExitCode.USAGE, "ralph task move")


@pytest.mark.parametrize("name", ["tasks.json", "feature"])
def test_a_story_that_must_have_criteria_is_not_added_without(name: str, tmp_path: Path) -> None:
    refused(task(workspace(tmp_path, name), "add", "New"), ExitCode.USAGE, "needs a criterion")


def test_a_new_step_comes_before_the_review_of_its_phase(spec: PlanRef) -> None:
    before = spec.path.read_bytes()
    assert task(spec, "add", "Four").out.split() == ["·", "2.2", "Four"]
    assert ids(spec) == ["1.1", "1.2", "1.R", "2.1", "2.2", "2.R"]
    assert difference(before, spec.path.read_bytes()) == ["+- [ ] **2.2** Four"]
    assert task(spec, "add", "Five", "--after", "1.2").out.split() == ["·", "1.3", "Five"]
    assert ids(spec) == ["1.1", "1.2", "1.3", "1.R", "2.1", "2.2", "2.R"]


BAD_TEXTS = {
    "empty": "",
    "blank": "  ",
    "two lines": "one\ntwo",
    "escapes": "\x1b[31mred",
    "control": "a\x01b",
    "direction": "a\u202eb",
    "not UTF-8": "a\udcffb",
    "very long": "x" * 3000,
}


@pytest.mark.parametrize("text", BAD_TEXTS.values(), ids=BAD_TEXTS)
def test_text_that_is_unfit_is_refused_and_nothing_is_written(ref: PlanRef, text: str) -> None:
    before = ref.path.read_bytes()
    four = sid(ref, 4)
    for arguments in (
        ["add", text, "--criterion", "x is 1"],
        ["add", "Title", "--id", text, "--criterion", "x is 1"],
        ["add", "Title", "--criterion", "x is 1", "--criterion", text],
        ["set", four, "--title", text],
        ["split", four, "one", text],
    ):
        done = task(ref, *arguments)
        assert (done.code, done.out) == (ExitCode.USAGE, ""), arguments
        assert "\x1b" not in done.err
        assert max(map(len, done.err.splitlines())) < 200
    assert ref.path.read_bytes() == before


def test_a_title_may_start_with_a_dash(ref: PlanRef) -> None:
    assert task(ref, "add", "--criterion", "x is 1", "--", "--dry-run flag").code == 0
    assert task(ref, "show", sid(ref, 7), "--json").json["title"] == "--dry-run flag"


@pytest.mark.parametrize(
    "title", ["Zoë's 日本 🚀", "`code` and *stars* and [links](x)", "# not a heading", "1. not a list"]
)
def test_a_title_is_kept_as_it_is(ref: PlanRef, title: str) -> None:
    assert task(ref, "add", title, "--criterion", "x is 1").code == 0
    assert task(ref, "show", sid(ref, 7), "--json").json["title"] == title


def test_an_id_is_not_used_twice(ref: PlanRef) -> None:
    done = task(ref, "add", "Again", "--id", sid(ref, 1), "--criterion", "x is 1")
    refused(done, ExitCode.BAD_DATA, "is already in the plan")


def test_plans_with_numbers_for_ids_keep_numbers(tmp_path: Path) -> None:
    source = '{\n  "tasks": [\n    {"id": 1, "name": "One", "status": "todo"}\n  ]\n}\n'
    ref = workspace(tmp_path, "steps", source=source)
    assert task(ref, "add", "Two", "--depends-on", "1").code == 0
    added = json.loads(ref.path.read_bytes())["tasks"][1]
    assert added == {"id": 2, "name": "Two", "dependsOn": [1], "status": "todo"}


# --- set -------------------------------------------------------------------------------------------------------------


def test_fields_are_set_and_taken_away(ref: PlanRef) -> None:
    four = sid(ref, 4)
    assert task(ref, "set", four, "--title", "Better", "--depends-on", sid(ref, 1), "--verify", "true").code == 0
    found = task(ref, "show", four, "--json").json
    assert (found["title"], found["depends_on"], found["verify"]) == ("Better", [sid(ref, 1)], ["true"])
    assert task(ref, "set", four, "--touches", "src/*.py").code == 0
    assert task(ref, "show", four, "--json").json["touches"] == ["src/*.py"]
    assert task(ref, "set", four, "--touches", "").code == 0
    assert task(ref, "show", four, "--json").json["touches"] == []
    assert task(ref, "set", four, "--depends-on", "", "--verify", "", "--notes", "", "--description", "").code == 0
    found = task(ref, "show", four, "--json").json
    assert (found["depends_on"], found["verify"], found["notes"], found["description"]) == ([], [], "", "")
    assert ralph_here("check", cwd=ref.root).code == 0


def test_setting_nothing_is_a_mistake(ref: PlanRef) -> None:
    refused(task(ref, "set", sid(ref, 4)), ExitCode.USAGE, "nothing to set")


def test_dependencies_that_go_wrong_are_refused(ref: PlanRef) -> None:
    before = ref.path.read_bytes()
    four, five = sid(ref, 4), sid(ref, 5)
    refused(task(ref, "set", four, "--depends-on", "nope"), ExitCode.USAGE, "no story 'nope'")
    refused(task(ref, "set", four, "--depends-on", four), ExitCode.BAD_DATA, "depends on itself")
    assert ref.path.read_bytes() == before
    assert task(ref, "set", five, "--depends-on", four).code == 0
    refused(task(ref, "set", four, "--depends-on", five), ExitCode.BAD_DATA, "circular dependency")


@pytest.mark.parametrize("number", ["nan", "inf", "-1", "0", "1e300"])
def test_a_priority_is_a_sensible_number(steps: PlanRef, number: str) -> None:
    refused(task(steps, "set", "US-004", f"--priority={number}"), ExitCode.USAGE, "invalid priority")


# --- which story -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", ["show", "done", "reopen", "set", "split", "move"])
def test_an_unknown_story_gets_the_closest_id(ref: PlanRef, action: str) -> None:
    more = {"set": ["--title", "x"], "split": ["a", "b"], "move": ["--first"]}.get(action, [])
    wrong = sid(ref, 4).lower().replace("us-", "us_") if ref.layout != "spec.md" else "1.44"
    done = task(ref, action, wrong, *more)
    refused(done, ExitCode.USAGE, f"no story '{wrong}' in the plan")
    assert sid(ref, 4) in done.err.partition("did you mean ")[2]


@pytest.mark.parametrize("flag", ["--after", "--before"])
def test_an_unknown_neighbour_is_named(ref: PlanRef, flag: str) -> None:
    refused(task(ref, "move", sid(ref, 4), flag, "nope"), ExitCode.USAGE, "no story 'nope'")


# --- split and move --------------------------------------------------------------------------------------------------


def test_split_chains_the_parts_and_loses_nothing(ref: PlanRef) -> None:
    old = task(ref, "show", sid(ref, 4), "--json").json
    task(ref, "set", sid(ref, 5), "--depends-on", sid(ref, 4))
    done = task(ref, "split", sid(ref, 4), "The file", "The columns", "The errors", "--json")
    assert done.code == 0, done.err
    parts = {story["id"]: story for story in done.json}
    assert [parts[sid(ref, n)]["title"] for n in (4, 7, 8)] == ["The file", "The columns", "The errors"]
    assert [parts[sid(ref, n)]["depends_on"] for n in (7, 8, 5)] == [[sid(ref, 4)], [sid(ref, 7)], [sid(ref, 8)]]
    assert parts[sid(ref, 8)]["criteria"] == old["criteria"]
    assert ids(ref) == [sid(ref, n) for n in (1, 2, 3, 4, 7, 8, 5, 6)]
    assert ralph_here("check", cwd=ref.root).code == 0


def test_a_done_story_is_not_split(ref: PlanRef) -> None:
    refused(task(ref, "split", sid(ref, 1), "a", "b"), ExitCode.BAD_DATA, "only open stories can be split")
    refused(task(ref, "split", sid(ref, 4), "a"), ExitCode.BAD_DATA, "at least two titles")


def test_a_review_step_is_not_split(spec: PlanRef) -> None:
    refused(task(spec, "split", "1.R", "a", "b"), ExitCode.BAD_DATA, "is a review and cannot be split")
    assert task(spec, "split", "1.1", "a", "b").code == 0
    assert ids(spec) == ["1.1", "1.3", "1.2", "1.R", "2.1", "2.R"]


@pytest.mark.parametrize(
    ("arguments", "order"),
    [
        (["6", "--first"], [6, 1, 2, 3, 4, 5]),
        (["4", "--last"], [1, 2, 3, 5, 6, 4]),
        (["6", "--before", "4"], [1, 2, 3, 6, 4, 5]),
        (["6", "--after", "4"], [1, 2, 3, 4, 6, 5]),
        (["4", "--after", "5"], [1, 2, 3, 5, 4, 6]),
        (["4", "--before", "5"], [1, 2, 3, 4, 5, 6]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value[0], str) else "",
)
def test_move_changes_the_order(ref: PlanRef, arguments: list[str], order: list[int]) -> None:
    words = [sid(ref, int(word)) if word.isdigit() else word for word in arguments]
    assert task(ref, "move", *words).code == 0
    assert ids(ref) == [sid(ref, number) for number in order]


def test_what_is_moved_first_is_done_first(ref: PlanRef) -> None:
    task(ref, "set", sid(ref, 6), "--depends-on", "")
    assert task(ref, "move", sid(ref, 6), "--first").code == 0
    assert task(ref, "next", "--json").json["id"] == sid(ref, 6)
    assert task(ref, "move", sid(ref, 6), "--last").code == 0
    assert task(ref, "next", "--json").json["id"] == sid(ref, 4)


def test_moving_there_and_back_restores_every_byte(spec: PlanRef) -> None:
    before = spec.path.read_bytes()
    task(spec, "move", "1.2", "--first")
    task(spec, "move", "1.2", "--after", "1.1")
    assert spec.path.read_bytes() == before


def test_a_move_that_changes_nothing_says_so(ref: PlanRef) -> None:
    before = ref.path.read_bytes()
    done = task(ref, "move", sid(ref, 6), "--last")
    assert (done.code, done.err) == (0, "nothing to change\n")
    assert ref.path.read_bytes() == before
    refused(task(ref, "move", sid(ref, 6), "--before", sid(ref, 6)), ExitCode.BAD_DATA, "before or after itself")


def test_a_story_moved_before_what_it_waits_for_is_noticed(ref: PlanRef) -> None:
    task(ref, "set", sid(ref, 6), "--depends-on", sid(ref, 5))
    done = task(ref, "move", sid(ref, 6), "--first")
    assert f"warning: {sid(ref, 6)} still waits for {sid(ref, 5)}" in done.err


# --- two at once -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tasks.json", "plan.md"])
def test_commands_at_the_same_time_lose_nothing(name: str, tmp_path: Path) -> None:
    ref = workspace(tmp_path, name)
    command = [sys.executable, "-m", "ralph", "task", "add", "--criterion", "x is 1"]
    running = [
        subprocess.Popen([*command, f"Number {n}"], cwd=ref.root, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        for n in range(6)
    ]
    errors = [process.communicate()[1] for process in running]
    assert errors == [b""] * 6
    titles = {story["title"] for story in task(ref, "list", "--json").json}
    assert {f"Number {n}" for n in range(6)} < titles


# --- plans that are not Ralph's --------------------------------------------------------------------------------------


def test_what_a_plan_says_is_cleaned_before_it_is_shown(tmp_path: Path) -> None:
    nasty = "a\x1b]0;title\x07b\x1b[2Jc\u202ed\re"
    story = {"id": "US-001", "name": nasty, "status": "todo", "description": f"x\n{nasty}", "criteria": [nasty]}
    ref = workspace(tmp_path, "steps", source=json.dumps({"tasks": [story]}))
    for arguments in (["list"], ["show", "US-001"], ["next"], ["set", "US-001", "--notes", "n"]):
        out = task(ref, *arguments).out
        assert "abcd" in out
        assert not set("\x1b\x07\u202e\r") & set(out)
    assert task(ref, "show", "US-001", "--json").json["title"] == nasty


def test_a_plan_that_cannot_be_read_is_not_written(ref: PlanRef) -> None:
    ref.path.write_bytes(b"\0" + ref.path.read_bytes())
    before = ref.path.read_bytes()
    for arguments in (
        ["list"],
        ["done", sid(ref, 4)],
        ["add", "x", "--criterion", "y"],
        ["move", sid(ref, 4), "--first"],
    ):
        done = task(ref, *arguments)
        assert (done.code, done.out) == (ExitCode.BAD_DATA, "")
        assert str(ref.path) in done.err
    assert ref.path.read_bytes() == before


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_FSIZE"), reason="files cannot be limited here")
def test_a_disk_that_is_full_is_told_and_leaves_the_plan_whole(ref: PlanRef) -> None:
    before = workspace(ref.root, ref.layout, 40).path.read_bytes()
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    old_handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (600, old[1]))  # the lock fits, the plan does not
    try:
        done = task(ref, "reopen", sid(ref, 4))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, old_handler)
    refused(done, ExitCode.ENVIRONMENT, f"could not write {ref.path}: File too large")
    assert ref.path.read_bytes() == before
    assert [path.name for path in ref.folder.iterdir()] == [ref.path.name]


def test_a_damaged_sidecar_is_reported_and_kept(ref: PlanRef) -> None:
    state = plan_state(ref, os.environ)
    state.mkdir(parents=True)
    (state / "beside.json").write_text("{")
    done = task(ref, "list")
    assert done.code == 0
    assert done.err.startswith("warning: beside.json was damaged")
    assert len(list(state.glob("beside.json.corrupt-*"))) == 1


@pytest.mark.parametrize("layout", LAYOUT_NAMES)
def test_the_first_story_takes_the_place_of_the_example(layout: str, tmp_path: Path) -> None:
    name = "1" if layout == "plan.md" else "shop"
    assert ralph_here("init", name, "--layout", layout, "--no-checks", cwd=tmp_path).code == 0
    for title in ("Log in", "Log out"):
        assert ralph_here("task", "add", title, "--criterion", "GET /me answers 200", cwd=tmp_path).code == 0
    stories = ralph_here("task", "list", "--json", cwd=tmp_path).json
    assert [story["title"] for story in stories if "Review" not in story["title"]] == ["Log in", "Log out"]
    assert ralph_here("check", cwd=tmp_path).code == 0


def test_a_story_can_be_removed_by_a_person_only_and_not_from_under_another(ref: PlanRef) -> None:
    ids = [story["id"] for story in task(ref, "list", "--json").json]
    last = ids[-1]
    refused = task(ref, "remove", last, env=LOOP)
    assert refused.code != 0
    done = task(ref, "remove", last)
    assert done.code == 0, done.err
    assert [story["id"] for story in task(ref, "list", "--json").json] == ids[:-1]
    assert task(ref, "remove", "no-such-story").code == ExitCode.USAGE


def test_a_story_that_another_depends_on_stays(tmp_path: Path) -> None:
    ref = workspace(tmp_path / "w", "tasks.json")
    first, second, *_ = [story["id"] for story in task(ref, "list", "--state", "todo", "--json").json]
    assert task(ref, "set", second, "--depends-on", first).code == 0
    refused = task(ref, "remove", first)
    assert (refused.code, f"{second} depends on {first}" in refused.err) == (ExitCode.USAGE, True)
