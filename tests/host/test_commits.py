from __future__ import annotations

import os
import subprocess
from functools import partial
from pathlib import Path

import pytest

from ralph.core.errors import SetupError
from ralph.host.git.authorship import agent_commits
from ralph.host.git.checkpoint import Checkpoint, take
from ralph.host.git.commit_hooks import Hooks
from ralph.host.git.commits import Committed, HeadMoved, commit_message, commit_story
from ralph.host.git.refs import MovedMeanwhile
from ralph.host.git.snapshot import snapshot_tree
from support.repositories import Project, killed_after

TRAILERS = {"Ralph-Run": "r1", "Ralph-Iteration": "1", "Ralph-Story": "US-001"}
MESSAGE = commit_message("feat(US-001): first story", TRAILERS)


@pytest.fixture
def project(tmp_path: Path, git_identity: tuple[str, str]) -> Project:
    return Project(tmp_path)


def _commit(project: Project, checkpoint: Checkpoint, **named: object) -> Committed | None:
    tree = snapshot_tree(project.repo, project.index)
    made = commit_story(
        project.repo,
        checkpoint=checkpoint,
        tree=tree,
        message=MESSAGE,
        index_file=project.index,
        **named,  # type: ignore[arg-type]
    )
    project.check_health()
    return made


def _made(project: Project, checkpoint: Checkpoint, **named: object) -> Committed:
    made = _commit(project, checkpoint, **named)
    assert made is not None
    return made


def test_the_commit_has_what_changed_its_message_and_its_author(
    project: Project, git_identity: tuple[str, str]
) -> None:
    head = project.head()
    checkpoint = take(project.repo, project.index)
    project.write("a.txt", "two\n")
    project.write("new/file", "new\n")
    (project.root / "src/b.py").unlink()
    made = _made(project, checkpoint)
    assert made.commit == project.head()
    assert project.git("rev-parse", "HEAD^") == head
    assert project.git("rev-parse", "--abbrev-ref", "HEAD") == "main"
    assert set(made.paths) == {"a.txt", "new/file", "src/b.py"}
    assert project.status() == ""
    assert project.git("log", "-1", "--format=%an <%ae>|%cn") == "{} <{}>|{}".format(*git_identity, git_identity[0])
    assert project.git("log", "-1", "--format=%s") == "feat(US-001): first story"
    assert project.git("log", "-1", "--format=%(trailers:key=Ralph-Story,valueonly)").strip() == "US-001"
    assert not made.used_fallback_identity


def test_further_parents_make_a_merge_commit(project: Project) -> None:
    head = project.head()
    checkpoint = take(project.repo, project.index)
    project.write("a.txt", "two\n")
    tree = project.git("rev-parse", "HEAD^{tree}")
    other = project.git("commit-tree", tree, "-p", head, "-m", "candidate")
    made = _made(project, checkpoint, parents=[other])
    assert project.git("log", "-1", "--format=%P", made.commit) == f"{head} {other}"
    assert made.paths == ("a.txt",)
    assert project.status() == ""


def test_no_change_is_no_commit(project: Project) -> None:
    head = project.head()
    checkpoint = take(project.repo, project.index)
    project.write("x.log", "ignored")
    assert _commit(project, checkpoint) is None
    assert project.head() == head


def test_what_the_user_had_staged_or_changed_is_not_swept_in(project: Project) -> None:
    project.write("staged.txt", "mine\n")
    project.git("add", "staged.txt")
    project.write("src/b.py", "print('mine')\n")
    project.write("notes", "mine\n")
    checkpoint = take(project.repo, project.index)
    project.write("a.txt", "two\n")
    made = _made(project, checkpoint)
    assert made.paths == ("a.txt",)
    assert project.git("show", "--name-only", "--format=", "HEAD") == "a.txt"
    assert project.status().splitlines() == [" M src/b.py", "A  staged.txt", "?? notes"]


