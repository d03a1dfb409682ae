from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from ralph.core.environment import run_marks
from ralph.core.errors import SetupError
from ralph.host.copy_folder import copy_tree, fingerprint, redirect
from ralph.host.process.tree import end_left_behind
from ralph.proof.dependencies import (
    Copies,
    dependencies_digest,
    dependency_folders,
    is_dependency_list,
    listed_files,
    setup_command,
)
from ralph.proof.environment import HomeSettings, checkout_environment, home_copies
from ralph.sandbox.home import prepare_home
from support.repositories import Project


@pytest.fixture
def project(tmp_path: Path, git_identity: tuple[str, str]) -> Project:
    return Project(tmp_path)


def _environment(base: dict[str, str], tmp_path: Path, **named: object) -> dict[str, str]:
    return checkout_environment(
        base,
        workspace=tmp_path / "work",
        checkout=tmp_path / "checkout",
        home=tmp_path / "home",
        run="r1",
        **named,  # type: ignore[arg-type]
    )


def test_nothing_points_to_the_workspace_or_names_the_loop(tmp_path: Path) -> None:
    work, checkout = tmp_path / "work", tmp_path / "checkout"
    base = {
        "PATH": f"{work}/.venv/bin:/usr/bin",
        "HOME": str(tmp_path / "user"),
        "VIRTUAL_ENV": f"{work}/.venv",
        "PYTHONPATH": f"{work}/src:/opt/lib",
        "RALPH_RUN": "r1",
        "RALPH_STATE_HOME": "/state",
        "DATABASE_URL": "sqlite://",
        "PWD": str(work),
    }
    env = _environment(base, tmp_path)
    assert env["PATH"] == f"{checkout}/.venv/bin:/usr/bin"
    assert env["PYTHONPATH"] == f"{checkout}/src:/opt/lib"
    assert env["VIRTUAL_ENV"] == f"{checkout}/.venv"
    assert env["DATABASE_URL"] == "sqlite://"
    assert not [name for name, value in env.items() if "RALPH" in name or str(work) in value]
    assert env["HOME"] == str(tmp_path / "home")
    assert all(
        env[name].startswith(env["HOME"]) for name in ("TMPDIR", "XDG_CACHE_HOME", "PIP_CACHE_DIR", "CARGO_HOME")
    )
    assert env["INVOCATION_ID"] == run_marks("r1")[1][1]
    assert len(env["INVOCATION_ID"]) == 32


def test_what_a_killed_run_left_in_the_checkout_is_found(tmp_path: Path) -> None:
    env = _environment({"PATH": os.environ["PATH"]}, tmp_path)
    with subprocess.Popen(["sleep", "60"], env=env) as process:
        mark, in_checkout = run_marks("r1")
        assert end_left_behind(None, mark, 0.2) == 0
        assert end_left_behind(None, mark, 0.2, in_checkout) == 1
    assert process.returncode != 0


def test_a_virtual_environment_elsewhere_is_not_passed_on(tmp_path: Path) -> None:
    env = _environment({"VIRTUAL_ENV": "/elsewhere/venv", "PATH": "/elsewhere/venv/bin"}, tmp_path)
    assert "VIRTUAL_ENV" not in env
    assert env["PATH"] == "/elsewhere/venv/bin"


def test_import_roots_come_first(tmp_path: Path) -> None:
    env = _environment({"PYTHONPATH": "/opt"}, tmp_path, import_roots=[tmp_path / "checkout/src"])
    assert env["PYTHONPATH"] == f"{tmp_path}/checkout/src:/opt"


def test_the_home_has_the_git_identity_and_no_secrets(tmp_path: Path, git_identity: tuple[str, str]) -> None:
    user, home = Path(os.environ["HOME"]), tmp_path / "home"
    (user / ".npmrc").write_text("registry=https://example.test/\n//example.test/:_authToken=abc\n")
    prepare_home(home, os.environ)
    prepare_home(home, os.environ)
    assert (home / ".npmrc").read_text() == "registry=https://example.test/\n"
    env = {"HOME": str(home), "PATH": os.environ["PATH"]}
    done = subprocess.run(["git", "config", "--global", "user.name"], env=env, capture_output=True, check=False)
    identity = subprocess.run(["git", "config", "--global", "user.name"], capture_output=True, check=False)
    assert done.stdout == identity.stdout


