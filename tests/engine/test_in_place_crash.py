"""A loop that is killed while other versions of files are in the working tree, with proof in place, loses no work."""

from __future__ import annotations

from pathlib import Path

from support.processes import wait_for
from support.proven import CHECK, CODE, TEST, Proven, shell, write

TRIPLE = f"{CODE}\n\ndef triple(x):\n    return 3 * x\n"
TEST_TRIPLE = f"from shop import triple\n\n{TEST}assert triple(2) == 6\n"


def test_a_kill_while_old_tests_are_in_place_keeps_the_new_ones(tmp_path: Path) -> None:
    """The check hangs when it finds the tests as they were."""
    armed, reached = tmp_path / "armed", tmp_path / "reached"
    hangs = f"if [ -e {armed} ] && ! grep -q triple tests/test_shop.py; then touch {reached}; exec sleep 60; fi"
    project = Proven(tmp_path, checks=[{"name": "tests", "command": f"{hangs}; {CHECK}"}])
    work = [shell(f"touch {armed}"), write("src/shop.py", TRIPLE), write("tests/test_shop.py", TEST_TRIPLE)]

    loop = project.start("-n", "1", US_001=[[*work, {"claim": "done"}]])
    try:
        wait_for(reached.exists)
    finally:
        loop.kill()
        loop.wait()
    assert project.read("tests/test_shop.py") == TEST  # as the kill left it
    armed.unlink()
    project.write("notes.txt", "written by a person after the crash\n")

    project.run("-n", "1", US_001=[[{"say": "nothing to do"}]])

    (ref,) = project.git("for-each-ref", "--format=%(refname)", "refs/ralph/rescue").splitlines()
    assert project.git("show", f"{ref}:tests/test_shop.py") + "\n" == TEST_TRIPLE
    assert project.git("show", f"{ref}:src/shop.py") + "\n" == TRIPLE
    assert project.read("tests/test_shop.py") == TEST
    assert project.read("src/shop.py") == CODE


def test_a_forged_rescue_ref_does_not_stop_a_rollback(tmp_path: Path) -> None:
    """An agent knows the name of its run, and can write a ref that looks like the loop's own."""
    project = Proven(tmp_path)
    subject = "ralph: work before its checks ran against other versions of files"
    forge = f"""c=$(git -c user.name=a -c user.email=a@b commit-tree -p HEAD -m '{subject}' -m 'not json' HEAD^{{tree}})
git update-ref refs/ralph/rescue/$RALPH_RUN/1 $c"""
    broken = [shell(forge), write("src/shop.py", "broken\n"), {"claim": "done"}]
    done = project.run("-n", "1", US_001=[broken])
    assert "rejected US-001" in done.out
    assert project.read("src/shop.py") == CODE