def test_an_agent_that_stages_everything_does_not_stage_the_users_files(project: Project) -> None:
    project.write("notes", "mine\n")
    checkpoint = take(project.repo, project.index)
    project.write("a.txt", "two\n")
    project.git("add", "-A")
    made = _made(project, checkpoint)
    assert made.paths == ("a.txt",)
    assert project.status() == "?? notes"


def test_commits_of_the_agent_are_kept_and_the_rest_goes_on_top(project: Project) -> None:
    checkpoint = take(project.repo, project.index)
    project.write("a.txt", "two\n")
    project.git("commit", "-qam", "by the agent")
    mine = project.head()
    project.write("rest", "rest\n")
    found = agent_commits(project.repo, checkpoint)
    assert (found.commits, found.is_rewritten, found.has_switched) == ((mine,), False, False)
    made = _made(project, checkpoint)
    assert project.git("rev-parse", "HEAD^") == mine
    assert made.paths == ("rest",)
    assert project.status() == ""


def test_after_an_agent_that_committed_everything_an_empty_commit_carries_the_message(project: Project) -> None:
    checkpoint = take(project.repo, project.index)
    project.write("a.txt", "two\n")
    project.git("commit", "-qam", "by the agent")
    theirs = project.git("rev-parse", "HEAD")
    made = _commit(project, checkpoint)
    assert made is not None
    assert made.paths == ()
    assert project.git("rev-parse", "HEAD^") == theirs
    assert project.git("rev-parse", "HEAD^{tree}") == project.git("rev-parse", f"{theirs}^{{tree}}")
    assert project.status() == ""


def test_rewritten_history_and_other_branches_are_noticed(project: Project) -> None:
    project.git("commit", "-q", "--allow-empty", "-m", "second")
    checkpoint = take(project.repo, project.index)
    assert agent_commits(project.repo, checkpoint).commits == ()
    project.git("commit", "-q", "--amend", "--allow-empty", "-m", "amended")
    found = agent_commits(project.repo, checkpoint)
    assert found.is_rewritten
    assert len(found.commits) == 1
    project.git("switch", "-qc", "side")
    assert agent_commits(project.repo, checkpoint).has_switched
    project.write("a.txt", "two\n")
    with pytest.raises(HeadMoved, match="HEAD is on side, but the work belongs on main"):
        _commit(project, checkpoint)


def test_the_first_commit_of_a_repository(tmp_path: Path, git_identity: tuple[str, str]) -> None:
    project = Project(tmp_path, commit=False)
    project.write("mine", "mine\n")
    checkpoint = take(project.repo, project.index)
    project.write("new", "new\n")
    made = _made(project, checkpoint)
    assert project.git("log", "--format=%H") == made.commit
    assert project.status() == "?? mine"


def test_a_detached_head_moves_along(project: Project) -> None:
    project.git("checkout", "-q", "--detach")
    checkpoint = take(project.repo, project.index)
    project.write("a.txt", "two\n")
    made = _made(project, checkpoint)
    assert project.head() == made.commit
    assert project.git("rev-parse", "main") != made.commit
    assert project.status() == ""


def test_without_an_identity_ralph_signs_and_says_so(tmp_path: Path) -> None:
    project = Project(tmp_path)
    checkpoint = take(project.repo, project.index)
    project.write("a.txt", "two\n")
    made = _made(project, checkpoint)
    assert made.used_fallback_identity
    assert project.git("log", "-1", "--format=%an <%ae> %cn <%ce>") == (
        "Ralph Loop <ralph@localhost> Ralph Loop <ralph@localhost>"
    )


def test_an_identity_in_the_environment_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = Project(tmp_path)
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "Grace")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "grace@example.test")
    checkpoint = take(project.repo, project.index)
    project.write("a.txt", "two\n")
    assert not _made(project, checkpoint).used_fallback_identity
    assert project.git("log", "-1", "--format=%an %ce") == "Grace grace@example.test"


def test_signing_is_not_asked_for(project: Project) -> None:
    project.git("config", "commit.gpgSign", "true")
    project.git("config", "gpg.program", "/bin/false")
    checkpoint = take(project.repo, project.index)
    project.write("a.txt", "two\n")
    assert _made(project, checkpoint).commit


