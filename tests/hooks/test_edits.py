"""Read before edit, and places that are not edited: what a session may do to files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ralph.hooks.dialects.translation import files_of_patch
from support.hook_calls import LiveRun

EDITS = ("Edit", "Write", "MultiEdit")


@pytest.fixture
def run(tmp_path: Path) -> LiveRun:
    return LiveRun(tmp_path)


# Read before edit.


@pytest.mark.parametrize("tool", EDITS)
def test_a_file_is_edited_after_it_was_read(run: LiveRun, tool: str) -> None:
    path = run.file("a.txt")
    denied = run.use(tool, path)
    assert denied.kind == "deny"
    assert "has not been read" in denied.reason
    assert "Read it first" in denied.reason
    assert run.use("Read", path).kind == ""
    assert run.use(tool, path).kind == ""


def test_a_notebook_is_a_file_too(run: LiveRun) -> None:
    path = run.file("a.ipynb")
    given = {"notebook_path": str(path)}
    assert run.call("PreToolUse", tool_name="NotebookEdit", tool_input=given).kind == "deny"
    run.use("Read", path)
    assert run.call("PreToolUse", tool_name="NotebookEdit", tool_input=given).kind == ""


def test_every_file_of_a_patch_is_judged(run: LiveRun) -> None:
    patch = "*** Begin Patch\n*** Add File: new.txt\n+x\n*** Update File: a.txt\n*** Move to: .git/config\n"
    assert files_of_patch(patch) == ["new.txt", "a.txt", ".git/config"]
    first, second = run.file("a.txt"), run.file("b.txt")
    given = {"file_paths": [str(first), str(second)]}
    run.use("Read", first)
    assert run.call("PreToolUse", tool_name="Edit", tool_input=given).kind == "deny"
    run.use("Read", second)
    assert run.call("PreToolUse", tool_name="Edit", tool_input=given).kind == ""


def test_a_new_file_is_free(run: LiveRun) -> None:
    assert run.use("Write", run.workspace / "new" / "a.txt").kind == ""


def test_what_a_session_wrote_itself_it_has_seen(run: LiveRun) -> None:
    path = run.workspace / "a.txt"
    assert run.use("Write", path).kind == ""
    path.write_text("x")
    run.use("Write", path, event="PostToolUse", tool_response={"type": "create"})
    assert run.use("Edit", path).kind == ""


def test_a_write_that_failed_is_not_seen(run: LiveRun) -> None:
    path = run.workspace / "a.txt"
    run.use("Write", path)
    run.use("Write", path, event="PostToolUseFailure", error="no")
    path.write_text("by somebody else")
    assert run.use("Edit", path).kind == "deny"


def test_each_session_reads_for_itself(run: LiveRun) -> None:
    path = run.file("a.txt")
    run.use("Read", path, session_id="one")
    assert run.use("Edit", path, session_id="one").kind == ""
    assert run.use("Edit", path, session_id="two").kind == "deny"


def test_a_file_has_one_name_however_it_is_spelled(run: LiveRun) -> None:
    path = run.file("src/a.txt")
    (run.workspace / "link.txt").symlink_to(path)
    (run.workspace / "folder").symlink_to(path.parent)
    spellings = ["src/a.txt", "./src/../src/a.txt", "link.txt", "folder/a.txt", f"{run.workspace}//src/./a.txt"]
    for spelling in spellings:
        assert run.use("Edit", spelling).kind == "deny"
    run.use("Read", spellings[2])
    for spelling in spellings:
        assert run.use("Edit", spelling).kind == "", spelling


def test_another_file_with_a_similar_name_was_not_read(run: LiveRun) -> None:
    for name in ("a.txt", "a.txt.bak", "b a.txt", "a\n.txt"):
        run.file(name)
    run.use("Read", "a.txt")
    assert [run.use("Edit", name).kind for name in ("a.txt.bak", "b a.txt", "a\n.txt")] == ["deny"] * 3


def test_a_new_prompt_forgets_and_a_compaction_does_not(run: LiveRun) -> None:
    path = run.file("a.txt")
    cases: list[tuple[str, dict[str, Any], bool]] = [
        ("SessionStart", {"source": "compact"}, True),
        ("SessionStart", {"source": "startup"}, False),
        ("UserPromptSubmit", {"prompt": "go on"}, False),
        ("SessionEnd", {"reason": "other"}, False),
    ]
    for event, values, kept in cases:
        run.use("Read", path)
        run.call(event, **values)
        assert run.use("Edit", path).kind == ("" if kept else "deny"), event


def test_it_can_be_switched_off(run: LiveRun) -> None:
    run.policy["read_before_edit"] = False
    run.write()
    assert run.use("Edit", run.file("a.txt")).kind == ""
    assert run.use("Edit", run.file(".git/config")).kind == "deny"


# Protected places.


@pytest.mark.parametrize(
    "name",
    [
        ".git/config",
        ".git",
        ".git/hooks/pre-commit",
        "vendor/lib/.git/HEAD",
        ".GIT/config",
        "src/../.git/config",
        ".ralph/config.yaml",
        ".ralph/CONFIG.yaml",
        ".ralph/./config.yaml",
        ".ralph/configs/fast.yaml",
        "checks/lint.toml",
        "checks/deep/lint.toml",
        "link-to-git/config",
    ],
)
@pytest.mark.parametrize("tool", ["Edit", "Write"])
def test_protected_places_stay_as_they_are(run: LiveRun, name: str, tool: str) -> None:
    (run.workspace / ".git").mkdir()
    (run.workspace / "link-to-git").symlink_to(".git")
    denied = run.use(tool, name)
    assert denied.kind == "deny"
    assert name in denied.reason
    assert run.recorded()[-1]["category"] == "protected-path"


@pytest.mark.parametrize(
    "name",
    [".gitignore", ".github/workflows/x.yml", "a.git/x", ".ralph/config.yaml.md", ".ralph/f/plan.json", "checks.toml"],
)
def test_their_neighbours_are_not_protected(run: LiveRun, name: str) -> None:
    assert run.use("Write", name).kind == ""


def test_patterns_may_be_written_in_any_usual_way(run: LiveRun) -> None:
    run.policy["protected"] = ["./Makefile", "ci/", "conf/*", "t?st.ini"]
    run.write()
    for name in ("Makefile", "ci/a/b", "conf/a", "test.ini"):
        assert run.use("Write", name).kind == "deny", name
    for name in ("src/Makefile", "cid/a", "config/a", "toast.ini"):
        assert run.use("Write", name).kind == "", name


def test_nothing_is_written_outside_of_the_workspace(run: LiveRun) -> None:
    outside = run.elsewhere / "a.txt"
    (run.workspace / "way-out").symlink_to(run.elsewhere)
    sibling = run.workspace.with_name(run.workspace.name + "-2") / "a.txt"
    for path in (outside, "../elsewhere/a.txt", "way-out/a.txt", "~/a.txt", "/etc/hosts", sibling):
        denied = run.use("Write", path)
        assert denied.kind == "deny", path
        assert "outside the workspace" in denied.reason
    run.policy["writable"] = [str(run.elsewhere)]
    run.write()
    for path in (outside, "../elsewhere/a.txt", "way-out/a.txt"):
        assert run.use("Write", path).kind == "", path
    assert run.use("Write", sibling).kind == "deny"


def test_a_read_is_never_denied(run: LiveRun) -> None:
    for path in ("/etc/hosts", ".git/config", ".ralph/config.yaml"):
        assert run.use("Read", path).kind == ""


# In a sandbox the clone is also at the path of the user's checkout.


@pytest.fixture
def in_clone(tmp_path: Path) -> LiveRun:
    run = LiveRun(tmp_path, permissions="guard", checkout=str(tmp_path / "checkout"), clone=str(tmp_path / "work"))
    run.policy["own"] = [str(run.workspace / ".ralph" / "configs" / "request.json")]
    run.write()
    return run


def test_a_file_of_the_clone_is_the_same_by_the_path_of_the_checkout(in_clone: LiveRun, tmp_path: Path) -> None:
    checkout, path = tmp_path / "checkout", in_clone.file("a.txt")
    assert in_clone.use("Write", checkout / "new.txt").kind == "allow"
    assert in_clone.use("Edit", checkout / "a.txt").kind == "deny", "the clone has it, and it was not read"
    in_clone.use("Read", checkout / "a.txt")
    assert in_clone.use("Edit", path).kind == "allow"
    assert in_clone.use("Write", checkout / ".ralph" / "configs" / "request.json").kind == "allow"


@pytest.mark.parametrize("name", [".ralph/config.yaml", ".git/hooks/pre-commit", "checks/a.toml", "../elsewhere/a"])
def test_the_path_of_the_checkout_is_no_way_round_a_rule(in_clone: LiveRun, tmp_path: Path, name: str) -> None:
    assert in_clone.use("Write", f"{tmp_path}/checkout/{name}").kind == "deny"
    assert in_clone.use("Write", f"{tmp_path}/checkout-other/{name}").kind == "deny"


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("cd {checkout} && rm -rf build", "allow"),
        ("rm -rf {checkout}/build", "allow"),
        ("git -C {checkout} add -A", "allow"),
        ("echo x > {checkout}/a.txt", "allow"),
        ("cd {checkout} && rm -rf .git", "deny"),
        ("echo x > {checkout}/.git/hooks/pre-commit", "deny"),
        ("rm -rf {checkout}", "deny"),
        ("rm -rf {checkout}-other/build", "deny"),
        ("echo x > {checkout}/../other.txt", "deny"),
    ],
)
def test_commands_with_the_path_of_the_checkout_are_about_the_clone(tmp_path: Path, command: str, kind: str) -> None:
    checkout = "/srv/somebody/project"
    run = LiveRun(tmp_path, permissions="guard", checkout=checkout, clone=str(tmp_path / "work"))
    asked = {"command": command.replace("{checkout}", checkout)}
    assert run.call("PreToolUse", tool_name="Bash", tool_input=asked).kind == kind
    inside = run.call("PreToolUse", tool_name="Bash", tool_input={"command": "rm -rf build"}, cwd=f"{checkout}/sub")
    assert inside.kind == "allow"
