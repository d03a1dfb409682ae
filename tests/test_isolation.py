"""The harness itself: a test that touches the real home, or leaves something behind, fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

TESTS = Path(__file__).parent

BAD = {
    "reads_a_file": "open(REAL + '/.gitconfig')",
    "reads_a_missing_file_and_is_not_surprised": "with suppress(OSError): open(REAL + '/.ralph/config.yaml')",
    "swallows_every_exception": "with suppress(Exception): os.listdir(REAL)",
    "swallows_even_more": "with suppress(BaseException): os.scandir(REAL)",
    "writes": "pathlib.Path(REAL, 'x').write_text('x')",
    "makes_a_folder": "os.mkdir(REAL + '/.ralph')",
    "moves_a_file_into_it": "(tmp_path / 'x').touch(); os.rename(tmp_path / 'x', REAL + '/x')",
    "goes_there_by_a_relative_path": "os.listdir(os.path.relpath(REAL))",
    "gives_it_to_a_child": "subprocess.run([sys.executable, '-c', ''], env={**os.environ, 'HOME': REAL})",
    "lets_a_child_look_it_up": "subprocess.run([sys.executable, '-c', ''], env={})",
    "touches_the_state_folder": "os.makedirs(os.path.join(os.path.dirname(REAL), 'state', 'logs'))",
    "stays_in_another_folder": "os.chdir(tmp_path)",
    "leaves_a_process": "global kept; kept = subprocess.Popen(['sleep', '60'])",
}

GOOD = {
    "has_its_own_home": "home = pathlib.Path.home(); assert str(home) != REAL; assert os.listdir(home) == []",
    "has_its_own_state_folder": "os.makedirs(os.environ['RALPH_STATE_HOME'])",
    "works_in_its_folder": "(tmp_path / 'x').write_text('x'); assert os.listdir(tmp_path) == ['x']",
    "starts_a_process_and_waits": "subprocess.run([sys.executable, '-c', 'import ralph'], check=True)",
    "runs_git": "subprocess.run(['git', 'init', '-q', str(tmp_path)], check=True)",
    "sees_no_variable_of_the_developer": "assert [n for n, v in os.environ.items() if v == '/surprise'] == []",
}

MARKED = """
@pytest.mark.slow
def test_marked_slow(): pass
@pytest.mark.client
def test_marked_client(): pass
def test_unmarked(): pass
"""


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of somebody who runs tests, with `real home` and the report of the run in it."""
    folder = tmp_path_factory.mktemp("person")
    home = folder / "real home"
    home.mkdir()
    body = f"import os, pathlib, pytest, subprocess, sys\nfrom contextlib import suppress\nREAL = {str(home)!r}\n"
    body += MARKED + "".join(f"def test_{name}(tmp_path):\n    {line}\n" for name, line in {**BAD, **GOOD}.items())
    (folder / "test_it.py").write_text(body)
    surprises = ("RALPH_TRUST", "GIT_DIR", "CLAUDECODE", "NO_COLOR", "XDG_STATE_HOME", "COLUMNS", "PRD_NUMBER")
    pytest_here = [sys.executable, "-m", "pytest", "-q", "-p", "conftest", "-p", "no:cacheprovider"]
    where = [f"--basetemp={folder}/base", f"--rootdir={folder}", "--junitxml=report.xml"]
    subprocess.run(
        [*pytest_here, *where, "--import-mode=importlib", "test_it.py"],
        cwd=folder,
        env={
            **os.environ,
            **dict.fromkeys(surprises, "/surprise"),
            "HOME": str(home),
            "RALPH_STATE_HOME": str(folder / "state"),
            "PYTHONPATH": str(TESTS),
        },
        stdout=subprocess.DEVNULL,
        check=False,
    )
    return folder


def verdicts(person: Path) -> dict[str, str]:
    """Name of a test → what was wrong with it, in the order in which they ran."""
    return {
        case.attrib["name"].removeprefix("test_"): " ".join(problem.attrib["message"] for problem in case)
        for case in ElementTree.parse(person / "report.xml").iter("testcase")
    }


@pytest.mark.parametrize("name", BAD)
def test_a_test_that_is_not_isolated_fails(name: str, person: Path) -> None:
    if name == "leaves_a_process" and sys.platform != "linux":
        pytest.skip("children are listed from /proc")
    assert "this test " in verdicts(person)[name]


@pytest.mark.parametrize("name", GOOD)
def test_a_test_that_is_isolated_passes(name: str, person: Path) -> None:
    assert verdicts(person)[name] == ""


def test_even_bad_tests_do_not_change_the_real_home(person: Path) -> None:
    assert list((person / "real home").iterdir()) == []
    assert not (person / "state").exists()


def test_fast_tests_run_first(person: Path) -> None:
    order = list(verdicts(person))
    assert order.index("unmarked") < order.index("marked_slow") < order.index("marked_client")


def test_git_knows_nobody_unless_asked_for(tmp_path: Path) -> None:
    assert _git_user(tmp_path) == ""


def test_git_knows_who_commits_when_asked_for(tmp_path: Path, git_identity: tuple[str, str]) -> None:
    assert _git_user(tmp_path) == git_identity[0]


def _git_user(folder: Path) -> str:
    command = ["git", "config", "user.name"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout.strip()
