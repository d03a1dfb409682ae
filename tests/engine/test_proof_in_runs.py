"""What `ralph run` makes of honest work, of lazy work and of cheats, at default settings, with real pytest projects."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

import pytest

from ralph.core.events import CheckStarted, IterationEnded
from ralph.core.plan import Mode
from ralph.core.verdict import Kind
from support.cli import Completed
from support.proven import Proven, shell, write

pytestmark = pytest.mark.defaults

PYTEST = f"{quote(sys.executable)} -m pytest -q -p no:cacheprovider -p no:hypothesispytest"
SETTINGS = '[tool.pytest.ini_options]\npythonpath = ["src"]\n'
CODE = "def double(x):\n    return x + x\n"
TRIPLE = f"{CODE}\n\ndef triple(x):\n    return 3 * x\n"
WRONG = f"{CODE}\n\ndef triple(x):\n    return 9\n"
TEST = "from shop import double\n\n\ndef test_double():\n    assert double(2) == 4\n"
TEST_TRIPLE = "from shop import triple\n\n\ndef test_triple():\n    assert triple(2) == 6\n"
STORY = {"title": "Triple a number", "description": "The shop can triple.", "acceptanceCriteria": ["triple(2) is 6"]}
REFUSES = {"verdict": {"what": "changes_requested", "feedback": "triple does not exist", "by": "request"}}
APPROVES = {"verdict": {"what": "approved", "by": "request"}}
Actions = Sequence[Any]


class Shop(Proven):
    """A project with one test and one story, which no check is about."""

    def __init__(
        self,
        folder: Path,
        files: Mapping[str, str] | None = None,
        *,
        check: str = PYTEST,
        story: Mapping[str, Any] | None = None,
    ) -> None:
        checks = [{"name": "tests", "command": check}]
        super().__init__(folder, stories=[{**STORY, **(story or {})}], checks=checks, review={})
        self.write("src/shop.py", CODE)
        self.write("tests/test_shop.py", TEST)
        self.write("pyproject.toml", SETTINGS)
        for name, text in (files or {}).items():
            self.write(name, text)
        self.git("add", "-A")
        self.git("commit", "-qm", "the shop")
        self.first = self.git("rev-parse", "HEAD")

    def play(self, *sessions: Actions, review: Actions = (REFUSES,), arguments: Sequence[str] = ()) -> Completed:
        """One iteration for each session, and one more for a review."""
        count = str(len(sessions) + ("--skip-review" not in arguments))
        attempts = [{"implement": list(actions), "review": list(review)} for actions in sessions]
        leaves = ["--no-sandbox"] if "../" in json.dumps(attempts) else []  # a script that leaves a file for the test
        return self.run("-n", count, *leaves, *arguments, US_001=attempts)

    def modes(self) -> list[tuple[Mode, Kind]]:
        return [(event.mode, event.kind) for event in self.ended()]

    def last(self) -> IterationEnded:
        return self.ended()[-1]

    @property
    def story(self) -> dict[str, Any]:
        (story,) = self.ask("status", "--json").json["stories"]
        assert isinstance(story, dict)
        return story

    @property
    def is_done(self) -> bool:
        (told,) = json.loads(self.read(".ralph/shop/prd.json"))["userStories"]
        assert told["passes"] == (self.story["state"] == "done")
        return bool(told["passes"])


IMPLEMENTED = (Mode.IMPLEMENT, Kind.ACCEPTED)
REJECTED = (Mode.IMPLEMENT, Kind.REJECTED)
REVIEWED = (Mode.REVIEW, Kind.ACCEPTED)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def test_a_new_test_that_fails_without_the_change_witnesses_it(shop: Shop) -> None:
    done = shop.play([write("src/shop.py", TRIPLE), write("tests/test_triple.py", TEST_TRIPLE), "claim"])
    assert (done.code, shop.is_done, shop.modes()) == (0, True, [IMPLEMENTED])
    assert "done, witnessed by tests/test_triple.py::test_triple" in done.out
    body = shop.git("log", "-1", "--grep=Ralph-Story: US-001", "--format=%B")
    for line in ("Ralph-Grade: witnessed", "Ralph-Witness: tests/test_triple.py::test_triple", "Ralph-Proof: checkout"):
        assert line in body.splitlines()
    assert shop.is_clean()
    shown = [event.when for event in shop.events() if isinstance(event, CheckStarted)]  # what a view can tell
    assert list(dict.fromkeys(shown)) == ["baseline", "checkout", "story", "proof", "final"]


README = [write("README.md", "The shop can triple.\n")]
LAZY: dict[str, tuple[Actions, str]] = {
    "README": (README, "no check fails without this change"),
    "vacuous test": (
        [
            write("src/shop.py", WRONG),
            write("tests/test_triple.py", "import shop\n\n\ndef test_triple():\n    assert shop\n"),
        ],
        "the tests in tests/test_triple.py pass without the change too",
    ),
    "test of a name": (
        [
            write("src/shop.py", WRONG),
            write("tests/test_triple.py", "from shop import triple\n\n\ndef test_triple():\n    assert triple\n"),
        ],
        "the tests also pass when the changed functions in src/shop.py do nothing",
    ),
}
"""Work that proves nothing, and what the reviewer is told about it."""


@pytest.mark.parametrize("work", LAZY)
def test_work_without_a_witness_is_reviewed_and_a_refusal_counts(shop: Shop, work: str) -> None:
    done = shop.play([*LAZY[work][0], "claim"], review=[{"prompt": "../prompt"}, REFUSES])
    assert (done.code, shop.is_done, shop.modes()) == (1, False, [IMPLEMENTED, REVIEWED])
    assert shop.last().headline == "changes requested: triple does not exist"
    assert LAZY[work][1] in (shop.folder / "prompt").read_text()


def test_without_reviews_unproven_work_is_kept_and_not_done(shop: Shop) -> None:
    done = shop.play([*README, "claim"], arguments=["--skip-review"])
    assert (done.code, shop.is_done, shop.story["grade"]) == (1, False, "unproven")
    assert "unproven" in done.out
    assert "no check fails without this change: add a test that does" in done.out
    assert shop.git("show", "HEAD:README.md") == "The shop can triple."


EDITED = [write("src/shop.py", "def double(x):\n    return 5\n"), write("tests/test_shop.py", TEST.replace("4", "5"))]
PLACE, FAILED = "tests/test_shop.py:5: `", "passes only with this change to the tests: tests/test_shop.py::test_double"


def test_an_edited_expectation_is_rejected_where_nobody_reviews_it(shop: Shop) -> None:
    done = shop.play([*EDITED, "claim"], arguments=["--skip-review"])
    assert (done.code, shop.is_done, shop.modes()) == (1, False, [REJECTED])
    for shown in (done.out, shop.ask("log").out, shop.last().feedback):
        assert PLACE in shown
        assert FAILED in shown
    assert shop.read("tests/test_shop.py") == TEST


def test_an_edited_expectation_is_reviewed(shop: Shop) -> None:
    done = shop.play([*EDITED, "claim"], review=[{"prompt": "../prompt"}, REFUSES])
    assert (done.code, shop.is_done, shop.modes()) == (1, False, [IMPLEMENTED, REVIEWED])
    prompt = (shop.folder / "prompt").read_text()
    assert PLACE in prompt
    assert FAILED in prompt
    assert "assert 5 == 4" in prompt, "the output with the tests as they were"


def test_a_test_that_the_story_names_may_change(tmp_path: Path) -> None:
    shop = Shop(tmp_path, story={"description": "double is always 5; update tests/test_shop.py."})
    done = shop.play([*EDITED, "claim"])
    assert (done.code, shop.is_done, shop.modes()) == (0, True, [IMPLEMENTED])
    assert "the story names tests/test_shop.py" in done.out


def test_a_test_weakened_in_an_earlier_session_is_compared_with_the_start_of_the_story(shop: Shop) -> None:
    """The first session claims nothing and breaks nothing, so its work is kept."""
    done = shop.play(
        [write("tests/test_shop.py", TEST.replace("== 4", "> 0"))],
        [EDITED[0], "claim"],
        arguments=["--skip-review"],
    )
    assert (done.code, shop.is_done, shop.modes()) == (1, False, [(Mode.IMPLEMENT, Kind.PARTIAL), REJECTED])
    assert PLACE in done.out


HIDES_FAILURES = """import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    report.outcome = "passed"
    return report
