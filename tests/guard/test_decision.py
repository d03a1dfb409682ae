"""The guard's answers at their edges: what cannot be read, what is too much, and what it costs."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ralph.guard.decision import is_plain, is_risky, judge_command
from support.guard_corpus import judge, load


@pytest.mark.parametrize("command", ["rm -rf 'open", "echo $(git push", "(curl x | sh", "if true; then sudo id"])
def test_a_risky_command_that_cannot_be_read_is_denied(command: str) -> None:
    assert judge(command).category == "unreadable"


@pytest.mark.parametrize("command", ["echo 'it is open", "ls (x", "pytest -k 'a or b", "then", "fi"])
def test_a_harmless_one_is_allowed(command: str) -> None:
    assert not judge(command).denied


def test_a_command_that_is_too_long_to_read_is_denied_if_it_is_risky() -> None:
    assert judge("rm -rf build " + "x" * 100_001).category == "unreadable"
    assert not judge("echo " + "x" * 100_001).denied
    assert judge("echo " + "x" * 90_000 + "; rm -rf /").category == "destruction"


@pytest.mark.parametrize("command", ["", " ", "\n", "#", ";", "&&", "\0", "\ufeff", "\ud800"])
def test_nothing_is_nothing(command: str) -> None:
    assert not judge(command).denied


HEAVY = {
    "substitutions in substitutions": "echo " + "$(" * 2000 + "ls" + ")" * 2000,
    "parentheses": "(" * 5000 + ")" * 5000,
    "braces": "echo " + "{" * 20_000,
    "many words by braces": "echo " + "{a,b}" * 2000,
    "arithmetic": "echo " + "$((" * 20_000,
    "a text that triples": "a=xxxxxxxxxx;" + "a=$a$a$a;" * 40 + "rm $a",
    "functions that call each other": "f0(){ ls; }\n"
    + "".join(f"f{i}(){{ f{i - 1}; f{i - 1}; f{i - 1}; }}\n" for i in range(1, 20))
    + "f19; rm x",
    "loops in loops": "for a in {1..50}; do for b in {1..50}; do for c in {1..50}; do rm $a$b; done; done; done",
    "branches": "if a; then x=1; else x=2; fi; " * 40 + "rm $x",
    "a function that calls itself": "f() { f; f; }; f; rm x",
    "eval of itself": 'x=\'eval "$x"\'; eval "$x"',
    "aliases of each other": "alias a='b x'; alias b='a y'; a; rm x",
    "pipes": "ls | " * 4000 + "ls",
    "python loops": "python3 -c '"
    "import os\nfor a in range(50):\n for b in range(50):\n  for c in range(50):\n   os.remove(str(a))'",
    "python in parentheses": "python3 -c '" + "(" * 3000 + ")" * 3000 + "'",
}


@pytest.mark.parametrize("name", HEAVY)
def test_no_command_keeps_the_guard_busy(name: str) -> None:
    started = time.process_time()
    judge(HEAVY[name])
    assert time.process_time() - started < 3


@given(st.text(max_size=120))
@settings(max_examples=300)
def test_every_text_has_an_answer(text: str) -> None:
    assert judge(text).denied in (True, False)


@given(
    st.lists(
        st.sampled_from(
            [
                "rm",
                "-rf",
                "/",
                "~",
                "*",
                "$x",
                "$(ls)",
                "`a`",
                "|",
                "&",
                "&&",
                ";",
                ">",
                "<",
                ">>",
                "'a'",
                '"$b"',
                "{",
                "}",
                "(",
                ")",
                "if",
                "then",
                "fi",
                "for",
                "in",
                "do",
                "done",
                "$'\\x41'",
                "${x:-y}",
                "git",
                "push",
                "eval",
                "bash",
                "-c",
                "sudo",
                "#x",
                "\\",
                "\n",
                "<<<",
                "!",
            ]
        ),
        max_size=14,
    ).map(" ".join)
)
@settings(max_examples=400)
def test_every_mixture_of_shell_words_has_an_answer(text: str) -> None:
    assert judge(text).denied in (True, False)


def test_plain_commands_are_answered_without_reading_them() -> None:
    assert is_plain("npm test")
    assert is_plain("git status && git diff HEAD | head -20")
    for command in ("rm x", "git push", "ls $(x)", "cat ~/.ssh/id_rsa", "echo 'a'", "ls > x", "git diff --output=x"):
        assert not is_plain(command), command


def test_no_dangerous_command_is_plain() -> None:
    assert [line.command for line in load("dangerous") if is_plain(line.command)] == []


def test_every_dangerous_command_looks_risky_or_is_read_at_least() -> None:
    """`is_risky` is asked only about what cannot be read; it should not be far off for the rest."""
    lines = load("dangerous")
    assert sum(is_risky(line.command) for line in lines) > 0.9 * len(lines)


IMPORTS = """
import sys
before = set(sys.modules)
from ralph.guard.decision import judge_command
assert judge_command({command!r}, "/work", {{}}).denied is {denied}
print(*sorted(set(sys.modules) - before))
"""


def loaded(command: str, denied: bool = False) -> set[str]:
    code = IMPORTS.format(command=command, denied=denied)
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_a_plain_command_costs_next_to_nothing() -> None:
    new = {name for name in loaded("npm test") if not name.startswith("ralph.guard")}
    assert new <= {"ralph"}


def test_a_command_is_parsed_without_the_slow_modules() -> None:
    new = {name for name in loaded("rm -rf /", denied=True) if not name.startswith("ralph.guard")}
    assert new <= {"ralph"}


def test_the_workspace_may_be_wider_than_the_folder_of_the_command() -> None:
    section: dict[str, object] = {"workspace": "/srv/app", "writable": ["/srv/scratch"]}
    assert not judge_command("rm -rf ../dist", "/srv/app/src", section).denied
    assert judge_command("rm -rf ..", "/srv/app/src", section).denied
    assert judge_command("rm -rf ../../other", "/srv/app/src", section).denied
    assert not judge_command("rm -rf /srv/scratch/x", "/srv/app/src", section).denied


@pytest.mark.parametrize(
    ("command", "denied"),
    [
        ("rm -rf dist", False),
        ("rm -rf *", True),
        ("rm -rf ../x", True),
        ("rm -rf /workspace/dist", False),
        ("rm -rf /workspace", True),
        ("rm -rf /repo/.git", True),
        ("cd /app && rm -rf node_modules", False),
        ("cd ~/code/app && rm -rf dist", False),
        ("cd ~/code/app && rm -rf *", True),
        ("cd ~ && rm -rf *", True),
        ("cd ~/Documents && rm -rf x", True),
        ("cd /etc && rm -rf nginx", True),
    ],
)
def test_without_a_folder_what_looks_like_a_workspace_is_one(
    command: str, denied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert judge_command(command, "", {}).denied is denied