def test_own_programs_are_those_of_the_start(tmp_path: Path) -> None:
    user, home = Path(os.environ["HOME"]), tmp_path / "home"
    program = user / ".local/bin/pytest"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho real\n")
    program.chmod(0o755)
    base = {"HOME": str(user), "PATH": f"{user}/.local/bin:/usr/bin:/bin"}
    Copies(tmp_path / "copies.json", []).sync(home_copies(home, base))
    program.write_text("#!/bin/sh\necho forged\n")
    env = _environment(base, tmp_path)
    done = subprocess.run(["sh", "-c", "pytest"], env=env, capture_output=True, check=True)
    assert done.stdout == b"real\n"


def test_copies_name_the_checkout_instead_of_the_workspace(tmp_path: Path) -> None:
    work, checkout = tmp_path / "work", tmp_path / "checkout"
    venv = work / ".venv"
    packages = venv / "lib/python3/site-packages"
    packages.mkdir(parents=True)
    (venv / "bin").mkdir()
    (venv / "bin/tool").write_text(f"#!{work}/.venv/bin/python\nprint(1)\n")
    (venv / "bin/tool").chmod(0o755)
    (venv / "bin/python").symlink_to("/usr/bin/python3")
    (venv / "bin/activate").write_text(f"VIRTUAL_ENV={work}/.venv\n")
    (venv / "bin/binary").write_bytes(b"\x7fELF\0" + os.fsencode(work))
    (packages / "__editable__.demo.pth").write_text(f"{work}/src\n{work}-other/src\n")
    (packages / "data.txt").write_text(str(work))
    (packages / "link").symlink_to(work / "src")
    copy = checkout / ".venv"
    copy_tree(venv, copy)
    redirect(copy, work, checkout)
    inside = copy / "lib/python3/site-packages"
    assert (copy / "bin/tool").read_text().startswith(f"#!{checkout}/.venv/bin/python\n")
    assert (copy / "bin/tool").stat().st_mode & 0o777 == 0o755
    assert (copy / "bin/python").readlink() == Path("/usr/bin/python3")
    assert (inside / "__editable__.demo.pth").read_text() == f"{checkout}/src\n{work}-other/src\n"
    assert (inside / "link").readlink() == checkout / "src"
    assert (inside / "data.txt").read_text() == str(work)
    assert (copy / "bin/binary").read_bytes().endswith(os.fsencode(work))
    assert (copy / "bin/tool").stat().st_nlink == 1
    assert (venv / "bin/tool").read_text().startswith(f"#!{work}")


def test_a_copy_is_renewed_and_repaired(tmp_path: Path) -> None:
    source, target, record = tmp_path / "a", tmp_path / "b", tmp_path / "copies.json"
    source.mkdir()
    (source / "module.py").write_text("1")
    copies = Copies(record, [])
    copies.sync([(source, target)])
    inode = (target / "module.py").stat().st_ino
    Copies(record, []).sync([(source, target)])
    assert (target / "module.py").stat().st_ino == inode, "an unchanged one is not copied again"
    (target / "planted.py").write_text("x")
    assert copies.repair() == ()
    assert not (target / "planted.py").exists()
    (target / "planted.py").write_text("x")
    (source / "by-the-agent.py").write_text("x")
    assert copies.repair() == (str(target),)
    assert not (target / "by-the-agent.py").exists()
    copies.sync([(source, target)])
    assert (target / "by-the-agent.py").exists()
    copies.sync([])
    assert not target.exists()


