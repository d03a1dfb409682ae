"""`ralph plan`, `ralph add` and `ralph fix`: plan with an agent."""

from __future__ import annotations

import os
import sys
import time
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

import msgspec

from ralph.cli.arguments import layout_and_name
from ralph.cli.control import working_ref
from ralph.cli.dialogue import Listening, Terminal
from ralph.cli.output import ask, ask_line, ask_trust, emit_json, is_interactive, note, say, warn
from ralph.cli.show import as_json
from ralph.config.flags import flags_of
from ralph.core.errors import BadData, UsageError
from ralph.core.exit_codes import ExitCode
from ralph.core.text import clean, one_line, plural
from ralph.host.files import read_bytes
from ralph.host.process.table import require_process_control
from ralph.planning.answer import Form, schema_for
from ralph.planning.calls import Caller, Planned, add_answer, add_work, fix_answer, fix_fault, make_plan, take_answer
from ralph.planning.dialogue import Draft, Drafts
from ralph.planning.proposal import Nobody
from ralph.planning.target import Target, find_target, plan_target
from ralph.setup.scaffold import DEFAULT_LAYOUT, Request, choose_root
from ralph.workspace.find import open_ref
from ralph.workspace.plan_edit import prose
from ralph.workspace.trust import refuse_inside_loop

_LARGEST = 1_000_000
_PAGES = (".md", ".txt", ".markdown", ".rst", ".adoc")


def caller(args: Namespace) -> Caller:
    """The user at this terminal, or no one with --no-input."""
    if not args.no_input and not is_interactive():
        raise UsageError(
            "stdin is not a terminal, so no questions can be asked", hint="pass --no-input to plan without questions"
        )
    require_process_control()
    terminal = Terminal()
    if args.no_input:
        return Caller(
            person=Nobody(terminal, trusts=_is_trusted(args)),
            env=os.environ,
            trust=args.trust,
            listeners=(Listening(),),
        )
    return Caller(person=terminal, env=os.environ, trust=args.trust, ask=ask_trust, listeners=(Listening(),))


def _is_trusted(args: Namespace) -> bool:
    from ralph.workspace.trust import is_trusted_by

    return bool(args.trust) or is_trusted_by(os.environ)


def answer_text(args: Namespace) -> str:
    """The content of `--answer`: a finished plan, so nothing is asked and no other text is allowed."""
    if args.what is not None:
        raise UsageError("--answer already has the stories", hint="leave out either the text or --answer")
    args.no_input = True
    if args.answer != "-" and not os.path.lexists(args.answer):
        raise UsageError(
            f"--answer: file not found: {one_line(args.answer, 80)}", hint="`ralph plan --schema` describes its form"
        )
    return words(args.answer)[2]


def words(given: str | None) -> tuple[str, str, str]:
    """The source and text of the idea: from the words, a file, or stdin (`-`)."""
    if given is None:
        return "", "", ""
    if not given.strip():
        raise UsageError("the text is empty", hint="describe what you want in a sentence")
    if given == "-":
        text = _decoded(sys.stdin.buffer.read(_LARGEST + 1), "stdin")
        if len(text) > _LARGEST:
            raise UsageError(f"stdin has more than {_LARGEST:,} bytes", hint="write it to a file of the project")
        return "", "stdin", text
    path = Path(given)
    if len(given) < 1000 and "\n" not in given and os.path.lexists(path):
        if path.is_dir():
            raise UsageError(f"{one_line(given, 80)} is a folder", hint="name a file, or describe it in words")
        if not path.is_file():
            raise UsageError(
                f"{one_line(given, 80)} is not a regular file", hint="name a file, or describe it in words"
            )
        return "", given, _decoded(read_bytes(path, limit=_LARGEST), given)
    if path.suffix.lower() in _PAGES and len(given.split()) == 1:
        raise UsageError(f"file not found: {one_line(given, 80)}", hint="name a file, or describe it in words")
    return prose("the idea", given), "", ""


def _decoded(data: bytes, name: str) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadData(f"{name} is not UTF-8", hint="save it as UTF-8") from None
    if not text.strip():
        raise BadData(f"{name} is empty", hint="describe what you want in it")
    return clean(text)


def draft_for(args: Namespace, drafts: Drafts, given: Draft, question: str) -> Draft:
    """The interrupted draft if it is to be resumed, else the text of this call. Without text, the user is asked."""
    kept = drafts.read()
    is_empty = not (given.idea or given.source)
    if args.resume_draft:
        if kept is None:
            raise UsageError("no draft to resume", hint="leave out --resume-draft")
        if kept.plan != given.plan:
            raise UsageError(f"the draft is for {kept.plan}", hint="name that plan, or leave out --resume-draft")
        if not is_empty or given.layout or given.name or given.ralph_dir:
            hint = "leave out everything else, or --resume-draft"
            raise UsageError(f"--resume-draft resumes {kept.about()} as it was", hint=hint)
        return kept
    is_offered = kept is not None and kept.plan == given.plan and not args.no_input
    if kept is not None and is_offered and (kept.dialogue or kept.answer or is_empty):
        note(f"Found an interrupted draft: {kept.about()}.")
        if ask("Resume it?"):
            return kept
    if is_empty and question:
        if args.no_input:
            raise UsageError("nothing to plan", hint="pass an idea in quotes, a file, or - for stdin")
        idea = clean(ask_line(f"{question} (an empty line leaves)\n> "))
        if not idea:
            note("nothing was changed")
            raise KeyboardInterrupt
        return msgspec.structs.replace(given, idea=idea)
    return given


