"""`ralph rescue`: list, show, restore or drop rejected work."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

from ralph.cli.output import emit_json, note, paint, say, say_raw
from ralph.core.text import clean, one_line, plural
from ralph.host.git.repo import Repo, find_repository, identify
from ralph.host.git.rescue import drop, list_refs, reapply, show
from ralph.plans.registry import LAYOUTS
from ralph.state.names import RESCUE_INDEX
from ralph.state.places import home, workspace_state
from ralph.state.runs import open_run
from ralph.views.words import moment
from ralph.workspace.find import Choice, find_plans, find_root, open_settings
from ralph.workspace.own_files import bookkeeping
from ralph.workspace.trust import refuse_inside_loop


def run(args: Namespace) -> int:
    repo, state = _repository(args)
    return {"list": _list, "show": _show, "restore": _restore, "drop": _drop}[args.action](args, repo, state)


def _repository(args: Namespace) -> tuple[Repo, Path]:
    start = Path(args.project_dir or Path.cwd())
    root = find_root(start, os.environ) or start
    repo = identify(find_repository(root, None, home(os.environ)))
    return repo, workspace_state(root, os.environ)


def _list(args: Namespace, repo: Repo, state: Path) -> int:
    found = sorted(list_refs(repo), key=lambda rescue: rescue.saved_at, reverse=True)
    if args.json:
        emit_json(found)
        return 0
    if not found:
        say("No rescued work.")
    if unfinished := open_run(repo.root, os.environ):
        note(f"run {one_line(unfinished.run, 60)} has not ended; what it does not accept is saved here later", "yellow")
    for rescue in found:
        say_raw(f"{one_line(rescue.name):<28} {paint(moment(rescue.saved_at), 'dim')}  {one_line(rescue.subject, 80)}")
    return 0


def _show(args: Namespace, repo: Repo, state: Path) -> int:
    shown = show(repo, args.name)
    if args.json:
        emit_json(shown)
        return 0
    say_raw(paint(f"{one_line(shown.rescue.subject)}  ({moment(shown.rescue.saved_at)})", "bold"))
    for changed in shown.changes:
        say(f"  {changed.status} {one_line(changed.path)}")
    say()
    for line in clean(shown.diff).splitlines():
        style = "green" if line.startswith("+") else "red" if line.startswith("-") else ""
        say_raw(paint(line, style) if style else line)
    if shown.is_cut:
        say(f"… and more: git diff {shown.rescue.base} {shown.rescue.commit}", "dim")
    return 0


def _restore(args: Namespace, repo: Repo, state: Path) -> int:
    refuse_inside_loop(os.environ, "restore rescued work")
    paths = reapply(repo, args.name, state / RESCUE_INDEX, _own_files(args, repo))
    if args.json:
        emit_json({"name": args.name, "paths": paths})
        return 0
    for path in paths:
        say(f"  {one_line(path)}")
    say(f"restored {plural(len(paths), 'file')} of attempt {args.name}, uncommitted")
    return 0


def _own_files(args: Namespace, repo: Repo) -> Callable[[str], bool]:
    """Says of a path whether it is one of Ralph's own, such as a plan, its progress log, or the settings."""
    root, _, settings = open_settings(args)
    plans = find_plans(root, Choice()) if root else []
    own = [bookkeeping(ref, LAYOUTS.get(ref.layout).locations(ref), repo.root, settings.config) for ref in plans]
    return lambda path: any(each.covers(path) or path.startswith(each.own) or path in each.from_init for each in own)


def _drop(args: Namespace, repo: Repo, state: Path) -> int:
    refuse_inside_loop(os.environ, "drop rescued work")
    dropped = drop(repo, args.name)
    if args.json:
        emit_json(dropped)
    else:
        say(f"dropped {dropped.name}; until git gc removes it, `git branch NAME {dropped.commit[:12]}` restores it")
    return 0
