"""Every line of docs/install.md that installs Ralph, run as it stands, from a folder of wheels instead of an index.

`scripts/fetch_wheels.py` fetches the wheels of what Ralph needs; its own is built here. Each line gets a home folder of
its own, and what it installed must work without a clone: a plan, a run, man pages, completions.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ralph import __version__
from ralph.cli.table import shown
from support import built
from support.tools import WHEELS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "install.md").read_text()
LINES = [
    line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.S) for line in block.splitlines() if " install " in line
]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
MODULES = {"tui": "textual", "web": "starlette, uvicorn", "otel": "opentelemetry.sdk", "notify": "apprise"}
SCRIPT = """\
stories:
  "*":
    - implement:
        - write: {path: hello.txt, text: "hello\\n"}
        - claim: done
"""

pytestmark = [pytest.mark.needs("wheels"), pytest.mark.slow]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All wheels in one folder."""
    folder = tmp_path_factory.mktemp("index")
    for path in WHEELS.glob("*.whl"):
        (folder / path.name).symlink_to(path)
    wheel = built.wheel(tmp_path_factory)
    (folder / wheel.name).symlink_to(wheel)
    return folder


class Newcomer:
    """A user with an empty home folder and an environment of Python, and no package index."""

    def __init__(self, folder: Path, index: Path) -> None:
        self.home = folder / "home"
        self.home.mkdir()
        venv.create(folder / "python", with_pip=False, symlinks=True)
        tools = Path(sys.executable).parent
        self.bin = folder / "bin"
        self.bin.mkdir()
        for tool in ("uv", "uvx", "pipx"):
            (self.bin / tool).symlink_to(tools / tool)
        program = self.bin / "pip"
        program.write_text(f'#!/bin/sh\nexec "{tools}/python" -m pip --python "{folder}/python/bin/python" "$@"\n')
        program.chmod(0o755)
        local = self.home / ".local" / "bin"
        self.env = {
            "PATH": f"{self.bin}:{local}:{folder}/python/bin:/usr/bin:/bin",
            "HOME": str(self.home),
            "TMPDIR": str(folder),
            "LANG": "C.UTF-8",
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(index),
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "UV_OFFLINE": "1",
            "PIP_NO_COMPILE": "1",
            "UV_FIND_LINKS": str(index),
            "UV_NO_CONFIG": "1",
            "UV_PYTHON": sys.executable,
            "UV_PYTHON_DOWNLOADS": "never",
            "PIPX_DEFAULT_PYTHON": sys.executable,
            **{f"GIT_{who}_{key}": "a@b.test" for who in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")},
        }

    def run(self, line: str, cwd: Path | None = None) -> str:
        done = subprocess.run(
            ["/bin/sh", "-ec", line], cwd=cwd or self.home, env=self.env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
        return done.stdout


@pytest.fixture
def newcomer(tmp_path: Path, index: Path) -> Newcomer:
    return Newcomer(tmp_path, index)


def finish_a_plan(newcomer: Newcomer) -> None:
    project = newcomer.home / "project"
    project.mkdir()
    (project / "script.yaml").write_text(SCRIPT)
    for line in (
        "git init -q -b main",
        "ralph init hello --agent scripted",
        "ralph config set agent.script script.yaml",
        "ralph task add 'Say hello' --criterion 'hello.txt says hello' --verify 'test -f hello.txt'",
        "git add -A",
        "git commit -qm Plan",
    ):
        newcomer.run(line, project)
    listed = json.loads(newcomer.run("ralph task list --json", project))
    assert listed
    newcomer.run("ralph run --trust --plain --no-review --no-sandbox", project)
    assert "hello.txt" in newcomer.run("git ls-files", project)


def test_the_page_has_a_line_for_each_way() -> None:
    assert [line.split()[0] for line in LINES] == ["uv", "pipx", "pip", "uv"]


@pytest.mark.parametrize("line", LINES)
def test_a_line_installs_ralph(line: str, newcomer: Newcomer) -> None:
    newcomer.run(line)
    assert newcomer.run("ralph --version") == f"ralph {__version__}\n"
    assert "complete -F" in newcomer.run("ralph config completion bash")
    if "[" in line:
        assert "usage: ralph ui" in newcomer.run("ralph ui --help")
        return
    pages = {path.name for path in newcomer.home.parent.rglob("share/man/man1/ralph*.1")}
    assert pages == {"ralph.1", *(f"ralph-{name}.1" for name in shown())}
    finish_a_plan(newcomer)


def test_a_first_look_installs_nothing(newcomer: Newcomer) -> None:
    (line,) = (line for line in PAGE.splitlines() if line.startswith("uvx "))
    assert newcomer.run(line) == f"ralph {__version__}\n"
    assert not (newcomer.home / ".local" / "bin").exists()


def test_the_small_extras_install_together_and_import(newcomer: Newcomer) -> None:
    python = f"--python {newcomer.home.parent}/python/bin/python"
    newcomer.run(f'uv pip install {python} "ralph-loop-engine[{",".join(MODULES)}]"')
    newcomer.run(f"python -c 'import {', '.join(MODULES.values())}'")
    newcomer.run(f"uv pip check {python}")


@pytest.mark.parametrize("extra", EXTRAS)
def test_every_extra_can_be_resolved(extra: str) -> None:
    """To what, `scripts/fetch_wheels.py` asked the package index."""
    pinned = dict(re.findall(r"^([\w.-]+)(?:\[[^\]]*\])?==(\S+)", (WHEELS / f"{extra}.txt").read_text(), re.M))
    resolved = {canonicalize_name(name): version for name, version in pinned.items()}
    wanted = [Requirement(text) for one in (EXTRAS if extra == "all" else [extra]) for text in EXTRAS[one]]
    for requirement in wanted:
        if requirement.name != "ralph-loop-engine":
            assert resolved[canonicalize_name(requirement.name)] in requirement.specifier
