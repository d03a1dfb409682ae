"""`ralph check`: every class of problem, every way of naming a plan, and its exit codes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ralph.core.exit_codes import ExitCode
from ralph.core.ports import PlanRef
from ralph.plans.registry import LAYOUTS, layout
from support.cli import Completed, ralph_here
from support.plans import sample
from support.workspaces import workspace

CHECKS = "checks:\n  - name: test\n    command: make test\n"


@pytest.fixture(params=LAYOUTS.built_in())
def ref(request: pytest.FixtureRequest, tmp_path: Path) -> PlanRef:
    found = workspace(tmp_path / "w", request.param)
    configure(found, CHECKS)
    return found


@pytest.fixture
def tasks(tmp_path: Path) -> PlanRef:
    return workspace(tmp_path / "w", "tasks.json")


def configure(ref: PlanRef, text: str) -> Path:
    path = ref.root / ".ralph" / "config.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def check(ref: PlanRef, *arguments: str | Path) -> Completed:
    return ralph_here("check", *arguments, cwd=ref.root)


def codes(done: Completed) -> list[str]:
    return [problem["code"] for problem in done.json["problems"]]


def edit(ref: PlanRef, **story: Any) -> dict[str, Any]:
    """Change the first open story of a `tasks.json`."""
    document: dict[str, Any] = json.loads(ref.path.read_bytes())
    document["userStories"][3] |= story
    ref.path.write_text(json.dumps(document, indent=2))
    return document


# --- prompts and trust -----------------------------------------------------------------------------------------------


def own_prompt(ref: PlanRef, text: str) -> Path:
    path = layout(ref.layout).locations(ref).prompt
    assert path is not None
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_an_unknown_variable_in_the_prompt_is_an_error_as_in_a_run(ref: PlanRef) -> None:
    path = own_prompt(ref, "Do {{STORY_ID}}.\n{{NONSENSE}}\n")
    done = check(ref)
    assert (done.code, f"{path.relative_to(ref.root)}:2:3: error[prompt]: unknown variable NONSENSE" in done.out) == (
        ExitCode.BAD_DATA,
        True,
    ), done.out
    assert "unknown variable NONSENSE" in ralph_here("run", "--dry-run", "--trust", cwd=ref.root).err
    own_prompt(ref, "Do {{STORY_ID}}.\n")
    assert check(ref).code == 0


def test_a_prompt_is_rendered_in_every_mode_that_uses_it(tasks: PlanRef) -> None:
    configure(tasks, CHECKS + "prompt: mine.md\n")
    (tasks.root / "mine.md").write_text("{% if MODE == 'implement' %}{{ NONSENSE }}{% endif %}")
    assert codes(check(tasks, "--json")) == ["prompt"]
    (tasks.root / "mine.md").write_text("{% if MODE == 'nonsense' %}{{ NONSENSE }}{% endif %}")
    assert codes(check(tasks, "--json")) == []
    (tasks.root / "mine.md").unlink()
    assert "the prompt file mine.md does not exist" in check(tasks).out


def test_untrusted_commands_are_a_warning_without_an_exit_code(tasks: PlanRef) -> None:
    configure(tasks, CHECKS)
    warning = "warning: commands are not trusted yet: `ralph trust`"
    done = check(tasks, "--strict")
    assert (done.code, done.err.splitlines()[-1]) == (0, warning)
    assert ralph_here("trust", "--yes", cwd=tasks.root).code == 0
    assert warning not in check(tasks).err
    assert check(tasks, "--json").json["trusted"] is True


# --- results ---------------------------------------------------------------------------------------------------------


def test_a_good_plan_is_fine(ref: PlanRef) -> None:
    done = check(ref)
    assert (done.code, done.out, done.err.splitlines()[0]) == (0, "", f"{ref.path.relative_to(ref.root)}: ok")
    assert check(ref, "--strict").code == 0


def test_the_answer_for_programs(ref: PlanRef) -> None:
    told = check(ref, "--json").json
    told.pop("agent")
    budget, remark = (told["plans"][0].pop(key) for key in ("budget", "remark"))
    assert bool(remark) == ("no check of" in check(ref).err)
    assert [line["name"] for line in budget] == (
        ["prompt", "readme", "spec", "total"] if ref.layout == "spec.md" else []
    )
    assert told == {
        "workspace": str(ref.root),
        "errors": 0,
        "warnings": 0,
        "trusted": False,
        "plans": [{"plan": str(ref.path), "layout": ref.layout, "errors": 0, "warnings": 0}],
        "problems": [],
    }


@pytest.mark.defaults
def test_stories_without_a_check_of_their_own_are_counted(tasks: PlanRef) -> None:
    configure(tasks, f"review: {{enabled: false}}\n{CHECKS}")
    done = check(tasks, "--strict")
    assert done.code == 0, "nothing is wrong with it"
    assert " no check of " in done.err
    assert "a test that fails without the change, or it stays unproven" in done.err
    configure(tasks, f"review: {{enabled: true}}\n{CHECKS}")
    assert " no check of " not in check(tasks).err


def test_warnings_count_only_when_asked(ref: PlanRef) -> None:
    configure(ref, "")
    if ref.layout == "tasks.json":
        edit(ref, acceptanceCriteria=["Works fine"])
    done = check(ref)
    assert done.code == 0
    assert ": warning[" in done.out
    assert done.err.splitlines()[0] == f"{ref.path.relative_to(ref.root)}: 1 warning"
    assert check(ref, "--strict").code == ExitCode.BAD_DATA
    assert check(ref, "--strict", "--json").code == ExitCode.BAD_DATA


def test_an_error_is_one_without_asking(ref: PlanRef) -> None:
    ref.path.write_bytes(ref.path.read_bytes() + b"\xff")
    done = check(ref)
    assert done.code == ExitCode.BAD_DATA
    assert done.out.startswith(f"{ref.path.relative_to(ref.root)}:")
    assert ": error[not-utf-8]: " in done.out
    assert ": 1 error\n" in done.err
    found = check(ref, "--json")
    assert found.code == ExitCode.BAD_DATA
    assert (found.json["errors"], found.json["plans"][0]["errors"]) == (1, 1)
    assert found.json["problems"][0]["where"]["file"] == str(ref.path)


def test_check_writes_nothing(ref: PlanRef) -> None:
    before = sorted(path for path in ref.root.rglob("*"))
    content = ref.path.read_bytes()
    check(ref)
    assert sorted(path for path in ref.root.rglob("*")) == before
    assert ref.path.read_bytes() == content
    assert not Path(os.environ["RALPH_STATE_HOME"]).exists()


# --- classes of problems ---------------------------------------------------------------------------------------------

WRONG_BYTES: dict[str, tuple[bytes, str, str]] = {
    "not JSON": (b'{"project": ', "", "tasks.json:"),
    "not an object": (b"[]", "not-an-object", "tasks.json:1:1"),
    "NUL": (b"{\n\0}", "nul-byte", "tasks.json:2"),
    "not UTF-8": (b'{\n"a": "\xff"}', "not-utf-8", "tasks.json:2"),
    "too deep": (b"[" * 100_000, "", "tasks.json"),
    "nothing": (b"", "", "tasks.json"),
}


@pytest.mark.parametrize(("source", "code", "where"), WRONG_BYTES.values(), ids=WRONG_BYTES)
def test_a_file_that_is_no_plan_is_an_error_with_a_place(source: bytes, code: str, where: str, tasks: PlanRef) -> None:
    tasks.path.write_bytes(source)
    done = check(tasks)
    assert done.code == ExitCode.BAD_DATA
    assert where in done.out
    assert f"error[{code}" in done.out
    assert "Traceback" not in done.out + done.err


WRONG_STORIES: dict[str, tuple[dict[str, Any], str, str]] = {
    "wrong type": ({"passes": "no"}, "wrong-type", "userStories[3].passes"),
    "empty criteria": ({"acceptanceCriteria": []}, "empty-list", "userStories[3].acceptanceCriteria"),
    "empty criterion": ({"acceptanceCriteria": [""]}, "empty-text", "userStories[3].acceptanceCriteria[0]"),
    "negative count": ({"reviewCount": -1}, "wrong-type", "userStories[3].reviewCount"),
    "duplicate id": ({"id": "US-001"}, "duplicate-id", "userStories[3].id"),
    "unknown dependency": ({"dependsOn": ["nope"]}, "unknown-dependency", "userStories[3].id"),
    "cycle": ({"dependsOn": ["US-006"]}, "dependency-cycle", "userStories["),
    "review fields": ({"reviewStatus": "approved"}, "review-fields", "userStories[3].reviewStatus"),
    "vague": ({"acceptanceCriteria": ["x is 1", "It looks good"]}, "vague-criterion", "acceptanceCriteria[1]"),
    "too many criteria": ({"acceptanceCriteria": ["x is 1"] * 9}, "too-large", "userStories[3].acceptanceCriteria"),
    "too many sentences": ({"description": "A b. C d. E f. G h."}, "too-large", "userStories[3].description"),
    "no title": ({"title": ""}, "no-title", "userStories[3].title"),
}


@pytest.mark.parametrize(("story", "code", "path"), WRONG_STORIES.values(), ids=WRONG_STORIES)
def test_a_wrong_story_is_found_where_it_is(story: dict[str, Any], code: str, path: str, tasks: PlanRef) -> None:
    edit(tasks, **story)
    done = check(tasks, "--json")
    assert code in codes(done)
    [problem] = [problem for problem in done.json["problems"] if problem["code"] == code]
    assert path in problem["where"]["path"]
    assert problem["where"]["line"] > 1
    is_error = problem["severity"] == "error"
    assert done.code == (ExitCode.BAD_DATA if is_error else 0)


def test_a_missing_field_is_named(tasks: PlanRef) -> None:
    document = json.loads(tasks.path.read_bytes())
    del document["userStories"][3]["reviewCount"], document["branchName"]
    tasks.path.write_text(json.dumps(document, indent=2))
    done = check(tasks, "--json")
    assert codes(done) == ["missing-field", "missing-field"]


def test_all_problems_are_told_at_once(tasks: PlanRef) -> None:
    document = json.loads(tasks.path.read_bytes())
    for number, story in enumerate(document["userStories"]):
        story["priority"] = f"p{number}"
    tasks.path.write_text(json.dumps(document, indent=2))
    assert check(tasks, "--json").json["errors"] == 6
    assert len([line for line in check(tasks).out.splitlines() if ": error[" in line]) == 6


def test_missing_verify_commands_are_a_warning(tasks: PlanRef) -> None:
    document = json.loads(tasks.path.read_bytes())
    del document["verifyCommands"]
    tasks.path.write_text(json.dumps(document, indent=2))
    assert codes(check(tasks, "--json")) == ["no-checks"]
    configure(tasks, CHECKS)
    assert codes(check(tasks, "--json")) == [], "the agent is told to run these"
    assert "make test" in ralph_here("prompt", cwd=tasks.root).out


@pytest.mark.parametrize(
    ("config", "proves"),
    [
        (CHECKS, True),
        ("quality_checks:\n  test: make test\n", True),
        ("steps:\n  - type: command\n    config:\n      command: make test\n", True),
        ("steps:\n  - type: command\n    enabled: false\n", False),
        (f"{CHECKS}    allow_failure: true\n", False),
        ("", False),
    ],
)
def test_only_what_can_fail_counts_as_a_check(config: str, proves: bool, tmp_path: Path) -> None:
    ref = workspace(tmp_path, "feature")
    configure(ref, config)
    assert codes(check(ref, "--json")) == ([] if proves else ["no-checks"])


def test_a_spec_has_a_budget(tmp_path: Path) -> None:
    ref = workspace(tmp_path, "spec.md")
    configure(ref, CHECKS)
    (tmp_path / "prompt.md").write_text("x" * 450 * 4)
    (tmp_path / ".ralph" / "readme.md").write_text("x" * 550 * 4)
    assert check(ref, "--json").json["problems"] == []
    (tmp_path / "prompt.md").write_text("x" * 450 * 4 + "y")
    [problem] = check(ref, "--json").json["problems"]
    assert (problem["code"], problem["severity"]) == ("over-budget", "warning")
    assert problem["where"]["file"] == str(tmp_path / "prompt.md")
    ref.path.write_text(ref.path.read_text() + "\n" + "words " * 4000)
    assert codes(check(ref, "--json")) == ["over-budget"] * 3  # the prompt, the spec, all together
    assert "tokens every session reads (estimated): prompt " in check(ref).err


@pytest.mark.parametrize("layout", ["plan.md", "tasks.json", "steps", "feature", "spec.md"])
def test_the_example_of_a_new_plan_is_no_story(layout: str, tmp_path: Path) -> None:
    assert ralph_here("init", "--layout", layout, cwd=tmp_path).code == 0
    assert "example" in codes(ralph_here("check", "--json", cwd=tmp_path))


@pytest.mark.parametrize("kind", ["fifo", "folder", "outside", "broken"])
def test_what_is_no_file_is_an_error_and_does_not_hang(ref: PlanRef, kind: str, tmp_path: Path) -> None:
    ref.path.unlink()
    if kind == "fifo":
        os.mkfifo(ref.path)
    elif kind == "folder":
        ref.path.mkdir()
    else:
        target = tmp_path / "elsewhere"
        if kind == "outside":
            target.write_text("{}")
        ref.path.symlink_to(target)
    for arguments in ([], [ref.path]):
        done = check(ref, *arguments)
        assert done.code == ExitCode.BAD_DATA, done
        assert "error[unreadable]" in done.out


def test_text_from_a_plan_is_cleaned(tasks: PlanRef) -> None:
    edit(tasks, acceptanceCriteria=["It works fine \x1b[31m\x07\u202e"], title="")
    done = check(tasks)
    assert "It works fine" in done.out
    assert not set("\x1b\x07\u202e") & set(done.out)


# --- settings --------------------------------------------------------------------------------------------------------


def test_broken_settings_do_not_hide_a_broken_plan(ref: PlanRef) -> None:
    config = configure(ref, "chekcs: []\nmax_iterations: many\n")
    ref.path.write_bytes(ref.path.read_bytes() + b"\0")
    done = check(ref, "--json")
    assert done.code == ExitCode.BAD_DATA
    assert codes(done) == ["unknown-key", "wrong-type", "nul-byte"]
    assert {problem["where"]["file"] for problem in done.json["problems"]} == {str(config), str(ref.path)}
    text = check(ref)
    assert text.out.startswith(".ralph/config.yaml:1:1 (chekcs): error[unknown-key]: ")
    assert "did you mean checks?" in text.out
    assert "settings and prompts: 2 errors\n" in text.err


def test_settings_that_cannot_be_read_say_nothing_about_checks(tmp_path: Path) -> None:
    ref = workspace(tmp_path, "feature")
    config = configure(ref, "")
    config.unlink()
    os.mkfifo(config)
    assert codes(check(ref, "--json")) == ["unreadable"]


def test_warnings_about_settings_are_told(ref: PlanRef) -> None:
    configure(ref, f"{CHECKS}max_iterations: 500\nmax_allowed_iterations: 100\n")
    done = check(ref, "--json")
    assert (done.code, codes(done)) == (0, ["over-the-cap"])


# --- which plan ------------------------------------------------------------------------------------------------------


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """A workspace with a plan in every layout, and one in a folder of its own."""
    root = tmp_path / "w"
    for name in ("plan.md", "tasks.json", "steps", "spec.md"):
        workspace(root, name)
    for name, place in (("feature", ".ralph/other/prd.json"), ("tasks.json", "ralph/tasks.json")):
        (root / place).parent.mkdir()
        (root / place).write_bytes(sample(name, 6))
    (root / "plans").mkdir()
    (root / "plans" / "tasks.json").write_bytes(sample("tasks.json", 6))
    (root / "src").mkdir()
    (root / "README.md").write_text("# R\n")
    return root


EVERY = [
    ".ralph/PRD-1/plan.md",
    "ralph/tasks.json",
    ".ralph/login/tasks.json",
    ".ralph/prd.json",
    ".ralph/other/prd.json",
    ".ralph/spec.md",
]
NAMED = {
    "": EVERY,
    ".": EVERY,
    "src": EVERY,
    ".ralph": EVERY,
    ".ralph/PRD-1": [".ralph/PRD-1/plan.md"],
    ".ralph/PRD-1/plan.md": [".ralph/PRD-1/plan.md"],
    ".ralph/login": [".ralph/login/tasks.json"],
    "./.ralph/login/../login/tasks.json": [".ralph/login/tasks.json"],
    "ralph": ["ralph/tasks.json"],
    "ralph/tasks.json": ["ralph/tasks.json"],
    "plans/tasks.json": ["plans/tasks.json"],
    ".ralph/prd.json": [".ralph/prd.json"],
    ".ralph/other/prd.json": [".ralph/other/prd.json"],
    ".ralph/spec.md": [".ralph/spec.md"],
}


@pytest.mark.parametrize(("path", "plans"), NAMED.items())
def test_a_path_names_a_workspace_a_folder_or_a_plan(path: str, plans: list[str], many: Path) -> None:
    for arguments, cwd in (([path] if path else [], many), ([str(many / path)], many.parent)):
        done = ralph_here("check", *arguments, "--json", cwd=cwd)
        assert done.code == 0, done.err
        assert [plan["plan"] for plan in done.json["plans"]] == [str(many / name) for name in plans]


def test_the_command_line_narrows_it_down(many: Path) -> None:
    def plans(*arguments: str) -> list[str]:
        found = ralph_here("check", *arguments, "--json", cwd=many).json["plans"]
        return [str(Path(plan["plan"]).relative_to(many)) for plan in found]

    assert plans("--layout", "tasks.json") == ["ralph/tasks.json", ".ralph/login/tasks.json"]
    assert plans("-f", "other") == [".ralph/other/prd.json"]
    assert plans("--prd", "1") == [".ralph/PRD-1/plan.md"]
    assert plans("--ralph-dir", "plans") == ["plans/tasks.json"]
    (many / ".ralph" / "config.yaml").write_text("feature: other\n")
    assert plans() == [".ralph/other/prd.json"]
    assert plans(".ralph/spec.md") == [".ralph/spec.md"]


def test_a_file_that_is_no_plan_is_named_with_those_that_are(many: Path) -> None:
    done = ralph_here("check", "README.md", cwd=many)
    assert (done.code, done.out) == (ExitCode.USAGE, "")
    assert "README.md is not a plan" in done.err
    assert ".ralph/spec.md" in done.err


@pytest.mark.parametrize("path", ["", "nope", ".ralph/nope.json", "a\x1b[31mb\nc"])
def test_a_path_that_is_not_there_is_told(path: str, many: Path) -> None:
    done = ralph_here("check", path, cwd=many)
    assert (done.code, done.out) == (ExitCode.USAGE, "")
    assert "does not exist" in done.err
    assert "\x1b" not in done.err


def test_a_path_outside_of_any_workspace_is_told(many: Path, tmp_path: Path) -> None:
    (tmp_path / "alone").mkdir()
    (tmp_path / "alone" / "tasks.json").write_text("{}")
    for path in ("alone", "alone/tasks.json"):
        done = ralph_here("check", path, cwd=tmp_path)
        assert (done.code, done.out) == (ExitCode.USAGE, "")
        assert "is not in a workspace" in done.err
    assert ralph_here("check", cwd=tmp_path / "alone").code == ExitCode.ENVIRONMENT


def test_two_ways_of_saying_where_are_one_too_many(many: Path) -> None:
    done = ralph_here("check", ".", "-d", many, cwd=many)
    assert done.code == ExitCode.USAGE
    assert "PATH and -d" in done.err


def test_a_workspace_without_a_plan_has_nothing_to_check(tmp_path: Path) -> None:
    (tmp_path / ".ralph").mkdir()
    done = ralph_here("check", cwd=tmp_path)
    assert (done.code, done.out) == (ExitCode.ENVIRONMENT, "")
    assert "no plan" in done.err


def test_an_agent_that_cannot_start_is_said_and_fails_no_check(tasks: PlanRef) -> None:
    configure(tasks, CHECKS + "agent:\n  name: scripted\n")

    done = check(tasks, "--strict")

    assert done.code == 0
    assert "a run cannot start its agent: the scripted agent has no script" in done.err
    assert "has no script" in check(tasks, "--json").json["agent"]
    configure(tasks, CHECKS + "agent: {name: command, command: [sh]}\n")
    assert check(tasks, "--json").json["agent"] is None
