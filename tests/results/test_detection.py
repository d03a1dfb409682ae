"""Test results recognised from a command and its output: a corpus of real and written outputs, and the traps.

Each line of `corpus/*.jsonl` has a command, its output, its exit code and what is true about it. `real_*` was
recorded from the frameworks themselves, `written` and `traps` by hand, `unseen*` to break what was there by then.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ralph.results.detection import Found, detect
from ralph.results.parts import split
from ralph.results.programs import roles

Case = dict[str, Any]

CORPUS = Path(__file__).parent / "corpus"
CASES: list[Case] = [
    json.loads(line) | {"file": path.stem}
    for path in sorted(CORPUS.glob("*.jsonl"))
    if not path.stem.startswith("limits")
    for line in path.read_text().split("\n")
    if line
]


def found(case: Case, **changes: Any) -> Found:
    case = case | changes
    return detect(case["command"], case["output"], case.get("exit_code"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['file']}/{case['name']}")
def test_the_corpus_is_read_right(case: Case) -> None:
    result = found(case)
    assert (result.ran, result.failed) == (case["ran"], case["failed"])
    if "framework" in case:
        assert result.framework == case["framework"]
    assert result.framework or not result.ran or "framework" not in case


def test_the_corpus_is_large_and_has_both_sides() -> None:
    assert len(CASES) >= 400
    assert len({(case["file"], case["name"]) for case in CASES}) == len(CASES)
    assert sum(case["failed"] for case in CASES) > 150
    assert sum(not case["failed"] for case in CASES) > 150
    assert not [case["name"] for case in CASES if case["failed"] and not case["ran"]]


def test_without_exit_codes_most_failures_are_found_and_nothing_is_made_up() -> None:
    """A hook is not always told the code."""
    failures = [case for case in CASES if case["failed"]]
    missed = [case["name"] for case in failures if not found(case, exit_code=None).failed]
    assert len(missed) <= 0.05 * len(failures), missed
    alarms = [case["name"] for case in CASES if not case["failed"] and found(case, exit_code=None).failed]
    assert len(alarms) <= 0.01 * len(CASES), alarms


FAILING = [case for case in CASES if case["failed"] and case["file"].startswith("real")][::7]
READERS = ["cat out.log", "grep -n . out.log", "git show HEAD:out.log", "rg . out.log", "tail -n 500 out.log", "less x"]


@pytest.mark.parametrize("reader", READERS)
def test_the_same_words_shown_by_a_reader_are_no_test_run(reader: str) -> None:
    assert [case["name"] for case in FAILING if found(case, command=reader, exit_code=0).ran] == []


def _is_simple(case: Case) -> bool:
    return not any(mark in case["command"] for mark in "|;&<>$\n")


TOLD_BY_OUTPUT = [case for case in FAILING if found(case, exit_code=None).failed and _is_simple(case)]
HIDDEN = ["{} || true", "{}; true", "{} 2>&1 | tail -500", "({}) | cat", "{} | tee log.txt", "bash -c '{}' ; echo done"]


@pytest.mark.parametrize("hidden", HIDDEN)
def test_a_hidden_exit_code_hides_no_failure(hidden: str) -> None:
    cases = [case for case in TOLD_BY_OUTPUT if "'" not in case["command"]]
    assert len(cases) > 10
    missed = [
        case["name"] for case in cases if not found(case, command=hidden.format(case["command"]), exit_code=0).failed
    ]
    assert missed == []


WRAPPED = [
    "cd web && {}",
    "CI=1 timeout 300 {}",
    "time {}",
    "sudo -u dev {}",
    "docker compose exec -T web {}",
    "env FOO=1 nice -n 5 {}",
    "bash -lc '{}'",
    "set -e; {}",
]


@pytest.mark.parametrize("wrapped", WRAPPED)
def test_a_wrapper_changes_nothing(wrapped: str) -> None:
    cases = [case for case in CASES if _is_simple(case) and case["ran"] and "'" not in case["command"]][::9]
    cases = [case for case in cases if not case["command"].startswith(("cd ", "make", "npm", "yarn", "pnpm"))]
    wrong = {
        case["name"]: result
        for case in cases
        if (result := found(case, command=wrapped.format(case["command"]))).failed != case["failed"] or not result.ran
    }
    assert wrong == {}


def test_colours_and_line_ends_change_nothing() -> None:
    for case in CASES[::5]:
        lines = case["output"].split("\n")
        painted = "\n".join(f"\x1b[1;31m{line}\x1b[0m" if line else line for line in lines)
        assert found(case, output=painted).failed == case["failed"], case["name"]
        assert found(case, output="\r\n".join(lines)).failed == case["failed"], case["name"]


@pytest.mark.parametrize(
    "prefix", ["web:test: ", "@acme/web: ", "[web] ", "packages/web test: ", "test-1  | ", "2026-03-03T10:00:00.123Z "]
)
def test_a_monorepo_prefix_changes_nothing(prefix: str) -> None:
    cases = [case for case in CASES if case["command"] == "npm test" and case["output"].count("\n") > 5]
    assert len(cases) > 5
    for case in cases:
        output = "\n".join(prefix + line for line in case["output"].split("\n"))
        assert found(case, output=output, exit_code=None).failed == found(case, exit_code=None).failed, case["name"]


def test_the_code_that_a_client_puts_before_the_output_counts() -> None:
    assert detect("pytest -q", "Exit code 5\n\nno tests ran in 0.01s", 1).ran is False
    assert detect("npm test", "Exit code 127\nsh: 1: jest: not found", 1).ran is False
    assert detect("./run_tests.sh", "Exit code 3\nprices differ", 1).failed is True


# --- the shell --------------------------------------------------------------------------------------------------------

LINES = {
    "a && b || c; d | e & f": [("a", ";"), ("b", "&&"), ("c", "||"), ("d", ";"), ("e", "|"), ("f", "&")],
    "echo 'a; b' \"c && d\" e\\;f": [("echo", ";")],
    "if t; then a; else b; fi": [("t", ";"), ("a", "&&"), ("b", "||")],
    "(cd x && t) || true": [("cd", ";"), ("t", "&&"), ("true", "||")],
    "t > out 2>&1 < in; cat out": [("t", ";"), ("cat", ";")],
    "cat <<EOF\nnpm test; pytest\nEOF\nls": [("cat", ";"), ("ls", ";")],
    "x=$(t | u); echo $x": [("t", "$"), ("u", "|"), ("x=$()", ";"), ("echo", ";")],
    "# npm test\nls # pytest": [("ls", ";")],
    "a \\\n  b\nc": [("a", ";"), ("c", ";")],
    "a &> log": [("a", ";")],
    "diff <(a) <(b)": [("a", "$"), ("b", "$"), ("diff", ";")],
    "for d in a b; do t; done | tail": [("for", ";"), ("t", ";"), ("tail", "|")],
    "if a; then t; elif b; then u; else c; fi": [("a", ";"), ("b", ";"), ("t", "&&"), ("u", "||"), ("c", "||")],
    'case "$(a)" in x) t;; *) u;; esac': [("a", "$"), ("[", ";"), ("t", "&&"), ("u", "||")],
    "while a; do t; done; b": [("a", ";"), ("t", ";"), ("b", ";")],
    "f() { t; }; f": [("t", ";"), ("f", ";")],
    "[ -f x ] && t &\nu": [("[", ";"), ("t", "&&"), ("u", "&")],
    "a && t 'x; b": [("a", ";"), ("t", ";"), ("b", ";")],  # a shell would refuse it
}


@pytest.mark.parametrize("line", LINES)
def test_a_command_line_is_cut_into_its_commands(line: str) -> None:
    assert [(part.words[0], part.joint) for part in split(line)] == LINES[line]


def test_a_negated_command_and_one_in_a_loop_are_known() -> None:
    assert [part.is_negated for part in split("! t | a && if ! u; then b; fi")] == [True, False, True, False]
    assert [part.in_loop for part in split("while a; do t; done; b")] == [False, True, False]


ROLES = {
    "npx jest": "test",
    "npx jest@29 --ci": "test",
    "node_modules/.bin/vitest run": "test",
    "node --experimental-vm-modules node_modules/jest/bin/jest.js": "test",
    "python3.12 -W error -m pytest": "test",
    "uv run --frozen pytest -x": "test",
    "uv run -m pytest": "test",
    "poetry run python -m unittest": "test",
    "hatch run test": "test",
    "npm --prefix web run test:unit -- --run": "test",
    "yarn workspace @acme/web test": "test",
    "yarn workspaces foreach -A run test": "test",
    "pnpm -r --filter web test": "test",
    "pnpm vitest run": "test",
    "cargo +nightly test --workspace": "test",
    "go test ./...": "test",
    "make -C build test": "test",
    "./gradlew :app:testDebugUnitTest": "test",
    "mvn -q verify": "test",
    "docker run --rm -v .:/src image pytest": "test",
    "kubectl exec pod -- npm test": "test",
    "ssh host 'cd /srv && npm test'": "test",
    "docker exec -it web bash -lc 'cd /srv && npm test'": "test",
    "docker exec -it web bash -lc 'cat test.log'": "look",
    "./scripts/test": "test",
    "bash run-tests.sh": "test",
    "timeout -k 5 60s make test": "test",
    "nx affected -t test": "test",
    "turbo run build test": "test",
    "bundle exec rake spec": "test",
    "dotnet test --no-build": "test",
    "test -f x": "trivial",
    "[ -f x ]": "trivial",
    "npm run test:types": "other",
    "npm run lint": "other",
    "eslint tests": "other",
    "npm install": "other",
    "pip install pytest": "other",
    "cargo clippy --tests": "other",
    "go build ./...": "other",
    "git diff tests/": "look",
    "grep -r test .": "look",
    "docker compose logs test": "look",
    "pytest --collect-only": "listing",
    "go test -list . ./...": "listing",
    "cargo nextest list": "listing",
    "make -n test": "listing",
    "npm run build": "unknown",
    "git commit -m test": "unknown",
    "python manage.py migrate": "unknown",
    "mvn package -DskipTests": "other",
}


@pytest.mark.parametrize("command", ROLES)
def test_what_a_command_is(command: str) -> None:
    assert roles(command)[-1].role == ROLES[command]


@settings(max_examples=300)
@given(st.text(alphabet="abct est'\"\\$()`{}|&;<>\n#=-", max_size=60), st.text(max_size=60))
def test_nothing_breaks_it(command: str, output: str) -> None:
    result = detect(f"npm test {command}", f"{output} failed", 1)
    assert result.ran or not result.failed
    assert detect(command, output, None).failed in (True, False)


NOISE = {
    "log": "PASS: 1 passed 2 ok src/a.py:1:2: error: x --- not ok 3 | a b\n" * 40_000,
    "blank": "\n" * 500_000,
    "spaces": (" " * 4000 + "\n") * 100,
    "counts": ("1 passed 1 failed " * 220 + "\n") * 100,
    "dots": ("." * 4000 + "\n") * 100,
    "tap": ("not ok 1 " * 440 + "\n") * 100,
    "prefixes": "web:test: a | b\n" * 30_000,
}


@pytest.mark.parametrize("noise", NOISE)
@pytest.mark.parametrize("command", ["npm test", "./build.sh", "pytest"])
def test_output_of_any_size_is_read_in_time(command: str, noise: str) -> None:
    summary = "1 failed in 0.1s\n" if command == "pytest" else "Tests:       1 failed, 2 passed, 3 total\n"
    start = time.process_time()
    assert detect(command, NOISE[noise] + summary, None).failed
    assert time.process_time() - start < 4


@pytest.mark.parametrize("part", ["(", "$(", "`", "a;", "'", "a b ", "cat <<A\n", "docker exec ", "{ ", "| x "])
def test_a_command_of_any_size_is_read_in_time(part: str) -> None:
    start = time.process_time()
    detect(part * 4000 + " npm test", "1 failed", 1)
    assert time.process_time() - start < 4


def test_a_plain_command_imports_nothing() -> None:
    code = (
        "import sys; from ralph.results.detection import detect; before = set(sys.modules)\n"
        "assert not detect('ls -la', 'total 4', None).ran\n"
        "print(sorted(set(sys.modules) - before), 're' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{code}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[] False\n"
