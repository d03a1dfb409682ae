"""The definitions in packaging/, the workflows and their scripts: as far as a tool for each is here."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from ralph import __version__

ROOT = Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "packaging"
WORKFLOWS = {path.name: yaml.safe_load(path.read_text()) for path in (ROOT / ".github" / "workflows").glob("*.yml")}
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
STUB = """\
let
  id = x: x;
  packages = builtins.listToAttrs (map (name: { inherit name; value = name; }) [
    "hatchling" "minijinja" "msgspec" "pyyaml" "tree-sitter" "tree-sitter-typescript"
  ]);
  pkgs = {
    python3Packages = packages // { buildPythonApplication = id; };
    lib = { cleanSource = id; makeBinPath = id; licenses.mit = "MIT"; };
    installShellFiles = "installShellFiles";
    git = "git";
  };
  made = import %s { inherit pkgs; };
in builtins.toJSON { inherit (made) pname version dependencies build-system; }
"""


@pytest.mark.needs("ruby")
def test_the_formula_is_ruby() -> None:
    call = ["ruby", "-wc", str(PACKAGING / "ralph-loop-engine.rb")]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "Syntax OK\n", "")


@pytest.mark.needs("nix-instantiate")
def test_the_nix_expression_evaluates_and_names_what_the_project_needs(tmp_path: Path) -> None:
    """With stand-ins for nixpkgs: its packages cannot be had here."""
    expression = STUB % (PACKAGING / "default.nix")
    call = ["nix-instantiate", "--eval", "--json", "--strict", "--expr", expression]
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "NIX_STATE_DIR": str(tmp_path), "NIX_REMOTE": ""}
    env |= {"NIX_STORE_DIR": f"{tmp_path}/store", "NIX_LOG_DIR": f"{tmp_path}/log"}
    done = subprocess.run(call, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stderr
    made = yaml.safe_load(yaml.safe_load(done.stdout))
    assert (made["pname"], made["version"]) == (PROJECT["name"], __version__)
    assert made["dependencies"] == [re.split(r"[<>=]", one)[0] for one in PROJECT["dependencies"]]
    assert set(made["build-system"]) >= {"hatchling"}


def test_the_container_gets_no_more_of_the_clone_than_it_needs() -> None:
    kept = [line[1:] for line in (ROOT / ".containerignore").read_text().splitlines() if line.startswith("!")]
    assert all((ROOT / name).exists() for name in kept)
    assert set(kept) >= {PROJECT["readme"], *PROJECT["license-files"], "pyproject.toml", "src"}
    assert ".git" not in kept


@pytest.mark.needs("shellcheck")
def test_shell_scripts_have_no_findings() -> None:
    scripts = [ROOT / ".ci" / "run", *(ROOT / "packaging" / "action").glob("*.sh")]
    scripts += [
        path for path in (ROOT / "scripts").iterdir() if path.is_file() and path.read_bytes()[:9] == b"#!/bin/sh"
    ]
    parts = (step["run"] for name in WORKFLOWS for step in steps(name) if "run" in step)
    text = "\n".join(re.sub(r"\$\{\{.*?\}\}", "x", part) for part in parts)
    done = subprocess.run(["sh", "-n"], input=text, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    done = subprocess.run(["shellcheck", "-x", "-e", "SC1091", *scripts], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def steps(name: str) -> list[dict[str, Any]]:
    return [step for job in WORKFLOWS[name]["jobs"].values() for step in job["steps"]]


def test_continuous_integration_builds_and_runs_everything() -> None:
    called = " ".join(step.get("run", "") for step in steps("test.yml"))
    assert "python -m build" in called
    assert "scripts/check_dist.py" in called
    assert ".ci/run" in called
    assert "scripts/site" in called
    everything = WORKFLOWS["test.yml"]["jobs"]["everything"]
    assert everything["container"]["image"].endswith("-bookworm")  # as root in Debian, where .ci/run installs
    assert everything["env"] == {"CI": "true"}


def test_a_release_is_published_without_a_password() -> None:
    """Trusted publishing: a token of this run, and only in the job that uploads."""
    workflow = WORKFLOWS["release.yml"]
    assert workflow[True] == {"push": {"tags": ["v*"]}}  # YAML reads `on` as a boolean
    assert workflow["permissions"] == {"contents": "read"}
    granted = {name for name, job in workflow["jobs"].items() if "id-token" in job.get("permissions", {})}
    assert granted == {"publish"}
    assert workflow["jobs"]["publish"]["environment"]["name"] == "pypi"
    text = (ROOT / ".github/workflows/release.yml").read_text()
    assert "password" not in text
    assert "secrets." not in text
    assert {path for path in re.findall(r"scripts/[\w.]+", text) if not (ROOT / path).exists()} == set()


def test_every_workflow_says_what_it_may_do_and_how_long() -> None:
    for name, workflow in WORKFLOWS.items():
        assert "permissions" in workflow, name
        assert all("timeout-minutes" in job for job in workflow["jobs"].values()), name
