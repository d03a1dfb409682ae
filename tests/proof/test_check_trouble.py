"""What a check prints that cannot run, recorded from the tools, and the same from those that are installed here."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from shlex import quote

import pytest

from ralph.proof.check_run import run_check
from ralph.proof.check_trouble import NotRunnable, why_not_runnable

SAMPLES = Path(__file__).parent / "corpus" / "check_outputs.txt"


def samples() -> list[tuple[str, int, str, str, str]]:
    """Command, exit code, reason, fix and output; "-" where it ran."""
    found = []
    for block in SAMPLES.read_text().split("\n### ")[1:]:
        head, _, output = block.partition("\n")
        command, code, reason, fix = head.split(" | ")
        found.append((command, int(code), reason, fix, output))
    return found


@pytest.mark.parametrize(("command", "code", "reason", "fix", "output"), samples())
def test_recorded_output_is_understood(command: str, code: int, reason: str, fix: str, output: str) -> None:
    trouble = why_not_runnable(command, code, output)
    assert (trouble.reason, trouble.fix) == (reason, fix) if trouble else reason == "-"


def tried(command: str, folder: Path, path: str, cwd: str = "") -> NotRunnable | None:
    result = run_check("c", command, root=folder, env={"PATH": path, "HOME": str(folder)}, timeout=60, cwd=cwd)
    assert not result.passed
    return why_not_runnable(command, result.code, result.tail)


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("pytezt -q", "pytezt is not installed"),
        ("bash -c 'pytezt -q'", "pytezt is not installed"),
        (".venv/bin/pytest", ".venv/bin/pytest does not exist"),
        ("./run-tests.sh", "./run-tests.sh does not exist"),
        (". .venv/bin/activate && pytest", ".venv/bin/activate does not exist"),
        ("bash -c 'source .venv/bin/activate && pytest'", ".venv/bin/activate does not exist"),
        ("./noexec.sh", "./noexec.sh cannot be executed"),
        ("cd nofolder && ls", "folder nofolder does not exist"),
        ("bash -c 'cd nofolder && ls'", "folder nofolder does not exist"),
        ("sh nofile.sh", "nofile.sh does not exist"),
        ("make test", "pytezt is not installed"),
        ("make lint", "./nothere.sh does not exist"),
        ("make nothing", "make target nothing does not exist"),
    ],
)
def test_a_shell_and_make_of_this_machine_are_understood(tmp_path: Path, command: str, reason: str) -> None:
    if command.startswith("make") and not shutil.which("make"):
        pytest.skip("make is not installed")
    (tmp_path / "noexec.sh").touch()
    (tmp_path / "Makefile").write_text("test:\n\tpytezt -q\nlint:\n\t./nothere.sh\n")
    trouble = tried(command, tmp_path, "/usr/local/bin:/usr/bin:/bin")
    assert trouble is not None
    assert trouble.reason == reason
    assert trouble.fix


def test_a_module_that_python_does_not_have_is_not_installed(tmp_path: Path) -> None:
    trouble = tried(f"{quote(sys.executable)} -m nosuch_tool check", tmp_path, "/usr/bin:/bin")
    assert trouble == NotRunnable("nosuch_tool is not installed", f"{quote(sys.executable)} -m pip install nosuch-tool")


@pytest.mark.parametrize(("manager", "command"), [("poetry", "poetry run pytest"), ("uv", "uv run pytest")])
def test_a_package_manager_does_not_install_itself(manager: str, command: str, tmp_path: Path) -> None:
    trouble = tried(command, tmp_path, str(tmp_path))
    assert trouble == NotRunnable(f"{manager} is not installed", f"pip install {manager}")


def test_a_test_of_a_module_that_is_not_written_yet_ran(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text("import shop.cart\n")
    assert (
        tried(f"{quote(sys.executable)} -m pytest -q -p no:cacheprovider test_a.py", tmp_path, "/usr/bin:/bin") is None
    )
    assert tried(f"{quote(sys.executable)} -m unittest test_a", tmp_path, "/usr/bin:/bin") is None


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    trouble = tried("true", tmp_path, "/usr/bin:/bin", cwd="backend")
    assert trouble is not None
    assert trouble.reason == f"folder {tmp_path.resolve()}/backend does not exist"
    assert trouble.fix == "fix the check's cwd"


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("npm"), reason="npm is not installed")
def test_npm_without_its_packages_is_recognised(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"name":"a","version":"1.0.0","scripts":{"test":"jest"}}')
    path = f"{Path(shutil.which('npm') or '').parent}:/usr/bin:/bin"
    assert tried("npm test", tmp_path, path) == NotRunnable("jest is not installed", "npm install", "")
    assert tried("npm run nope", tmp_path, path) is not None


def test_an_interpreter_in_a_folder_with_spaces_and_quotes_is_named_for_a_shell() -> None:
    output = "/tmp/it's a place/bin/python3: No module named ruff\n"
    trouble = why_not_runnable("'/tmp/it'\"'\"'s a place/bin/python3' -m ruff check", 1, output)
    assert trouble == NotRunnable("ruff is not installed", "'/tmp/it'\"'\"'s a place/bin/python3' -m pip install ruff")
