"""The syntax of the commands that verify."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from ralph.cli.arguments import add_action, add_config, add_json, add_output, add_project, add_trust, add_workspace


def verify(parser: ArgumentParser) -> None:
    """Run the checks now, as the loop would: for the next story, for one story, or
    all of them.

    They run in the workspace, not in a clean checkout, and prove no story: only a run
    looks for a test that fails without the change. A full pass (--final) is recorded;
    `ralph proof audit` compares it with the tree.

    examples:
      ralph verify                  the checks for the next story
      ralph verify --story US-003   for this story
      ralph verify --final          every check of every story
    """
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--story", metavar="ID", help="the checks of this story")
    which.add_argument("--final", action="store_true", help="every check of every story")
    add_trust(parser)
    add_workspace(parser, json=True)


def proof(parser: ArgumentParser) -> None:
    """Show how well a story is proven: its grade, the test or check that fails without
    the change, both passes of the checks, the tree, the run and the commit.

    examples:
      ralph proof US-003           the evidence for one story
      ralph proof US-003 --json    with digests and all details, for an archive
    """
    parser.add_argument("story", metavar="STORY", help="the ID of the story")
    add_workspace(parser, json=True)


def proof_audit(parser: ArgumentParser) -> None:
    """Re-verify every finished story from its proof and its commit, and list which of
    them still hold for the current tree, and how well each is proven.

    Exit code 0 if all of them hold, 1 otherwise. `ralph verify --final` runs the
    checks again.

    examples:
      ralph proof audit              every finished story
      ralph proof audit --json       for scripts and CI
    """
    add_workspace(parser, json=True)


_SETTINGS = (
    "agent.model budget.run_usd max_run_time timeout idle_timeout agent.name agent.command agent.script "
    "agent.allowed_tools agent.disallowed_tools permissions web on_limit baseline"
)


def proof_exam(parser: ArgumentParser) -> None:
    """Examine a finished plan: one session that has not seen the implementation's
    history writes end-to-end tests that combine stories.

    Tests that pass are committed as regression tests. Each test file that fails
    becomes a new story, with the test as its check; `ralph run` works on it. Exit
    code 1: the exam added stories, or its session had no result.

    examples:
      ralph proof exam                        one round, when every story is done
      ralph proof exam --model opus           with another model than the one that implemented
      ralph proof exam --dry-run              show the prompt only
    """
    from ralph.config.flags import add_options

    parser.add_argument("--dry-run", action="store_true", help="show prompt, command and checks; change nothing")
    add_options(parser, _SETTINGS.split())
    add_workspace(parser)
    before = parser.add_argument_group("before the exam")
    add_trust(before)
    before.add_argument("--stash", action="store_true", help="stash uncommitted changes first")
    add_config(before)
    add_output(parser.add_argument_group("output"))
    parser.set_defaults(exam_only=True, once=False, worktree=False, reset_circuit=False, detach=False)


def rescue(parser: ArgumentParser) -> None:
    """List, show, restore or drop work that was not accepted. Every rejected attempt is kept.

    examples:
      ralph rescue list
      ralph rescue show 20260115-093012-a1b2/3
      ralph rescue restore 20260115-093012-a1b2/3
    """
    commands = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    _command(commands, "list", "list rejected attempts, newest first", "ralph rescue list --json")
    for name, summary in (
        ("show", "show what an attempt changed"),
        ("restore", "restore the files of an attempt to the working tree, uncommitted"),
        ("drop", "delete an attempt for good"),
    ):
        one = _command(commands, name, summary, f"ralph rescue {name} 20260115-093012-a1b2/3")
        one.add_argument("name", metavar="NAME", help="RUN/ITERATION, from `ralph rescue list`")


def _command(commands: Any, name: str, summary: str, example: str) -> ArgumentParser:
    parser = add_action(commands, name, summary, example)
    add_project(parser)
    add_json(parser)
    return parser
