"""The guard against a corpus of what agents and attackers write: what must not run, and what must not be stopped."""

from __future__ import annotations

import base64
import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.hooks.guard.decide import judge_command

FOLDER = Path(__file__).parent / "corpus"
CWD = "/home/user/project"


def read(name: str) -> list[str]:
    return [json.loads(line)["command"] for line in (FOLDER / f"{name}.jsonl").read_text("utf-8").splitlines()]


DANGEROUS, HARMLESS = read("dangerous"), read("harmless")
PLAIN = ["rm -rf /", "rm -rf ~", "git push --force origin main", "sudo rm -rf /etc", "dd if=/dev/zero of=/dev/sda"]


def denied(command: str) -> bool:
    return judge_command(command, CWD, {}).denied


def test_the_corpus_is_large() -> None:
    assert len(DANGEROUS) >= 500
    assert len(HARMLESS) >= 400


def test_dangerous_commands_are_denied() -> None:
    missed = [command for command in DANGEROUS if not denied(command)]
    assert len(missed) <= 0.005 * len(DANGEROUS), missed


def test_harmless_commands_pass() -> None:
    stopped = [command for command in HARMLESS if denied(command)]
    assert len(stopped) <= 0.005 * len(HARMLESS), stopped


def test_a_denial_names_its_category_and_what_to_do_instead() -> None:
    for command in DANGEROUS:
        decision = judge_command(command, CWD, {})
        if decision.denied:
            assert decision.category
            assert len(decision.reason) > 20


def encoded(command: str) -> str:
    return f"echo {base64.b64encode(command.encode()).decode()} | base64 -d | sh"


def escaped(command: str) -> str:
    return "printf '" + "".join(f"\\x{byte:02x}" for byte in command.encode()) + "' | bash"


WRAPPERS: dict[str, Callable[[str], str]] = {
    "sh -c": lambda c: f"sh -c {shlex.quote(c)}",
    "bash -c": lambda c: f"bash -c {shlex.quote(c)}",
    "eval": lambda c: f"eval {shlex.quote(c)}",
    "env": lambda c: f"env FOO=1 {c}",
    "nohup": lambda c: f"nohup {c} &",
    "timeout": lambda c: f"timeout 10 {c}",
    "nice": lambda c: f"nice -n 5 {c}",
    "time": lambda c: f"time {c}",
    "command": lambda c: f"command {c}",
    "setsid": lambda c: f"setsid {c}",
    "subshell": lambda c: f"( {c} )",
    "group": lambda c: f"{{ {c}; }}",
    "and": lambda c: f"cd src && {c}",
    "or": lambda c: f"false || {c}",
    "sequence": lambda c: f"echo hi; {c}; echo bye",
    "pipe": lambda c: f"true | {c}",
    "background": lambda c: f"{c} &",
    "substitution": lambda c: f"echo $( {c} )",
    "backticks": lambda c: f"echo `{c}`",
    "process substitution": lambda c: f"cat <( {c} )",
    "if": lambda c: f"if true; then {c}; fi",
    "for": lambda c: f"for i in 1; do {c}; done",
    "while": lambda c: f"while true; do {c}; break; done",
    "function": lambda c: f"f() {{ {c}; }}; f",
    "trap": lambda c: f"trap {shlex.quote(c)} EXIT",
    "heredoc": lambda c: f"bash <<EOF\n{c}\nEOF",
    "here string": lambda c: f"bash <<< {shlex.quote(c)}",
    "xargs": lambda c: f"echo x | xargs -I{{}} sh -c {shlex.quote(c)}",
    "find": lambda c: f"find . -maxdepth 0 -exec sh -c {shlex.quote(c)} \\;",
    "base64": encoded,
    "printf": escaped,
    "python": lambda c: f"python3 -c {shlex.quote(f'import os; os.system({c!r})')}",
    "newline": lambda c: f"ls\n{c}",
}


@pytest.mark.parametrize("name", WRAPPERS)
def test_no_wrapper_hides_a_dangerous_command(name: str) -> None:
    through = [command for command in PLAIN if not denied(WRAPPERS[name](command))]
    assert through == []


NESTING = ("sh -c", "bash -c", "eval", "base64", "printf", "here string", "xargs", "find")
"""Those that take a whole command as a text. The others, combined at random, often make what no shell would run."""


@given(st.sampled_from(PLAIN), st.lists(st.sampled_from(NESTING), min_size=2, max_size=3))
def test_nor_do_two_or_three_of_them(command: str, names: list[str]) -> None:
    for name in names:
        command = WRAPPERS[name](command)
    assert denied(command), command


DATA: dict[str, Callable[[str], str]] = {
    "echo": lambda c: f"echo {shlex.quote(c)}",
    "grep": lambda c: f"grep -rnF {shlex.quote(c)} docs/",
    "commit message": lambda c: f"git commit -m {shlex.quote('Never run ' + c)}",
    "heredoc to a file": lambda c: f"cat > docs/danger.md <<'EOF'\n{c}\nEOF",
    "comment": lambda c: f"ls # {c}",
    "variable": lambda c: f'TEXT={shlex.quote(c)}; echo "$TEXT"',
    "python string": lambda c: f"python3 -c {shlex.quote(f'print({c!r})')}",
}


@pytest.mark.parametrize("name", DATA)
def test_talking_about_a_dangerous_command_is_harmless(name: str) -> None:
    stopped = [command for command in PLAIN if denied(DATA[name](command))]
    assert stopped == []


@given(st.text(max_size=120))
def test_no_text_breaks_the_guard(text: str) -> None:
    judge_command(text, CWD, {})


def test_rules_of_the_user_come_first() -> None:
    allow: dict[str, object] = {"allow": [{"program": "git", "args": "push origin *", "category": ""}]}
    assert not judge_command("git push origin feature", CWD, allow).denied
    assert judge_command("git push --force", CWD, allow).denied
    deny: dict[str, object] = {"deny": [{"program": "npm", "args": "install *", "category": ""}]}
    assert judge_command("npm install left-pad", CWD, deny).denied
    assert not judge_command("npm test", CWD, deny).denied
