"""Runs with an agent that rewrites the rules: they are restored, said, and the next run has the old ones."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ralph.core.events import Noted
from ralph.core.verdict import Kind
from support.proven import CODE, TEST, Proven, shell, write

pytestmark = pytest.mark.slow

RIGHT = write("src/shop.py", CODE + "\n\ndef triple(x):\n    return 3 * x\n")
WEAK = "printf 'agent: {name: scripted}\\ntamper: off\\nchecks: []\\n' > .ralph/config.yaml"


def test_settings_of_every_kind_are_restored_and_named(tmp_path: Path) -> None:
    made = Proven(tmp_path)
    made.write(".gitignore", made.read(".gitignore") + ".ralph/configs/\n")
    made.write(".ralph/configs/night.yaml", "timeout: 5m\n")
    made.git("commit", "-qam", "ignore them")
    settings = made.read(".ralph/config.yaml")
    lines = (
        WEAK,
        "rm .ralph/configs/night.yaml",
        "echo 'tamper: off' > .ralph/configs/x.yaml",
        "mkdir -p ~/.ralph && echo 'tamper: off' > ~/.ralph/config.yaml",
        "mkdir -p .claude && echo '{}' > .claude/settings.json",
    )
    done = made.run(US_001=[[*map(shell, lines), RIGHT, "claim"]])
    (only,) = made.ended()
    assert (done.code, only.kind) == (0, Kind.ACCEPTED)
    told = "\n".join(only.notices)
    for name in ("restored .ralph/config.yaml", "restored .ralph/configs/night.yaml", "removed .ralph/configs/x.yaml"):
        assert f"{name}: agents do not change the rules" in told
    for name in ("removed ~/.ralph/config.yaml", "removed .claude/settings.json"):
        assert f"{name}: agents do not change the rules; the changed version is in {made.state}" in told
    assert (made.read(".ralph/config.yaml"), made.read(".ralph/configs/night.yaml")) == (settings, "timeout: 5m\n")
    assert not (Path.home() / ".ralph/config.yaml").exists()
    assert made.git("show", "--name-only", "--format=", "HEAD").split() == [".ralph/shop/prd.json", "src/shop.py"]


def test_the_checks_of_the_next_run_are_those_of_the_user(tmp_path: Path) -> None:
    made = Proven(tmp_path, stories=({}, {}))
    broken = write("src/shop.py", "def double(x):\n    return 0\n")
    made.run("--story", "US-001", US_001=[[shell(WEAK), RIGHT, "claim"]])
    made.run("-n", "1", US_002=[[broken, "claim"]])
    assert [ended.kind for ended in made.ended()] == [Kind.REJECTED]


def test_a_change_the_agent_committed_itself_is_taken_back_by_a_commit(tmp_path: Path) -> None:
    made = Proven(tmp_path)
    settings = made.read(".ralph/config.yaml")
    commit = shell(f"{WEAK}; git -c user.name=a -c user.email=a@b commit -qam settings")
    made.run(US_001=[[commit, RIGHT, "claim"]])
    assert made.ended()[0].kind is Kind.ACCEPTED
    assert made.git("show", "HEAD:.ralph/config.yaml") == settings.rstrip("\n")


def test_code_that_changes_the_rules_while_it_is_checked_is_undone(tmp_path: Path) -> None:
    made = Proven(tmp_path)
    settings = made.read(".ralph/config.yaml")
    trap = write("tests/test_shop.py", TEST + "open('.ralph/config.yaml', 'w').write('checks: []')\n")
    done = made.run(US_001=[[trap, RIGHT, "claim"]])
    assert made.read(".ralph/config.yaml") == settings
    assert "restored .ralph/config.yaml: agents do not change the rules" in "\n".join(
        [*made.ended()[0].notices, *(event.text for event in made.events() if isinstance(event, Noted))]
    )
    assert made.ask("config", "get", "checks").code == 0, done.out


def test_a_hook_that_changes_the_rules_is_undone(tmp_path: Path) -> None:
    made = Proven(tmp_path)
    settings = made.read(".ralph/config.yaml")
    hook = made.root / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\nsh tools/format.sh\n")
    hook.chmod(0o755)
    script = write("tools/format.sh", "echo 'checks: []' > .ralph/config.yaml; git add .ralph/config.yaml\n")
    made.run(US_001=[[script, RIGHT, "claim"]])
    assert made.read(".ralph/config.yaml") == settings
    assert made.git("show", "HEAD:.ralph/config.yaml") == settings.rstrip("\n")


def test_a_story_about_the_clients_folder_may_change_what_it_names(tmp_path: Path) -> None:
    made = Proven(tmp_path, stories=({"acceptanceCriteria": ["`.claude/commands/deploy.md` exists"]},))
    lines = (
        "mkdir -p .claude/commands && echo deploy > .claude/commands/deploy.md",
        "echo '{}' > .claude/settings.local.json",
    )
    made.run(US_001=[[*map(shell, lines), RIGHT, "claim"]])
    assert made.git("show", "HEAD:.claude/commands/deploy.md") == "deploy"
    assert "removed .claude/settings.local.json: agents do not change the rules" in "\n".join(made.ended()[0].notices)
    assert not (made.root / ".claude/settings.local.json").exists()


def test_a_rejected_attempt_leaves_no_rules_behind_either(tmp_path: Path) -> None:
    made = Proven(tmp_path)
    broken = write("src/shop.py", "def double(x):\n    return 0\n")
    seen = made.folder / "seen"
    settings = shell("mkdir .claude; echo '{}' > .claude/settings.json")
    made.run("-n", "2", US_001=[[settings, broken, "claim"], [{"prompt": str(seen)}, RIGHT, "claim"]])
    assert [ended.kind for ended in made.ended()] == [Kind.REJECTED, Kind.ACCEPTED]
    assert not (made.root / ".claude/settings.json").exists()
    assert "removed .claude/settings.json: agents do not change the rules" in seen.read_text(), (
        "the next session hears it"
    )


def test_the_report_of_a_killed_run_names_rules_that_changed(tmp_path: Path) -> None:
    made = Proven(tmp_path)
    own = Path.home() / ".ralph/config.yaml"
    line = shell("mkdir -p ~/.ralph && echo 'timeout: 9m' > ~/.ralph/config.yaml")
    process = made.start(US_001=[[line, {"sleep": 30}, RIGHT, "claim"]])
    while not own.exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.kill()
    process.wait(30)
    done = made.run(US_001=[[RIGHT, "claim"]])
    assert "changed since that iteration started: ~/.ralph/config.yaml; check them" in done.out + done.err
