"""Show how well a story is proven: its grade, the test or check that fails without
the change, both passes of the checks, the tree, the run and the commit."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from ralph.cli.arguments import add_json, add_workspace
from ralph.cli.output import emit_json, say, warn
from ralph.cli.show import grade_in_words
from ralph.cli.words import moment, plural, seconds
from ralph.core.errors import SetupError
from ralph.core.exit_codes import ExitCode
from ralph.core.plan import Story
from ralph.core.proof import KEPT_UNPROVEN, Grade
from ralph.core.text import one_line
from ralph.proof.records import Proof, from_commits, gather
from ralph.state.places import workspace_state
from ralph.workspace.find import OpenPlan, find_repo, open_plan
from ralph.workspace.plan_edit import find_story

EXAMPLES = """
ralph proof US-003           the evidence for one story
ralph proof US-003 --json    with digests and all details, for an archive
"""

_MOST_FILES = 5
_WHERE = {"checkout": "in a clean checkout of the commit", "in-place": "in the workspace (in-place)"}


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("story", metavar="STORY", help="the ID of the story")
    add_json(parser)
    add_workspace(parser)


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


def run(args: Namespace) -> int:
    opened = open_plan(args)
    story = find_story(opened.plan, args.story)
    found = gather(workspace_state(opened.root, os.environ), opened.ref.path)
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
