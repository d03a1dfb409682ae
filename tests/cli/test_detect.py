"""`ralph detect`: one text with a sentence or JSON as the answer, or many, one JSON object a line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ralph.core.exit_codes import ExitCode
from support.cli import Completed, ralph, ralph_here

NO_TESTS = {"ran": False, "failed": False, "framework": None}
NO_LIMIT = {"limit": False, "kind": None, "resets_at": None}


def lines(cwd: Path, what: str, *given: Any) -> list[dict[str, Any]]:
    """What is no text is written as JSON."""
    text = "".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in given)
    done = ralph_here("detect", what, "--jsonl", cwd=cwd, stdin=text.encode())
    assert (done.code, done.err) == (0, "")
    return [json.loads(line) for line in done.out.splitlines()]


def detect(cwd: Path, *arguments: str, text: str) -> Completed:
    (cwd / "text").write_text(text)
    return ralph_here("detect", *arguments, "text", cwd=cwd)


def test_test_results_are_answered_line_by_line_in_order(tmp_path: Path) -> None:
    failed = {"command": "pytest -q | tail -1", "output": "1 failed, 2 passed in 0.12s", "exit_code": 0}
    passed = {"command": "go test ./...", "output": "ok  \texample.com/shop\t0.004s"}
    looked = {"command": "cat out.log", "output": "1 failed, 2 passed in 0.12s", "exit_code": 0}
    silent = {"command": "make test", "output": "", "exit_code": 2}
    assert lines(tmp_path, "tests", failed, passed, looked, silent) == [
        {"ran": True, "failed": True, "framework": "pytest"},
        {"ran": True, "failed": False, "framework": "go"},
        NO_TESTS,
        {"ran": True, "failed": True, "framework": "make"},
    ]


def test_limits_are_answered_line_by_line_in_order(tmp_path: Path) -> None:
    now = "2026-11-15T09:49:00Z"
    assert lines(
        tmp_path,
        "limit",
        {"text": "You've hit your weekly limit · resets Mon 3am (Europe/Rome)", "agent": "claude", "now": now},
        {"text": "Rate limit reached. Please try again in 2.5s", "now": 1794736140},
        {"text": "Rate limit reached. Please try again in 2.5s", "now": 1794736140000},
        {"text": "Usage limit reached, resets 3pm", "now": now, "tz": "America/New_York"},
        {"text": "Added rate limiting middleware", "now": now},
        {"text": "Credit balance is too low"},
    ) == [
        {"limit": True, "kind": "usage", "resets_at": "2026-11-16T02:00:00Z"},
        {"limit": True, "kind": "rate", "resets_at": "2026-11-15T09:49:02.500Z"},
        {"limit": True, "kind": "rate", "resets_at": "2026-11-15T09:49:02.500Z"},
        {"limit": True, "kind": "usage", "resets_at": "2026-11-15T20:00:00Z"},
        NO_LIMIT,
        {"limit": True, "kind": "billing", "resets_at": None},
    ]


BAD = ["nope", "[]", "null", "{", '"text"', "3", "{}", "[" * 5000, '{"command": 5, "output": [], "exit_code": "x"}']


@pytest.mark.parametrize(("what", "nothing"), [("tests", NO_TESTS), ("limit", NO_LIMIT)])
def test_bad_lines_are_answered_like_empty_ones(what: str, nothing: dict[str, Any], tmp_path: Path) -> None:
    assert lines(tmp_path, what, *BAD, {"text": "x", "now": 1e300, "tz": 3}) == [nothing] * (len(BAD) + 1)


@pytest.mark.parametrize("now", [True, "soon", "nan", "inf", -1, 1e300, [], None, "2026-99-99", 10**400])
def test_a_time_that_is_none_counts_as_the_clock(now: Any, tmp_path: Path) -> None:
    [found] = lines(tmp_path, "limit", {"text": "Rate limit reached, try again in 2h", "now": now})
    assert found["resets_at"] > "2026"


@pytest.mark.parametrize("code", ["1", 1, 1.0])
def test_an_exit_code_may_be_written_as_text(code: Any, tmp_path: Path) -> None:
    [found] = lines(tmp_path, "tests", {"command": "npm test", "output": "prices differ", "exit_code": code})
    assert found["failed"] is True


def test_bytes_that_are_no_text_are_read_as_far_as_they_go(tmp_path: Path) -> None:
    given = b'{"command": "pytest", "output": "\xff 1 failed in 0.1s\\n1 failed in 0.1s"}\r\n\n'
    done = ralph("detect", "tests", "--jsonl", cwd=tmp_path, stdin=given)
    assert json.loads(done.out) == {"ran": True, "failed": True, "framework": "pytest"}


def test_one_text_is_answered_with_a_sentence(tmp_path: Path) -> None:
    failing = "FAILED tests/test_a.py::test_b\n1 failed in 0.10s\n"
    assert detect(tmp_path, "tests", "--command", "pytest", text=failing).out == "tests failed (pytest)\n"
    assert detect(tmp_path, "tests", "--command", "cat x", text=failing).out == "no tests ran\n"
    assert detect(tmp_path, "tests", "--command", "npm test", "--exit-code", "0", text="").out == "tests passed (npm)\n"
    now = ["--now", "2026-11-15T09:49:00Z"]
    limit = "Usage limit reached, resets 3pm"
    assert detect(tmp_path, "limit", *now, text=limit).out == "a usage limit, until 2026-11-15T15:00:00Z\n"
    assert detect(tmp_path, "limit", *now, "--tz", "Asia/Tokyo", text=limit).out.endswith("2026-11-16T06:00:00Z\n")
    assert detect(tmp_path, "limit", text="429 Too Many Requests").out == "a rate limit, reset time unknown\n"
    assert detect(tmp_path, "limit", text="hello").out == "no limit\n"


def test_one_text_can_be_answered_in_json_and_read_from_stdin(tmp_path: Path) -> None:
    done = ralph_here(
        "detect", "tests", "--command", "go test", "--json", "-", cwd=tmp_path, stdin=b"--- FAIL: TestA\n"
    )
    assert json.loads(done.out) == {"ran": True, "failed": True, "framework": "go"}


WRONG = {
    "nothing to look for": ["detect"],
    "no file": ["detect", "tests"],
    "a file with --jsonl": ["detect", "tests", "--jsonl", "x.jsonl"],
    "a bad code": ["detect", "tests", "--exit-code", "one", "-"],
    "a bad time": ["detect", "limit", "--now", "soon", "-"],
}


@pytest.mark.parametrize("arguments", WRONG.values(), ids=WRONG)
def test_wrong_usage_says_what_to_do(arguments: list[str], tmp_path: Path) -> None:
    done = ralph_here(*arguments, cwd=tmp_path)
    assert (done.code, done.out) == (ExitCode.USAGE, "")
    assert "\n  hint: " in done.err


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    done = ralph_here("detect", "limit", "nowhere.txt", cwd=tmp_path)
    assert done.code == ExitCode.ENVIRONMENT
    assert "could not read " in done.err
