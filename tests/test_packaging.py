"""What is shipped, what is pinned, and the scripts that set a clone up."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import requires
from pathlib import Path
from shlex import quote
from types import ModuleType
from typing import Any

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = ROOT / "scripts"


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


# --- the lock --------------------------------------------------------------------------------------------------------


def pins() -> dict[str, Version]:
    text = (ROOT / "requirements" / "dev.lock").read_text()
    return {canonicalize_name(n): Version(v) for n, v in re.findall(r"^(\S+)==([^ ;\\]+)", text, re.MULTILINE)}


def wanted() -> list[Requirement]:
    """Everything that pyproject.toml asks for, by whatever name."""
    facts = project()
    groups = [entry for group in facts["dependency-groups"].values() for entry in group if isinstance(entry, str)]
    return [Requirement(r) for r in [*facts["project"]["dependencies"], *facts["build-system"]["requires"], *groups]]


def test_the_lock_pins_all_that_is_asked_for() -> None:
    for requirement in wanted():
        assert pins()[canonicalize_name(requirement.name)] in requirement.specifier, "run scripts/lock"


def test_the_lock_pins_what_the_pinned_ones_need() -> None:
    for name in pins():
        for need in map(Requirement, (requires(name) or []) if _is_for_this_system(name) else []):
            if not need.marker or need.marker.evaluate({"extra": ""}):
                assert pins()[canonicalize_name(need.name)] in need.specifier, f"{name} needs {need}: run scripts/lock"


def _is_for_this_system(name: str) -> bool:
    """The lock is for all systems: each pin with a condition says so on its line."""
    text = (ROOT / "requirements" / "dev.lock").read_text()
    marker = re.search(rf"^{re.escape(name)}==\S+ ;(.*?)\\", text, re.MULTILINE)
    return marker is None or Marker(marker[1].strip()).evaluate()


def test_every_pin_has_hashes_and_none_has_an_address() -> None:
    text = (ROOT / "requirements" / "dev.lock").read_text()
    entries = [entry for entry in re.split(r"^(?=\S)", text, flags=re.MULTILINE) if entry]
    assert len(entries) == len(pins())
    assert all("--hash=sha256:" in entry for entry in entries)
    assert "://" not in text
    assert not re.search(r"^\s*-(-index|-extra-index|-find-links|i |f )", text, re.MULTILINE)


def test_the_environment_is_the_locked_one() -> None:
    """Otherwise the other tests say little about what a newcomer gets."""
    from importlib.metadata import version

    tools = ("ruff", "mypy", "pytest", "hypothesis", "import-linter", "msgspec", "pyyaml", "minijinja")
    assert {name: Version(version(name)) for name in tools} == {name: pins()[name] for name in tools}


# --- pages -----------------------------------------------------------------------------------------------------------


PAGES = [
    *ROOT.glob("*.md"),
    *(ROOT / ".github").rglob("*.md"),
    *(ROOT / "docs").rglob("*.md"),
    *ROOT.glob("examples/*/*.md"),
]


OF_OTHERS = re.compile(r"scripts/ralph/")
"""Where another tool has its files."""
ABOUT_OTHERS = "coming-from.md"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_a_page_names_only_files_that_exist(page: Path) -> None:
    text = page.read_text()
    named = set(re.findall(r"`((?:src|tests|scripts|docs|bench|requirements|examples|\.ci)/[\w./-]*)`", text))
    linked = {link for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text) if "://" not in link}
    ours = {name for name in named if page.name != ABOUT_OTHERS and not OF_OTHERS.match(name)}
    assert [name for name in ours if not (ROOT / name).exists()] == []
    assert [link for link in linked if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("folder", ["docs", "docs/adr"])
def test_the_index_names_every_page(folder: str) -> None:
    index = (ROOT / folder / "README.md").read_text()
    pages = {path.name for path in (ROOT / folder).glob("*.md")} - {"README.md"}
    assert pages - set(re.findall(r"\]\(([\w.-]+)", index)) == set()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], True),
        (["-k", "completion", "-x"], True),
        (["tests/client"], True),
        (["tests/client/test_real_rules.py::test_x"], True),
        (["tests"], True),
        (["tests/cli/test_plugin.py"], True),
        (["tests/cli/test_check.py", "-k", "trust"], False),
        (["tests/core"], False),
    ],
)
def test_the_client_is_fetched_only_for_tests_that_use_it(
    arguments: list[str], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = importlib.util.spec_from_file_location("run_checks", SCRIPTS / "run_checks.py")
    assert spec is not None
    assert spec.loader is not None
    run_checks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(run_checks)
    monkeypatch.chdir(SCRIPTS)
    assert run_checks.names_test_with(run_checks.CLIENT, arguments) is expected


# --- scripts/test and scripts/demo -----------------------------------------------------------------------------------


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The scripts, in a clone whose environment is ready, or says so: its Python prints what it is called with."""
    clone = tmp_path / "my clone"
    shutil.copytree(SCRIPTS, clone / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / ".ci", clone / ".ci")
    program(clone / ".venv" / "bin" / "python", 'case "$*" in *--is-ready) exit 0 ;; esac\nprintf "%s\\n" "$@"')
    return clone


