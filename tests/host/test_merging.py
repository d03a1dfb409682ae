"""Every case runs with git's own merge and with the fallback for git before 2.38."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from ralph.host.git import merging
from ralph.host.git.merging import Merged, commit_object, keep_ref, left_markers, merge_onto, same_but_own, without
from ralph.host.git.refs import MovedMeanwhile
from support.repositories import Project

TEXT = "".join(f"line {n}\n" for n in range(12))


@pytest.fixture
def project(tmp_path: Path, git_identity: tuple[str, str]) -> Project:
    project = Project(tmp_path)
    project.write("text", TEXT)
    project.write("run", "#!/bin/sh\n", 0o644)
    project.write("picture", b"\0\1\2" * 50)
    (project.root / "link").symlink_to("a.txt")
    project.git("add", "-A")
    project.git("commit", "-qm", "base")
    return project


@pytest.fixture(params=["merge-tree", "index"])
def merge(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Merged]:
    if request.param == "index":
        monkeypatch.setattr(merging, "_merge_trees", lambda *_: None)
    return merge_onto


Edits = Mapping[str | bytes, str | bytes | None]


def _side(project: Project, base: str, edits: Edits | Callable[[], object]) -> str:
    """A commit on `base` with these files; None: deleted."""
    project.git("checkout", "-q", "--detach", base)
    if callable(edits):
        edits()
    else:
        for name, text in edits.items():
            if text is None:
                (project.root / os.fsdecode(name)).unlink()
            else:
                project.write(name, text)
    project.git("add", "-A")
    project.git("commit", "-qm", "side", "--allow-empty")
    return project.head()


def _sides(
    project: Project, tip: Edits | Callable[[], object], story: Edits | Callable[[], object]
) -> tuple[str, str, str]:
    base = project.head()
    onto, candidate = _side(project, base, tip), _side(project, base, story)
    project.git("checkout", "-q", "main")
    return onto, candidate, base


def _listed(project: Project, tree: str) -> dict[str, str]:
    listed = project.git("-c", "core.quotePath=false", "ls-tree", "-r", tree).splitlines()
    return {item.partition("\t")[2]: item.partition(" ")[0] for item in listed}


def test_changes_of_both_sides_are_merged_and_the_user_keeps_everything(
    project: Project, merge: Callable[..., Merged]
) -> None:
    sides = _sides(project, {"text": TEXT.replace("line 0", "tip"), "new": "tip\n"}, {"text": TEXT + "story\n"})
    project.write("a.txt", "unsaved work\n")
    before = project.index_bytes(), project.listing(), project.git("for-each-ref"), project.head()
    merged = merge(project.repo, *sides)
    assert merged.conflicts == ()
    assert merged.text == ""
    assert project.in_commit(merged.tree, "text") == (TEXT.replace("line 0", "tip") + "story\n").encode()
    assert project.in_commit(merged.tree, "new") == b"tip\n"
    assert before == (project.index_bytes(), project.listing(), project.git("for-each-ref"), project.head())
    project.check_health()


def test_a_conflict_names_the_file_and_shows_both_sides(project: Project, merge: Callable[..., Merged]) -> None:
    sides = _sides(
        project, {"text": TEXT.replace("line 5", "tip's")}, {"text": TEXT.replace("line 5", "story's"), "ok": "new\n"}
    )
    merged = merge(project.repo, *sides)
    assert merged.conflicts == ("text",)
    assert merged.text.startswith("CONFLICT (content)")
    assert "<<<<<<< tip\ntip's\n=======\nstory's\n>>>>>>> story" in merged.text
    assert b"<<<<<<< tip\ntip's\n" in (project.in_commit(merged.tree, "text") or b"")
    assert project.in_commit(merged.tree, "ok") == b"new\n"
    assert left_markers(project.repo, merged.tree, ["text", "ok", "gone"]) == ("text",)
    assert left_markers(project.repo, sides[0], ["text"]) == ()


def test_a_long_conflict_is_shown_in_part(project: Project, merge: Callable[..., Merged]) -> None:
    sides = _sides(project, {"text": "tip\n" * 500}, {"text": "story\n" * 500})
    merged = merge(project.repo, *sides)
    assert len(merged.text.splitlines()) < 70
    assert "more lines" in merged.text


def test_a_file_that_one_side_changed_and_the_other_deleted_is_kept(
    project: Project, merge: Callable[..., Merged]
) -> None:
    merged = merge(project.repo, *_sides(project, {"text": None}, {"text": TEXT + "more\n"}))
    assert merged.conflicts == ("text",)
    assert "modify/delete" in merged.text
    assert project.in_commit(merged.tree, "text") == (TEXT + "more\n").encode()
    merged = merge(project.repo, *_sides(project, {"text": TEXT + "more\n"}, {"text": None}))
    assert merged.conflicts == ("text",)
    assert project.in_commit(merged.tree, "text") == (TEXT + "more\n").encode()


def test_both_sides_delete_a_file_or_change_it_alike(project: Project, merge: Callable[..., Merged]) -> None:
    merged = merge(project.repo, *_sides(project, {"text": None, "n": "1\n"}, {"text": None, "n": "1\n"}))
    assert merged.conflicts == ()
    assert "text" not in _listed(project, merged.tree)
    assert project.in_commit(merged.tree, "n") == b"1\n"


def test_both_sides_add_a_file_with_other_content(project: Project, merge: Callable[..., Merged]) -> None:
    merged = merge(project.repo, *_sides(project, {"new": "tip\n"}, {"new": "story\n"}))
    assert merged.conflicts == ("new",)
    assert "add/add" in merged.text
    assert left_markers(project.repo, merged.tree, merged.conflicts) == ("new",)


def test_binary_files_conflict_and_one_version_stays_whole(project: Project, merge: Callable[..., Merged]) -> None:
    merged = merge(project.repo, *_sides(project, {"picture": b"\0tip"}, {"picture": b"\0story"}))
    assert merged.conflicts == ("picture",)
    assert project.in_commit(merged.tree, "picture") == b"\0tip"
    assert left_markers(project.repo, merged.tree, merged.conflicts) == ()


def test_symbolic_links_conflict_and_are_never_given_markers(project: Project, merge: Callable[..., Merged]) -> None:
    def to(target: str) -> Callable[[], object]:
        def edit() -> None:
            (project.root / "link").unlink()
            (project.root / "link").symlink_to(target)

        return edit

    merged = merge(project.repo, *_sides(project, to("tip"), to("story")))
    assert [path for path in merged.conflicts if path.startswith("link")]
    modes = {path: mode for path, mode in _listed(project, merged.tree).items() if path.startswith("link")}
    assert set(modes.values()) == {"120000"}
    assert project.in_commit(merged.tree, "link") in (b"tip", b"story")


def test_a_mode_and_a_text_change_are_both_kept(project: Project, merge: Callable[..., Merged]) -> None:
    sides = _sides(project, lambda: (project.root / "run").chmod(0o755), {"run": "#!/bin/sh\nexit 1\n"})
    for onto, candidate in (sides[:2], sides[1::-1]):
        merged = merge(project.repo, onto, candidate, sides[2])
        assert merged.conflicts == ()
        assert _listed(project, merged.tree)["run"] == "100755"
        assert project.in_commit(merged.tree, "run") == b"#!/bin/sh\nexit 1\n"


def test_a_file_and_a_folder_of_the_same_name_conflict(project: Project, merge: Callable[..., Merged]) -> None:
    merged = merge(project.repo, *_sides(project, {"place": "file\n"}, {"place/inside": "story\n"}))
    assert merged.conflicts
    assert all(path.startswith("place") for path in merged.conflicts)
    assert project.in_commit(merged.tree, "place/inside") == b"story\n"


def test_submodules_that_both_sides_moved_conflict(project: Project, merge: Callable[..., Merged]) -> None:
    def at(name: str) -> Callable[[], object]:
        return lambda: project.git("update-index", "--add", "--cacheinfo", f"160000,{name * 40},lib")

    project.git("update-index", "--add", "--cacheinfo", f"160000,{'a' * 40},lib")
    project.git("commit", "-qm", "with lib")
    base = project.head()
    heads = []
    for name in "bc":
        project.git("checkout", "-q", "--detach", base)
        at(name)()
        project.git("commit", "-qm", name)
        heads.append(project.head())
    merged = merge(project.repo, heads[0], heads[1], base)
    assert merged.conflicts == ("lib",)
    assert _listed(project, merged.tree)["lib"] == "160000"
    assert merge(project.repo, heads[0], base, base).conflicts == ()


def test_odd_names_are_merged_and_named(project: Project, merge: Callable[..., Merged]) -> None:
    odd: list[str | bytes] = ["a\nb", 'quote"d', "tab\there", "-dash", "ünï", b"\xff\xfe", " space ", ":(top)x", "=*?"]
    sides = _sides(project, dict.fromkeys(odd, "tip\n"), dict.fromkeys(odd, "story\n"))
    merged = merge(project.repo, *sides)
    assert len(merged.conflicts) == len(odd)
    assert "a\nb" in merged.conflicts
    assert "\\xff\\xfe" in merged.conflicts
    assert set(left_markers(project.repo, merged.tree, merged.conflicts)) == set(merged.conflicts)


def test_merge_drivers_and_filters_start_no_program(project: Project, merge: Callable[..., Merged]) -> None:
    ran = project.root.parent / "ran"
    project.write(".gitattributes", "* merge=evil filter=evil diff=evil\n")
    project.git("add", "-A")
    project.git("commit", "-qm", "attributes")
    sides = _sides(project, {"text": TEXT.replace("line 5", "tip")}, {"text": TEXT.replace("line 5", "story")})
    for key in ("merge.evil.driver", "filter.evil.clean", "filter.evil.smudge", "diff.evil.textconv", "diff.external"):
        project.git("config", key, f"touch {ran}; cat")
    project.git("config", "merge.default", "evil")
    merged = merge(project.repo, *sides)
    assert merged.conflicts == ("text",)
    assert not ran.exists()


def test_the_built_in_union_driver_of_the_tip_applies(project: Project) -> None:
    project.write(".gitattributes", "text merge=union\n")
    project.git("add", "-A")
    project.git("commit", "-qm", "attributes")
    merged = merge_onto(project.repo, *_sides(project, {"text": TEXT + "tip\n"}, {"text": TEXT + "story\n"}))
    assert merged.conflicts == ()
    assert project.in_commit(merged.tree, "text") == (TEXT + "tip\nstory\n").encode()


def test_a_change_follows_a_renamed_file(project: Project) -> None:
    sides = _sides(project, lambda: project.git("mv", "text", "moved"), {"text": TEXT + "story\n"})
    merged = merge_onto(project.repo, *sides)
    assert merged.conflicts == ()
    assert project.in_commit(merged.tree, "moved") == (TEXT + "story\n").encode()


def test_without_renames_such_a_change_is_a_conflict_and_is_not_lost(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merging, "_merge_trees", lambda *_: None)
    sides = _sides(project, lambda: project.git("mv", "text", "moved"), {"text": TEXT + "story\n"})
    merged = merge_onto(project.repo, *sides)
    assert merged.conflicts == ("text",)
    assert project.in_commit(merged.tree, "text") == (TEXT + "story\n").encode()


def test_the_base_need_not_be_an_ancestor_of_the_tip(project: Project, merge: Callable[..., Merged]) -> None:
    onto, candidate, base = _sides(project, {"new": "tip\n"}, {"text": TEXT + "story\n"})
    project.git("checkout", "-q", "--orphan", "rewritten", onto)
    project.git("commit", "-qm", "the same files, another history")
    merged = merge(project.repo, project.head(), candidate, base)
    assert merged.conflicts == ()
    assert set(_listed(project, merged.tree)) >= {"new", "text"}


def test_a_repository_with_sha256_and_a_colon_in_its_path(tmp_path: Path, git_identity: tuple[str, str]) -> None:
    project = Project(tmp_path / 'a:b"c', extra=("--object-format=sha256",))
    merged = merge_onto(project.repo, *_sides(project, {"new": "tip\n"}, {"a.txt": "story\n"}))
    assert merged.conflicts == ()
    assert len(merged.tree) == 64
    assert project.in_commit(merged.tree, "a.txt") == b"story\n"


def test_own_files_are_left_out_of_a_candidate(project: Project) -> None:
    base = project.head()
    made = _side(project, base, {"plan.json": "{}\n", "a.txt": "two\n", ".ralph/x/y": "1\n", "link": None})
    own = {"plan.json", ".ralph/x/y", "link"}
    tree = without(project.repo, made, base, own.__contains__)
    assert project.git("diff-tree", "-r", "--name-only", base, tree).split() == ["a.txt"]
    assert same_but_own(project.repo, made, tree, own.__contains__)
    assert not same_but_own(project.repo, base, tree, own.__contains__)
    assert without(project.repo, made, base, lambda _: False) == project.git("rev-parse", f"{made}^{{tree}}")


def test_an_own_file_in_the_way_of_a_folder_is_restored(project: Project) -> None:
    base = project.head()

    def edit() -> None:
        (project.root / "a.txt").unlink()
        project.write("a.txt/inside", "x\n")

    made = _side(project, base, edit)
    tree = without(project.repo, made, base, lambda path: path.startswith("a.txt"))
    assert tree == project.git("rev-parse", f"{base}^{{tree}}")


def test_a_commit_object_has_its_parents_and_no_ref(project: Project) -> None:
    onto, candidate, base = _sides(project, {"new": "tip\n"}, {"text": TEXT + "story\n"})
    refs = project.git("for-each-ref")
    merged = merge_onto(project.repo, onto, candidate, base)
    made = commit_object(project.repo, merged.tree, [onto, candidate], "feat: both\n\nRalph-Story: US-1\n")
    assert project.git("log", "-1", "--format=%P|%T|%s", made) == f"{onto} {candidate}|{merged.tree}|feat: both"
    assert project.git("for-each-ref") == refs


def test_a_kept_ref_moves_only_from_where_it_was(project: Project) -> None:
    first, second = project.git("rev-parse", "HEAD^"), project.head()
    keep_ref(project.repo, "queue/7", first)
    keep_ref(project.repo, "queue/7", first)
    with pytest.raises(MovedMeanwhile):
        keep_ref(project.repo, "queue/7", second)
    keep_ref(project.repo, "queue/7", second, old=first)
    assert project.git("rev-parse", "refs/ralph/queue/7") == second
    with pytest.raises(MovedMeanwhile):
        keep_ref(project.repo, "queue/7", "", old=first)
    keep_ref(project.repo, "queue/7", "", old=second)
    keep_ref(project.repo, "queue/7", "", old=second)
    assert project.git("for-each-ref", "refs/ralph") == ""
