"""Completion is tried in the shells themselves, on a small made-up command line and on the real one."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import tree_sitter_powershell
from tree_sitter import Language, Parser

from ralph.cli.grammar import Argument, Command, Kind, Option, Value, read_all
from ralph.cli.shells import bash, fish, powershell, zsh
from ralph.cli.table import shown
from support.cli import ralph

SAMPLE = Command(
    (),
    "a sample",
    options=(Option(("-V", "--version"), "print the version"),),
    subcommands=(
        Command(
            ("task",),
            "change [a] story: it's \\easy",
            subcommands=(
                Command(
                    ("task", "done"),
                    "mark a story done",
                    options=(
                        Option(("--force",), "even so"),
                        Option(("-d", "--project-dir"), "the workspace", Value("DIR", Kind.FOLDER)),
                        Option(("--mode",), "how", Value("MODE", Kind.CHOICE, ("fast", "full", "careful"))),
                    ),
                    arguments=(Argument(Value("ID", Kind.STORY), "which"),),
                ),
                Command(
                    ("task", "split"),
                    "cut it",
                    arguments=(
                        Argument(Value("ID", Kind.STORY), "which"),
                        Argument(Value("TITLE"), "titles", repeats=True),
                    ),
                ),
            ),
        ),
        Command(("check",), "lint", arguments=(Argument(Value("PATH", Kind.FILE), "what", optional=True),)),
        Command(
            ("completion",), "a script", arguments=(Argument(Value("S", Kind.CHOICE, ("bash", "zsh", "fish")), "s"),)
        ),
    ),
)

# What is typed, with | for the space before the word under the cursor → what is offered.
OFFERS = {
    "ralph |": {"task", "check", "completion"},
    "ralph |c": {"check", "completion"},
    "ralph task |": {"done", "split"},
    "ralph task done |": {"US-001", "US-002"},
    "ralph task done |US-002": {"US-002"},
    "ralph task done --mode |": {"fast", "full", "careful"},
    "ralph task done --mode |f": {"fast", "full"},
    "ralph task done --mode fast |": {"US-001", "US-002"},
    "ralph task done --force |": {"US-001", "US-002"},
    "ralph task done -d task |": {"US-001", "US-002"},
    "ralph task done --project-dir |": {"a folder/"},
    "ralph completion |": {"bash", "zsh", "fish"},
    "ralph check |a": {"a file", "a folder/"},
}
OPTIONS = {
    "ralph |--": {"--version"},
    "ralph task done |--": {"--force", "--project-dir", "--mode"},
    "ralph task split |--": set(),
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to complete in, and a `ralph` that names two stories and some that are dangerous to a shell."""
    program = tmp_path / "bin" / "ralph"
    program.parent.mkdir()
    ids = "US-001\nUS-002\n"
    program.write_text(f"#!/bin/sh\n[ \"$*\" = 'task list --ids' ] && printf %s '{ids}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    folder = tmp_path / "here"
    (folder / "a folder").mkdir(parents=True)
    (folder / "a file").touch()
    return folder


def ask_bash(typed: str, place: Path, grammar: Command = SAMPLE) -> set[str]:
    before, _, current = typed.partition("|")
    words = [*before.replace("=", " = ").split(), current]
    (place.parent / "script").write_text(bash.script(grammar))
    quoted = " ".join(f"'{word}'" for word in words)
    code = (
        f"source '{place.parent}/script'; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; "
        'complete -p ralph >/dev/null && _ralph ralph; for one in "${COMPREPLY[@]}"; do echo "$one"; done'
    )
    done = subprocess.run(
        ["bash", "--norc", "--noprofile", "-c", code], cwd=place, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return set(done.stdout.splitlines())


def ask_fish(typed: str, place: Path) -> set[str]:
    (place.parent / "script").write_text(fish.script(SAMPLE))
    code = f"source '{place.parent}/script'; complete -C '{typed.replace('|', '')}'"
    done = subprocess.run(["fish", "--no-config", "-c", code], cwd=place, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return {line.partition("\t")[0].replace("\\ ", " ") for line in done.stdout.splitlines()}


def without_slash(words: set[str]) -> set[str]:
    return {word.removesuffix("/") for word in words}


@pytest.mark.parametrize("typed", [*OFFERS, *OPTIONS])
def test_bash_offers_what_can_follow(typed: str, place: Path) -> None:
    wanted = {**OFFERS, **OPTIONS}[typed]
    assert without_slash(ask_bash(typed, place)) == without_slash(wanted)


def test_bash_offers_values_after_an_equals_sign(place: Path) -> None:
    assert ask_bash("ralph task done --mode=|f", place) == {"fast", "full"}


@pytest.mark.parametrize("typed", [*OFFERS, *OPTIONS])
@pytest.mark.needs("fish")
def test_fish_offers_what_can_follow(typed: str, place: Path) -> None:
    offered = ask_fish(typed, place)
    wanted = {**OFFERS, **OPTIONS}[typed]
    # fish goes on to look inside of what is typed in full, and offers short flags beside long ones.
    assert without_slash(wanted) <= without_slash(offered)
    if typed in OFFERS and "project-dir" not in typed:
        assert without_slash(offered) == without_slash(wanted)


def test_ids_that_a_shell_would_run_are_not_offered(place: Path) -> None:
    program = place.parent / "bin" / "ralph"
    program.write_text("#!/bin/sh\ncat <<'END'\nUS-001\n$(touch pwned)\n`touch pwned`\nUS 2;touch pwned\n*\nEND\n")
    assert ask_bash("ralph task done |", place) == {"US-001"}
    assert not (place / "pwned").exists()


@pytest.mark.needs("zsh")
def test_zsh_takes_the_script_for_a_completion_function(place: Path) -> None:
    script = place.parent / "_ralph"
    for grammar in (SAMPLE, read_all()):
        script.write_text(zsh.script(grammar))
        subprocess.run(["zsh", "-n", str(script)], check=True)
        code = f"autoload -U compinit && compinit -u -D && source '{script}' && echo $_comps[ralph]"
        done = subprocess.run(["zsh", "-f", "-c", code], cwd=place, capture_output=True, text=True, check=True)
        assert (done.stdout, done.stderr) == ("_ralph\n", "")


def test_bash_completes_the_real_commands(place: Path) -> None:
    real = read_all()
    assert ask_bash("ralph |", place, real) == set(shown())
    shells = {"bash", "zsh", "fish", "powershell"}
    assert ask_bash("ralph completion |", place, real) == shells
    assert ask_bash("ralph config completion |", place, real) == shells
    assert ask_bash("ralph proof |", place, real) == {"audit", "exam", "US-001", "US-002"}
    assert "--search" in ask_bash("ralph learnings |--", place, real)
    assert {"list", "show", "done"} <= ask_bash("ralph task |", place, real)
    assert "--json" in ask_bash("ralph status |--", place, real)


@pytest.mark.parametrize("shell", ["bash", "fish", "zsh"])
def test_the_command_prints_a_script_the_shell_accepts(shell: str, tmp_path: Path) -> None:
    done = ralph("completion", shell, cwd=tmp_path)
    assert done.code == 0, done.err
    if program := shutil.which(shell):
        subprocess.run([program, "-n"], input=done.out, text=True, check=True)


@pytest.mark.parametrize("grammar", [SAMPLE, read_all()], ids=["sample", "real"])
def test_the_script_for_powershell_is_well_formed(grammar: Command) -> None:
    """PowerShell itself is not run by any test."""
    text = powershell.script(grammar)
    tree = Parser(Language(tree_sitter_powershell.language())).parse(text.encode())
    assert not tree.root_node.has_error
    assert "$global:RalphCommands['task'] = @(" in text
    keys = [line.partition(" = ")[0] for line in text.splitlines() if line.startswith("$global:") and "['" in line]
    assert len(keys) == len(set(keys))


def test_an_unknown_shell_is_a_usage_error(tmp_path: Path) -> None:
    done = ralph("completion", "bahs", cwd=tmp_path)
    assert done.code == 64
    assert "did you mean bash?" in done.err
