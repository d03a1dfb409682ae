"""Run the checks now, as the loop would: for the next story, for one story, or
all of them.

They run in the workspace, not in a clean checkout, and prove no story: only a run
looks for a test that fails without the change. A full pass (--final) is recorded;
`ralph audit` compares it with the tree."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace

from ralph.cli.arguments import add_json, add_workspace
from ralph.cli.output import ask, emit_json, is_interactive, note, paint, say, say_raw
from ralph.cli.words import duration, exceptions
from ralph.config.checks import ChosenCheck
from ralph.config.trust import Verdict
from ralph.core.errors import SetupError, UsageError
from ralph.core.evidence import CheckResult
from ralph.core.exit_codes import ExitCode
from ralph.core.plan import Story
from ralph.core.select import next_story
from ralph.core.text import one_line
from ralph.proof.verify import chosen_for, current_tree, keep_pass, pin, run_checks
from ralph.workspace.find import OpenPlan, find_repo, open_plan
from ralph.workspace.trust import ensure_trusted, gather

EXAMPLES = """
ralph verify                  the checks for the next story
ralph verify --story US-003   for this story
ralph verify --final          every check of every story
"""
_MOST_LINES = 20


def configure(parser: ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--story", metavar="ID", help="the checks of this story")
    which.add_argument("--final", action="store_true", help="every check of every story")
    parser.add_argument("--trust", action="store_true", help="trust the commands this workspace defines")
    add_json(parser)
    add_workspace(parser)


def run(args: Namespace) -> int:
    opened = open_plan(args)
    commands = gather(opened.root, opened.settings, [(opened.ref.path, opened.plan)])
    asks = _ask if is_interactive() and not args.json else None
    ensure_trusted(opened.root, commands, os.environ, flag=args.trust, ask=asks, report=note)
    story = None if args.final else _story(opened, args.story)
    chosen = chosen_for(opened.settings.config, opened.plan, story, "final" if args.final else "story")
    if not chosen:
        raise SetupError(
            "no check is configured", hint="set the project's test command under `checks:` in .ralph/config.yaml"
        )
    tell = (lambda result: None) if args.json else _show
    results = run_checks(chosen, opened.settings.config, opened.ref, os.environ, tell)
    passed = all(result.passed for result in results if result.required)
    if args.final:
        _remember(opened, chosen, results)
    if args.json:
        emit_json({"passed": passed, "story": story.id if story else None, "checks": results})
    else:
        said = f"all checks pass{exceptions(results)}" if passed else "not all checks pass"
        say(said, "green" if passed else "red")
    return ExitCode.COMPLETE if passed else ExitCode.UNFINISHED


def _story(opened: OpenPlan, wanted: str | None) -> Story:
    story = opened.plan.story(wanted) if wanted else next_story(opened.plan)
    if story is None:
        what = f"the plan has no story {wanted}" if wanted else "no story is open"
        raise UsageError(what, hint="`ralph verify --final` runs every check")
    return story


def _remember(opened: OpenPlan, chosen: tuple[ChosenCheck, ...], results: tuple[CheckResult, ...]) -> None:
    try:
        repo = find_repo(opened.ref, opened.settings, os.environ)
    except SetupError as error:
        note(f"the pass was not recorded: {error}")
        return
    tree = current_tree(repo, opened.ref, os.environ)
    pin(repo, opened.ref, tree)
    keep_pass(opened.ref, chosen, tree, results, os.environ)


def _show(result: CheckResult) -> None:
    style = "green" if result.passed else "red" if result.required else "yellow"
    word = "passed" if result.passed else "timed out" if result.timed_out else f"failed (exit code {result.code})"
    excuse = " (as before the last run)" if result.failed_before else "" if result.required else " (allowed)"
    told = f"{one_line(result.name, 80)}{excuse if not result.passed else ''}"
    say_raw(f"{paint(word, style):<8} {told}  {paint(duration(result.seconds), 'dim')}")
    if not result.passed:
        for line in result.tail.splitlines()[-_MOST_LINES:]:
            say(f"    {line}")
        if result.output and len(result.tail.splitlines()) > _MOST_LINES:
            say(f"    full output: {result.output}", "dim")


def _ask(verdict: Verdict) -> bool:
    for line in verdict.difference:
        note(line)
    return ask("Run these commands?")
