"""The files of a new plan and the next steps, for the commands that start one."""

from __future__ import annotations

from ralph.cli.output import note, paint, say, say_raw
from ralph.core.text import one_line
from ralph.plans.registry import layout, traits
from ralph.setup.scaffold import CONFIG, Started


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
        say(f"  {check.name:<{width}}  {check.line}  ({check.why}{f': {check.file}' if check.file else ''})")


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
    add = 'ralph task add "TITLE" --criterion "what is seen when it is done"'
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
        say(f"  {number}. {step}")