def test_line_endings_and_filters_apply_to_commits(project: Project) -> None:
    project.git("config", "filter.up.clean", "tr a-z A-Z")
    project.write(".gitattributes", "*.up filter=up\n*.txt text eol=crlf\n")
    project.git("add", "-A")
    project.git("commit", "-qm", "attributes")
    checkpoint = take(project.repo, project.index)
    project.write("x.up", "small\n")
    project.write("win.txt", b"a\r\nb\r\n")
    _made(project, checkpoint)
    assert project.in_commit("HEAD", "x.up") == b"SMALL\n"
    assert project.in_commit("HEAD", "win.txt") == b"a\nb\n"
    assert project.status() == ""


def test_a_filter_that_appears_during_the_run_is_not_started(project: Project, tmp_path: Path) -> None:
    repo, checkpoint = project.repo, take(project.repo, project.index)
    evil = f'[filter "evil"]\n\tclean = touch {tmp_path}/ran; cat\n'
    with Path(os.environ["HOME"], ".gitconfig").open("a") as stream:
        stream.write(evil)
    project.write(".gitattributes", "* filter=evil\n")
    tree = snapshot_tree(repo, project.index)
    with pytest.raises(SetupError, match="filter settings changed"):
        commit_story(repo, checkpoint=checkpoint, tree=tree, message=MESSAGE, index_file=project.index)
    assert not (tmp_path / "ran").exists()


def test_a_filter_in_the_repositorys_own_configuration_is_removed_first(project: Project, tmp_path: Path) -> None:
    repo, checkpoint = project.repo, take(project.repo, project.index)
    project.git("config", "filter.evil.clean", f"touch {tmp_path}/ran; cat")
    project.write(".gitattributes", "* filter=evil\n")
    made = commit_story(
        repo,
        checkpoint=checkpoint,
        tree=snapshot_tree(repo, project.index),
        message=MESSAGE,
        index_file=project.index,
    )
    assert made is not None
    assert [item.file for item in made.tampering] == ["common:config"]
    assert not (tmp_path / "ran").exists()


def _hook(project: Project, name: str, text: str, folder: str = ".git/hooks") -> None:
    project.write(f"{folder}/{name}", f"#!/bin/sh\n{text}\n", 0o755)


def test_a_failing_hook_is_a_failed_check_with_its_output(project: Project) -> None:
    _hook(project, "pre-commit", "echo out; echo 'no way' >&2; exit 3")
    head, checkpoint = project.head(), take(project.repo, project.index)
    project.write("a.txt", "two\n")
    index = project.index_bytes()
    made = _made(project, checkpoint)
    assert made.commit == ""
    assert made.failure is not None
    assert (made.failure.hook, made.failure.code, made.failure.timed_out) == ("pre-commit", 3, False)
    assert "no way" in made.failure.output
    assert (project.head(), project.index_bytes()) == (head, index)


def test_a_hook_sees_exactly_the_commit_to_be(project: Project, tmp_path: Path) -> None:
    _hook(
        project,
        "pre-commit",
        f"git diff --cached --name-only > {tmp_path}/seen; git diff-files --name-only >> {tmp_path}/seen",
    )
    project.write("mine.txt", "mine\n")
    project.git("add", "mine.txt")
    checkpoint = take(project.repo, project.index)
    project.write("a.txt", "two\n")
    assert _made(project, checkpoint).commit
    assert (tmp_path / "seen").read_text() == "a.txt\n"


def test_what_a_hook_changes_is_not_committed_before_it_was_judged(project: Project) -> None:
    _hook(project, "pre-commit", "grep -q formatted a.txt || echo formatted >> a.txt; git add a.txt")
    head, checkpoint = project.head(), take(project.repo, project.index)
    project.write("a.txt", "two\n")
    index = project.index_bytes()
    made = _made(project, checkpoint)
    assert (made.commit, made.changed, made.changed_by) == ("", ("a.txt",), "pre-commit")
    assert (project.head(), project.index_bytes()) == (head, index)
    assert _made(project, checkpoint).changed == ()
    assert project.in_commit("HEAD", "a.txt") == b"two\nformatted\n"
    assert project.status() == ""


