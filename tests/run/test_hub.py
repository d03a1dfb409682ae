"""The hub: every attempt on a ref of its own, created once; nothing is deleted that is not elsewhere."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ralph.core.errors import SetupError, UsageError
from ralph.host.git.repo import Repo, identify
from ralph.run import hub
from ralph.run.hub import Exists, Hub, open_hub

pytestmark = pytest.mark.usefixtures("git_identity")
RUN = "20260115-093012-ab12"


def git(folder: Path, *args: str) -> str:
    done = subprocess.run(["git", *args], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def commit(folder: Path, name: str) -> str:
    (folder / name).write_text(name)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", name)
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q")
    commit(folder, "first")
    return identify(folder)


@pytest.fixture
def bare(repo: Repo) -> Hub:
    return open_hub(repo.root, "", os.environ)


def worker(bare: Hub, repo: Repo, folder: Path) -> Path:
    tip = git(repo.root, "rev-parse", "HEAD")
    hub.offer(repo, bare, RUN, tip)
    folder.mkdir()
    git(folder, "init", "-q")
    hub.get(folder, bare, RUN, tip)
    git(folder, "checkout", "-q", tip)
    return folder


def test_work_travels_from_a_worker_to_the_run(repo: Repo, bare: Hub, tmp_path: Path) -> None:
    clone = worker(bare, repo, tmp_path / "w1")
    assert (clone / "first").read_text() == "first"
    made = commit(clone, "second")
    ref = hub.publish(clone, bare, RUN, "1-1", made)

    assert hub.published(bare, RUN, repo.root) == {"1-1": made}
    hub.fetch(repo, bare, ref, made)
    assert git(repo.root, "rev-parse", ref) == made
    assert git(repo.root, "branch", "--format=%(refname)") == git(repo.root, "symbolic-ref", "HEAD")


def test_an_attempt_is_never_overwritten(repo: Repo, bare: Hub, tmp_path: Path) -> None:
    first, second = worker(bare, repo, tmp_path / "w1"), worker(bare, repo, tmp_path / "w2")
    made, late = commit(first, "mine"), commit(second, "late")
    hub.publish(first, bare, RUN, "1-1", made)
    with pytest.raises(Exists, match=made[:12]):
        hub.publish(second, bare, RUN, "1-1", late)
    further = commit(first, "further")  # not even by a fast-forward
    with pytest.raises(Exists):
        hub.publish(first, bare, RUN, "1-1", further)
    assert hub.published(bare, RUN, repo.root) == {"1-1": made}
    hub.publish(first, bare, RUN, "1-1", made)  # the same push again, after a lost answer


def test_cleaning_keeps_what_the_repository_does_not_have(repo: Repo, bare: Hub, tmp_path: Path) -> None:
    clone = worker(bare, repo, tmp_path / "w1")
    fetched, forgotten = commit(clone, "fetched"), commit(clone, "forgotten")
    ref = hub.publish(clone, bare, RUN, "1-1", fetched)
    hub.publish(clone, bare, RUN, "2-1", forgotten)
    other = hub.publish(clone, bare, "20260115-100000-cd34", "1-1", forgotten)
    hub.fetch(repo, bare, ref, fetched)

    assert hub.clean(repo, bare, RUN) == (hub.attempt_ref(RUN, "2-1"),)
    assert hub.published(bare, RUN, repo.root) == {"2-1": forgotten}
    assert git(Path(bare.url), "rev-parse", other) == forgotten


def test_a_tree_travels_too(repo: Repo, bare: Hub, tmp_path: Path) -> None:
    clone = worker(bare, repo, tmp_path / "w1")
    tree = git(repo.root, "rev-parse", f"{commit(repo.root, 'more')}^{{tree}}")
    hub.offer(repo, bare, RUN, tree)
    hub.get(clone, bare, RUN, tree)
    assert git(clone, "ls-tree", "--name-only", tree).split() == ["first", "more"]


def test_rescued_work_travels_too(repo: Repo, bare: Hub, tmp_path: Path) -> None:
    clone = worker(bare, repo, tmp_path / "w1")
    hub.publish_rescue(clone, bare, RUN, "worker-run")  # there is nothing yet
    made = commit(clone, "rejected")
    git(clone, "update-ref", "refs/ralph/rescue/abc/1", made)
    hub.publish_rescue(clone, bare, RUN, "worker-run")
    hub.fetch_rescue(repo, bare, RUN, "worker-run")
    assert git(repo.root, "rev-parse", "refs/ralph/rescue/abc/1") == made


def test_the_hub_of_the_user_is_used(repo: Repo, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", "theirs.git")
    bare = open_hub(repo.root, str(tmp_path / "theirs.git"), os.environ)
    clone = worker(bare, repo, tmp_path / "w1")
    hub.publish(clone, bare, RUN, "1-1", commit(clone, "second"))
    refs = git(tmp_path / "theirs.git", "for-each-ref", "--format=%(refname)").splitlines()
    assert refs
    assert all(ref.startswith("refs/ralph/") for ref in refs)


def test_a_url_is_not_taken_for_a_folder(repo: Repo, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", "theirs.git")
    bare = open_hub(repo.root, f"file://{tmp_path}/theirs.git", os.environ)
    assert not bare.is_local
    clone = worker(bare, repo, tmp_path / "w1")
    made = commit(clone, "second")
    hub.publish(clone, bare, RUN, "1-1", made)
    assert hub.published(bare, RUN, repo.root) == {"1-1": made}
    assert not hub.is_path("head:hub.git")
    assert hub.is_path("../hub.git")


@pytest.mark.parametrize("name", ["../x", "a/b", "", "-x", "x" * 101, "x.lock"])
def test_names_are_parts_of_refs(name: str) -> None:
    with pytest.raises(SetupError, match="part of a ref"):
        hub.attempt_ref(RUN, name)


def test_a_folder_with_other_files_is_refused(repo: Repo, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a bare git repository"):
        open_hub(repo.root, str(repo.root), os.environ)


def test_a_hub_that_cannot_be_reached_is_named_without_its_password(repo: Repo, tmp_path: Path) -> None:
    gone = Hub("https://ada:hunter2@127.0.0.1:1/x.git")
    with pytest.raises(SetupError) as raised:
        hub.offer(repo, gone, RUN, git(repo.root, "rev-parse", "HEAD"))
    assert "hunter2" not in f"{raised.value} {raised.value.hint}"
