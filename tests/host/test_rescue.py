from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from ralph.core.errors import SetupError, UsageError
from ralph.host.git.checkpoint import release, take
from ralph.host.git.rescue import checked_name, drop, find, list_refs, reapply, roll_back, save, show
from support.repositories import Project, killed_after

STRIDE = 4
"""1 kills before every git call; that takes a while."""


def test_saving_keeps_all_work_and_changes_nothing(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write("mine", "mine\n")
    checkpoint = take(project.repo, project.index)
    project.write("a.txt", "work\n")
    project.write("new", "work\n")
    (project.root / "src/b.py").unlink()
    before, index, head = project.listing(), project.index_bytes(), project.head()
    rescue = save(project.repo, "run/1", project.index, checkpoint, "a check failed")
    assert (project.listing(), project.index_bytes(), project.head()) == (before, index, head)
    assert rescue is not None
    assert rescue.ref == "refs/ralph/rescue/run/1"
    assert project.git("rev-parse", rescue.ref) == rescue.commit
    assert project.git("ls-tree", "-r", "--name-only", rescue.ref).split() == [".gitignore", "a.txt", "mine", "new"]
    assert (rescue.subject, rescue.left) == ("a check failed", ())
    assert find(project.repo, "run/1") == rescue
    project.check_health()


def test_a_rescue_shows_what_the_agent_changed_and_nothing_else(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write("mine", "mine\n")
    checkpoint = take(project.repo, project.index)
    project.write("a.txt", "work\n")
    save(project.repo, "run/1", project.index, checkpoint, "rejected")
    shown = show(project.repo, "run/1")
    assert [change.path for change in shown.changes] == ["a.txt"]
    assert "-one\n+work\n" in shown.diff
    assert not shown.is_cut


def test_the_parent_of_a_rescue_of_a_clean_tree_is_head(tmp_path: Path) -> None:
    project = Project(tmp_path)
    checkpoint = take(project.repo, project.index)
    project.write("a.txt", "work\n")
    rescue = save(project.repo, "run/1", project.index, checkpoint, "rejected")
    assert rescue is not None
    assert project.git("rev-parse", f"{rescue.commit}^@") == project.head()


def test_without_any_difference_nothing_is_saved(tmp_path: Path) -> None:
    project = Project(tmp_path)
    checkpoint = take(project.repo, project.index)
    assert save(project.repo, "run/1", project.index, checkpoint, "rejected") is None
    assert list_refs(project.repo) == ()


def test_a_rescue_survives_cleaning(tmp_path: Path) -> None:
    project = Project(tmp_path)
    checkpoint = take(project.repo, project.index)
    project.write("new", "work\n")
    done = roll_back(project.repo, "run/1", project.index, checkpoint, "rejected")
    release(project.repo, project.index)
    project.git("reflog", "expire", "--expire=now", "--all")
    project.git("gc", "-q", "--prune=now")
    assert done.rescue is not None
    assert project.in_commit(done.rescue.ref, "new") == b"work\n"
    project.check_health()


def test_saving_again_adds_and_never_loses(tmp_path: Path) -> None:
    project = Project(tmp_path)
    checkpoint = take(project.repo, project.index)
    project.write("a.txt", "work\n")
    project.write("new", "work\n")
    first = save(project.repo, "run/1", project.index, checkpoint, "rejected")
    assert save(project.repo, "run/1", project.index, checkpoint, "rejected") == first
    (project.root / "new").unlink()  # as if a rollback had been killed in the middle
    assert save(project.repo, "run/1", project.index, checkpoint, "rejected") == first
    project.write("late", "a process that was still alive\n")
    project.write("a.txt", "more work\n")
    second = save(project.repo, "run/1", project.index, checkpoint, "rejected")
    assert first is not None
    assert second is not None
    assert project.in_commit(second.commit, "new") == b"work\n"
    assert project.in_commit(second.commit, "late") == b"a process that was still alive\n"
    assert project.in_commit(second.commit, "a.txt") == b"more work\n"
    project.git("merge-base", "--is-ancestor", first.commit, second.commit)
    assert second.base == first.base


def test_rescues_are_listed_by_run(tmp_path: Path) -> None:
    project = Project(tmp_path)
    for run, iteration in (("one", 1), ("one", 2), ("two", 1)):
        checkpoint = take(project.repo, project.index)
        project.write("new", f"{run} {iteration}")
        roll_back(project.repo, f"{run}/{iteration}", project.index, checkpoint, f"why\nmore {run}")
    assert {rescue.name for rescue in list_refs(project.repo)} == {"one/1", "one/2", "two/1"}
    assert {rescue.name for rescue in list_refs(project.repo, "one")} == {"one/1", "one/2"}
    assert find(project.repo, "one") is None
    dropped = drop(project.repo, "one/1")
    assert dropped.name == "one/1"
    assert {rescue.name for rescue in list_refs(project.repo)} == {"one/2", "two/1"}
    with pytest.raises(UsageError, match="unknown rescue one/1"):
        drop(project.repo, "one/1")


@pytest.mark.parametrize(
    "name",
    ["", "/", "a//b", "../x", "a/../b", "a..b", "-x", ".x", "a/.x", "a.lock", "a/b.", "a b", "a\nb", "a/b/c/d/e"],
)
def test_a_name_that_is_no_ref_is_refused(name: str) -> None:
    with pytest.raises(UsageError):
        checked_name(name)


def test_saved_work_can_be_put_back_on_top_of_later_work(tmp_path: Path) -> None:
    project = Project(tmp_path)
    checkpoint = take(project.repo, project.index)
    project.write("src/b.py", "work\n")
    project.write("new", "work\n")
    (project.root / ".gitignore").unlink()
    roll_back(project.repo, "run/1", project.index, checkpoint, "rejected")
    project.write("a.txt", "later\n")
    project.git("commit", "-qam", "later")
    index = project.index_bytes()
    assert set(reapply(project.repo, "run/1", project.index)) == {"src/b.py", "new", ".gitignore"}
    assert (project.read("src/b.py"), project.read("new"), project.read("a.txt")) == ("work\n", "work\n", "later\n")
    assert not (project.root / ".gitignore").exists()
    assert project.index_bytes() == index
    assert find(project.repo, "run/1") is not None


def test_saved_work_is_not_put_over_uncommitted_or_later_changes(tmp_path: Path) -> None:
    project = Project(tmp_path)
    checkpoint = take(project.repo, project.index)
    project.write("a.txt", "work\n")
    project.write("new", "work\n")
    roll_back(project.repo, "run/1", project.index, checkpoint, "rejected")
    project.write("mine", "x")
    with pytest.raises(SetupError, match="uncommitted changes: mine"):
        reapply(project.repo, "run/1", project.index)
    project.write("a.txt", "changed since\n")
    project.git("add", "-A")
    project.git("commit", "-qm", "later")
    with pytest.raises(SetupError, match=r"1 of the saved files changed since then: a\.txt"):
        reapply(project.repo, "run/1", project.index)
    assert not (project.root / "new").exists()


@pytest.mark.slow
def test_killed_before_any_git_call_a_rollback_is_finished_by_the_next(tmp_path: Path) -> None:
    calls, was_killed = 0, True
    while was_killed:
        project = Project(tmp_path / str(calls))
        project.write("mine", "mine\n")
        project.write("a.txt", "staged by me\n")
        project.git("add", "a.txt")
        repo, checkpoint = project.repo, take(project.repo, project.index)
        before, index = project.listing(), project.index_bytes()
        project.write("a.txt", "work\n")
        project.write(".gitignore", "hidden\n")
        project.write("hidden", "work\n")
        project.git("add", "-A")
        project.git("switch", "-qc", "side")
        project.git("commit", "-qm", "agent")
        project.write("new/file", "work\n")
        work = partial(roll_back, repo, "run/1", project.index, checkpoint, "rejected")
        was_killed = killed_after(calls, work)
        done = work()
        assert done.restored.is_complete
        assert (project.listing(), project.index_bytes()) == (before, index)
        assert project.git("for-each-ref", "--format=%(refname)", "refs/heads") == "refs/heads/main"
        (rescue,) = list_refs(project.repo)
        for name in ("a.txt", "hidden", "new/file"):
            assert project.in_commit(rescue.commit, name) == b"work\n", (calls, name)
        project.check_health()
        calls += STRIDE
    assert calls > 20
