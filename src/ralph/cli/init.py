"""`ralph init`: set up Ralph in a project and start a plan."""

from __future__ import annotations

import os
import time
from argparse import Namespace
from pathlib import Path

import msgspec
from msgspec import Struct

from ralph.cli.arguments import layout_and_name
from ralph.cli.init_dialogue import (
    REQUIREMENTS,
    Questions,
    ask_cost,
    ask_files,
    ask_first_story,
    ask_test_command,
    choose_agent,
    requirements_file,
    run_and_decide,
    show_agent,
    show_place,
)
from ralph.cli.output import emit_json, note, paint, say, say_raw, warn
from ralph.cli.syntax.plan import PERMISSIONS
from ralph.config.durations import parse_duration
from ralph.core.errors import UsageError
from ralph.core.plan import Plan, Story
from ralph.core.ports import PlanRef, ProjectFacts
from ralph.core.text import one_line, plural
from ralph.plans.plan_edits import next_id
from ralph.plans.registry import LAYOUTS, layout, traits
from ralph.setup.check_trials import Trial
from ralph.setup.project_files import RealTree
from ralph.setup.scaffold import (
    CONFIG,
    DEFAULT_LAYOUT,
    Request,
    Started,
    branch_prefix,
    choose_layout,
    choose_root,
    refer,
    refuse_two_plans_in_one_folder,
    start_plan,
)
from ralph.setup.toolchain import Toolchain, find
from ralph.workspace.find import repository_of
from ralph.workspace.trust import is_inside_loop


def show_started(
    started: Started, *, with_checks: bool = True, has_stories: bool = False, next_steps: bool = True
) -> None:
    ref, placed = started.ref, started.placed
    say_raw(paint(f"{one_line(str(ref.root))}: plan layout {ref.layout}", "bold"))
    for word, style, paths in (
        ("created", "green", placed.made),
        ("extended", "green", [path for path in placed.replaced if path == ".gitignore"]),
        ("replaced", "yellow", [path for path in placed.replaced if path != ".gitignore"]),
        ("kept", "dim", (*placed.kept, *placed.same)),
    ):
        for path in paths:
            say_raw(f"  {paint(f'{word:<9}', style)}{one_line(path)}")
    for path in placed.backups:
        say(f"  the old one is kept as {path}")
    if not placed.touched:
        note("all files already exist; --force writes fresh ones and keeps the old ones beside them")
    if with_checks:
        _show_checks(started)
    if next_steps:
        show_next(started, has_stories=has_stories)


def _show_checks(started: Started) -> None:
    if not started.checks and not started.checks_in:
        return
    if not started.checks:
        ref = started.ref
        places = f"`verifyCommands` in {ref.path.relative_to(ref.root)}, or " if traits(ref.layout).keeps_checks else ""
        add = f"add the project's test command to {places}`checks:` in {CONFIG}"
        note(f"no check is configured, so nothing can be proven; {add}", "yellow")
        return
    where = started.checks_in
    say()
    say(f"checks, in {where}:" if where else "also detected; add those you want to the checks:", "bold")
    width = max(len(check.name) for check in started.checks)
    for check in started.checks:
        say(
            f"  {check.name:<{width}}  {check.line}  ({check.why}{f': {check.file}' if check.file else ''})", folds=True
        )


def show_next(started: Started, *, has_stories: bool, is_committed: bool = False, has_own_work: bool = False) -> None:
    ref = started.ref
    where = layout(ref.layout).locations(ref)
    documents = (
        (where.requirements, "why they are needed"),
        (where.specs, "the details"),
        (where.readme, "where to look things up"),
    )
    also = next((f", and {what} to {path.relative_to(ref.root)}" for path, what in documents if path), "")
    say()
    say("next:", "bold")
    here = ref.path.relative_to(ref.root)
    add = 'ralph task add "TITLE" --criterion "what must be true when it is done"'
    steps = [] if has_stories else [f"{add}     or write your stories to {here}{also}, or `ralph plan`"]
    if not started.is_repository:
        steps.append("git init        a run needs a git repository")
    steps += ["ralph check     check that the plan is ready to run"]
    if has_own_work:
        steps.append("git add -A && git commit     a run starts only when your own work is committed")
    elif started.placed.touched and started.is_repository and not is_committed:
        steps.append("git add -A && git commit     optional: a run starts from what is committed")
    steps += ["ralph run       work through the plan"]
    for number, step in enumerate(steps, 1):
        say(f"  {number}. {step}", folds=True)


