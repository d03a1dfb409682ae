"""`ralph plan import`, `export`, `convert` and `sync`."""

from __future__ import annotations

import os
import sys
import time
from argparse import Namespace
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ralph.archive import commit as archive_commit
from ralph.archive.archive import Dates
from ralph.cli.arguments import layout_and_name
from ralph.cli.output import emit_bytes, emit_json, note, paint, say, say_raw, warn
from ralph.cli.show import as_json, line_width, story_line
from ralph.core.errors import SetupError, UsageError
from ralph.core.exit_codes import ExitCode
from ralph.core.plan import Plan
from ralph.core.problems import Problem, Severity
from ralph.core.text import one_line, plural
from ralph.importing.convert import Converted, Exported, convert, export_text, export_to, propose
from ralph.importing.imports import Imported, ImportRequest, import_stories
from ralph.importing.kinds import Done
from ralph.importing.sources import gather
from ralph.plans.beads import TOOLS, Difference, Kind, compare, find
from ralph.plans.fresh import Fate, Loss
from ralph.plans.registry import traits
from ralph.setup.scaffold import choose_root
from ralph.workspace.find import OpenPlan, open_plan

if TYPE_CHECKING:
    from ralph.importing.write_back import WrittenBack

_WORDS = {
    Fate.LOST: "lost",
    Fate.CHANGED: "changed",
    Fate.FILLED: "filled in",
    Fate.RENAMED: "renamed",
    Fate.BESIDE: "kept in the state folder",
}
_SHOWN = 8


def show_losses(found: Iterable[Loss]) -> None:
    groups: dict[tuple[Fate, str, bool], list[Loss]] = {}
    for loss in found:
        groups.setdefault((loss.fate, loss.field, bool(loss.story)), []).append(loss)
    if not groups:
        note("nothing is lost")
    for (fate, field, of_story), losses in groups.items():
        style = "yellow" if fate is Fate.LOST else ""
        if of_story:
            note(f"{_WORDS[fate]}: {field.replace('_', ' ')} of {_stories(losses)}", style)
        else:
            detail = f" ({one_line(losses[0].detail, 100)})" if losses[0].detail else ""
            note(f"{_WORDS[fate]}: {field} of the plan{detail}", style)


def _stories(losses: list[Loss]) -> str:
    shown = [
        f"{one_line(x.story, 60)} ({one_line(x.detail, 60)})" if x.detail else one_line(x.story, 60) for x in losses
    ]
    more = f" and {len(shown) - _SHOWN} more; --json lists them all" if len(shown) > _SHOWN else ""
    return ", ".join(shown[:_SHOWN]) + more


_SHOWN_IMPORT = 20


def import_plan(args: Namespace) -> int:
    layout, name = layout_and_name(args)
    root = choose_root(args.project_dir, Path.cwd(), os.environ)
    done = import_stories(
        ImportRequest(
            root=root,
            sources=gather(args.source, sys.stdin.buffer.read, args.kind, root),
            layout=layout,
            into=name,
            ralph_dir=args.ralph_dir or "",
            append=args.append,
            done=Done(args.done),
            again=args.again,
            dry=args.dry_run,
            now=time.time(),
        ),
        os.environ,
    )
    for warning in done.warnings:
        warn(warning)
    if args.json:
        emit_json(_as_json(done, args.dry_run))
    else:
        _show(done, args.dry_run)
    return 0


def _show(done: Imported, dry: bool) -> None:
    room = line_width()
    indent = max((len(one_line(story.id)) for story in done.stories), default=0)
    for story in done.stories:
        say_raw(story_line(story, room, min(indent, 16)))
    _show_problems(done.problems)
    plan = done.ref.path.relative_to(done.ref.root)
    _show_left_out(done)
    if not done.stories:
        note("nothing new to import; nothing was written")
        return
    count = plural(len(done.stories), "story")
    how = "would start" if dry else "started"
    if not done.is_new:
        how = "would be added to" if dry else "added to"
    note(f"{', '.join(done.kinds)}: {count} {how} {plan}" + ("; nothing was written: --dry-run" if dry else ""), "bold")
    if dry:
        return
    for path in done.made:
        note(f"  made  {path}")
    if done.names_commands:
        note("some of them bring commands; `ralph trust` shows them and asks before they run")
    note("next: `ralph check`, then commit the plan; a run starts from what is committed")


