"""Man pages and completions of the wheel, as it installs them: without warnings of the tools that read them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ralph.cli.table import shown
from support import built

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "install.md").read_text()
LINES = [line for line in PAGE.splitlines() if line.startswith(("ralph config completion", "ralph config man"))]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel in a folder of its own; what it needs comes from the environment of the tests."""
    folder = tmp_path_factory.mktemp("installed")
    uv = [str(Path(sys.executable).parent / "uv"), "pip", "install", "-q", "--no-deps", "--offline", "--no-config"]
    wheel = built.wheel(tmp_path_factory)
    into = ["--cache-dir", str(folder / "cache"), "--python", sys.executable, "--target", str(folder / "lib")]
    subprocess.run([*uv, *into, str(wheel)], check=True, capture_output=True)
    program = folder / "bin" / "ralph"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{folder}/lib" exec "{sys.executable}" -m ralph "$@"\n')
    program.chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def home(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """After every line of the page."""
    home = tmp_path_factory.mktemp("shells")
    env = {**os.environ, "HOME": str(home), "PATH": f"{installed}/bin:/usr/bin:/bin"}
    for line in LINES:
        target = home / line.split()[-1].removeprefix("~/")
        target.parent.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(["sh", "-ec", line], cwd=home, env=env, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), line
    return home


def test_the_page_has_a_line_for_each_shell() -> None:
    assert [line.split()[3] for line in LINES[:-1]] == ["bash", "zsh", "fish"]
    assert "ralph config completion powershell >> $PROFILE" in PAGE


@pytest.mark.parametrize(
    ("check", "file"),
    [
        pytest.param(["bash", "-n"], ".local/share/bash-completion/completions/ralph", id="bash"),
        pytest.param(["zsh", "-n"], ".zfunc/_ralph", id="zsh", marks=pytest.mark.needs("zsh")),
        pytest.param(
            ["fish", "--no-execute"], ".config/fish/completions/ralph.fish", id="fish", marks=pytest.mark.needs("fish")
        ),
    ],
)
def test_a_shell_reads_its_completion(check: list[str], file: str, home: Path) -> None:
    env = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
    done = subprocess.run([*check, home / file], capture_output=True, text=True, check=False, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    assert "migrate" in (home / file).read_text()


def test_the_wheel_brings_the_pages_that_the_command_writes(installed: Path, home: Path) -> None:
    brought = {path.name: path.read_text() for path in (installed / "lib" / "share" / "man" / "man1").iterdir()}
    written = {path.name: path.read_text() for path in (home / ".local" / "share" / "man" / "man1").iterdir()}
    assert brought == written
    assert set(brought) == {"ralph.1", *(f"ralph-{name}.1" for name in shown())}


@pytest.mark.needs("mandoc")
def test_mandoc_has_no_complaint_about_any_page(home: Path) -> None:
    """Except that there is no date: a page is the same whenever it is built."""
    pages = sorted((home / ".local" / "share" / "man" / "man1").iterdir())
    done = subprocess.run(["mandoc", "-Tlint", "-Wwarning", *pages], capture_output=True, text=True, check=False)
    found = [line for line in done.stdout.splitlines() if "missing date" not in line]
    assert found == []


@pytest.mark.needs("man")
def test_man_finds_a_page_by_its_name(home: Path) -> None:
    env = {"HOME": str(home), "PATH": "/usr/bin:/bin", "MANPATH": f"{home}/.local/share/man", "LANG": "C.UTF-8"}
    for name in ("ralph", "ralph-pr"):
        call = ["man", "--warnings", "--encoding=UTF-8", name]
        done = subprocess.run(call, capture_output=True, text=True, check=False, env=env)
        assert (done.returncode, done.stderr) == (0, "")
    assert "--comment" in done.stdout
