"""`ralph trust`: review and trust the commands of a workspace."""

from __future__ import annotations

import os
from argparse import Namespace
from pathlib import Path

from ralph.cli.output import ask, emit_json, is_interactive, note, say, warn
from ralph.config.flags import flags_of
from ralph.config.layers import load
from ralph.config.trust import Commands, NamedCommand, Status, by_source, check_trust, visible
from ralph.core.errors import NotTrusted, PlanError
from ralph.core.plan import Plan
from ralph.core.ports import PlanRef
from ralph.state.places import trust_file
from ralph.workspace.find import Choice, choose_plan, find_plans, open_settings, root_of, store_for
from ralph.workspace.settings_check import chosen_layout
from ralph.workspace.trust import gather, is_trusted_by, read_record, refuse_inside_loop, revoke, write_trust


def run(args: Namespace) -> int:
    root = root_of(args, os.environ)
    if args.revoke:
        return _revoke(root)
    commands = _commands(root, args)
    verdict = check_trust(read_record(root, os.environ, warn), commands)
    if args.json:
        emit_json(
            {"workspace": root, "status": verdict.status, "commands": commands, "file": trust_file(root, os.environ)}
        )
    elif args.show or verdict.status is not Status.CHANGED:
        _list(commands)
    else:
        for line in verdict.difference:
            say(line)
    if not commands:
        note("this workspace defines no commands; nothing to trust")
    elif args.show or args.json or verdict.status is Status.TRUSTED:
        note(f"{root}: {_STATES[verdict.status]}")
    else:
        _agree(root, commands, agreed=args.yes or is_trusted_by(os.environ))
    return 0


_STATES = {
    Status.TRUSTED: "these commands are trusted",
    Status.NEW: "these commands are not trusted yet",
    Status.CHANGED: "these commands have changed since they were trusted",
}


def _agree(root: Path, commands: Commands, *, agreed: bool) -> None:
    refuse_inside_loop(os.environ, "trust a workspace")
    if not agreed and not is_interactive():
        raise NotTrusted(f"the commands of {root} are not trusted", hint="`ralph trust -y` trusts them")
    if not agreed and not ask("Let Ralph run these commands in this workspace?"):
        raise NotTrusted(f"the commands of {root} are still not trusted")
    write_trust(root, commands, os.environ)
    note(f"{root}: trusted")


def _revoke(root: Path) -> int:
    refuse_inside_loop(os.environ, "change what is trusted")
    note(f"{root}: no longer trusted" if revoke(root, os.environ) else f"{root}: nothing was trusted")
    return 0


def _commands(root: Path, args: Namespace) -> Commands:
    """The commands of the selected plans and of the config files their layouts read."""
    _, _, settings = open_settings(args)
    config = settings.config
    choice = Choice(chosen_layout(settings), config.feature, str(config.prd or ""), config.ralph_dir)
    refs = find_plans(root, choice)
    if not refs and choice != Choice():
        choose_plan(root, choice)  # which says that there is none
    plans = [(ref.path, plan) for ref in refs if (plan := _read(ref)) is not None]
    found: dict[NamedCommand, None] = {}
    for name in sorted({ref.layout for ref in refs}) or [""]:
        read = load(root=root, layout=name, name=args.config, env=os.environ, flags=flags_of(args))
        found |= dict.fromkeys(gather(root, read, plans))
    return tuple(found)


def _read(ref: PlanRef) -> Plan | None:
    try:
        return store_for(ref, os.environ).load().plan
    except PlanError as error:
        warn(f"{error}; its commands are left out")
        return None


def _list(commands: Commands) -> None:
    for source, listed in by_source(commands).items():
        say(f"{visible(source)}:", "bold")
        for command in listed:
            say(f"  {command}")