def test_what_changed_after_it_was_judged_is_not_committed(project: Project) -> None:
    head, checkpoint = project.head(), take(project.repo, project.index)
    project.write("a.txt", "two\n")
    tree = snapshot_tree(project.repo, project.index)
    project.write("a.txt", "three\n")
    project.write("report.xml", "not part of the story\n")
    made = commit_story(project.repo, checkpoint=checkpoint, tree=tree, message=MESSAGE, index_file=project.index)
    assert made is not None
    assert (made.commit, made.changed, made.changed_by) == ("", ("a.txt",), "")
    assert project.head() == head


def test_what_a_hook_only_stages_is_left_out_of_the_commit(project: Project) -> None:
    project.write(".gitignore", "hidden\n")
    project.write("hidden", "ignored\n")
    project.git("add", ".gitignore")
    project.git("commit", "-qm", "ignore")
    _hook(project, "pre-commit", "git add -f hidden; git rm -q --cached src/b.py")
    checkpoint = take(project.repo, project.index)
    project.write("a.txt", "two\n")
    made = _made(project, checkpoint)
    assert sorted(made.left_out) == ["hidden", "src/b.py"]
    assert project.git("show", "--name-only", "--format=", "HEAD").split() == ["a.txt"]
    checkpoint = take(project.repo, project.index)
    project.write("a.txt", "three\n")
    assert _made(project, checkpoint).commit
    assert project.git("show", "--name-only", "--format=", "HEAD").split() == ["a.txt"]


def test_the_loops_own_files_keep_their_content_whatever_a_hook_does(project: Project) -> None:
    _hook(project, "pre-commit", "echo forged > plan.json; git add plan.json")
    checkpoint = take(project.repo, project.index)
    project.write("a.txt", "two\n")
    project.write("plan.json", "the loop's\n")
    made = _made(project, checkpoint, own={project.root / "plan.json": b"the loop's\n"})
    assert (made.restored, made.left_out, made.changed) == (("plan.json",), (), ())
    assert project.in_commit("HEAD", "plan.json") == b"the loop's\n"
    assert project.status() == ""


def test_a_hook_that_repairs_and_fails_once_gets_a_second_chance(project: Project) -> None:
    _hook(project, "pre-commit", "grep -q ok a.txt && exit 0; echo ok >> a.txt; exit 1")
    checkpoint = take(project.repo, project.index)
    project.write("a.txt", "two\n")
    made = _made(project, checkpoint)
    assert (made.failure, made.changed) == (None, ("a.txt",))
    assert _made(project, checkpoint).commit
    assert project.in_commit("HEAD", "a.txt") == b"two\nok\n"


def test_a_hook_that_hangs_is_ended(project: Project) -> None:
    _hook(project, "pre-commit", "sleep 60")
    checkpoint = take(project.repo, project.index)
    project.write("a.txt", "two\n")
    made = _made(project, checkpoint, hooks=Hooks(timeout=0.3))
    assert made.failure is not None
    assert made.failure.timed_out


def test_the_message_hook_may_refuse_and_may_edit(project: Project) -> None:
    _hook(project, "commit-msg", 'grep -q US-001 "$1" || exit 1; echo "Checked: yes" >> "$1"')
    checkpoint = take(project.repo, project.index)
    project.write("a.txt", "two\n")
    assert _made(project, checkpoint).commit
    assert project.git("log", "-1", "--format=%(trailers:key=Checked,valueonly)").strip() == "yes"
    _hook(project, "commit-msg", "exit 1")
    checkpoint = take(project.repo, project.index)
    project.write("a.txt", "three\n")
    made = _made(project, checkpoint)
    assert made.failure is not None
    assert made.failure.hook == "commit-msg"