def _show_left_out(done: Imported) -> None:
    there = [one_line(known.story, 40) for known in done.skipped if known.is_there]
    gone = [f"{one_line(k.story, 40)} ({one_line(k.key, 60)})" for k in done.skipped if not k.is_there]
    if there:
        note(f"imported before: {_listed(there)}")
    if gone:
        note(f"imported before, no longer in the plan: {_listed(gone)}; --again imports them again")
    if left := done.done_left_out - len(gone):
        note(f"skipped, already done: {left}")


def _listed(words: list[str]) -> str:
    return ", ".join(words[:_SHOWN_IMPORT]) + (" …" if words[_SHOWN_IMPORT:] else "")


def _show_problems(problems: tuple[Problem, ...]) -> None:
    for problem in problems[:_SHOWN_IMPORT]:
        style = "red" if problem.severity is Severity.ERROR else "yellow"
        where = one_line(str(problem.where).removeprefix(f"{Path.cwd()}{os.sep}"))
        word = paint(problem.severity.value, style)
        say_raw(f"{where}{': ' if where else ''}{word}[{problem.code}]: {one_line(problem.message)}")
        if problem.hint:
            say(f"    {one_line(problem.hint)}", "dim")
    more = len(problems) - _SHOWN_IMPORT
    if more > 0:
        say(f"… and {plural(more, 'more problem')}; --json lists all of them", "dim")


def _as_json(done: Imported, dry: bool) -> dict[str, object]:
    return {
        "plan": done.ref.path,
        "layout": done.ref.layout,
        "new": done.is_new,
        "written": bool(done.stories) and not dry,
        "kinds": done.kinds,
        "stories": [as_json(story) for story in done.stories],
        "skipped": done.skipped,
        "done_left_out": done.done_left_out,
        "problems": done.problems,
        "made": done.made,
        "names_commands": done.names_commands,
        "warnings": done.warnings,
    }


def export_plan(args: Namespace) -> int:
    if not (args.target or args.status or args.markdown or args.json):
        hint = "use --layout LAYOUT, --status TOOL, --json or --markdown"
        raise UsageError("choose what to export", hint=hint)
    if args.dry_run and not args.status:
        raise UsageError("--dry-run goes with --status", hint="`--layout` without --to only prints the plan")
    if args.json and (args.target or args.markdown):
        raise UsageError("--json is a form of its own", hint="leave out --layout and --markdown")
    opened = open_plan(args)
    for notice in opened.loaded.notices:
        warn(notice)
    if args.status:
        return _mark(opened, args)
    if not args.target:
        return _list(opened, args)
    if args.to == "-":
        done = export_text(opened, args.target, time.time())
        emit_bytes(done.source)
    else:
        done = export_to(opened, args.target, Path(args.to), time.time())
        _show_export(done)
    show_losses(done.losses)
    return 0


def _list(opened: OpenPlan, args: Namespace) -> int:
    if args.to != "-":
        raise UsageError("--to goes with --layout", hint="redirect the output into a file instead")
    if args.json:
        emit_json([as_json(story, opened.loaded.sidecar.get(story.id).why or "") for story in opened.plan.stories])
    else:
        say_raw(table(opened.plan))
    return 0


def table(plan: Plan) -> str:
    rows = ["| id | title | state | depends on |", "|---|---|---|---|"]
    for story in plan.stories:
        cells = (story.id, story.title, story.state.value.replace("_", " "), ", ".join(story.depends_on))
        rows.append(
            "| " + " | ".join(one_line(cell).replace("\\", "\\\\").replace("|", "\\|") for cell in cells) + " |"
        )
    return "\n".join(rows)


def _mark(opened: OpenPlan, args: Namespace) -> int:
    from ralph.importing.write_back import write_back

    done = write_back(opened, args.status, "" if args.to == "-" else args.to, os.environ, dry=args.dry_run)
    if args.json:
        emit_json(done)
    else:
        _show_marks(done, args.dry_run)
    return ExitCode.UNFINISHED if done.failed else ExitCode.COMPLETE


def _show_marks(done: WrittenBack, dry: bool) -> None:
    for mark in done.marked:
        what = f"{mark.story}: {mark.title}" if mark.story else mark.title
        say_raw(f"{paint(one_line(mark.item, 60), 'green')}  {one_line(what, 80)}  ({one_line(mark.note)})")
    for marks, what in ((done.ahead, "done there, open here"), (done.missing, "not there any more")):
        if marks:
            listed = _listed([f"{one_line(mark.item, 60)} ({mark.story})" for mark in marks])
            note(f"{what}: {listed}; not touched", "yellow")
    if done.failed:
        warn(f"the rest was not marked: {done.failed}")
    count = plural(len(done.marked), "item")
    would = "would be marked" if dry else "marked"
    note(f"{done.where}: {count} {would} as done, {done.same} done before", "bold")


