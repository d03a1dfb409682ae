"""Plan with an agent: it reads the code, asks questions, and proposes requirements
and stories.

From an idea it asks as much as it needs. From requirements (a file, stdin, or
the page in this workspace) it derives the stories and asks only where they are
ambiguous. It cannot change files. You accept the plan, edit it, have it revised,
or drop it; until then only a draft is stored."""

from __future__ import annotations

import os
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path

from ralph.cli.arguments import add_json, add_new_plan, layout_and_name
from ralph.cli.output import ask, emit_json, say, warn
from ralph.cli.planning import add_planning_options, answer_text, caller, draft_for, held, print_added, words
from ralph.cli.words import plural
from ralph.config.flags import flags_of
from ralph.core.errors import UsageError
from ralph.planning.answer import Form, schema_for
from ralph.planning.calls import Planned, make_plan, take_answer
from ralph.planning.dialogue import Draft, Drafts
from ralph.planning.target import Target, find_target
from ralph.setup.scaffold import DEFAULT_LAYOUT, Request, choose_root
from ralph.workspace.trust import refuse_inside_loop

EXAMPLES = """
ralph plan "a command line to-do list"       from an idea
ralph plan requirements.md --layout steps    from written requirements
ralph plan                                   from the requirements here
ralph plan requirements.md --no-input        in CI: exit code 65 on findings
ralph plan --answer plan.json                a plan written elsewhere
"""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("what", nargs="?", metavar="IDEA|FILE", help="an idea in words, a file with requirements, or -")
    parser.add_argument("--schema", action="store_true", help="print the JSON Schema for --answer")
    add_json(parser)
    add_planning_options(parser)
    add_new_plan(parser)
    parser.set_defaults(command="plan")


def run(args: Namespace) -> int:
    if args.schema:
        emit_json(schema_for(Form(may_ask=False, requirements=True)))
        return 0
    refuse_inside_loop(os.environ, "plan its own work")
    answer = None if args.answer is None else answer_text(args)
    who = caller(args)
    idea, source, requirements = words(args.what)
    root = choose_root(args.project_dir, Path.cwd(), os.environ)
    drafts = Drafts(root, "plan", os.environ)
    layout, name = layout_and_name(args)
    given = Draft(
        layout=layout,
        name=name,
        ralph_dir=args.ralph_dir or "",
        idea=idea,
        source=source,
        requirements=requirements,
    )
    if answer is not None:
        target = _target(root, given, args)
        if target.has_stories:
            _confirm(target, args)
        return held(lambda: take_answer(target, given, answer, who), args, _print)
    has_page = bool(given.source or given.idea) or bool(_target(root, given, args).written)
    draft = draft_for(args, drafts, given, "" if has_page else "What should be built?")
    target = _target(root, draft, args)
    if target.written and draft.requirements and target.written.strip() != draft.requirements.strip():
        page = target.requirements.relative_to(root)
        warn(f"{page} is unchanged; the stories come from {draft.source}")
    if target.has_stories:
        _confirm(target, args)
    return held(lambda: make_plan(target, draft, drafts, who), args, _print)


def _target(root: Path, draft: Draft, args: Namespace) -> Target:
    request = Request(
        root=root,
        layout=draft.layout or DEFAULT_LAYOUT,
        name=draft.name,
        ralph_dir=draft.ralph_dir,
        now=time.time(),
    )
    flags = {key: value for key, value in flags_of(args).items() if key.startswith("planning.")}
    return find_target(request, os.environ, any_layout=not draft.layout, flags=flags)


def _confirm(target: Target, args: Namespace) -> None:
    """Refuse to replace an existing plan."""
    count = plural(len(target.plan.stories), "story")
    where = target.ref.path.relative_to(target.ref.root)
    hint = "`ralph add` adds to it; --feature NAME starts another plan; `ralph archive` archives it"
    if args.no_input:
        raise UsageError(f"{where} already has {count}", hint=hint)
    if not ask(f"{where} has {count}, which will not change. Add to it?"):
        raise UsageError("nothing was changed", hint=hint)


def _print(planned: Planned) -> None:
    if planned.started is None:
        print_added(planned)
        return
    from ralph.cli.init_view import show_started

    for warning in planned.started.warnings:
        warn(warning)
    show_started(planned.started, has_stories=True)
    say(f"{plural(len(planned.proposal.composed.new), 'story')}: `ralph task list` shows them")