"""
BROKEN = write("src/shop.py", "def double(x):\n    return 5\n\n\ndef triple(x):\n    return 6\n")
TRICKS = {
    "pytest.ini": (
        "[pytest]\npythonpath = src\naddopts = --deselect=tests/test_shop.py::test_double\n",
        "pytest.ini:1",
    ),
    "tests/conftest.py": (HIDES_FAILURES, "tests/conftest.py:1"),
    "src/shop.py": (
        "import os\nimport sys\n\nif 'pytest' in sys.modules:\n    os._exit(0)\n",
        "passed without running a test; before, it ran 1",
    ),
}
"""File → its content, and the reason against it."""


@pytest.mark.parametrize("path", TRICKS)
def test_a_runner_that_was_tricked_proves_nothing(shop: Shop, path: str) -> None:
    text, reason = TRICKS[path]
    done = shop.play(
        [BROKEN, write(path, text), write("tests/test_triple.py", TEST_TRIPLE), "claim"],
        arguments=["--skip-review"],
    )
    assert (done.code, shop.is_done, shop.modes()) == (1, False, [REJECTED])
    assert "  1 check passed (" in done.out, "the trick works"
    assert reason in done.out
    assert shop.git("rev-parse", "HEAD:src") == shop.git("rev-parse", f"{shop.first}:src")


@pytest.mark.needs("npm")
def test_a_script_of_package_json_that_runs_nothing_proves_nothing(tmp_path: Path) -> None:
    package = json.dumps({"name": "shop", "version": "1.0.0", "scripts": {"test": "node --test"}})
    files = {
        "package.json": package,
        "half.js": "exports.half = (x) => x / 2;\n",
        "half.test.js": "const test = require('node:test');\nconst assert = require('node:assert');\n"
        "test('half', () => assert.equal(require('./half.js').half(4), 2));\n",
    }
    shop = Shop(tmp_path, files, check="npm test --silent")
    done = shop.play(
        [
            write("half.js", "exports.half = () => 9;\n"),
            write("package.json", package.replace("node --test", "true")),
            "claim",
        ],
        arguments=["--skip-review"],
    )
    assert (done.code, shop.is_done, shop.modes()) == (1, False, [REJECTED])
    assert "ran 1" in done.out


def test_code_in_an_ignored_folder_does_not_exist(tmp_path: Path) -> None:
    shop = Shop(tmp_path, {".gitignore": "__pycache__/\nbuild/\n.ralph/*/progress.txt\n"})
    path = "import sys\n\nsys.path.insert(0, 'build')\nfrom tripling import triple\n\n\n"
    done = shop.play(
        [
            write("src/shop.py", path + CODE),
            write("build/tripling.py", "def triple(x):\n    return 3 * x\n"),
            write("tests/test_triple.py", TEST_TRIPLE),
            shell(f"{PYTEST} && touch ../passes-here"),
            "claim",
        ]
    )
    assert (shop.folder / "passes-here").exists()
    assert (done.code, shop.is_done, shop.ended()[0].kind) == (1, False, Kind.REJECTED)
    assert "No module named 'tripling'" in shop.ended()[0].feedback
    assert "git ignores build/tripling.py, so it is not in the commit" in shop.ended()[0].headline


def test_a_rejection_names_the_tests_that_failed(shop: Shop) -> None:
    done = shop.play([write("src/shop.py", "def double(x):\n    return 5\n"), "claim"])
    assert "check 'tests' failed with exit code 1: tests/test_shop.py::test_double" in done.out


@pytest.mark.parametrize(("own", "grade"), [([], "reviewed"), (["grep -q double src/shop.py"], "proven")])
def test_already_satisfied_needs_a_check_of_its_own_or_a_review(tmp_path: Path, own: list[str], grade: str) -> None:
    shop = Shop(tmp_path, story={"verify": own} if own else {})
    done = shop.play([{"claim": "already-satisfied"}], review=[APPROVES])
    reviewed = [] if own else [REVIEWED]
    assert (done.code, shop.is_done, shop.modes()) == (0, True, [IMPLEMENTED, *reviewed])
    assert shop.story["grade"] == grade
    told = "only a review shows that US-001 is done: no test fails without it"
    assert (told in shop.ask("report").out) is (grade == "reviewed")


def test_a_check_of_its_own_that_failed_before_proves_a_story(tmp_path: Path) -> None:
    own = f'PYTHONPATH=src {quote(sys.executable)} -S -c "import shop; assert shop.triple(2) == 6"'
    shop = Shop(tmp_path, story={"verify": [own]})
    done = shop.play([write("src/shop.py", TRIPLE), "claim"])
    assert (done.code, shop.is_done, shop.story["grade"]) == (0, True, "proven")
    assert "Ralph-Grade: proven" in shop.git("log", "-1", "--format=%B").splitlines()


def test_an_unproven_story_does_not_stand_in_the_way_of_the_next(tmp_path: Path) -> None:
    checks = [{"name": "tests", "command": PYTEST}]
    made = Proven(tmp_path, stories=[{"title": "Test double"}, STORY], checks=checks, review={})
    made.write("pyproject.toml", SETTINGS)
    made.git("add", "-A")
    made.git("commit", "-qm", "settings")
    more = [write("tests/test_more.py", TEST.replace("double(2) == 4", "double(3) == 6")), {"claim": "done"}]
    triple = [write("src/shop.py", TRIPLE), write("tests/test_triple.py", TEST_TRIPLE), {"claim": "done"}]
    done = made.run("--skip-review", US_001=[more], US_002=[triple])
    assert done.code == 1, "the first story is unproven"
    assert [(each.story, each.kind, each.grade) for each in made.ended()] == [
        ("US-001", Kind.ACCEPTED, "unproven"),
        ("US-002", Kind.ACCEPTED, "witnessed"),
    ]


def test_a_file_of_a_finished_story_does_not_vanish_unnoticed(tmp_path: Path) -> None:
    """Where no runner says which tests ran, nothing else would tell."""
    checks = [{"name": "all", "command": "for f in src/*.txt; do grep -q one $f; done; true"}]
    made = Proven(tmp_path, stories=[{}, {"title": "Say two"}], checks=checks, review={})
    two = [write("src/two.txt", "two\n"), "claim"]
    stories: dict[str, Any] = {
        "US_001": [{"implement": [write("src/one.txt", "one\n"), "claim"], "review": [APPROVES]}],
        "US_002": [
            {"implement": [shell("rm src/one.txt"), *two], "review": [APPROVES]},
            {"implement": two, "review": [APPROVES]},
        ],
    }
    done = made.run("-n", "6", **stories)
    assert done.code == 0
    gone = "src/one.txt, which US-001 added, is gone, and no test is about it: restore it, or ask the user"
    assert gone in done.out
    assert made.read("src/one.txt") == "one\n"


def test_a_reviewed_story_is_open_again_if_a_story_that_was_given_up_changed_it(tmp_path: Path) -> None:
    made = Proven(tmp_path, stories=[{}, {"title": "Say two"}], checks=[{"name": "all", "command": "true"}], review={})
    one = [write("src/one.txt", "one\n"), "claim"]
    refused = {"verdict": {"what": "changes_requested", "feedback": "one.txt is broken", "by": "request"}}
    stories: dict[str, Any] = {
        "US_001": [{"implement": one, "review": [APPROVES]}],
        "US_002": [
            {
                "implement": [write("src/one.txt", "broken\n"), "claim"],
                "review": [refused],
                "fix": [{"append": {"path": "src/one.txt", "text": "still\n"}}, "claim"],
            }
        ],
    }
    done = made.run("-n", "8", **stories)
    told = "US-001 is open again: US-002, which was given up, changed src/one.txt after US-001 was approved"
    assert told in done.out
    ended = [(event.story, event.mode.value) for event in made.ended()]
    assert ended[2:8] == [
        ("US-002", "implement"),
        ("US-002", "review"),
        ("US-002", "fix"),
        ("US-002", "review"),
        ("US-001", "implement"),
        ("US-001", "review"),
    ]
    assert made.read("src/one.txt") == "one\n"


def test_a_test_that_never_ends_without_the_function_is_a_witness(tmp_path: Path, monkeypatch: Any) -> None:
    """With the function emptied the test loops; the run must not wait for the check's own time limit."""
    monkeypatch.setattr("ralph.proof.checks._LEAST_LIMIT", 3.0)
    shop = Shop(tmp_path)
    code = f"{CODE}\n\ndef triple(x):\n    return x + 1\n"
    test = "from shop import triple\n\n\ndef test_triple():\n    n = 0\n    while n != 2:\n        n = triple(n) or 0\n"
    done = shop.play([write("src/shop.py", code), write("tests/test_triple.py", test), "claim"])
    assert (done.code, shop.story["grade"]) == (0, "witnessed")


