from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from support.cli import ralph, ralph_here
from support.workspaces import write_first_story


@pytest.fixture
def healthy(tmp_path: Path, git_identity: tuple[str, str]) -> tuple[Path, dict[str, str]]:
    """A workspace in which nothing would stop a run."""
    root = tmp_path / "shop"
    root.mkdir()
    (root / "Makefile").write_text("test:\n\ttrue\n")
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    assert ralph_here("init", "x", cwd=root).code == 0
    write_first_story(root)
    subprocess.run(["git", "add", "-A"], cwd=root, check=True)
    subprocess.run(["git", "commit", "-qm", "start"], cwd=root, check=True)
    client = tmp_path / "bin" / "claude"
    client.parent.mkdir()
    client.write_text("#!/bin/sh\necho 2.1.325\n")
    client.chmod(0o755)
    return root, {"PATH": f"{client.parent}:{os.environ['PATH']}"}


def test_a_healthy_machine_passes(healthy: tuple[Path, dict[str, str]]) -> None:
    root, env = healthy

    done = ralph("doctor", cwd=root, env=env)

    assert done.code == 0, done.out
    assert "claude 2.1.325" in done.out
    assert "\nfail" not in done.out
    assert "0 to fix" in done.err


def test_what_would_stop_a_run_is_said_with_its_fix(healthy: tuple[Path, dict[str, str]]) -> None:
    root, _ = healthy
    (root / ".ralph" / "config.yaml").write_text("max_iteratoins: 3\n")

    done = ralph_here("doctor", cwd=root, env={"PATH": "/usr/bin:/bin"})

    assert done.code == 78
    assert "fail  config" in done.out
    assert "fix: did you mean max_iterations?" in done.out


def test_scripts_get_one_document(healthy: tuple[Path, dict[str, str]]) -> None:
    root, env = healthy

    found = ralph_here("doctor", "--json", cwd=root, env=env).json

    assert found["ok"] is True
    assert found["workspace"] == str(root)
    topics = {finding["topic"] for finding in found["findings"]}
    assert {"python", "git", "repository", "agent", "clients", "sandbox", "disk", "locks", "terminal"} <= topics
    assert {"config", "workspace", "trust", "beads", "identity", "proof"} <= topics


def test_it_works_outside_of_any_workspace(tmp_path: Path) -> None:
    done = ralph_here("doctor", cwd=tmp_path)

    assert done.code == 78
    assert "ralph init" in done.out


def test_it_leaves_no_trace(healthy: tuple[Path, dict[str, str]]) -> None:
    root, env = healthy
    home = Path(os.environ["HOME"])
    before = sorted(p for place in (root, home) for p in place.rglob("*") if ".git" not in p.parts)

    ralph_here("doctor", cwd=root, env=env)

    assert sorted(p for place in (root, home) for p in place.rglob("*") if ".git" not in p.parts) == before