class _Answers(Struct, frozen=True):
    """The choices made before any file is written."""

    toolchain: Toolchain
    trials: tuple[Trial, ...] = ()
    stories: tuple[Story, ...] = ()
    settings: dict[str, str] = {}
    caches: tuple[str, ...] = ()
    plans: bool = False
    """Whether an agent writes the stories afterwards."""


def run(args: Namespace) -> int:
    _require_sense(args)
    questions = Questions.at_terminal(wanted=not args.no_input and not args.json)
    if args.examples:
        return _examples(args)
    root = _new_folder(args) if args.new else choose_root(args.project_dir, Path.cwd(), os.environ)
    wanted = args.layout or (DEFAULT_LAYOUT if args.ralph_dir else None)
    name, origin = choose_layout(root, wanted, os.environ)
    for other, error in LAYOUTS.third_party().items():
        if error and other != name:
            warn(f"{error.message} ({error.hint})")
    if args.source is not None:
        return _plan(args, root, name, str(args.source))
    request = Request(
        root=root,
        layout=name,
        name="" if args.new else args.name,
        ralph_dir=args.ralph_dir,
        force=args.force,
        checks=not args.no_checks,
        tdd=args.tdd,
        now=time.time(),
        branch_prefix=branch_prefix(root, name, os.environ),
    )
    ref = refer(request)
    refuse_two_plans_in_one_folder(ref)
    if origin and not args.json:
        note(f"layout {name}: from {origin}", "dim")
    return _start(args, questions, request, ref)


def _require_sense(args: Namespace) -> None:
    chosen, feature = layout_and_name(args)
    args.layout = chosen or None
    names = {name for name in (args.name, args.named, feature) if name}
    if len(names) > 1:
        hint = "NAME, --name, --feature and --prd mean the same"
        raise UsageError(f"two different names: {', '.join(sorted(names))}", hint=hint)
    args.name = next(iter(names), "")
    args.ralph_dir = args.ralph_dir or ""
    if args.source is None and not args.plan and (args.model is not None or args.trust):
        raise UsageError("--model and --trust belong to --from and --plan", hint="name a file: --from FILE")
    if args.source is not None and (args.force or args.no_checks or args.tdd or args.story):
        raise UsageError("--from excludes --force, --no-checks, --tdd and --story", hint="leave them out")
    if args.source is not None and args.agent is not None:
        raise UsageError("--from excludes --agent", hint="`ralph config set agent.name NAME` first, or `ralph plan`")
    if args.story is not None and (args.plan or not args.story.strip()):
        raise UsageError("--story needs a title and excludes --plan", hint='e.g. --story "Log in by email"')
    if args.test_command is not None and (args.source is not None or args.no_checks or not args.test_command.strip()):
        hint = 'e.g. --test-command "pytest -q"'
        raise UsageError("--test-command needs a command and excludes --from and --no-checks", hint=hint)
    if args.criterion and args.story is None:
        raise UsageError("--criterion belongs to --story", hint='e.g. --story "Log in" --criterion "…"')
    if args.new and not args.name:
        raise UsageError("--new needs the name of the folder", hint="e.g. `ralph init shop --new`")
    if (seconds := parse_duration(args.check_timeout)) is None or not seconds:
        raise UsageError(f"--check-timeout {one_line(args.check_timeout, 40)!r} is not a time", hint="e.g. 90s or 5m")


