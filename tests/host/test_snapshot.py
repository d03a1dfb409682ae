from __future__ import annotations

import os
from pathlib import Path

import pytest

from ralph.host.git.objects import changes, diff_text, entries
from ralph.host.git.snapshot import LARGEST_FILE, snapshot, snapshot_tree
from support.repositories import Project, as_nobody


def _paths(project: Project, tree: str) -> set[str]:
    return {os.fsdecode(path) for path in entries(project.repo, tree)}


def test_a_tree_has_tracked_staged_and_untracked_files_but_no_ignored_ones(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write("staged.txt", "s")
    project.git("add", "staged.txt")
    project.write("untracked.txt", "u")
    project.write("x.log", "ignored")
    project.write("build/o", "ignored")
    tree = snapshot_tree(project.repo, project.index)
    assert _paths(project, tree) == {"a.txt", "src/b.py", ".gitignore", "staged.txt", "untracked.txt"}


def test_looking_touches_neither_index_nor_files(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write("new", "x")
    os.utime(project.root / "a.txt", (1, 1))
    before, index = project.listing(), project.index_bytes()
    times = {path: path.stat().st_mtime_ns for path in project.root.rglob("*") if ".git" not in path.parts}
    snapshot_tree(project.repo, project.index)
    assert project.listing() == before
    assert project.index_bytes() == index
    assert times == {path: path.stat().st_mtime_ns for path in times}


def test_a_tracked_file_counts_although_a_rule_ignores_it(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write("build/kept", "k")
    project.git("add", "-f", "build/kept")
    assert "build/kept" in _paths(project, snapshot_tree(project.repo, project.index))
    project.git("commit", "-qm", "kept")
    project.write("build/kept", "changed")
    tree = snapshot_tree(project.repo, project.index)
    assert project.in_commit(tree, "build/kept") == b"changed"


def test_a_file_that_becomes_ignored_leaves_the_tree(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write("out.tmp", "x")
    assert "out.tmp" in _paths(project, snapshot_tree(project.repo, project.index))
    project.write(".gitignore", "*.tmp\n")
    assert "out.tmp" not in _paths(project, snapshot_tree(project.repo, project.index))


def test_bytes_are_kept_whatever_the_attributes_say(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write(".gitattributes", "* text=auto eol=lf\n*.id ident\n*.up filter=up\n")
    project.git("config", "filter.up.clean", f"touch {tmp_path}/ran; tr a-z A-Z")
    project.git("config", "core.autocrlf", "true")
    project.write("crlf.txt", b"a\r\nb\r\n")
    project.write("x.id", b"$Id: mine $\n")
    project.write("x.up", b"lower\n")
    tree = snapshot_tree(project.repo, project.index)
    assert project.in_commit(tree, "crlf.txt") == b"a\r\nb\r\n"
    assert project.in_commit(tree, "x.id") == b"$Id: mine $\n"
    assert project.in_commit(tree, "x.up") == b"lower\n"
    assert not (tmp_path / "ran").exists()


def test_links_and_programs_keep_their_kind(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write("run.sh", "#!/bin/sh\n", 0o755)
    (project.root / "link").symlink_to("/nowhere")
    found = entries(project.repo, snapshot_tree(project.repo, project.index))
    assert (found[b"run.sh"].mode, found[b"link"].mode) == ("100755", "120000")


def test_a_folder_replaced_by_a_link_is_a_link(tmp_path: Path) -> None:
    project = Project(tmp_path)
    snapshot_tree(project.repo, project.index)
    (project.root / "src").rename(tmp_path / "moved")
    (project.root / "src").symlink_to(tmp_path / "moved")
    found = entries(project.repo, snapshot_tree(project.repo, project.index))
    assert found[b"src"].mode == "120000"
    assert b"src/b.py" not in found


def test_a_file_may_become_a_folder_and_a_folder_a_file(tmp_path: Path) -> None:
    project = Project(tmp_path)
    snapshot_tree(project.repo, project.index)
    (project.root / "a.txt").unlink()
    project.write("a.txt/inner", "x")
    (project.root / "src/b.py").unlink()
    (project.root / "src").rmdir()
    project.write("src", "file")
    tree = snapshot_tree(project.repo, project.index)
    assert _paths(project, tree) == {"a.txt/inner", "src", ".gitignore"}


def test_odd_names_are_just_names(tmp_path: Path) -> None:
    project = Project(tmp_path)
    odd = [
        "new\nline",
        "tab\t",
        '"quoted"',
        " space ",
        "-dash",
        ":(glob)*",
        "x" * 255,
        "ü/é",
        os.fsdecode(b"\xff\xfe"),
        "git~1",
    ]
    for name in odd:
        project.write(name, "x")
    assert set(odd) <= _paths(project, snapshot_tree(project.repo, project.index))


def test_a_name_that_git_refuses_does_not_break_the_rest(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write(".GIT/x", "x")
    project.write("deep/.Git", "x")
    project.write("fine", "x")
    found = _paths(project, snapshot_tree(project.repo, project.index))
    assert "fine" in found
    assert not [path for path in found if "git/" in path.lower()]


def test_pipes_and_sockets_are_left_out(tmp_path: Path) -> None:
    project = Project(tmp_path)
    snapshot_tree(project.repo, project.index)
    os.mkfifo(project.root / "pipe")
    (project.root / "a.txt").unlink()
    os.mkfifo(project.root / "a.txt")
    assert _paths(project, snapshot_tree(project.repo, project.index)) == {"src/b.py", ".gitignore"}


def test_a_large_untracked_file_is_named_and_not_read(tmp_path: Path) -> None:
    project = Project(tmp_path)
    with project.write("huge.bin", "").open("wb") as stream:
        stream.truncate(3_000_000_000)
    found = snapshot(project.repo, project.index)
    assert found.large == (b"huge.bin",)
    assert "huge.bin" not in _paths(project, found.tree)


def test_a_large_tracked_file_is_in_the_tree(tmp_path: Path) -> None:
    project = Project(tmp_path)
    os.truncate(project.write("data", "x"), LARGEST_FILE + 1)
    project.git("add", "data")
    found = snapshot(project.repo, project.index)
    assert found.large == ()
    assert "data" in _paths(project, found.tree)


def test_a_file_that_grows_over_the_limit_leaves_the_tree(tmp_path: Path) -> None:
    project = Project(tmp_path)
    path = project.write("data", "x")
    os.truncate(path, LARGEST_FILE)
    assert snapshot(project.repo, project.index).large == ()
    os.truncate(path, LARGEST_FILE + 1)
    found = snapshot(project.repo, project.index)
    assert found.large == (b"data",)
    assert "data" not in _paths(project, found.tree)


@pytest.mark.parametrize("has_commit", [True, False])
def test_a_repository_in_the_folder_is_named_and_not_a_gitlink(tmp_path: Path, has_commit: bool) -> None:
    project = Project(tmp_path)
    Project(project.root / "vendor", commit=has_commit)
    found = snapshot(project.repo, project.index)
    assert found.nested == (b"vendor/project",)
    assert not [path for path in _paths(project, found.tree) if path.startswith("vendor/project")]


def test_a_folder_of_the_project_stays_in_the_tree_when_somebody_runs_git_init_in_it(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.git("init", "-q", cwd=project.root / "src")
    project.write("src/new.py", "new\n")
    found = snapshot(project.repo, project.index)
    assert {"src/b.py", "src/new.py"} <= _paths(project, found.tree)
    assert found.nested == ()


def test_a_submodule_is_a_link_to_its_commit(tmp_path: Path) -> None:
    project, library = Project(tmp_path / "one"), Project(tmp_path / "two")
    project.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library.root), "lib")
    project.git("commit", "-qm", "library")
    found = snapshot(project.repo, project.index)
    assert found.nested == ()
    entry = entries(project.repo, found.tree)[b"lib"]
    assert (entry.mode, entry.id) == ("160000", library.head())


def test_a_damaged_private_index_is_made_again(tmp_path: Path) -> None:
    project = Project(tmp_path)
    tree = snapshot_tree(project.repo, project.index)
    project.index.write_bytes(b"DIRC garbage")
    assert snapshot_tree(project.repo, project.index) == tree


def test_objects_that_were_cleaned_up_are_written_again(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write("untracked", "only here\n")
    tree = snapshot_tree(project.repo, project.index)
    project.git("gc", "-q", "--prune=now")
    assert project.in_commit(tree, "untracked") is None
    assert snapshot_tree(project.repo, project.index) == tree
    assert project.in_commit(tree, "untracked") == b"only here\n"


def test_a_lock_of_a_killed_git_on_the_private_index_is_no_obstacle(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.index.with_name("index.lock").write_bytes(b"")
    project.write("new", "x")
    assert "new" in _paths(project, snapshot_tree(project.repo, project.index))


def test_what_the_agent_writes_into_the_git_folder_changes_nothing_about_looking(tmp_path: Path) -> None:
    project = Project(tmp_path)
    repo = project.repo
    snapshot_tree(repo, project.index)
    project.write(".git/info/exclude", "*\n")
    project.write(".git/info/attributes", "* filter=evil\n")
    project.write(
        ".git/config", f'[filter "evil"]\n\tclean = touch {tmp_path}/ran\n[core]\n\tfsmonitor = touch {tmp_path}/ran\n'
    )
    project.write("new.py", "new\n")
    tree = snapshot_tree(repo, project.index)
    assert "new.py" in _paths(project, tree)
    assert not (tmp_path / "ran").exists()


def test_a_split_index_works(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.git("update-index", "--split-index")
    project.write("build/kept", "k")
    project.git("add", "-f", "build/kept")
    assert "build/kept" in _paths(project, snapshot_tree(project.repo, project.index))


def test_sha256_and_unborn_repositories_work(tmp_path: Path) -> None:
    project = Project(tmp_path, commit=False, extra=("--object-format=sha256",))
    project.write("a", "x")
    tree = snapshot_tree(project.repo, project.index)
    assert len(tree) == 64
    assert _paths(project, tree) == {"a"}


def test_rules_of_the_user_and_of_the_repository_both_ignore(tmp_path: Path) -> None:
    project = Project(tmp_path)
    home = Path(os.environ["HOME"])
    (home / ".config" / "git").mkdir(parents=True)
    (home / ".config" / "git" / "ignore").write_text("*.mine\n*.both\n")
    project.write(".git/info/exclude", "!*.both\n*.here\n")
    for name in ("x.mine", "x.both", "x.here"):
        project.write(name, "x")
    found = _paths(project, snapshot_tree(project.repo, project.index))
    assert "x.both" in found
    assert not {"x.mine", "x.here"} & found
    (home / ".other").write_text("*.both\n")
    (home / ".gitconfig").write_text("[core]\n\texcludesFile = ~/.other\n")
    again = tmp_path / "state" / "second"
    assert "x.mine" in _paths(project, snapshot_tree(project.repo, again))


def test_changes_and_their_text(tmp_path: Path) -> None:
    project = Project(tmp_path)
    old = snapshot_tree(project.repo, project.index)
    project.write("a.txt", "two\n")
    project.write(b"\xff", "new")
    (project.root / "src/b.py").unlink()
    (project.root / ".gitignore").unlink()
    (project.root / ".gitignore").symlink_to("a.txt")
    new = snapshot_tree(project.repo, project.index)
    found = {change.raw: change for change in changes(project.repo, old, new)}
    assert {raw: change.status for raw, change in found.items()} == {
        b"a.txt": "M",
        b"\xff": "A",
        b"src/b.py": "D",
        b".gitignore": "T",
    }
    assert found[b"\xff"].path == "\\xff"
    text, is_cut = diff_text(project.repo, old, new)
    assert "-one\n+two\n" in text
    assert not is_cut
    assert diff_text(project.repo, old, new, limit=10)[1]


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user, which only root can")
def test_what_nobody_can_read_is_named_at_first_and_opened_when_it_is_new() -> None:
    with as_nobody() as folder:
        project = Project(folder)
        project.write("mine", "x", 0o000)
        project.write("closed/inner", "x")
        (project.root / "closed").chmod(0o000)
        before = snapshot(project.repo, project.index)
        assert before.unreadable == (b"closed", b"mine")
        project.write("new", "agent's", 0o000)
        project.write("shut/inner", "agent's")
        (project.root / "shut").chmod(0o000)
        (project.root / "src").chmod(0o000)
        after = snapshot(project.repo, project.index, unreadable_before=before.unreadable)
        assert after.unreadable == before.unreadable
        found = _paths(project, after.tree)
        assert {"new", "shut/inner", "src/b.py", "a.txt"} <= found
        assert not {"mine", "closed/inner"} & found
        modes = [(project.root / name).stat().st_mode & 0o777 for name in ("mine", "closed")]
        assert modes == [0, 0]
        (project.root / "closed").chmod(0o755)
