"""`scripts/release` in a clone of its own: what it makes, what it refuses, and what it leaves alone."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NEXT = "7.1.0"


class Clone:
    """This clone with its uncommitted changes, as a repository with one commit."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "clone"
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            check=True,
        )
        for name in filter(None, listed.stdout.split(b"\0")):
            source, target = ROOT / os.fsdecode(name), self.root / os.fsdecode(name)
            if source.is_file() and target.parts[len(self.root.parts)] not in ("tests", "docs", "bench", "examples"):
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(source.read_bytes())
        changelog = self.root / "CHANGELOG.md"
        changelog.write_text("# Changelog\n\n## [Unreleased]\n\n- A thing that users notice.\n")
        self.git("init", "-q", "-b", "main")
        for key, value in (("user.name", "Ada"), ("user.email", "ada@example.test")):
            self.git("config", key, value)
        self.commit("all of it")

    def git(self, *args: str) -> str:
        done = subprocess.run(["git", *args], cwd=self.root, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def commit(self, message: str) -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)

    def release(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """With the interpreter of the tests; `scripts/release` itself would set up an environment first."""
        call = [sys.executable, "scripts/make_release.py", *arguments]
        return subprocess.run(call, cwd=self.root, capture_output=True, text=True, check=False)

    def state(self) -> str:
        return self.git("show-ref") + self.git("status", "--porcelain") + self.git("rev-parse", "HEAD")


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    return Clone(tmp_path_factory.mktemp("release"))


@pytest.mark.slow
def test_a_release_is_tagged_built_checked_and_listed(clone: Clone, tmp_path: Path) -> None:
    before = clone.state()
    done = clone.release(NEXT, "--dry-run")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"dry run: v{NEXT} can be released" in done.stdout
    assert clone.state() == before

    done = clone.release(NEXT, "--out", str(tmp_path / "dist"))
    assert (done.returncode, done.stderr) == (0, "")
    assert f"git push origin main v{NEXT}" in done.stdout
    files = sorted(path.name for path in (tmp_path / "dist").iterdir())
    stem = f"ralph_loop_engine-{NEXT}"
    assert files == [f"{stem}-py3-none-any.whl", f"{stem}.cdx.json", f"{stem}.tar.gz"]
    assert clone.git("status", "--porcelain") == ""
    assert clone.git("log", "-1", "--format=%s") == f"Release {NEXT}"
    assert clone.git("rev-parse", f"v{NEXT}^{{commit}}") == clone.git("rev-parse", "HEAD")
    assert clone.git("cat-file", "-t", f"v{NEXT}") == "tag"
    assert f'__version__ = "{NEXT}"' in (clone.root / "src/ralph/__init__.py").read_text()
    changelog = (clone.root / "CHANGELOG.md").read_text()
    assert re.search(rf"## \[Unreleased\]\n\n## \[{NEXT}\] - \d{{4}}-\d\d-\d\d\n\n- A thing", changelog)

    bill = json.loads((tmp_path / "dist" / f"{stem}.cdx.json").read_text())
    assert bill["metadata"]["component"]["purl"] == f"pkg:pypi/ralph-loop-engine@{NEXT}"
    listed = {one["name"]: one for one in bill["components"]}
    assert listed["msgspec"]["scope"] == "required"
    assert listed["textual"]["scope"] == "optional"
    assert all(one["hashes"] for one in listed.values())
    known = {one["bom-ref"] for one in bill["components"]} | {bill["metadata"]["component"]["bom-ref"]}
    assert {ref for edge in bill["dependencies"] for ref in (edge["ref"], *edge["dependsOn"])} == known

    done = clone.release(NEXT)  # again
    assert (done.returncode, done.stderr[:40]) == (1, f"error: the tag v{NEXT} exists; choose the next "[:40])


REFUSED = {
    "no version": ("next", "'next' is no version"),
    "not as it is written": ("7.1.0-rc1", "'7.1.0-rc1' is written 7.1.0rc1"),
    "older": ("0.0.1", "0.0.1 is older than "),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_version_that_cannot_be_next_is_refused(case: str, clone: Clone) -> None:
    version, message = REFUSED[case]
    before = clone.state()
    done = clone.release(version)
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {message}")
    assert clone.state() == before


def test_a_dirty_tree_and_an_empty_changelog_are_refused(tmp_path: Path) -> None:
    clone = Clone(tmp_path)
    changelog = clone.root / "CHANGELOG.md"
    changelog.write_text("# Changelog\n\n## [Unreleased]\n\n## [0.0.1] - 2025-01-01\n\n- Old.\n")
    done = clone.release(NEXT, "--dry-run")
    assert done.stderr.startswith("error: the working tree is not clean (1 files, first CHANGELOG.md)")
    clone.commit("Nothing new")
    assert "has nothing under [Unreleased]" in clone.release(NEXT, "--dry-run").stderr
    clone.git("switch", "-q", "--detach")
    assert "HEAD is detached" in clone.release(NEXT, "--dry-run").stderr


@pytest.mark.slow
def test_a_build_that_is_not_complete_is_not_tagged(tmp_path: Path) -> None:
    clone = Clone(tmp_path)
    (clone.root / "src/ralph/py.typed").unlink()
    clone.commit("Lose a file")
    before = clone.state()
    done = clone.release(NEXT)
    assert done.returncode == 1
    assert "the build is not fit to be published:\n  the wheel lacks ralph/py.typed" in done.stderr
    assert clone.state() == before
    assert not (clone.root / "dist").exists()


def test_help_has_an_example() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts/make_release.py", "--help"], capture_output=True, text=True, check=True
    )
    assert "scripts/release 0.2.0 --dry-run" in done.stdout