def program(path: Path, body: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def call(*command: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(("script", "runs"), [("scripts/test", "run_checks.py"), ("scripts/demo", "demo_loop.py")])
def test_a_script_works_from_anywhere(script: str, runs: str, clone: Path, tmp_path: Path) -> None:
    wanted = f"{clone.resolve()}/scripts/{runs}\n-k\na b\n"
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "there").symlink_to(clone / script)
    (tmp_path / "here").symlink_to("links/there")
    (tmp_path / "another name").symlink_to(clone)
    for name in (clone / script, tmp_path / "here", tmp_path / "another name" / script):
        for folder in (Path("/"), clone, clone / "scripts"):
            done = call(f"./{os.path.relpath(name, folder)}", "-k", "a b", cwd=folder, CDPATH=str(tmp_path))
            assert (done.stdout, done.stderr) == (wanted, "")


def test_the_demo_has_a_tour_of_the_layouts(clone: Path) -> None:
    done = call("scripts/demo", "--layouts", "--help", cwd=clone)
    assert done.stdout == f"{clone.resolve()}/scripts/demo_tour.py\n--help\n"


def test_continuous_integration_runs_the_tests(clone: Path, tmp_path: Path) -> None:
    for tool in ("apt-get", "bwrap"):
        program(tmp_path / "bin" / tool, 'echo "called $0 $*" >&2; exit 1')
    done = call("bash", ".ci/run", cwd=clone, CI="", PATH=f"{tmp_path}/bin:/usr/bin:/bin")
    assert done.stdout == f"{clone.resolve()}/scripts/run_checks.py\n--everything\n"
    assert done.stderr == ""  # it installs programs on the machines of continuous integration only


PYTHONS = {
    "nothing there": ({}, "Python 3.11 or newer is required"),
    "too old": ({"python3": "exit 3", "python3.11": "exit 3"}, "Python 3.11 or newer is required"),
    "a stub that fails": ({"python3": "exit 127"}, "Python 3.11 or newer is required"),
    "without venv": ({"python3": "exit 3", "python3.12": "exit 4"}, "python3.12 has no venv module"),
}


@pytest.mark.parametrize("case", PYTHONS)
def test_a_missing_python_is_told_clearly(case: str, clone: Path, tmp_path: Path) -> None:
    pythons, message = PYTHONS[case]
    shutil.rmtree(clone / ".venv")
    for name, body in pythons.items():
        program(tmp_path / "bin" / name, body)
    for tool in ("dirname", "readlink"):
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "bin" / tool).symlink_to(str(shutil.which(tool)))
    done = call("/bin/sh", clone / "scripts" / "test", cwd=tmp_path, PATH=str(tmp_path / "bin"))
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {message}")
    assert not (clone / ".venv").exists()


def test_the_first_python_that_is_new_enough_is_taken(clone: Path, tmp_path: Path) -> None:
    shutil.rmtree(clone / ".venv")
    program(tmp_path / "bin" / "python3", "exit 3")
    program(
        tmp_path / "bin" / "python3.13", f'[ "$2" = -c ] && exit 0\necho "made by $0"; exit 7; {quote(sys.executable)}'
    )
    done = call(clone / "scripts" / "test", cwd=tmp_path, PATH=f"{tmp_path}/bin:/usr/bin:/bin")
    assert (done.returncode, done.stdout) == (7, f"made by {tmp_path}/bin/python3.13\n")


