"""`ralph config`: show and change settings, print the paths Ralph uses."""

from __future__ import annotations

import os
from argparse import Namespace
from pathlib import Path

import msgspec

from ralph.budget.settings import ledger_of, repo_of
from ralph.cli.output import emit_json, note, paint, say, say_raw, warn
from ralph.config.layers import Origin, Settings, project_config
from ralph.core.errors import RalphError
from ralph.core.text import one_line
from ralph.plans.registry import layout
from ralph.state.names import ERROR_LOGS, JOURNAL, RAW
from ralph.state.places import (
    checkout_folder,
    plan_state,
    planning_folder,
    state_home,
    trust_file,
    user_config,
    workspace_state,
)
from ralph.state.runs import list_runs, runs_folder
from ralph.workspace.find import find_root, open_ref, open_settings, root_of
from ralph.workspace.trust import refuse_inside_loop


def show_settings(args: Namespace) -> int:
    from ralph.config.display import safe, show
    from ralph.config.keys import option

    root, _, settings = _open(args)
    rows = [(key, safe(value, option(key)), origin) for key, value, origin in settings.items()]
    if args.json:
        emit_json({k: {"value": v, "origin": o} if args.origin else v for k, v, o in rows})
        return 0
    width = max(len(key) for key, _, _ in rows)
    shown = [one_line(show(value, option(key))) for key, value, _ in rows]
    room = max(len(text) for text in shown if len(text) <= _WIDEST)
    for (key, _, origin), text in zip(rows, shown, strict=True):
        line = f"{key:<{width}}  {text:<{room}}"
        say_raw(line + paint(f"  # {_short(origin, root)}", "dim") if args.origin else line.rstrip())
    return 0


_WIDEST = 40
"""Values up to this length share a column; longer ones push their origin to the right."""


def get(args: Namespace) -> int:
    from ralph.config.display import safe, show
    from ralph.config.editing import target
    from ralph.config.keys import option
    from ralph.core.errors import UsageError

    wanted = target(args.key)
    root, _, settings = _open(args)
    value = settings.value(wanted.key)
    if wanted.entry:
        if wanted.entry not in value:
            raise UsageError(
                f"{wanted.key} has no entry {wanted.entry!r}", hint=f"it has: {', '.join(value) or 'none'}"
            )
        value = value[wanted.entry]
    value = safe(value, option(wanted.key))
    history = [(safe(each, option(wanted.key)), origin) for each, origin in settings.history(wanted.key)]
    if args.json:
        emit_json({"key": wanted.key, "value": value, "origin": history[0][1], "history": history})
        return 0
    say(show(value, option(wanted.key)))
    if args.origin:
        for each, origin in history:
            note(f"  {_short(origin, root)}: {one_line(show(each, option(wanted.key)))}")
    return 0


def change(args: Namespace) -> int:
    """`set` and `unset`."""
    from ralph.config.file_edit import change_file

    what = "set" if args.value is not None else "unset"
    refuse_inside_loop(os.environ, f"use `ralph config {what}`")
    _refuse_unknown_agent(args.key, args.value)
    root = None if args.user else root_of(args, os.environ)
    changed = change_file(root, args.config, args.key, args.value, os.environ)
    if not changed.is_changed:
        note(f"{changed.file}: {args.key} is {'already so' if args.value is not None else 'not set there'}")
        return 0
    note(f"{changed.file}: {args.key} {what}")
    if changed.names_commands and root is not None:
        note("the commands of this workspace have changed; `ralph trust` shows them and asks")
    return 0


def _refuse_unknown_agent(key: str, value: str | None) -> None:
    """The next command would refuse it, and `check` say where it is."""
    from ralph.agents.registry import AGENTS
    from ralph.core.fallback import OTHER

    known = {"agent.name": (), "review.agent": ("", OTHER), "planning.agent": ("",)}.get(key)
    if value is not None and known is not None and value not in known and (wrong := AGENTS.trouble_with(value)):
        raise wrong


def schema(_: Namespace) -> int:
    from ralph.config.json_schema import json_schema

    emit_json(json_schema())
    return 0


def _open(args: Namespace) -> tuple[Path | None, str, Settings]:
    root, layout, settings = open_settings(args)
    for problem in settings.warnings:
        warn(f"{problem}{f' ({problem.hint})' if problem.hint else ''}")
    return root, layout, settings


def _short(origin: Origin, root: Path | None) -> str:
    return str(origin).removeprefix(f"{root}/") if root else str(origin)


def paths(args: Namespace) -> int:
    env = os.environ
    home = state_home(env)
    places = {"user_config": user_config(env), "state_home": home, "error_logs": home / ERROR_LOGS}
    root = root_of(args, env) if args.project_dir is not None else find_root(Path.cwd(), env)
    if root is not None:
        places |= {
            "workspace": root,
            "project_config": project_config(root),
            "named_configs": root / ".ralph" / "configs",
            "state": workspace_state(root, env),
            "checkout": checkout_folder(workspace_state(root, env), env),
            "trust": trust_file(root, env),
            "runs": runs_folder(workspace_state(root, env)),
            **_of_last_run(runs_folder(workspace_state(root, env)), list_runs(workspace_state(root, env))),
            "planning": planning_folder(root, env),
            "spending": ledger_of(root, repo_of(root, env), env).path,
        }
        places |= _of_plan(args)
    if args.json:
        emit_json(places)
        return 0
    for name, path in places.items():
        missing = "" if os.path.lexists(path) else paint("  (does not exist yet)", "dim")
        say_raw(f"{name.replace('_', ' '):<16} {one_line(str(path))}{missing}")
    return 0


def _of_last_run(folder: Path, runs: list[str]) -> dict[str, Path]:
    """The journal of the last run, and the raw output of its agents (`ralph log --agent` formats it)."""
    return {"last_journal": folder / runs[-1] / JOURNAL, "raw_output": folder / runs[-1] / RAW} if runs else {}


def _of_plan(args: Namespace) -> dict[str, Path]:
    """The files of the plan. None, with a message, if the plan is ambiguous: the other paths are still printed."""
    try:
        ref, _ = open_ref(args)
    except RalphError as error:
        note(f"no plan: {error}")
        if error.hint:
            note(f"  hint: {error.hint}")
        return {}
    locations = msgspec.structs.asdict(layout(ref.layout).locations(ref))
    return {name: path for name, path in locations.items() if isinstance(path, Path)} | {
        "plan_state": plan_state(ref, os.environ)
    }
