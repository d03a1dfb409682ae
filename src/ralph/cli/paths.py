"""Print every location Ralph uses: in the workspace, in the state folder, for the user."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from pathlib import Path

import msgspec

from ralph.app.workspace import find_root, open_ref, plan_state, root_of
from ralph.cli.arguments import add_json, add_workspace
from ralph.cli.output import emit_json, paint, say_raw
from ralph.core.errors import RalphError
from ralph.core.text import one_line
from ralph.host.places import state_home, user_config, workspace_state

EXAMPLES = """
ralph paths              all of them
ralph paths --json       for scripts
"""


def configure(parser: ArgumentParser) -> None:
    add_json(parser)
    add_workspace(parser)


def run(args: Namespace) -> int:
    places = {"user config": user_config(os.environ), "state home": state_home(os.environ)}
    root = root_of(args, os.environ) if args.project_dir else find_root(Path.cwd(), os.environ)
    if root is not None:
        places |= {
            "workspace": root,
            "project config": root / ".ralph" / "config.yaml",
            "state": workspace_state(root, os.environ),
        }
        places |= _of_plan(args)
    if args.json:
        emit_json(places)
        return 0
    for name, path in places.items():
        missing = "" if os.path.lexists(path) else paint("  (not there yet)", "dim")
        say_raw(f"{name:<16} {one_line(str(path))}{missing}")
    return 0


def _of_plan(args: Namespace) -> dict[str, Path]:
    from ralph.plans.registry import layout

    try:
        ref, _ = open_ref(args)
    except RalphError:
        return {}
    locations = msgspec.structs.asdict(layout(ref.layout).locations(ref))
    return {name: path for name, path in locations.items() if path} | {"plan state": plan_state(ref, os.environ)}
