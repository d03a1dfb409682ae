"""Paths with spaces, quotes, Unicode, shell syntax and bytes that are not UTF-8, in a locale without Unicode."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from shlex import quote

import pytest

from support.cli import Completed
from support.repositories import IDENTITY

NAMES = {
    "spaces": "a work  space",
    "quotes": 'it\'s "quoted" `x`',
    "unicode": "é 中文 🙂",
    "shell": "$(touch x) ; * [1] & #!",
    "git": "-dash:colon%41\\back",
}
PLAIN = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
AGENT = """#!/bin/sh
cat > /dev/null
printf 'def two():\\n    return 2\\n' > src/two.py
printf 'from two import two\\nassert two() == 2\\n' > tests/test_two.py
{extra}
printf '{{"claim": "done"}}' > "$RALPH_REQUEST_FILE"
echo 'finished'
"""
COMMANDS = (
    "status", "status --json", "log -v", "report", "report --json", "report --markdown -", "proof US-001",
    "task show US-001", "runs", "paths", "rescue list", "audit", "cost", "verify --final", "doctor",
)  # fmt: skip


class Place:
    """A workspace, a home, a state folder and an agent's program, all in folders with this name."""

    def __init__(self, folder: Path, name: str, extra: str = "", **env: str) -> None:
        if env == PLAIN and not sys.prefix.isascii():
            pytest.skip("Python itself cannot start from this clone's folder in a locale without Unicode")
        self.root = folder / name / name
        self.env = {
            **{key: value for key, value in os.environ.items() if not key.startswith(("XDG_", "RALPH_"))},
            "HOME": str(folder / "home" / name),
            "RALPH_STATE_HOME": str(folder / "state" / name),
            "PATH": f"{folder / 'bin' / name}:{os.environ['PATH']}",
            **env,
        }
        for path in (self.root / "src", self.root / "tests", folder / "home" / name, folder / "bin" / name):
            path.mkdir(parents=True)
        program = folder / "bin" / name / "my agent"
        program.write_text(AGENT.format(extra=extra), encoding="utf-8")
        program.chmod(0o755)
        self.program = program
        story = {"id": "US-001", "title": "Two", "description": "x", "acceptanceCriteria": ["two"], "priority": 1}
        plan = {
            "feature": "shop",
            "branchName": "main",
            "description": "x",
            "createdAt": "2026-01-01T00:00:00Z",
            "userStories": [{**story, "passes": False, "notes": "", "dependsOn": [], "verify": ["test -f src/two.py"]}],
        }
        self.write(".ralph/shop/prd.json", json.dumps(plan))
        check = f"for t in tests/test_*.py; do PYTHONPATH=src {quote(sys.executable)} -S $t || exit 1; done"
        config = {
            "agent": {"name": "command", "command": [program.name if "\udcff" in name else str(program)]},
            "checks": [{"name": "tests", "command": check}],
            "review": {"enabled": False},
            "branch": {"auto_create": False},
            "archive": {"on_complete": False},
        }
        self.write(".ralph/config.yaml", json.dumps(config, ensure_ascii=False))
        self.write("src/one.py", "ONE = 1\n")
        self.write("tests/test_one.py", "from one import ONE\nassert ONE == 1\n")
        self.write(".gitignore", "__pycache__/\n")
        self.git("init", "-q", "-b", "main")
        self.git("add", "-A")
        self.git("commit", "-qm", "first")

    def write(self, name: str, text: str) -> None:
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text, encoding="utf-8")

    def git(self, *args: str) -> str:
        done = subprocess.run(["git", *IDENTITY, *args], cwd=self.root, capture_output=True, check=True, env=self.env)
        return done.stdout.decode("utf-8", "replace")

    def ralph(self, *arguments: str) -> Completed:
        command = [sys.executable, "-m", "ralph", *arguments]
        done = subprocess.run(
            command,
            cwd=self.root,
            env=self.env,
            capture_output=True,
            timeout=120,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        out, err = done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
        assert "Traceback" not in err
        assert "internal error" not in err, err
        return Completed(done.returncode, out, err)

    def run_to_the_end(self, *arguments: str) -> None:
        done = self.ralph("run", "--plain", "--trust", "-n", "3", *arguments)
        assert done.code == 0, done.out + done.err
        assert "feat(US-001): Two" in self.git("log", "--format=%s")
        assert "two.py" in self.git("ls-files")
        for command in COMMANDS:
            shown = self.ralph(*command.split())
            assert shown.code == 0, (command, shown.out, shown.err)
            assert shown.out or shown.err, command
        assert self.ralph("status", "--json").json["stories"][0]["state"] == "done"


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_run_in_odd_folders(tmp_path: Path, name: str) -> None:
    place = Place(tmp_path, name)
    place.run_to_the_end()


def test_an_agents_program_is_found_on_the_path_and_by_a_quoted_command_line(tmp_path: Path) -> None:
    place = Place(tmp_path, NAMES["quotes"])
    for command in ("'my agent'", quote(str(place.program))):
        shown = place.ralph("run", "--dry-run", "--trust", "--agent-command", command)
        assert shown.code == 0, shown.err
        assert "my agent" in shown.out
    place.run_to_the_end("--agent-command", "'my agent'")


def test_a_proof_checkout_in_odd_folders(tmp_path: Path) -> None:
    place = Place(tmp_path, NAMES["quotes"])
    config = json.loads((place.root / ".ralph/config.yaml").read_text())
    place.write(".ralph/config.yaml", json.dumps(config | {"proof": {"where": "checkout", "minimum": "witnessed"}}))
    place.git("commit", "-qam", "settings")
    place.run_to_the_end()


@pytest.mark.parametrize(
    "name", [NAMES["unicode"], NAMES["quotes"], os.fsdecode(b"not \xff utf8")], ids=["é", "'", "ff"]
)
def test_a_locale_without_unicode(tmp_path: Path, name: str) -> None:
    Place(tmp_path, name, **PLAIN).run_to_the_end()


@pytest.mark.parametrize("locale", [PLAIN, {}], ids=["C", "UTF-8"])
def test_files_whose_names_are_not_utf8(tmp_path: Path, locale: dict[str, str]) -> None:
    extra = "printf x > \"src/$(printf 'new \\377 \\047 \\042 name')\"; printf y >> \"src/$(printf 'old \\376')\""
    place = Place(tmp_path, "work", extra, **locale)
    (place.root / os.fsdecode(b"src/old \xfe")).write_text("x")
    place.git("add", "-A")
    place.git("commit", "-qm", "odd")
    place.run_to_the_end()
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=place.root, capture_output=True, check=True).stdout
    assert b"src/new \xff ' \" name" in listed
    assert place.git("status", "--porcelain", "--", "src") == ""


def test_a_rejected_file_whose_name_is_not_utf8_is_undone_and_can_be_rescued(tmp_path: Path) -> None:
    extra = "printf x > \"src/$(printf 'new \\377')\"; printf 'assert False\\n' > tests/test_two.py"
    place = Place(tmp_path, "work", extra, **PLAIN)
    done = place.ralph("run", "--plain", "--trust", "-n", "1")
    assert done.code == 1, done.err
    assert place.git("status", "--porcelain", "--", "src", "tests") == ""
    (kept,) = place.ralph("rescue", "list", "--json").json
    assert place.ralph("rescue", "show", kept["name"]).code == 0
    for command in COMMANDS:
        place.ralph(*command.split())
