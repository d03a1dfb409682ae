"""`ralph plan archive`: archive a plan, list archives, restore one."""

from __future__ import annotations

import os
import time
from argparse import Namespace
from pathlib import Path

from ralph.archive import commit as archive_commit
from ralph.archive.archive import Archived, Dates, archive, owns_its_folder
from ralph.archive.restore import restore
from ralph.cli.output import emit_json, note, paint, say, say_raw, warn
from ralph.core.text import one_line, plural
from ralph.workspace.archives import archives, find_archive
from ralph.workspace.find import Choice, OpenPlan, find_plans, open_plan, root_of


def run(args: Namespace) -> int:
    if args.action == "list":
        return _list(args)
    if args.action == "restore":
        return _restore(args)
    return _archive(args)


def _archive(args: Namespace) -> int:
    opened = open_plan(args)
    for notice in opened.loaded.notices:
        warn(notice)
    now = time.time()
    repo = archive_commit.repository(opened.root, os.environ)
    first, last = archive_commit.first_and_last_change(repo, opened.ref.path) if repo else ("", "")
    dates = Dates(first, last, _iso(now))
    done = archive(opened, dates, label=args.label, keep=args.keep, now=now, env=os.environ)
    committed = archive_commit.Committed(note="not committed: --no-commit")
    if repo is None:
        committed = archive_commit.Committed(note="not committed: this is not a git repository")
    elif not args.no_commit:
        committed = archive_commit.commit(repo, _paths(opened, done), _message(done))
    if args.json:
        emit_json({"archive": done, "commit": committed.commit, "note": committed.note})
    else:
        _show(opened, done, committed)
    return 0


def _paths(opened: OpenPlan, done: Archived) -> list[Path]:
    if owns_its_folder(opened.ref):
        return [done.path, opened.ref.folder]  # however many files there are in it
    return [done.path, *done.moved, *(opened.root / path for path in done.fresh)]


def _message(done: Archived) -> str:
    manifest = done.manifest
    return f"chore: archive {done.path.name} ({manifest.done} of {plural(manifest.total, 'story')} done)"


def _show(opened: OpenPlan, done: Archived, committed: archive_commit.Committed) -> None:
    manifest = done.manifest
    say(f"{done.path.relative_to(opened.root)}: {manifest.done} of {plural(manifest.total, 'story')} done", "bold")
    if manifest.done < manifest.total:
        note(f"not every story was done; `ralph plan archive restore {done.path.name}` restores the plan")
    for path in done.fresh:
        say(f"  fresh   {path}")
    for source in done.left:
        warn(f"{source.relative_to(opened.root)} changed in the meantime and was left in place")
    if committed.commit:
        say(f"  commit  {committed.commit}")
    if committed.note:
        note(committed.note)


def _list(args: Namespace) -> int:
    root = root_of(args, os.environ)
    found = archives(root, find_plans(root, Choice()))
    if args.json:
        emit_json([{"name": a.name, "path": a.path, "manifest": a.manifest} for a in found])
        return 0
    for one in found:
        known = one.manifest
        about = f"{known.done}/{known.total} done, {known.layout}" if known else "not created by Ralph"
        say_raw(f"{one_line(one.name)}  {paint(one_line(about), 'dim')}")
    if not found:
        note("no archives yet; `ralph plan archive` creates one")
    return 0


def _restore(args: Namespace) -> int:
    root = root_of(args, os.environ)
    chosen = find_archive(root, args.name, find_plans(root, Choice()))
    done = restore(root, chosen, time.time(), os.environ)
    if args.json:
        emit_json({"archive": chosen.path, "plan": done.ref.path, "files": done.files, "kept": done.kept})
        return 0
    say(f"{done.ref.path.relative_to(root)} restored, {plural(len(done.files), 'file')}; the archive is kept", "bold")
    for path in done.kept:
        note(f"{path.relative_to(root)} already exists and was not replaced")
    return 0


def _iso(now: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
