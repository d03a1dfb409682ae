"""Protected files: whatever an agent does to them, the checks that decide see them as they were."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from ralph.core.verdict import Kind
from support.proven import CODE, TEST, Proven, shell, write

WRONG = write("src/shop.py", "def double(x):\n    return x\n")
RIGHT = write("src/shop.py", CODE + "\n\ndef triple(x):\n    return 3 * x\n")
EASY = write("tests/test_shop.py", "assert True\n")
RESCUE = re.compile(r"refs/ralph/rescue/\S+-protected")
COMMIT = "git -c user.name=a -c user.email=a@b commit -qam mine"


def shop(folder: Path, *patterns: str, **config: Any) -> Proven:
    return Proven(folder, protected=list(patterns or ["tests/**"]), **config)


def saved(made: Proven) -> str:
    """The one place that the people are told of."""
    found: set[str] = {ref for ended in made.ended() for notice in ended.notices for ref in RESCUE.findall(notice)}
    assert len(found) == 1, [ended.notices for ended in made.ended()]
    return found.pop()


def test_an_edited_test_is_put_back_before_the_checks_and_finds_the_lie_out(tmp_path: Path) -> None:
    made = shop(tmp_path, tamper="off")
    made.run(US_001=[[EASY, WRONG, "claim"], [RIGHT, "claim"]])
    first, second = made.ended()
    assert (first.kind, second.kind) == (Kind.REJECTED, Kind.ACCEPTED)
    assert "'tests' failed" in first.headline
    assert "restored protected files: tests/test_shop.py" in first.feedback
    assert made.read("tests/test_shop.py") == TEST
    assert made.git("show", f"{saved(made)}:tests/test_shop.py") == "assert True"


def test_sound_work_beside_it_is_accepted_without_it(tmp_path: Path) -> None:
    made = shop(tmp_path)
    assert made.run(US_001=[[EASY, RIGHT, "claim"]]).code == 0
    (only,) = made.ended()
    assert only.kind is Kind.ACCEPTED
    assert made.read("tests/test_shop.py") == TEST
    assert made.git("show", "--format=", "--name-only", only.commit).splitlines()[-1] == "src/shop.py"
    assert made.is_clean()
    assert "the agent's version is in" in made.ask("log").out


DOINGS = {
    "deleted": shell("rm tests/test_shop.py"),
    "a folder deleted": shell("rm -r tests"),
    "a link": shell("rm tests/test_shop.py && ln -s /dev/null tests/test_shop.py"),
    "a folder as a link": shell("mv tests elsewhere && ln -s elsewhere tests"),
    "a folder for a file": shell("rm tests/test_shop.py && mkdir tests/test_shop.py && echo x > tests/test_shop.py/x"),
    "rights": shell("chmod 755 tests/test_shop.py && chmod 500 tests"),
    "a repository": shell("git init -q tests/inner && echo 1 > tests/inner/conftest.py"),
    "hidden": shell("echo conftest.py >> .gitignore && echo 1 > tests/conftest.py"),
    "new": write("tests/deep/er/conftest.py", "raise SystemExit(0)\n"),
}


@pytest.mark.parametrize(
    ("doing", "commits"), [*((doing, False) for doing in DOINGS), ("a folder as a link", True), ("new", True)]
)
def test_deleted_added_linked_and_replaced_files_are_as_before(tmp_path: Path, doing: str, commits: bool) -> None:
    made = shop(tmp_path, "tests")
    before = made.git("ls-files", "--stage", "tests")
    own = [shell(f"git add -A && {COMMIT}")] if commits else []
    made.run(US_001=[[DOINGS[doing], RIGHT, *own, "claim"]])
    (only,) = made.ended()
    assert only.kind is Kind.ACCEPTED, only
    assert made.git("ls-files", "--stage", "tests") == before
    assert made.git("ls-tree", "-r", "--format=%(objectmode) %(objectname) 0\t%(path)", "HEAD", "tests") == before
    assert not made.git("status", "--porcelain", "--ignored", "--", "tests")
    assert saved(made)


def test_what_the_agent_committed_of_them_is_taken_back_by_a_commit(tmp_path: Path) -> None:
    made = shop(tmp_path)
    made.run(US_001=[[EASY, RIGHT, shell(COMMIT), "claim"]])
    assert made.ended()[0].kind is Kind.ACCEPTED
    assert made.git("show", "HEAD:tests/test_shop.py") == TEST.rstrip()
    assert "triple" in made.git("show", "HEAD:src/shop.py")
    assert made.is_clean()


def test_a_change_of_nothing_but_protected_files_is_no_change(tmp_path: Path) -> None:
    made = shop(tmp_path)
    made.run("-n", "1", US_001=[[EASY, "claim"]])
    assert "no files changed" in made.ended()[0].headline
    assert made.ended()[0].kind is Kind.REJECTED


def test_code_that_rewrites_a_protected_file_while_the_checks_run_is_rejected(tmp_path: Path) -> None:
    made = shop(tmp_path, "tests/data")
    sly = write("src/shop.py", CODE + "open('tests/data/prices.txt', 'w').write('0')\n")
    made.run("-n", "1", US_001=[[sly, "claim"]])
    (only,) = made.ended()
    assert only.kind is Kind.REJECTED
    assert "changed while the checks ran: tests/data/prices.txt" in only.headline
    assert made.read("tests/data/prices.txt") == "1\n2\n"


def test_claims_are_never_protected(tmp_path: Path) -> None:
    made = shop(tmp_path, ".ralph/**", "*")
    made.run("-n", "1", US_001=[["claim"]])
    assert "no files changed" in made.ended()[0].headline


def test_a_review_that_touches_them_is_undone_as_a_whole(tmp_path: Path) -> None:
    made = shop(tmp_path, review={"enabled": True})
    good = {"implement": [RIGHT, "claim"], "review": [EASY, {"verdict": {"what": "approved", "by": "request"}}]}
    made.run("-n", "2", US_001=[good])
    assert [ended.kind for ended in made.ended()] == [Kind.ACCEPTED, Kind.REJECTED], made.ended()[-1]
    assert made.read("tests/test_shop.py") == TEST


def test_where_one_cannot_be_put_back_nothing_is_kept(tmp_path: Path) -> None:
    """A submodule is a repository of its own, and the loop does not move its commits."""
    made = shop(tmp_path, "vendor")
    other = tmp_path / "other"
    made.git("init", "-q", "-b", "main", str(other))
    made.git("-C", str(other), "commit", "-q", "--allow-empty", "-m", "one")
    made.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other), "vendor")
    made.git("commit", "-qam", "a submodule")
    moved = shell("cd vendor && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m two")
    made.run("-n", "1", US_001=[[moved, RIGHT, "claim"]])
    (only,) = made.ended()
    assert only.kind is Kind.REJECTED
    assert only.headline.startswith("vendor is protected and could not be restored")
    assert made.read("src/shop.py") == CODE