def _start(args: Namespace, questions: Questions, request: Request, ref: PlanRef) -> int:
    from ralph.setup.repository import hidden_by, uncommitted, unhide

    root, env = request.root, os.environ
    _repository(args, questions, root)
    before = uncommitted(root, env)
    chosen = choose_agent(root, args.agent)
    if not args.json:
        show_agent(root, chosen, only_missing=not questions.asks)
    is_new = args.force or not ref.path.exists()
    answers = _ask(args, questions, request, before) if is_new else _Answers(Toolchain())
    if is_new:
        request = _answered(request, ref, answers)
    if chosen.why and not chosen.is_default and (is_new or args.agent):
        request = msgspec.structs.replace(request, settings={"agent.name": chosen.name, **request.settings})
    notes = []
    if hidden := hidden_by(ref.path, root, env):
        text = f"{hidden}, so the plan would not be in git."
        if questions.yes(f"{text} Fix .gitignore?", args.fix_gitignore, unasked=False):
            notes.append(unhide(root))
        else:
            warn(f"{text} Pass --fix-gitignore to change it.")
    started = start_plan(request, env)
    for warning in started.warnings:
        warn(warning)
    if not args.json:
        show_started(started, with_checks=not args.no_checks, next_steps=False)
        show_place(started)
        list(map(note, notes))
    if answers.plans:
        _plan(args, root, ref.layout, "")
    commit = _commit(args, questions, started, before, planned=answers.plans, changed_ignore=bool(notes))
    if args.json:
        emit_json(_as_json(started, answers.trials, commit) | {"agent": chosen.name})
    else:
        has_stories = answers.plans or bool(answers.stories)
        show_next(
            started, has_stories=has_stories, is_committed=bool(commit), has_own_work=bool(before - {".gitignore"})
        )
    return 0


def _new_folder(args: Namespace) -> Path:
    """The folder of `--new`. Seed 002: `ralph init` makes `<project>/`, with the code's repository inside."""
    from ralph.core.names import safe_name
    from ralph.setup.repository import create_repository

    parent = Path(args.project_dir) if args.project_dir else Path.cwd()
    if not parent.is_dir():
        raise UsageError(f"{one_line(str(parent), 80)} is not a folder", hint="create it first, or leave out -d")
    folder = parent / safe_name(args.name)
    if folder.is_dir() and any(folder.iterdir()):
        raise UsageError(f"{folder} exists and is not empty", hint=f"`ralph init -d {args.name}` starts a plan in it")
    name, _ = choose_layout(parent, args.layout, os.environ)
    layout(name)
    repository = folder / folder.name if traits(name).has_pipeline else folder
    repository.mkdir(parents=True, exist_ok=True)
    create_repository(repository)
    return Path(os.path.realpath(folder))


def _repository(args: Namespace, questions: Questions, root: Path) -> None:
    from ralph.archive import commit as archive_commit
    from ralph.setup.repository import create_repository, uncommitted

    if repository_of(root, os.environ) is not None or not questions.yes(
        f"{root} is not a git repository, and a run needs one. Run `git init` there?", args.git_init, unasked=False
    ):
        return
    create_repository(root)
    repo = archive_commit.repository(root, os.environ)
    present = sorted(uncommitted(root, os.environ))
    if repo is None or not present:
        return
    # A run starts from what is committed, so without this the very next command would be refused.
    listed = ", ".join(one_line(path, 40) for path in present[:3]) + (", …" if len(present) > 3 else "")
    text = f"Commit the {plural(len(present), 'file')} already here ({listed})? .gitignore applies."
    if questions.yes(text, args.commit, unasked=False):
        done = archive_commit.commit(repo, [repo.root], "Start the repository")
        if done.note:
            warn(done.note)


def _ask(args: Namespace, questions: Questions, request: Request, before: frozenset[str]) -> _Answers:
    from ralph.setup.repository import cache_lines

    root = request.root
    detected = find(RealTree(root)) if request.checks else Toolchain()
    toolchain = ask_test_command(questions, detected, args.test_command) if request.checks else detected
    answers = _Answers(toolchain)
    if toolchain.checks and not is_inside_loop(os.environ):
        text = f"Run the checks once ({', '.join(check.line for check in toolchain.checks)})?"
        if questions.yes(one_line(text, 200), args.run_checks):
            timeout = parse_duration(args.check_timeout) or 0.0
            decision = run_and_decide(questions, args, toolchain, root, timeout)
            settings = {"baseline": "no-worse"} if decision.no_worse else {}
            answers = _Answers(decision.toolchain, decision.trials, decision.stories, settings)
    settings = dict(answers.settings)
    permissions = questions.choice("What may the agent do?", PERMISSIONS, args.permissions, "guard")
    if permissions != "guard":
        settings["permissions"] = permissions
    settings |= ask_files(questions, args.proof_files, root) if answers.toolchain.checks else {}
    if cost := ask_cost(questions, args.max_cost):
        settings["budget.run_usd"] = cost
    page = root / REQUIREMENTS
    plans, story = ask_first_story(args, questions, has_page=page.is_file())
    return msgspec.structs.replace(
        answers,
        settings=settings,
        plans=plans,
        stories=(*answers.stories, *([story] if story else [])),
        caches=cache_lines(root, before, os.environ),
    )