def test_a_hook_the_agent_disarmed_runs_as_it_was(project: Project) -> None:
    _hook(project, "pre-commit", "exit 1")
    checkpoint = take(project.repo, project.index)
    _hook(project, "pre-commit", "exit 0")
    project.write("a.txt", "two\n")
    made = _made(project, checkpoint)
    assert made.failure is not None
    assert [(item.file, item.what) for item in made.tampering] == [("common:hooks/pre-commit", "changed")]


def test_a_hook_the_agent_planted_does_not_run(project: Project, tmp_path: Path) -> None:
    checkpoint = take(project.repo, project.index)
    for name in ("pre-commit", "post-commit", "post-index-change", "reference-transaction", "commit-msg"):
        _hook(project, name, f"touch {tmp_path}/ran")
    project.write("a.txt", "two\n")
    assert _made(project, checkpoint).commit
    assert not (tmp_path / "ran").exists()
    assert not (project.root / ".git/hooks/post-commit").exists()


def test_a_hook_in_the_project_that_the_agent_edited_is_named(project: Project) -> None:
    project.git("config", "core.hooksPath", ".husky")
    _hook(project, "pre-commit", "exit 1", ".husky")
    project.git("add", "-A")
    project.git("-c", "core.hooksPath=/dev/null", "commit", "-qm", "hooks")
    checkpoint = take(project.repo, project.index)
    project.write("a.txt", "two\n")
    assert _made(project, checkpoint).failure is not None
    _hook(project, "pre-commit", "exit 0", ".husky")
    made = _made(project, checkpoint)
    assert made.edited_hooks == (".husky/pre-commit",)


def test_a_hook_whose_interpreter_is_missing_is_a_failed_check(project: Project) -> None:
    project.write(".git/hooks/pre-commit", "#!/no/such/interpreter\n", 0o755)
    checkpoint = take(project.repo, project.index)
    project.write("a.txt", "two\n")
    made = _made(project, checkpoint)
    assert made.failure is not None
    assert made.failure.code == 127


def test_a_commit_that_was_made_right_before_a_crash_is_found_again(project: Project) -> None:
    checkpoint = take(project.repo, project.index)
    project.write("a.txt", "two\n")
    first = _made(project, checkpoint)
    again = _made(project, checkpoint)
    assert (again.commit, again.paths) == (first.commit, first.paths)
    assert project.git("rev-list", "--count", "HEAD") == "2"


def test_killed_between_index_and_head_the_commit_is_made_by_the_next_call(project: Project) -> None:
    checkpoint = take(project.repo, project.index)
    project.write("a.txt", "two\n")
    made = _made(project, checkpoint)
    project.git("update-ref", "HEAD", f"{made.commit}^")  # the index is new, HEAD is old
    again = _made(project, checkpoint)
    assert again.paths == ("a.txt",)
    assert project.status() == ""


def test_somebody_else_moving_head_meanwhile_is_noticed(project: Project) -> None:
    _hook(
        project,
        "pre-commit",
        "unset GIT_INDEX_FILE; git -c user.name=x -c user.email=y commit -q --no-verify --allow-empty -m other",
    )
    checkpoint = take(project.repo, project.index)
    project.write("a.txt", "two\n")
    with pytest.raises(MovedMeanwhile, match="HEAD moved"):
        _commit(project, checkpoint)
    assert project.git("log", "-1", "--format=%s") == "other"
    assert "a.txt" in project.status()


def test_a_merge_the_agent_left_open_is_closed_by_the_commit(project: Project) -> None:
    project.git("switch", "-qc", "side")
    project.write("a.txt", "side\n")
    project.git("commit", "-qam", "side")
    project.git("switch", "-q", "main")
    project.write("a.txt", "main\n")
    project.git("commit", "-qam", "main")
    checkpoint = take(project.repo, project.index)
    project.git("merge", "side", check=False)
    project.write("a.txt", "both\n")
    assert _made(project, checkpoint).paths == ("a.txt",)
    assert project.status() == ""
    assert "merging" not in project.git("status").lower()


