from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from ralph.cli.arguments import Parser, add_workspace
from ralph.cli.main import parser_of
from ralph.cli.table import entries
from ralph.config.flags import add_options, flags_of
from ralph.config.keys import options
from ralph.config.layers import load
from ralph.core.errors import UsageError

ALL = [key for key, option in options().items() if option.flags or option.off]


def parse(*argv: str) -> argparse.Namespace:
    parser = Parser(prog="x")
    add_options(parser, ALL)
    return parser.parse_args(argv)


def test_no_two_options_share_a_flag() -> None:
    assert parse() == argparse.Namespace()  # argparse refuses to add a flag twice


def test_every_flag_belongs_to_a_command() -> None:
    offered = {
        (action.dest.removeprefix("setting:"), flag)
        for name in entries()
        for action in parser_of(name)._actions
        for flag in action.option_strings
    }
    declared = {
        (key, flag)
        for key, option in options().items()
        for flag in (*option.flags, *option.off, *dict(option.constants))
    }
    assert len(declared) > 50
    assert declared - offered == set(), "docs/config.md lists flags that no command has: see cli/syntax"


def test_only_what_is_given_is_a_flag() -> None:
    assert flags_of(parse()) == {}
    assert flags_of(parse("-n", "5", "--model", "opus")) == {"max_iterations": 5, "agent.model": "opus"}


def test_a_bare_number_in_the_timeout_flag_is_minutes() -> None:
    assert flags_of(parse("-t", "15")) == {"timeout": 900}
    assert flags_of(parse("--timeout=90s")) == {"timeout": 90}


def test_switches_go_both_ways_and_the_last_one_counts() -> None:
    assert flags_of(parse("--skip-review")) == {"review.when": "never"}
    assert flags_of(parse("--no-review")) == {"review.when": "never"}
    assert flags_of(parse("--no-archive")) == {"archive.on_complete": False}
    assert flags_of(parse("--skip-review", "--review")) == {"review.when": "always"}


def test_a_flag_can_stand_for_a_value() -> None:
    assert flags_of(parse("--dangerously-skip-permissions")) == {"permissions": "skip"}
    assert flags_of(parse("--no-dangerously-skip-permissions")) == {"permissions": "guard"}
    assert flags_of(parse("--dangerously-skip-permissions", "--permissions", "client")) == {"permissions": "client"}
    with pytest.raises(UsageError, match="one of client, guard, skip"):
        parse("--permissions", "all")


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["-n", "many"], "expected a whole number of at least 0, found the text 'many'"),
        (["-n=-1"], "of at least 0"),
        (["--max-time", "90"], "use 90s for seconds or 90m for minutes"),
        (["--idle-timeout", "5"], "use 5s for seconds or 5m for minutes"),
        (["-t", "soon"], "90s, 90m or 1h30m"),
        (["--push", "always"], "one of after-story, never"),
        (["--prd", "../1"], "whole number"),
        (["--agent-command", "'"], "not a valid command line"),
    ],
)
def test_a_wrong_flag_is_wrong_usage(argv: list[str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        parse(*argv)


def test_flags_become_settings_with_their_name_as_origin() -> None:
    flags = flags_of(parse("-n", "5", "--allowed-tools", "Read,Bash(a,b)", "--skip-review", "-t", "2"))
    loaded = load(root=None, layout="", name=None, env={}, flags=flags)
    assert loaded.config.agent.allowed_tools == ("Read", "Bash(a,b)")
    assert (loaded.config.timeout, loaded.config.review.enabled) == (120, False)
    assert str(loaded.origin("max_iterations")) == "--max-iterations"


def test_the_options_that_choose_a_plan_count_too(tmp_path: Path) -> None:
    parser = Parser(prog="x")
    add_workspace(parser)
    parser.add_argument("--name")
    args = parser.parse_args(["-f", "login", "--prd", "3", "--name", "not a setting"])
    assert flags_of(args) == {"feature": "login", "prd": "3"}


def test_help_names_the_key_and_the_choices() -> None:
    parser = Parser(prog="x")
    add_options(parser, ["push", "max_iterations"])
    text = " ".join(parser.format_help().split())
    assert "story, never [push]" in text
    assert "[max_iterations]" in text
