"""Which acceptance tests are usable, and what is reported when hidden ones fail."""

from __future__ import annotations

from ralph.config.checks import ChosenCheck
from ralph.core.evidence import CheckResult
from ralph.core.proof import Tests
from ralph.proof.acceptance import Trial, concealed, examine, not_run
from ralph.proof.values import Ran

PATH = "tests/test_acceptance.py"
FILES = {PATH: b"import shop\n\n\ndef test_a():\n    expected = 40 + 2\n    assert shop.answer() == expected\n"}


def trial(
    names: dict[str, str],
    *,
    before: dict[str, str] | None = None,
    red: bool = True,
    tail: str = "",
    old_red: bool = False,
) -> Trial:
    result = CheckResult(name="t", command="run", passed=not red, tail=tail, failed_before=old_red)
    return Trial(
        ChosenCheck("t", "run"),
        Tests("pytest", names=before or {}),
        Ran(result, Tests("pytest" if names else "", names=names)),
    )


def test_new_tests_that_fail_are_good() -> None:
    found = examine(FILES, [trial({f"{PATH}::test_a": "failed", "x::y": "passed"}, before={"x::y": "passed"})])
    assert found.tests == (f"{PATH}::test_a",)
    assert not found.objections


def test_one_test_that_passes_already_is_named() -> None:
    found = examine(FILES, [trial({f"{PATH}::test_a": "failed", f"{PATH}::test_b": "passed"})])
    assert found.objections == (f"already passes although the story is not implemented: {PATH}::test_b",)


def test_without_names_the_check_has_to_turn_red() -> None:
    assert examine(FILES, [trial({})]).tests == (PATH,)
    assert "does not fail with" in examine(FILES, [trial({}, red=False)]).objections[0]
    assert examine(FILES, [trial({}, old_red=True)]).objections, "it was red before: nothing shows that the tests fail"


def test_with_names_a_check_that_was_red_before_does_not_matter() -> None:
    names = {f"{PATH}::test_a": "failed", "x::y": "failed"}
    assert examine(FILES, [trial(names, before={"x::y": "failed"}, old_red=True)]).tests == (f"{PATH}::test_a",)


def test_an_error_of_the_test_itself_is_refused() -> None:
    assert "error of its own" in examine({PATH: b"def x(:\n"}, [trial({PATH: "failed"})]).objections[0]
    js = {"test/acceptance.test.js": b"test('a', () => {"}
    found = examine(js, [trial({}, tail="SyntaxError: Unexpected end of input")])
    assert "error of their own: SyntaxError: Unexpected end" in found.objections[0]


def test_a_file_that_no_check_runs_is_named() -> None:
    files = FILES | {"tests/sub/test_other.py": b"def test_b():\n    assert 0\n"}
    assert examine(files, [trial({f"{PATH}::test_a": "failed"})]).objections == (
        "no check runs tests/sub/test_other.py",
    )


def test_a_hidden_failure_is_reported_without_its_code() -> None:
    tail = f"""
    def test_a():
        expected = 40 + 2
>       assert shop.answer() == expected
E       assert 41 == 42
E        +  where 41 = <function answer at 0x7f>()
{PATH}:6: AssertionError
FAILED {PATH}::test_a - assert 41 == 42
1 failed in 0.01s"""
    result = CheckResult(name="t", command="run", passed=False, tail=tail, output="/state/checks/1.txt")
    told = concealed(result, Tests("pytest", names={f"{PATH}::test_a": "failed", "x": "passed"}), FILES)
    assert f"- {PATH}::test_a" in told.tail
    assert "E       assert 41 == 42" in told.tail
    assert not told.output
    for line in FILES[PATH].decode().splitlines()[3:]:
        assert line.strip() not in told.tail


def test_acceptance_tests_that_no_longer_run_are_noticed() -> None:
    wanted = (f"{PATH}::test_a",)
    assert not_run(wanted, FILES, {"run": Tests("pytest", names={"x::y": "passed"})})
    assert not_run(wanted, FILES, {"run": Tests("pytest", names={wanted[0]: "skipped"})})
    assert not not_run(wanted, FILES, {"run": Tests("pytest", names={wanted[0]: "passed"})})
    assert not not_run((PATH,), FILES, {"run": Tests("pytest", names={wanted[0]: "passed"})}), "it failed to import"
    assert not not_run(wanted, FILES, {"run": Tests()}), "without names nobody can tell"