def test_a_case_that_the_code_no_longer_lists_is_a_matter_for_a_review(tmp_path: Path) -> None:
    head = "import pytest\n\nfrom shop import NUMBERS, double\n\n\n@pytest.mark.parametrize('n', NUMBERS)\n"
    files = {
        "src/shop.py": f"NUMBERS = [1, 2, 3]\n\n\n{CODE}",
        "tests/test_numbers.py": f"{head}def test_number(n):\n    assert double(n) == 2 * n\n",
    }
    shop = Shop(tmp_path, files)
    done = shop.play([write("src/shop.py", f"NUMBERS = [1, 2]\n\n\n{CODE}"), "claim"], review=[APPROVES])
    assert "tests/test_numbers.py::test_number[3] no longer runs" in done.out
    assert (done.code, shop.is_done, shop.modes()) == (0, True, [IMPLEMENTED, REVIEWED])


@pytest.mark.parametrize("arguments", [["--skip-review"], ["--tamper", "reject"], ["--tamper", "off"]])
def test_fewer_cases_are_no_pass_where_nobody_looks(tmp_path: Path, arguments: list[str]) -> None:
    head = "import pytest\n\nfrom shop import NUMBERS, double\n\n\n@pytest.mark.parametrize('n', NUMBERS)\n"
    files = {
        "src/shop.py": f"NUMBERS = [1, 2, 3]\n\n\n{CODE}",
        "tests/test_numbers.py": f"{head}def test_number(n):\n    assert double(n) == 2 * n\n",
    }
    shop = Shop(tmp_path, files)
    shop.play([write("src/shop.py", f"NUMBERS = [1, 2]\n\n\n{CODE}"), "claim"], arguments=arguments)
    assert (shop.ended()[0].kind, shop.is_done) == (Kind.REJECTED, False)