def held(work: Callable[[], Planned | None], args: Namespace, print_result: Callable[[Planned], None]) -> int:
    """Run it. Ctrl-C at a question changes nothing; the draft is kept."""
    try:
        planned = work()
    except KeyboardInterrupt:
        note("")
        note(f"interrupted; nothing was changed. `ralph {args.command} --resume-draft` resumes the draft")
        return ExitCode.INTERRUPTED
    if planned is None:
        note("dropped; nothing was changed")
        return ExitCode.UNFINISHED
    if args.json:
        emit_json(document(planned))
    else:
        print_result(planned)
    return ExitCode.COMPLETE


def document(planned: Planned) -> dict[str, object]:
    proposal, added = planned.proposal, planned.added
    ids = added.composed.new if added else proposal.composed.new
    plan = added.plan if added else proposal.after.plan
    ref = proposal.target.ref
    return {
        "root": ref.root,
        "layout": ref.layout,
        "plan": ref.path,
        "requirements": proposal.target.requirements,
        "stories": [as_json(story) for story in plan.stories if story.id in ids],
        "findings": proposal.problems,
        "made": planned.started.placed.made if planned.started else (),
        "archived": added.archived if added else (),
        "waits_for_run": added.waits if added else False,
    }


def print_added(planned: Planned) -> None:
    """Print what was added, where, and when a run uses it."""
    added, ref = planned.added, planned.proposal.target.ref
    assert added is not None
    for notice in added.notices:
        note(notice)
    if added.archived:
        say(f"archived: {', '.join(added.archived)} → .ralph/prd_archive.json")
    for story_id in added.composed.new:
        story = added.plan.story(story_id)
        if story is not None:
            after = f"  (after {', '.join(map(one_line, story.depends_on))})" if story.depends_on else ""
            say(f"added     {one_line(story.id)}  {one_line(story.title)}{after}")
            for criterion in story.criteria:
                say(f"            - {one_line(criterion)}")
            for command in story.verify:
                say(f"            $ {one_line(command)}")
    if added.waits:
        note("a run is in progress and adds them before its next iteration; their IDs may still change")
    elif not added.trusted:
        warn("the commands of this plan are not trusted yet: `ralph trust` shows them")
    else:
        note(f"in {ref.path.relative_to(ref.root)}; `ralph run` works on them")


def plan(args: Namespace) -> int:
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
    hint = "`ralph add` adds to it; --feature NAME starts another plan; `ralph plan archive` archives it"
    if args.no_input:
        raise UsageError(f"{where} already has {count}", hint=hint)
    if not ask(f"{where} has {count}, which will not change. Add to it?"):
        raise UsageError("nothing was changed", hint=hint)


def _print(planned: Planned) -> None:
    if planned.started is None:
        print_added(planned)
        return
    from ralph.cli.init import show_started

    for warning in planned.started.warnings:
        warn(warning)
    show_started(planned.started, has_stories=True)
    say(f"{plural(len(planned.proposal.composed.new), 'story')}: `ralph task list` shows them")


def add(args: Namespace) -> int:
    refuse_inside_loop(os.environ, "plan its own work")
    if args.answer is not None:
        text, who, target = prepare_answer(args)
        return held(lambda: add_answer(target, text, who, archive=not args.keep_done), args, print_added)
    who = caller(args)
    target, drafts, draft = prepare(args, "add", "What should be added?")
    return held(lambda: add_work(target, draft, drafts, who, archive=not args.keep_done), args, print_added)


def prepare_answer(args: Namespace) -> tuple[str, Caller, Target]:
    """The stories of `--answer`, and the plan they are added to."""
    text, who = answer_text(args), caller(args)
    ref, settings = open_ref(args)
    return text, who, plan_target(working_ref(args, ref), settings, time.time(), os.environ)


def prepare(args: Namespace, kind: str, question: str) -> tuple[Target, Drafts, Draft]:
    """The selected plan, and the request: from this call or from an interrupted draft."""
    idea, source, text = words(args.what)
    ref, settings = open_ref(args)
    ref = working_ref(args, ref)
    drafts = Drafts(ref.root, kind, os.environ)
    given = Draft(plan=ref.path.relative_to(ref.root).as_posix(), idea=idea or text, source=source)
    draft = draft_for(args, drafts, given, question)
    return plan_target(ref, settings, time.time(), os.environ), drafts, draft


def fix(args: Namespace) -> int:
    refuse_inside_loop(os.environ, "write its own stories")
    if args.answer is not None:
        text, who, target = prepare_answer(args)
        return held(lambda: fix_answer(target, text, who), args, print_added)
    who = caller(args)
    target, drafts, draft = prepare(args, "fix", "What is wrong?")
    return held(lambda: fix_fault(target, draft, drafts, who), args, print_added)