def _show_export(done: Exported) -> None:
    assert done.ref is not None
    for path in done.made:
        say_raw(f"  made  {one_line(path)}")
    note(f"{done.ref.path}: {plural(len(done.ids), 'story')}; nothing in this workspace was changed")


def convert_plan(args: Namespace) -> int:
    opened = open_plan(args)
    for notice in opened.loaded.notices:
        warn(notice)
    now = time.time()
    repo = archive_commit.repository(opened.root, os.environ)
    first, last = archive_commit.first_and_last_change(repo, opened.ref.path) if repo else ("", "")
    dates = Dates(first, last, time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now)))
    done = propose(opened, args.target, args.name, now, os.environ)
    if not args.dry_run:
        done = convert(opened, done, dates, now, os.environ)
    for warning in done.warnings:
        warn(warning)
    if args.json:
        emit_json(_as_json_convert(done))
    else:
        _show_convert(done)
    return 0


def _show_convert(done: Converted) -> None:
    root = done.new.root
    would = "would become" if done.archive is None else "is now"
    say(f"{done.old.path.relative_to(root)} {would} {done.new.path.relative_to(root)}", "bold")
    for path in done.placed.touched:
        say(f"  made     {path}")
    for source in done.removed:
        say(f"  removed  {source.relative_to(root)}")
    if done.archive is not None:
        say(f"  archive  {done.archive.relative_to(root)}")
    for source in done.archived_only:
        note(f"{source.relative_to(root)} has no place in {done.new.layout}; it is in the archive")
    show_losses((*done.losses, *done.beside))
    if done.archive is None:
        note("nothing was written: --dry-run")
    else:
        note("next: `ralph check`, then commit the plan; a run starts from what is committed")


def _as_json_convert(done: Converted) -> dict[str, object]:
    root = done.new.root

    def near(path: Path) -> str:
        return path.relative_to(root).as_posix()

    return {
        "root": root,
        "old": {"layout": done.old.layout, "plan": near(done.old.path)},
        "new": {"layout": done.new.layout, "plan": near(done.new.path)},
        "archive": near(done.archive) if done.archive else None,
        "ids": done.ids,
        "losses": done.losses,
        "beside": done.beside,
        "made": done.placed.touched,
        "removed": [near(path) for path in done.removed],
        "archived_only": [near(path) for path in done.archived_only],
        "warnings": done.warnings,
    }


def compare_beads(args: Namespace) -> int:
    opened = open_plan(args)
    if not traits(opened.ref.layout).has_tracker:
        raise UsageError(
            f"the steps of a {opened.ref.layout} plan have no beads", hint="this is for plans of the layout spec.md"
        )
    wanted = args.tool or {"auto": "", "off": ""}.get(opened.settings.config.beads, opened.settings.config.beads)
    beads = find(os.environ, opened.root, wanted)
    if beads is None:
        missing = wanted or " nor ".join(TOOLS)
        raise SetupError(
            f"{'no' if wanted else 'neither'} {missing} is on PATH, so there are no beads to compare with",
            hint="a run needs only the spec; to track beads, install br (beads_rust) or bd, then run `br init`",
        )
    statuses = beads.statuses(story.ref for story in opened.plan.stories if story.ref)
    found = compare(opened.plan, statuses)
    wrong = [difference for difference in found if difference.is_contradiction]
    if args.json:
        emit_json(_document(opened, beads.name, found))
    else:
        _print(found, len(opened.plan.stories), len(wrong))
    return ExitCode.UNFINISHED if wrong else ExitCode.COMPLETE


def _document(opened: OpenPlan, tool: str, found: list[Difference]) -> dict[str, object]:
    return {
        "plan": opened.ref.path,
        "tool": tool,
        "agree": not any(difference.is_contradiction for difference in found),
        "differences": [difference for difference in found if difference.is_contradiction],
        "untracked": [difference.step for difference in found if not difference.is_contradiction],
    }


def _print(found: list[Difference], steps: int, wrong: int) -> None:
    wide = max((len(difference.step) for difference in found), default=0)
    for difference in found:
        step = one_line(difference.step)
        style = "yellow" if difference.kind is Kind.UNTRACKED else "red"
        say_raw(f"{paint(f'{step:<{wide}}', style)}  {difference.sentence}")
    untracked = len(found) - wrong
    rest = f", {untracked} without a bead" if untracked else ""
    note(f"{plural(steps, 'step')}, {wrong} of them disagree with their beads{rest}")