def test_fingerprints_ignore_bytecode(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("1")
    before = fingerprint(tmp_path)
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__/m.pyc").write_text("x")
    assert fingerprint(tmp_path) == before
    (tmp_path / "n.py").write_text("1")
    assert fingerprint(tmp_path) != before


def test_dependency_folders_are_the_ignored_ones(project: Project) -> None:
    project.write(".gitignore", "node_modules/\n.venv/\nbuild/\nmy-env\n_version.py\n")
    project.write("node_modules/x/index.js", "")
    project.write("packages/a/node_modules/y/index.js", "")
    project.write("packages/a/index.js", "")
    project.write(".venv/pyvenv.cfg", "")
    project.write("my-env/pyvenv.cfg", "")
    project.write("self-ignoring/pyvenv.cfg", "")
    project.write("self-ignoring/.gitignore", "*\n")
    project.write("build/out", "")
    project.write("vendor/tracked.go", "")
    project.write("src/_version.py", "")
    project.git("add", "vendor", "packages")
    assert dependency_folders(project.repo) == (
        ".venv", "my-env", "node_modules", "packages/a/node_modules", "self-ignoring", "src/_version.py",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("files", "folders", "command"),
    [
        (["uv.lock", "pyproject.toml"], [], "uv sync --frozen"),
        (["uv.lock", "poetry.lock"], [".venv"], "uv sync --frozen"),
        (["package-lock.json", "yarn.lock"], ["node_modules"], "npm ci --no-audit --no-fund"),
        (["pnpm-lock.yaml", "poetry.lock"], [], "poetry install --no-interaction && pnpm install --frozen-lockfile"),
        (["go.mod", "go.sum"], [], "go mod download"),
        (["Cargo.toml", "Cargo.lock"], [], ""),
        (["pyproject.toml", "requirements-dev.txt"], [".venv"],
         ".venv/bin/python -m pip install -q -r requirements-dev.txt -e ."),
        (["pyproject.toml"], [], ""),
    ],
)  # fmt: skip
def test_the_setup_command_follows_from_lock_files(files: list[str], folders: list[str], command: str) -> None:
    assert setup_command(files, folders) == command


def test_only_dependencies_count_in_shared_files() -> None:
    package: dict[str, object] = {"name": "x", "dependencies": {"a": "1"}, "scripts": {"test": "node --test"}}
    project = '[project]\ndependencies = ["a"]\n[tool.pytest.ini_options]\naddopts = "-q"\n'

    def digest(package: dict[str, object], project: str) -> str:
        return dependencies_digest({"package.json": json.dumps(package).encode(), "pyproject.toml": project.encode()})

    first = digest(package, project)
    assert digest(package | {"scripts": {}}, project.replace("-q", "-v")) == first
    assert digest(package | {"dependencies": {"a": "2"}}, project) != first
    assert digest(package, project.replace('"a"', '"b"')) != first
    assert digest(package, "[not toml") != first
    assert is_dependency_list("sub/requirements-dev.txt")
    assert not is_dependency_list("src/main.py")


def test_listed_files_stay_inside(project: Project) -> None:
    project.write(".env", "A=1\n")
    project.write("secrets/one", "")
    assert listed_files(project.root, [".env", "secrets/*", "missing"]) == (".env", "secrets/one")
    with pytest.raises(SetupError, match=r"proof\.files"):
        listed_files(project.root, ["../other"])


def test_settings_that_an_agent_wrote_into_the_home_of_the_checkout_are_gone(tmp_path: Path) -> None:
    home, outside = tmp_path / "home", tmp_path / "outside"
    for path in (home / ".gitconfig", home / ".cache/go-build/a", home / ".config/pip/pip.conf", outside / "b"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("as it was\n")
    settings = HomeSettings(home)
    (home / ".npmrc").write_text("node-options=--require /tmp/hook.js\n")
    (home / ".gitconfig").write_text("[core]\n\thooksPath = /tmp/hooks\n")
    (home / ".config/go").symlink_to(outside)
    (home / ".config/pip/pip.conf").unlink()
    (home / ".config/pip/pip.conf").mkdir()
    (home / ".cargo").mkdir()
    (home / ".cargo/config.toml").write_text("[target.'cfg(unix)']\nrunner = 'true'\n")
    packages = home / ".local/lib/python3.11/site-packages"
    packages.mkdir(parents=True)
    (packages / "usercustomize.py").write_text("raise SystemExit(0)\n")
    settings.restore()
    left = sorted(str(path.relative_to(home)) for path in home.rglob("*") if not path.is_dir())
    assert left == [".cache/go-build/a", ".config/pip/pip.conf", ".gitconfig"]
    assert {(home / path).read_text() for path in left} == {"as it was\n"}
    assert (outside / "b").read_text() == "as it was\n"


def test_a_link_in_place_of_the_settings_is_removed_and_its_target_stays(tmp_path: Path) -> None:
    home, outside = tmp_path / "home", tmp_path / "outside"
    (home / ".config").mkdir(parents=True)
    (home / ".config/a").write_text("as it was\n")
    outside.mkdir()
    (outside / "kept").write_text("mine\n")
    settings = HomeSettings(home)
    (home / ".config/a").unlink()
    (home / ".config").rmdir()
    (home / ".config").symlink_to(outside)
    settings.restore()
    assert (home / ".config/a").read_text() == "as it was\n"
    assert not (home / ".config").is_symlink()
    assert [path.name for path in outside.iterdir()] == ["kept"]