def test_files_may_become_folders_and_links(project: Project, tmp_path: Path) -> None:
    checkpoint = take(project.repo, project.index)
    (project.root / "a.txt").unlink()
    project.write("a.txt/inner", "x\n")
    (project.root / "src/b.py").rename(tmp_path / "b.py")
    (project.root / "src").rmdir()
    (project.root / "src").symlink_to(tmp_path)
    _made(project, checkpoint)
    assert project.status() == ""
    assert project.git("ls-tree", "-r", "--name-only", "HEAD").split() == [".gitignore", "a.txt/inner", "src"]


def test_a_moved_submodule_is_committed(tmp_path: Path, project: Project) -> None:
    library = Project(tmp_path / "two")
    project.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library.root), "lib")
    project.git("commit", "-qm", "library")
    checkpoint = take(project.repo, project.index)
    project.git("commit", "-q", "--allow-empty", "-m", "next", cwd=project.root / "lib")
    assert _made(project, checkpoint).paths == ("lib",)
    assert project.status() == ""


def test_many_commits_in_a_row_stay_right(project: Project) -> None:
    for number in range(4):
        checkpoint = take(project.repo, project.index)
        project.write(f"f{number}", "x\n")
        if number == 2:
            project.git("commit", "-q", "--allow-empty", "-m", "by hand")
            project.git("rm", "-q", "--cached", "f0")
            checkpoint = take(project.repo, project.index)
            project.write("f2", "y\n")
        made = _made(project, checkpoint)
        assert made.paths == (f"f{number}",)
    assert project.status().splitlines() == ["D  f0", "?? f0"]


def test_a_worktree_commits_to_its_own_branch(tmp_path: Path, project: Project) -> None:
    project.git("worktree", "add", "-q", str(tmp_path / "tree"), "-b", "side")
    tree = Project.__new__(Project)
    tree.root, tree.index = tmp_path / "tree", tmp_path / "state" / "tree-index"
    _hook(project, "pre-commit", f"git rev-parse --abbrev-ref HEAD > {tmp_path}/seen")
    checkpoint = take(tree.repo, tree.index)
    tree.write("a.txt", "two\n")
    made = commit_story(
        tree.repo,
        checkpoint=checkpoint,
        tree=snapshot_tree(tree.repo, tree.index),
        message=MESSAGE,
        index_file=tree.index,
    )
    assert made is not None
    assert tree.head() == made.commit == project.git("rev-parse", "side")
    assert tree.status() == project.status() == ""
    assert (tmp_path / "seen").read_text() == "side\n"


def test_an_old_lock_is_no_obstacle_and_a_held_one_is_respected(project: Project) -> None:
    checkpoint = take(project.repo, project.index)
    project.write("a.txt", "two\n")
    (project.root / ".git" / "index.lock").write_bytes(b"")
    assert _made(project, checkpoint).commit
    subprocess.run(["git", "status"], cwd=project.root, check=True, capture_output=True)


@pytest.mark.slow
def test_killed_before_any_git_call_a_commit_is_made_once_by_the_next(
    tmp_path: Path, git_identity: tuple[str, str]
) -> None:
    calls, was_killed = 0, True
    while was_killed:
        project = Project(tmp_path / str(calls))
        _hook(project, "pre-commit", "git diff --cached --quiet && exit 1; exit 0")
        project.write("staged.txt", "mine\n")
        project.git("add", "staged.txt")
        repo, checkpoint = project.repo, take(project.repo, project.index)
        project.write("a.txt", "two\n")
        project.write("new", "new\n")
        project.git("add", "-A")
        tree = snapshot_tree(repo, project.index)
        work = partial(commit_story, repo, checkpoint=checkpoint, tree=tree, message=MESSAGE, index_file=project.index)
        was_killed = killed_after(calls, work)
        made = work()
        assert made is not None, calls
        assert made.commit == project.head()
        assert project.git("rev-list", "--count", "HEAD") == "2"
        assert project.git("show", "--name-only", "--format=", "HEAD").split() == ["a.txt", "new"]
        assert project.status() == "A  staged.txt"
        project.check_health()
        calls += 1
    assert calls > 10
