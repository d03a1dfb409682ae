"""Print the files and folders Ralph uses: for the user, the workspace, its state and
the plan."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from pathlib import Path

import msgspec

from ralph.budget.settings import ledger_of, repo_of
from ralph.cli.arguments import add_json, add_workspace
from ralph.cli.output import emit_json, note, paint, say_raw
from ralph.config.sources import project_config
from ralph.core.errors import RalphError
from ralph.core.text import one_line
from ralph.plans.registry import layout
from ralph.state.places import (
    checkout_folder,
    plan_state,
    planning_folder,
    state_home,
    trust_file,
    user_config,
    workspace_state,
)
from ralph.state.runs import RAW, list_runs, runs_folder
from ralph.workspace.find import find_root, open_ref, root_of

EXAMPLES = """
ralph paths              all of them
ralph paths --json       for scripts
"""


def configure(parser: ArgumentParser) -> None:
    add_json(parser)
    add_workspace(parser)


def run(args: Namespace) -> int:
    env = os.environ
    places = {"user_config": user_config(env), "state_home": state_home(env), "error_logs": state_home(env) / "logs"}
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
    return {"last_journal": folder / runs[-1] / "events.jsonl", "raw_output": folder / runs[-1] / RAW} if runs else {}


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
