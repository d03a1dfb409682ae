"""`ralph verify` and `ralph proof`: run the checks, show and audit the proofs, examine a finished plan."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Sequence

from ralph.cli.output import ask_trust, emit_json, is_interactive, note, paint, say, say_raw, warn
from ralph.cli.show import grade_in_words
from ralph.config.checks import ChosenCheck
from ralph.core.errors import SetupError, UsageError
from ralph.core.evidence import CheckResult
from ralph.core.exit_codes import ExitCode
from ralph.core.plan import Story
from ralph.core.proof import KEPT_UNPROVEN, Grade
from ralph.core.select import next_story
from ralph.core.text import one_line, plural
from ralph.proof.acceptance_tests import has_check
from ralph.proof.records import Proof, from_commits, gather
from ralph.proof.verify import Audited, Standing, audit, chosen_for, current_tree, keep_pass, pin, run_checks
from ralph.state.places import workspace_state
from ralph.views.words import duration, exceptions, moment, seconds
from ralph.workspace.find import OpenPlan, find_repo, open_plan
from ralph.workspace.plan_edit import find_story
from ralph.workspace.trust import ensure_trusted
from ralph.workspace.trust import gather as gather_commands

_MOST_LINES = 20


def verify(args: Namespace) -> int:
    opened = open_plan(args)
    commands = gather_commands(opened.root, opened.settings, [(opened.ref.path, opened.plan)])
    asks = ask_trust if is_interactive() and not args.json else None
    ensure_trusted(opened.root, commands, os.environ, flag=args.trust, ask=asks, report=note)
    story = None if args.final else _story(opened, args.story)
    chosen = chosen_for(opened.settings.config, opened.plan, story, "final" if args.final else "story")
    if not chosen:
        raise SetupError(
            "no check is configured", hint="set the project's test command under `checks:` in .ralph/config.yaml"
        )
    tell = (lambda result: None) if args.json else show_result
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


def show_result(result: CheckResult) -> None:
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


_MOST_FILES = 5
_WHERE = {"checkout": "in a clean checkout of the commit", "in-place": "in the workspace (in-place)"}


def _from_commit(opened: OpenPlan, story: Story, known_runs: Sequence[str]) -> Proof | None:
    try:
        repo = find_repo(opened.ref, opened.settings, os.environ)
    except SetupError:
        return None
    return from_commits(repo, os.path.relpath(opened.ref.path, repo.root), known_runs).get(story.id)


def _say_passes(proof: Proof) -> None:
    """Where the checks ran, the second pass with the tests as they were, and what was not examined."""
    if proof.where:
        say(f"where      {_WHERE.get(proof.where, proof.where)}")
    if proof.restored:
        files = ", ".join(one_line(path, 80) for path in proof.restored[:_MOST_FILES])
        more = f" and {len(proof.restored) - _MOST_FILES} more" if len(proof.restored) > _MOST_FILES else ""
        result = "failed" if proof.changed_expectations else "passed"
        say(f"old tests  {result} with {plural(len(proof.restored), 'file')} as at the story's start: {files}{more}")
    for line in proof.changed_expectations:
        say(f"           {one_line(line, 200)}", "yellow")
    if proof.changed_expectations:
        say(
            f"           allowed: {proof.excuse or 'a review approved it'}"
            if proof.is_done
            else "           not approved"
        )
    for limit in proof.limits:
        say(f"limit      {one_line(limit, 200)}", "dim")


def show_proof(args: Namespace) -> int:
    opened = open_plan(args)
    story = find_story(opened.plan, args.story)
    found = gather(workspace_state(opened.root, os.environ), opened.ref)
    for problem in found.damaged:
        warn(problem)
    proof = found.stories.get(story.id) or _from_commit(opened, story, found.runs)
    if args.json:
        emit_json(proof)
        return ExitCode.COMPLETE if proof and proof.is_proven else ExitCode.UNFINISHED
    if proof is None:
        how = "marked done by hand" if story.is_done else f"it is {story.state.value}"
        say(f"{story.id}: not accepted by any run; {how}")
        return ExitCode.UNFINISHED
    say(f"{story.id} {one_line(story.title, 70)}", "bold")
    if proof.grade:
        say(f"grade      {grade_in_words(proof.grade)}", "yellow" if proof.grade == Grade.UNPROVEN else "green")
    for title, names in (("witness", proof.witnesses), ("missing", proof.missing if not proof.witnesses else ())):
        for name in names:
            say(f"{title:<10} {one_line(name, 160)}")
    accepted = "accepted" if proof.is_done else "kept"
    say(f"{accepted:<10} {moment(proof.at)}, run {proof.run}, iteration {proof.iteration}")
    say(f"commit     {proof.commit or 'none: no files were left to commit'}")
    for commit in proof.agent_commits:
        say(f"           {one_line(commit, 64)} by the agent")
    if proof.is_from_commit:
        say("           from the commit message only: the journal of that run was not found, and anyone who can", "dim")
        say("           commit can write the same text; `ralph verify --final` runs the checks", "dim")
    say(f"tree       {proof.tree}")
    say(f"check set  {proof.check_set}")
    for check in proof.checks:
        word = "passed" if check.passed else "failed" if check.required else "failed (allowed)"
        what = one_line(check.command or check.name, 80)
        facts = f"exit code {check.code}, {seconds(check.seconds)}, {check.digest[:12]}"
        say(f"  {word}  {what}  ({facts})")
    _say_passes(proof)
    if proof.unlisted:
        say(f"  and {proof.unlisted} more, which the commit does not list")
    if not proof.is_done:
        say(f"unproven: {KEPT_UNPROVEN}", "yellow")
    elif not proof.is_proven:
        say("unproven: no check ran for it", "yellow")
    return ExitCode.COMPLETE if proof.is_proven else ExitCode.UNFINISHED


_STYLES = {
    Standing.HOLDS: ("✓", "green"),
    Standing.LAPSED: ("~", "yellow"),
    Standing.UNPROVEN: ("?", "yellow"),
    Standing.BY_HAND: ("?", "yellow"),
    Standing.LOST: ("✗", "red"),
}


def audit_stories(args: Namespace) -> int:
    opened = open_plan(args)
    found = audit(opened, find_repo(opened.ref, opened.settings, os.environ), os.environ)
    for problem in found.damaged:
        warn(problem)
    if args.json:
        emit_json(found)
        return ExitCode.COMPLETE if found.is_clean else ExitCode.UNFINISHED
    width = max((len(_grade(one)) for one in found.stories), default=0)
    for one in found.stories:
        mark, style = _STYLES[one.standing]
        grade = _grade(one) if one.grade != one.standing.value else ""
        detail = f"  {one_line(one.detail, 100)}" if one.detail else ""
        standing = paint(f"{one.standing.value:<9}", style)
        say_raw(f"{paint(mark, style)} {one_line(one.story):<8} {standing} {grade:<{width}}{detail}".rstrip())
    if not found.stories:
        say("No finished stories.")
    say(f"last full pass: {moment(found.last_pass) if found.last_pass else 'never'}", "dim")
    if not found.is_clean:
        say("`ralph verify --final` runs every check on the current tree", "dim")
    return ExitCode.COMPLETE if found.is_clean else ExitCode.UNFINISHED


def _grade(one: Audited) -> str:
    return f"{one.grade}, in place" if one.where == "in-place" else one.grade


_FEW = 5


def exam(args: Namespace) -> int:
    from ralph.cli.run import run

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
    return run(args)
