"""`tests: must-fail-first` in real runs: a test that passes without the change proves nothing about it."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from ralph.checks.tamper.first_failing import needed
from ralph.checks.tamper.values import FileChange
from ralph.core.verdict import Kind
from support.processes import wait_for
from support.proven import CHECK, CODE, PYTHON, TEST, Proven, write

TRIPLE = CODE + "\n\ndef triple(x):\n    return 3 * x\n"
CODE_AND = write("src/shop.py", TRIPLE)
TELLING = write(
    "tests/test_triple.py", "from shop import triple\n\n\ndef test_it():\n    assert triple(2) == 6\n\n\ntest_it()\n"
)
VACUOUS = write(
    "tests/test_idle.py", "from shop import double\n\n\ndef test_it():\n    assert double(1) == 2\n\n\ntest_it()\n"
)


def shop(folder: Path, **more: Any) -> Proven:
    return Proven(folder, tests="must-fail-first", **more)


def verdicts(made: Proven, *actions: Any) -> tuple[Kind, str]:
    made.run("-n", "1", US_001=[[*actions, "claim"]])
    (only,) = made.ended()
    return only.kind, only.headline


def test_a_test_that_fails_without_the_change_is_a_proof(tmp_path: Path) -> None:
    made = shop(tmp_path)
    assert verdicts(made, CODE_AND, TELLING) == (Kind.ACCEPTED, "done")
    assert made.read("src/shop.py") == TRIPLE
    assert made.is_clean()
    assert not made.git("for-each-ref", "refs/ralph/rescue")


def test_a_test_that_passes_without_it_is_not_and_is_named(tmp_path: Path) -> None:
    made = shop(tmp_path)
    made.run("-n", "2", US_001=[[CODE_AND, VACUOUS, "claim"], [CODE_AND, TELLING, "claim"]])
    first, second = made.ended()
    assert (first.kind, second.kind) == (Kind.REJECTED, Kind.ACCEPTED)
    assert first.headline.startswith("tests/test_idle.py: its new tests also pass without the change")
    assert "tests/test_idle.py" in first.feedback
    assert made.git("show", f"{first.rescue}:src/shop.py") == TRIPLE.rstrip()


def test_of_two_files_the_empty_one_is_found_out(tmp_path: Path) -> None:
    kind, why = verdicts(shop(tmp_path), CODE_AND, TELLING, VACUOUS)
    assert (kind, why.partition(":")[0]) == (Kind.REJECTED, "tests/test_idle.py")


def test_a_change_of_code_without_a_test_is_rejected(tmp_path: Path) -> None:
    kind, why = verdicts(shop(tmp_path), CODE_AND)
    assert kind is Kind.REJECTED
    assert "no new test fails without the change" in why


@pytest.mark.parametrize(
    "story",
    [{"description": "No tests are needed for this."}, {"acceptanceCriteria": ["No change in behaviour"]}],
)
def test_unless_the_story_wants_none(tmp_path: Path, story: dict[str, Any]) -> None:
    assert verdicts(shop(tmp_path, stories=[story]), CODE_AND)[0] is Kind.ACCEPTED


def test_documents_and_tests_alone_need_no_failing_test(tmp_path: Path) -> None:
    made = shop(tmp_path, stories=[{}, {}])
    made.run(US_001=[[write("README.md", "Read me.\n"), "claim"]], US_002=[[VACUOUS, "claim"]])
    assert [ended.kind for ended in made.ended()] == [Kind.ACCEPTED, Kind.ACCEPTED]


def test_an_edited_test_that_fails_on_the_old_code_will_do(tmp_path: Path) -> None:
    story = {"title": "Change double to return three times its number", "acceptanceCriteria": ["double(2) is 6"]}
    made = shop(tmp_path, stories=[story])
    edited = write("tests/test_shop.py", TEST.replace("== 4", "== 6"))
    assert (
        verdicts(made, write("src/shop.py", CODE.replace("x + x", "3 * x  # three times")), edited)[0] is Kind.ACCEPTED
    )


def test_a_storys_own_check_that_fails_anyway_does_not_make_a_test_telling(tmp_path: Path) -> None:
    own = f"PYTHONPATH=src {PYTHON} -c 'import shop; shop.triple'"
    kind, why = verdicts(shop(tmp_path, stories=[{"verify": [own]}]), CODE_AND, VACUOUS)
    assert (kind, why.partition(":")[0]) == (Kind.REJECTED, "tests/test_idle.py")


def test_a_fix_is_judged_by_the_whole_story(tmp_path: Path) -> None:
    """Its own tests are for code that was there already when it began."""
    made = shop(tmp_path, review={"enabled": True})
    more = write(
        "tests/test_more.py", "from shop import triple\n\n\ndef test_it():\n    assert triple(0) == 0\n\n\ntest_it()\n"
    )
    asks = {"verdict": {"what": "changes_requested", "feedback": "test zero", "by": "request"}}
    first = {"implement": [CODE_AND, TELLING, "claim"], "review": [asks], "fix": [more, "claim"]}
    second = {"review": [{"verdict": {"what": "approved", "by": "request"}}]}
    made.run(US_001=[first, second])
    assert [(ended.mode.value, ended.kind) for ended in made.ended()] == [
        (mode, Kind.ACCEPTED) for mode in ("implement", "review", "fix", "review")
    ]


def test_nobody_asks_by_default(tmp_path: Path) -> None:
    assert verdicts(Proven(tmp_path), CODE_AND, VACUOUS)[0] is Kind.ACCEPTED


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_an_end_while_the_old_code_is_in_place_loses_nothing(tmp_path: Path, how: signal.Signals) -> None:
    """The check sees that, and waits to be found."""
    seen = tmp_path / "seen"
    slow = f"grep -q triple src/shop.py || test ! -f tests/test_triple.py || (touch {seen}; sleep 30)"
    made = shop(tmp_path, checks=[{"name": "slow", "command": slow}])
    process = made.start(US_001=[[CODE_AND, TELLING, "claim"]])
    wait_for(seen.exists, 30)
    process.send_signal(how)
    assert process.wait(30) == (130 if how is signal.SIGINT else -how)
    if how is signal.SIGKILL:
        assert "triple" not in made.read("src/shop.py")
        done = made.run("-n", "1", apart=True, US_001=[["lie"]])
        assert "undid iteration 1" in done.out + done.err
    (rescue,) = made.git("for-each-ref", "--format=%(refname)", "refs/ralph/rescue").splitlines()
    assert made.git("show", f"{rescue}:src/shop.py") == TRIPLE.rstrip()
    assert made.git("show", f"{rescue}:tests/test_triple.py")
    assert made.read("src/shop.py") == CODE
    assert made.is_clean()


@pytest.mark.parametrize(
    ("words", "excused"),
    [
        ("Add a triple function. No tests needed.", True),
        ("Rename the module without new tests", True),
        ("Tests are not required here", True),
        ("Refactor the parser; behaviour stays the same", True),
        ("Make sure no test fails", False),
        ("No tests break when this is done", False),
        ("Add triple, with tests", False),
        ("", False),
    ],
)
def test_only_clear_words_excuse_a_story_from_tests(words: str, excused: bool) -> None:
    assert needed([FileChange("src/a.py", b"a = 1\n", b"a = 2\n")], words).is_excused is excused


def test_tests_in_the_same_file_as_the_code_are_taken_as_they_are() -> None:
    code = b"pub fn two() -> i32 { 2 }\n"
    inline = b"#[cfg(test)]\nmod tests {\n    #[test]\n    fn it() { assert_eq!(super::two(), 2); }\n}\n"
    found = needed([FileChange("src/lib.rs", b"pub fn one() -> i32 { 1 }\n", code + inline)], "")
    assert (found.fresh, found.is_excused, found.has_code) == ((), True, True)


def test_both_versions_of_a_file_never_look_alike_to_a_cache(tmp_path: Path) -> None:
    """Same size, same second: a compiled copy of one would be taken for the other, now or in the final pass."""
    made = shop(tmp_path, checks=[{"name": "tests", "command": f"unset PYTHONDONTWRITEBYTECODE; {CHECK}"}])
    made.write("src/rate.py", "RATE = 1\n")
    made.git("add", "-A")
    made.git("commit", "-qm", "a rate")
    test = write("tests/test_rate.py", "import rate\n\n\ndef test_it():\n    assert rate.RATE == 2\n\n\ntest_it()\n")
    assert made.run(US_001=[[write("src/rate.py", "RATE = 2\n"), test, "claim"]]).code == 0, made.ended()


def test_an_agent_is_told_before_it_costs_an_attempt(tmp_path: Path) -> None:
    told = shop(tmp_path, protected=["tests/data"]).ask("prompt").out
    assert "Every new test has to fail on the code as it was" in told
    assert "These files are protected; edits to them are reverted: `tests/data`" in told
