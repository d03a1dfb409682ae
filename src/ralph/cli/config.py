"""Show and change settings.

Sources, later ones win: built-in defaults, the profile of the layout,
~/.ralph/config.yaml, .ralph/config.yaml, .ralph/configs/NAME (--config NAME),
RALPH_* variables, flags."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from pathlib import Path

from ralph.cli.arguments import add_json, add_project, add_workspace
from ralph.cli.output import emit_json, note, paint, say, say_raw, warn
from ralph.config.layers import Origin, Settings
from ralph.core.text import one_line
from ralph.workspace.find import open_settings, root_of
from ralph.workspace.trust import refuse_inside_loop

EXAMPLES = """
ralph config show --origin            every setting and where it was set
ralph config get max_iterations
ralph config set timeout 20m          in .ralph/config.yaml; keeps comments
ralph config set --user agent.model sonnet
ralph config unset timeout
ralph config schema > ralph.schema.json
"""


def configure(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    show = actions.add_parser("show", help="print every setting", examples=_SHOW)
    show.add_argument("--origin", action="store_true", help="show where each value was set")
    show.set_defaults(act=_show)

    get = actions.add_parser("get", help="print one setting", examples=_GET)
    get.add_argument("key", metavar="KEY")
    get.add_argument("--origin", action="store_true", help="also print every source that sets it, the winner first")
    get.set_defaults(act=_get)

    set_ = actions.add_parser("set", help="set a key in a config file", examples=_SET)
    set_.add_argument("key", metavar="KEY")
    set_.add_argument("value", metavar="VALUE", help="as in YAML; text needs no quotes")
    set_.set_defaults(act=_change)

    unset = actions.add_parser("unset", help="remove a key from a config file", examples=_UNSET)
    unset.add_argument("key", metavar="KEY")
    unset.set_defaults(act=_change, value=None)

    schema = actions.add_parser("schema", help="print a JSON Schema of the config files", examples=_SCHEMA)
    schema.set_defaults(act=_schema)

    for reads in (show, get):
        reads.add_argument("--config", metavar="NAME", help="also read .ralph/configs/NAME")
        add_json(reads)
        add_workspace(reads)
    for writes in (set_, unset):
        where = writes.add_mutually_exclusive_group()
        where.add_argument("--user", action="store_true", help="in ~/.ralph/config.yaml")
        where.add_argument("--config", metavar="NAME", help="in .ralph/configs/NAME")
        add_project(writes)


_SHOW = """
ralph config show
ralph config show --origin --json
"""
_GET = """
ralph config get timeout
ralph config get timeout --origin
ralph config get quality_checks --json
"""
_SET = """
ralph config set max_iterations 30
ralph config set quality_checks.unit "pytest -q"
ralph config set --config default max_loops_per_task 10
ralph config set checks '["pytest -q", "ruff check ."]'
ralph config set checks '[{name: unit, command: pytest -q, timeout: 5m}]'
"""
_UNSET = """
ralph config unset max_iterations
ralph config unset --user agent.model
"""
_SCHEMA = """
ralph config schema > .ralph/schema.json
"""


def run(args: Namespace) -> int:
    return int(args.act(args))


def _show(args: Namespace) -> int:
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


def _get(args: Namespace) -> int:
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


def _change(args: Namespace) -> int:
    """`set` and `unset`."""
    from ralph.workspace.config_edit import change_file

    what = "set" if args.value is not None else "unset"
    refuse_inside_loop(os.environ, f"use `ralph config {what}`")
    root = None if args.user else root_of(args, os.environ)
    changed = change_file(root, args.config, args.key, args.value, os.environ)
    if not changed.is_changed:
        note(f"{changed.file}: {args.key} is {'already so' if args.value is not None else 'not set there'}")
        return 0
    note(f"{changed.file}: {args.key} {what}")
    if changed.names_commands and root is not None:
        note("the commands of this workspace have changed; `ralph trust` shows them and asks")
    return 0


def _schema(_: Namespace) -> int:
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
