"""What an attempt changed, from the repository of a real run."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ralph.views.diff import Diff, FileDiff, diff_of, parse
from ralph.views.run_view import RunView
from support.hostile_names import ODD, SECRET
from support.loops import LoopProject


def shown(view: RunView, number: int, env: dict[str, str]) -> Diff:
    assert view.first is not None
    return diff_of(view.first, view.attempts.by_iteration[number], env)


def texts(diff: FileDiff) -> list[str]:
    return [f"{line.sign}{line.text}" for hunk in diff.hunks for line in hunk.lines]


def test_a_commit_is_shown_file_by_file_without_the_users_own_changes(view: RunView, env: dict[str, str]) -> None:
    diff = shown(view, 1, env)
    assert diff.of.startswith("commit ")
    files = {each.path: each for each in diff.files}
    assert set(files) == {
        *(".ralph/words/tasks.json", "src/base.txt", "src/moved.txt", "src/data.bin", "src/tail.txt", "src/zero.txt"),
        f"src/{ODD}",
    }
    assert (files["src/data.bin"].status, files["src/zero.txt"].status) == ("binary", "removed")
    assert texts(files["src/tail.txt"]) == ["+no end", "\\ No newline at end of file"]
    [hostile] = [each for path, each in files.items() if "<b>" in path]
    assert texts(hostile) == ["+<U+001B>[31mred", "+<U+202E>backwards"]
    assert (hostile.status, hostile.added, hostile.removed) == ("added", 2, 0)


def test_rolled_back_work_and_an_attempt_without_changes(view: RunView, env: dict[str, str]) -> None:
    lost = shown(view, 5, env)
    assert lost.of == "work that was rolled back, and is kept"
    assert [(each.path, texts(each)) for each in lost.files] == [("src/two.txt", ["+BROKEN"])]
    assert shown(view, 8, env).why_not == "this attempt changed no files"


def test_a_candidate_that_a_crash_left_is_shown(view: RunView, env: dict[str, str]) -> None:
    """Killed after the loop had judged it, and after it had begun to settle it."""
    attempt = msgspec.structs.replace(view.attempts.by_iteration[6], commit="")
    assert view.first is not None
    for tree in (attempt.tree, ""):
        diff = diff_of(view.first, msgspec.structs.replace(attempt, tree=tree), env)
        assert (diff.of, [each.path for each in diff.files]) == ("candidate", ["src/two.txt"])


def test_merged_work_of_a_worker_is_shown_without_the_work_of_the_others(many: LoopProject, many_view: RunView) -> None:
    assert many_view.first is not None
    for attempt in many_view.attempts.by_iteration.values():
        paths = [each.path for each in diff_of(many_view.first, attempt, many.env).files]
        assert [path for path in paths if path.startswith("src/")]
        for path in paths:
            assert path.startswith((".ralph/", f"src/{attempt.story}", "src/three.txt")) or path.endswith(".flag"), path


def test_the_first_commit_of_a_branch_is_compared_with_nothing(
    view: RunView, made: LoopProject, env: dict[str, str]
) -> None:
    root = made.git("rev-list", "--max-parents=0", "HEAD")
    attempt = msgspec.structs.replace(view.attempts.by_iteration[1], commit=root, head="")
    assert view.first is not None
    files = diff_of(view.first, attempt, env).files
    assert "check.sh" in {each.path for each in files}
    assert {each.status for each in files} == {"added"}


def test_without_the_repository_it_says_so(view: RunView, env: dict[str, str], tmp_path: Path) -> None:
    assert view.first is not None
    away = msgspec.structs.replace(view.first, workspace=str(tmp_path / "gone"), checkout="")
    told = diff_of(away, view.attempts.by_iteration[1], env)
    assert told.why_not == "the repository was not found here; the journal has only the names of the files"
    gone = msgspec.structs.replace(view.attempts.by_iteration[1], commit="0" * 40)
    assert diff_of(view.first, gone, env).why_not == "these objects are no longer in the repository"


def test_a_patch_cannot_pretend_to_be_another_file() -> None:
    """Lines of a file that look like the syntax of a patch."""
    patch = (
        "diff --git a/x b/y b/x b/y\nnew file mode 100644\nindex 000..111\n"
        "diff --git a/real.py b/real.py\n--- a/real.py\n+++ b/real.py\n@@ -1,3 +1,4 @@ def f():\n one\n"
        "--- a/fake.py\n+++ b/fake.py\n+diff --git a/fake.py b/fake.py\n+@@ -1 +1 @@\n+deleted file mode 100644\n"
    )
    empty, real = parse(patch)
    assert (empty.path, empty.status, empty.hunks) == ("x b/y", "added", ())
    assert (real.path, real.status, real.added, real.removed, len(real.hunks)) == ("real.py", "changed", 4, 1, 1)
    assert [(line.sign, line.old, line.new) for line in real.hunks[0].lines[:3]] == [
        (" ", 1, 1),
        ("-", 2, 0),
        ("+", 0, 2),
    ]


def test_secrets_are_redacted_in_a_diff() -> None:
    patch = f"diff --git a/k b/k\n--- a/k\n+++ b/k\n@@ -0,0 +1 @@\n+key = {SECRET}\n"
    [file] = parse(patch)
    assert SECRET not in str(texts(file))
    assert "redacted" in texts(file)[0]
