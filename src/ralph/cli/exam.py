"""Examine a finished plan: one session that has not seen the implementation's
history writes end-to-end tests that combine stories.

Tests that pass are committed as regression tests. Each test file that fails
becomes a new story, with the test as its check; `ralph run` works on it. Exit
code 1: the exam added stories, or its session had no result."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from ralph.cli import run as run_command
from ralph.cli.arguments import add_workspace
from ralph.config.flags import add_options
from ralph.core.errors import SetupError, UsageError
from ralph.core.text import one_line, plural
from ralph.proof.acceptance_tests import has_check
from ralph.workspace.find import open_plan

EXAMPLES = """
ralph exam                        one round, when every story is done
ralph exam --model opus           with another model than the one that implemented
ralph exam --dry-run              show the prompt only
"""
_SETTINGS = (
    "agent.model",
    "budget.run_usd",
    "max_run_time",
    "timeout",
    "idle_timeout",
    "agent.name",
    "agent.command",
    "agent.script",
    "agent.allowed_tools",
    "agent.disallowed_tools",
    "permissions",
    "web",
    "on_limit",
    "baseline",
)
_FEW = 5


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="show prompt, command and checks; change nothing")
    add_options(parser, _SETTINGS)
    add_workspace(parser)
    before = parser.add_argument_group("before the exam")
    before.add_argument("--trust", action="store_true", help="trust the commands this workspace defines")
    before.add_argument("--stash", action="store_true", help="stash uncommitted changes first")
    before.add_argument("--config", metavar="NAME", help="also read .ralph/configs/NAME")
    run_command.add_output(parser.add_argument_group("output"))
    parser.set_defaults(
        exam_only=True, once=False, worktree=False, reset_circuit=False, detach=False, sandbox=False, no_sandbox=False
    )


def run(args: Namespace) -> int:
    opened = open_plan(args)
    undone = [story.id for story in opened.plan.stories if not story.is_done]
    if undone or not opened.plan.stories:
        ids = ", ".join(one_line(story, 40) for story in undone[:_FEW]) + (" …" if undone[_FEW:] else "")
        what = f"{plural(len(undone), 'story')} not done yet: {ids}" if undone else "the plan has no stories"
        raise UsageError(f"nothing to examine: {what}", hint="an exam needs a finished plan; `ralph run` finishes it")
    if not has_check(opened.settings.config, opened.plan):
        raise SetupError(
            "no check is configured that could run the tests of an exam",
            hint="set the project's test command under `checks:` in .ralph/config.yaml",
        )
    return run_command.run(args)
