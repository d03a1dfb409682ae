"""`ralph stream`: several plans at once, each in a git worktree of its own."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Sequence

from ralph.cli.output import ask, ask_trust, emit_json, is_interactive, note, paint, say, say_raw, warn
from ralph.core.errors import RalphError, UsageError
from ralph.core.evidence import CheckResult
from ralph.core.exit_codes import ExitCode
from ralph.core.text import one_line, plural
from ralph.run.stream_merge import (
    Preview,
    checks_of,
    merge_order,
    merge_stream,
    preview,
    settings_of,
)
from ralph.run.streams import (
    Standing,
    Stream,
    StreamStatus,
    all_streams,
    find_stream,
    new_stream,
    plan_of,
    remove_stream,
    status_of,
)
from ralph.workspace.find import plan_options, root_of
from ralph.workspace.trust import ensure_trusted, gather, refuse_inside_loop

_STYLES = {
    Standing.IDLE: "dim",
    Standing.RUNNING: "cyan",
    Standing.KILLED: "red",
    Standing.DONE: "green",
    Standing.MERGED: "green",
}
_MOST_LINES = 20


def create(args: Namespace) -> int:
    refuse_inside_loop(os.environ, "create a stream")
    stream = new_stream(root_of(args, os.environ), args.name, os.environ)
    if args.json:
        emit_json(status_of(stream, os.environ))
        return 0
    say(f"created stream {stream.name} on branch {stream.branch}")
    say(f"  worktree   {os.path.relpath(stream.tree.root)}")
    say(f"  run it     ralph stream build {stream.name}")
    return 0


def show_list(args: Namespace) -> int:
    found = [status_of(stream, os.environ) for stream in all_streams(root_of(args, os.environ), os.environ)]
    if args.json:
        emit_json(found)
    elif found:
        _show_table(found)
    else:
        say("No streams.")
        note("`ralph stream new NAME` creates one")
    return 0


def _show_table(rows: Sequence[StreamStatus]) -> None:
    header = ("stream", "branch", "state", "stories", "ahead", "behind", "last run")
    table = [
        (one.stream, one.branch, one.state.value, f"{one.done}/{one.total}", str(one.ahead), str(one.behind), one.last)
        for one in rows
    ]
    widths = [max(len(row[at]) for row in (header, *table)) for at in range(len(header))]
    say("  ".join(f"{text:<{size}}" for text, size in zip(header, widths, strict=True)).rstrip(), "dim")
    for one, row in zip(rows, table, strict=True):
        cells = [f"{one_line(text, 100):<{size}}" for text, size in zip(row, widths, strict=True)]
        cells[2] = paint(cells[2], _STYLES[one.state])
        say_raw("  ".join(cells).rstrip())


def show_status(args: Namespace) -> int:
    if not args.name:
        return show_list(args)
    stream = find_stream(root_of(args, os.environ), args.name, os.environ)
    one = status_of(stream, os.environ)
    if args.json:
        emit_json(one)
        return 0
    _show_table([one])
    say()
    say(f"worktree   {one.folder}")
    say(f"plan       {one.plan}")
    for path in one.uncommitted[:_MOST_LINES]:
        say(f"uncommitted  {path}", "yellow")
    say(f"next       {_next(one)}")
    return 0


def _next(one: StreamStatus) -> str:
    return {
        Standing.IDLE: f"ralph stream build {one.stream}",
        Standing.RUNNING: f"ralph watch -d {one.folder}; ralph stream stop {one.stream}",
        Standing.KILLED: f"ralph stream build {one.stream} recovers the run",
        Standing.DONE: f"ralph stream merge {one.stream}",
        Standing.MERGED: f"ralph stream remove {one.stream}",
    }[one.state]


def build(args: Namespace) -> int:
    """`ralph run` in the worktree, on the stream's plan."""
    from ralph.cli.run import run

    refuse_inside_loop(os.environ, "start another loop")
    if args.worktree:
        raise UsageError("a stream is a worktree already", hint="leave out --worktree")
    stream = find_stream(root_of(args, os.environ), args.name, os.environ)
    options = {"layout": None, "feature": None, "prd": None, "ralph_dir": None} | plan_options(stream.ref)
    for name, value in options.items():
        setattr(args, name, value)
    args.project_dir = str(stream.ref.root)
    return run(args)


def stop(args: Namespace) -> int:
    from ralph.cli.control import stop as stop_run

    stream = find_stream(root_of(args, os.environ), args.name, os.environ)
    args.project_dir, args.run = str(stream.ref.root), ""
    args.layout = args.feature = args.prd = args.ralph_dir = None
    return stop_run(args)


