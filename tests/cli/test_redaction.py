"""A run in which agent, check and plan print secrets: none of them is in anything that Ralph writes or shows."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

from support.cli import Completed, ralph, ralph_here
from support.proven import Proven, write

TOKEN = "ghp_" + "Zx9q" * 9
VALUE = "Sup3r-s3cret-Value"
OWN = "ticket-4711-0815"
KEY = "MIIEowIBAAKCAQEAv3ryPr1vateKeyMaterial0123456789abcdefghijklmnop"
PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{KEY}\n{KEY[::-1]}\nAbCd9w==\n-----END RSA PRIVATE KEY-----"
SECRETS = (TOKEN, VALUE, OWN, KEY, KEY[::-1], "AbCd9w==")
PLANS = {"plan.before", "plan.after", "rules.before"}
"""Copies of what the user wrote."""


def everywhere(folders: list[Path]) -> dict[str, str]:
    """Files that hold a secret, and the first of them."""
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file() and ".git" not in path.parts]
    return {str(path): secret for path in files for secret in SECRETS if secret.encode() in path.read_bytes()}


def run(folder: Path) -> tuple[Proven, Completed, Path]:
    sent = folder / "sent.jsonl"
    text = f"the token {TOKEN}, the password {VALUE} and {OWN}"
    note = shlex.quote(f"{text}\n{PEM}\nafter the key")
    loud = folder / "loud.txt"
    loud.write_text(f"check: {text}\n")
    made = Proven(
        folder,
        stories=[{"title": f"Use {TOKEN}", "description": f"{text}\n{PEM}\nand more"}, {}],
        checks=[{"name": "loud", "command": f"cat {shlex.quote(str(loud))}; ! grep -rqs bad src"}],
        redact=["ticket-[0-9-]+"],
        notify={"command": ["sh", "-c", f"cat >> {shlex.quote(str(sent))}"], "on": ["failed", "blocked", "stopped"]},
    )
    printed = [{"say": text}, {"print": text}, {"print": {"text": text, "to": "stderr"}}]
    call = f"curl -H 'Authorization: Bearer {TOKEN}' {VALUE} {OWN}"
    used = [{"use": {"tool": "Bash", "input": {"command": call}}}, {"learn": text}, {"prompt": "../prompt-seen.txt"}]
    added = {"run": f"printf '%s\\n' {note} >> .ralph/shop/progress.txt"}
    script = made.script(
        US_001=[
            [*printed, write("src/a.py", f'bad = """{PEM}"""\n'), "claim"],
            [*used, added, write("src/a.py", "good = 1\n"), "claim"],
        ],
        US_002=[[{"ask": text}]],
    )
    command = ("run", "--plain", "--trust", "-v", "--agent-script", str(script), "-n", "8")
    return made, ralph(*command, cwd=made.root, env={"DEPLOY_PASSWORD": VALUE}), sent


COMMANDS = (
    ("log", "-v"),
    ("log", "--json"),
    ("replay",),
    ("log", "--check"),
    ("status",),
    ("status", "--json"),
    ("task", "show", "US-001"),
    ("report",),
    ("report", "--json"),
    ("report", "--markdown", "-"),
    ("prompt",),
    ("learnings",),
    ("proof", "US-001"),
)


def test_no_secret_of_a_run_is_written_or_shown(tmp_path: Path) -> None:
    made, done, sent = run(tmp_path)
    assert "[redacted DEPLOY_PASSWORD]" in done.out + done.err
    (rescue,) = ralph_here("rescue", "list", "--json", cwd=made.root).json
    for command in (*COMMANDS, ("rescue", "show", rescue["name"])):
        shown = ralph_here(*command, cwd=made.root, env={"DEPLOY_PASSWORD": VALUE})
        assert shown.out or shown.err, command
        assert not [secret for secret in SECRETS if secret in shown.out + shown.err], command

    assert "[redacted DEPLOY_PASSWORD]" in sent.read_text()
    prompt = (made.folder / "prompt-seen.txt").read_text()
    assert "[redacted DEPLOY_PASSWORD]" in prompt
    messages = made.git("log", "--format=%B", "--grep", "Ralph-Story")
    assert "feat(US-001): Use [redacted]" in messages
    for text in (done.out, done.err, sent.read_text(), prompt, messages):
        assert not [secret for secret in SECRETS if secret in text]

    held = everywhere([made.state, made.root / ".ralph", Path(os.environ["HOME"])])
    assert {Path(name).name for name in held} <= {"prd.json", "config.yaml"} | PLANS, held
    learnings = next((made.root / ".ralph").rglob("progress.txt"))
    assert "[redacted DEPLOY_PASSWORD]" in learnings.read_text()
    assert "after the key" in learnings.read_text()
    assert "and more" in ralph_here("task", "show", "US-001", cwd=made.root).out


def test_a_raw_log_can_still_be_replayed(tmp_path: Path) -> None:
    made, _, _ = run(tmp_path)
    raw = next(path for path in made.state.glob("runs/*/raw/0001*.log") if ".err" not in path.name)
    events = [json.loads(line) for line in raw.read_text().splitlines() if line.startswith("{")]
    assert [events[0]["type"], events[-1]["type"]] == ["system", "result"]
    assert "the token [redacted], the password [redacted DEPLOY_PASSWORD] and [redacted]" in raw.read_text()
    shown = ralph_here("replay", cwd=made.root)
    assert shown.code == 0
    assert "0 differ" in shown.out


def test_a_bad_pattern_is_an_error_that_names_the_key(tmp_path: Path) -> None:
    made = Proven(tmp_path, redact=["("])
    told = ralph_here("status", cwd=made.root)
    assert told.code == 65
    assert "redact" in told.err
    assert "not a regular expression" in told.err
