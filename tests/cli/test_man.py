"""Man pages: one for each command, and `man` shows them without a warning."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ralph.cli.grammar import read_all
from ralph.cli.man import pages
from ralph.cli.table import actions, shown
from support.cli import ralph_here


def show(page: Path) -> str:
    command = ["man", "--warnings", "--encoding=UTF-8", "--local-file", str(page)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={"PATH": "/usr/bin:/bin"})
    assert done.stderr == "", page
    return done.stdout


@pytest.mark.needs("man")
def test_man_shows_every_page(tmp_path: Path) -> None:
    done = ralph_here("config", "man", tmp_path / "man1", cwd=tmp_path)
    assert done.code == 0, done.err
    written = {path.name: show(path) for path in (tmp_path / "man1").iterdir()}
    assert set(written) == {"ralph.1", *(f"ralph-{name}.1" for name in shown())}
    run = written["ralph-run.1"]
    assert "--max-iterations N" in run
    assert "ralph(1)" in run
    for name in actions("config"):
        assert f"ralph config {name}" in written["ralph-config.1"]


def test_pages_are_plain_ascii_and_complete() -> None:
    ralph = read_all()
    for name, text in pages(ralph).items():
        assert text.isascii(), name
        assert not [line for line in text.splitlines() if line.startswith("'")], name
    options = {flag for command in ralph.family() for option in command.options for flag in option.flags}
    everything = "".join(pages(ralph).values()).replace("\\-", "-")
    assert {flag for flag in options if flag not in everything} == set()