def merge(args: Namespace) -> int:
    refuse_inside_loop(os.environ, "merge a stream")
    if not args.yes and (args.json or not is_interactive()):
        raise UsageError("stdin is not a terminal; pass --yes to merge without asking", hint="see --help")
    root = root_of(args, os.environ)
    streams = all_streams(root, os.environ) if args.all else [find_stream(root, args.name, os.environ)]
    if not args.all:
        return _merge_all(args, [(streams[0], preview(streams[0], os.environ))], [])
    ready, skipped = [], []
    for stream in streams:
        try:
            ready.append((stream, preview(stream, os.environ)))
        except RalphError as error:
            skipped.append((stream.name, error))
    return _merge_all(args, merge_order([each for each in ready if each[1].commits]), skipped)


def _merge_all(args: Namespace, ready: Sequence[tuple[Stream, Preview]], skipped: list[tuple[str, RalphError]]) -> int:
    """One after the other: each is proven on top of the one before."""
    merged: list[dict[str, str]] = []
    for stream, shown in ready:
        try:
            now = preview(stream, os.environ) if merged else shown
            if not now.commits:
                if not args.json:
                    say(f"stream {stream.name} has nothing to merge into {now.into}")
                continue
            if commit := _merge_one(args, stream, now):
                merged.append({"stream": stream.name, "commit": commit})
        except RalphError as error:
            if not args.all and not args.json:
                raise
            skipped.append((stream.name, error))
    if args.json:
        reasons = [{"stream": name, "reason": str(error), "hint": error.hint} for name, error in skipped]
        emit_json({"merged": merged, "skipped": reasons})
    else:
        for name, reason in skipped:
            warn(f"skipped {name}: {reason}{f' ({reason.hint})' if reason.hint else ''}")
        if args.all and not merged and not skipped:
            say("Nothing to merge.")
    return ExitCode.UNFINISHED if skipped else ExitCode.COMPLETE


def _merge_one(args: Namespace, stream: Stream, shown: Preview) -> str:
    settings, plan = settings_of(stream, os.environ), plan_of(stream, os.environ)
    if not args.json:
        _show_preview(shown)
    if not args.yes and not ask(f"Merge {shown.branch} into {shown.into}?"):
        say("not merged")
        return ""
    plans = [(stream.main / stream.made.path, plan)] if plan else []
    asks = ask_trust if is_interactive() and not args.json else None
    commands = gather(stream.main, settings, plans)
    ensure_trusted(stream.ref.root, commands, os.environ, flag=args.trust, ask=asks, report=note)
    if not checks_of(stream, settings, os.environ):
        warn("no check is configured, so the merged tree is not proven")
    commit = merge_stream(shown, stream, settings, os.environ, _quiet if args.json else _show_check)
    ensure_trusted(stream.main, commands, os.environ, flag=True)  # they were agreed to above, and are in main now
    if not args.json:
        say(f"merged {shown.branch} into {shown.into} as {commit[:9]}", "green")
        say(f"  clean up   ralph stream remove {stream.name}")
    return commit


def _show_preview(shown: Preview) -> None:
    stories = f"{shown.done} of {plural(shown.total, 'story')} done"
    size = f"{plural(len(shown.commits), 'commit')}, {plural(len(shown.files), 'file')}, {stories}"
    say_raw(paint(f"stream {shown.stream}: {shown.branch} into {shown.into}", "bold") + f"  {size}")
    for commit in shown.commits[-_MOST_LINES:]:
        proof = f"  [{one_line(commit.grade, 20)}]" if commit.grade else ""
        say(f"  {commit.id[:9]} {one_line(commit.subject, 90)}{proof}")
    for change in shown.files[:_MOST_LINES]:
        say(f"  {change.status} {one_line(change.path, 100)}")
    if len(shown.files) > _MOST_LINES:
        say(f"  … and {len(shown.files) - _MOST_LINES} more files")


def _quiet(result: CheckResult) -> None:
    """With --json, only the result is printed."""


def _show_check(result: CheckResult) -> None:
    from ralph.cli.proof import show_result

    show_result(result)


def remove(args: Namespace) -> int:
    refuse_inside_loop(os.environ, "remove a stream")
    stream = find_stream(root_of(args, os.environ), args.name, os.environ)
    saved = remove_stream(stream, os.environ, force=args.force)
    if args.json:
        emit_json({"stream": stream.name, "saved": saved or None})
        return 0
    say(f"removed stream {stream.name} and branch {stream.branch}")
    if saved:
        say(f"  its work   {saved} (ignored files were not kept)")
    return 0