def _answered(request: Request, ref: PlanRef, answers: _Answers) -> Request:
    stories: list[Story] = []
    for number, story in enumerate(answers.stories, 1):
        name = next_id([each.id for each in stories], first=_first_id(ref))
        stories.append(msgspec.structs.replace(story, id=name, priority=number))
    return msgspec.structs.replace(
        request,
        toolchain=answers.toolchain,
        settings=answers.settings,
        caches=answers.caches,
        plan=Plan(name="", stories=tuple(stories)) if stories else None,
        contents=requirements_file(ref),
    )


def _first_id(ref: PlanRef) -> str:
    """The stories of the layout's example."""
    known = layout(ref.layout)
    files = known.scaffold(ref, ProjectFacts(name="x", date="2026-01-31T09:30:00Z"))
    return known.parse(files[ref.path.relative_to(ref.root).as_posix()].encode(), "").stories[0].id


def _plan(args: Namespace, root: Path, name: str, source: str) -> int:
    """Run `ralph plan`: from a file, from the plan's requirements, or from an idea the user is asked for."""
    from ralph.cli import planning
    from ralph.cli.main import parser_of

    if source and not os.path.lexists(source):
        raise UsageError(f"file not found: {one_line(source, 80)}", hint="name a file with requirements")
    words = [*([source] if source else []), "--layout", name, "--feature", "" if args.new else args.name]
    words += ["--ralph-dir", args.ralph_dir, "-d", str(root)]
    words += ["--model", args.model] if args.model is not None else []
    words += [flag for flag in ("--no-input", "--trust", "--json") if getattr(args, flag[2:].replace("-", "_"))]
    return planning.plan(parser_of("plan").parse_args(words))


def _commit(
    args: Namespace,
    questions: Questions,
    started: Started,
    before: frozenset[str],
    *,
    planned: bool,
    changed_ignore: bool,
) -> str:
    """Commit the files just written, and nothing that was uncommitted before."""
    from ralph.archive import commit as archive_commit

    root = started.ref.root
    repo = archive_commit.repository(root, os.environ)
    paths = [root / path for path in started.placed.touched]
    paths += [root / ".gitignore"] if changed_ignore else []
    if planned:
        paths += [path for path in started.ref.folder.rglob("*") if path.is_file()]
    if repo is None:
        return ""
    paths = [path for path in dict.fromkeys(paths) if path.relative_to(repo.root).as_posix() not in before]
    if not paths:
        return ""
    listed = ", ".join(sorted({_top(path, root) for path in paths}))
    if not questions.yes(f"Commit the new files ({listed})?", args.commit, unasked=False):
        return ""
    done = archive_commit.commit(repo, paths, f"Add the plan {started.ref.name or started.ref.layout} for Ralph")
    if done.note:
        warn(done.note)
    if done.commit and not args.json:
        note(f"committed as {done.commit}")
    return done.commit


def _top(path: Path, root: Path) -> str:
    parts = path.relative_to(root).parts
    return f"{parts[0]}/" if len(parts) > 1 else parts[0]


def _examples(args: Namespace) -> int:
    from ralph.setup.first_config import write_examples

    root = choose_root(args.project_dir, Path.cwd(), os.environ)
    placed = write_examples(root, time.time(), force=args.force)
    if args.json:
        emit_json({"root": root, "made": placed.made, "kept": (*placed.kept, *placed.same)})
        return 0
    for path in placed.made:
        say(f"created  {path}")
    for path in (*placed.kept, *placed.same):
        say(f"kept     {path}")
    return 0


def _as_json(started: Started, trials: tuple[Trial, ...], commit: str) -> dict[str, object]:
    ref = started.ref
    return {
        "root": ref.root,
        "layout": ref.layout,
        "name": ref.name,
        "plan": ref.path,
        "made": started.placed.made,
        "kept": (*started.placed.kept, *started.placed.same),
        "replaced": started.placed.replaced,
        "backups": started.placed.backups,
        "checks": started.checks,
        "checks_in": started.checks_in,
        "trials": trials,
        "commit": commit,
        "ignored": started.ignored,
        "is_repository": started.is_repository,
        "warnings": started.warnings,
    }