@pytest.mark.slow
def test_the_tour_shows_what_it_promises_and_leaves_nothing_behind(tmp_path: Path) -> None:
    done = call(sys.executable, SCRIPTS / "demo_tour.py", cwd=tmp_path, TMPDIR=str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("and nothing else") == 5
    assert "\x1b" not in done.stdout
    assert list(tmp_path.iterdir()) == []
    assert list(Path.home().iterdir()) == []


# --- making .venv ----------------------------------------------------------------------------------------------------


def make_venv_of(clone: Path) -> ModuleType:
    """scripts/make_venv.py, as it is in that clone."""
    for name in ("pyproject.toml", "requirements", "src", "README.md", "LICENSE"):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, clone / name, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
        else:
            shutil.copy(source, clone / name)
    spec = importlib.util.spec_from_file_location("make_venv", clone / "scripts" / "make_venv.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_an_environment_is_ready_only_with_its_stamp(clone: Path) -> None:
    made = make_venv_of(clone)
    assert not made.is_ready()
    made.STAMP.write_text(made.fingerprint())
    assert made.is_ready()
    (clone / ".venv" / "bin" / "python").unlink()
    assert not made.is_ready()


def test_an_environment_is_out_of_date_when_what_it_was_made_from_changes(clone: Path, tmp_path: Path) -> None:
    made = make_venv_of(clone)
    before = made.fingerprint()
    for name, old, new in (
        ("requirements/dev.lock", "ruff==", "ruff==9"),
        ("pyproject.toml", '"msgspec>=', '"msgspec>=1'),
        ("src/ralph/__init__.py", "__version__ = ", "__version__ = 'x' or "),
    ):
        text = (clone / name).read_text()
        (clone / name).write_text(text.replace(old, new, 1))
        assert made.fingerprint() != before, name
        (clone / name).write_text(text)
    assert made.fingerprint() == before


def test_settings_of_tools_do_not_make_it_out_of_date(clone: Path) -> None:
    made = make_venv_of(clone)
    before = made.fingerprint()
    text = (clone / "pyproject.toml").read_text()
    (clone / "pyproject.toml").write_text(text.replace("line-length = 120", "line-length = 99"))
    assert made.fingerprint() == before


def test_an_environment_that_moved_is_out_of_date(clone: Path, tmp_path: Path) -> None:
    made = make_venv_of(clone)
    made.STAMP.write_text(made.fingerprint())
    clone.rename(tmp_path / "moved")
    assert not make_venv_of(tmp_path / "moved").is_ready()


def test_two_at_once_set_up_one_after_the_other(clone: Path) -> None:
    made = make_venv_of(clone)
    environment = {**os.environ, "PYTHON": sys.executable}
    command = [str(clone / "scripts" / "test"), "done"]
    with made.alone():
        second = subprocess.Popen(command, env=environment, stdout=-1, stderr=-1, text=True)
        assert second.stderr
        assert second.stderr.readline().startswith("waiting for another scripts/test")
        made.STAMP.write_text(made.fingerprint())  # the first one is ready
    out, err = second.communicate(timeout=60)
    assert (second.returncode, out.splitlines()[1:], err) == (0, ["done"], "")


@pytest.mark.slow
def test_a_failed_set_up_does_not_count_and_leaves_nothing_elsewhere(clone: Path, tmp_path: Path) -> None:
    """For real, with an index that has nothing."""
    make_venv_of(clone)
    (clone / ".venv" / "leftover").touch()
    environment = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "", "PIP_CONFIG_FILE": os.devnull, "PYTHON": sys.executable}
    done = call(clone / "scripts" / "test", cwd=tmp_path, **environment)
    assert done.returncode == 1
    assert "error: setting up .venv failed" in done.stderr
    assert not (clone / ".venv" / "leftover").exists()
    assert not make_venv_of(clone).is_ready()
    assert list(Path.home().iterdir()) == []
