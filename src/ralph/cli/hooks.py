"""Install and inspect Ralph's hooks for Claude Code.

`ralph run` passes its hooks to the client it starts, so nothing needs to be
installed. Installed hooks do nothing in other clients, except with RALPH_LOOP=1:
then the Stop hook ends an interactive client so that the shell loop around it
starts a fresh one."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any, cast

from ralph.cli.arguments import Parser, add_json, add_project
from ralph.cli.output import emit_json, emit_line, note, paint, say, say_raw, warn
from ralph.core.text import one_line

EXAMPLES = """
ralph hooks status               where the hooks are installed
ralph hooks install              in .claude/settings.local.json of this project
ralph hooks install --user       in ~/.claude/settings.json
ralph hooks uninstall            restore the file as it was
"""

_SUMMARIES = {
    "install": "add the hooks to a settings file",
    "uninstall": "remove the hooks from a settings file",
    "status": "show where the hooks are installed and whether they would act",
}
_MORE = {
    "install": """

Only needed for interactive clients in a shell loop (RALPH_LOOP=1); `ralph run`
brings its own hooks. Everything else in the file stays as it is, and a backup is
kept beside it.""",
    "uninstall": """

Restores the file byte for byte if it has not changed since; otherwise removes
only Ralph's entries.""",
    "status": """

Hooks act only in a client started by a run, and the Stop hook also with
RALPH_LOOP=1.""",
}


def configure(parser: ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=Parser)
    for name, summary in _SUMMARIES.items():
        one = _command(commands, name, summary, summary[0].upper() + summary[1:] + "." + _MORE[name])
        where = one.add_mutually_exclusive_group()
        both = " (default: both)" if name == "status" else ""
        where.add_argument("--user", action="store_true", help=f"~/.claude/settings.json{both}")
        local = f".claude/settings.local.json of the project{both or ' (default)'}"
        where.add_argument("--project", action="store_true", help=local)
        add_project(one)
        add_json(one)
    _command(
        commands,
        "at-stop",
        "used by the Stop hook: what keeps the agent from stopping",
        "Print a JSON list of what keeps the agent from stopping. Used by the Stop hook.",
    )


def _command(commands: Any, name: str, summary: str, description: str) -> ArgumentParser:
    made = commands.add_parser(name, help=summary, description=description, examples=f"ralph hooks {name}")
    return cast(ArgumentParser, made)


def run(args: Namespace) -> int:
    return {"install": _install, "uninstall": _uninstall, "status": _status, "at-stop": _at_stop}[args.action](args)


def _at_stop(args: Namespace) -> int:
    from ralph.session.stop_rules import problems_at_stop, read_policy
    from ralph.session.stop_trial import problems_by_marker

    policy = read_policy(os.environ)
    if policy is None:
        problems, warning = problems_by_marker(Path.cwd())
        if warning:
            note(warning)
    else:
        problems = problems_at_stop(policy)
    emit_line(problems)
    return 0


def _target(args: Namespace) -> Any:
    from ralph.session.hook_install import Scope, target_for
    from ralph.workspace.find import root_of

    if args.user:
        return target_for(Scope.USER, None, os.environ)
    return target_for(Scope.PROJECT, root_of(args, os.environ), os.environ)


def _install(args: Namespace) -> int:
    from ralph.session.hook_install import install, is_seen_by_git
    from ralph.workspace.trust import refuse_inside_loop

    refuse_inside_loop(os.environ, "install hooks")
    target = _target(args)
    done = install(target, os.environ)
    if args.json:
        emit_json(done)
    elif not done.changed:
        say(f"{done.file} already has Ralph's hooks")
    else:
        say(f"hooks added to {done.file}" + (f"; backup: {done.backup}" if done.backup else ""))
        note("`ralph run` does not need this; the hooks do nothing outside a run, or without RALPH_LOOP=1")
    if done.changed and is_seen_by_git(target):
        name = done.file.relative_to(target.within)
        warn(f"git lists {name} as a new file; add `{name}*` to .git/info/exclude, or a run stops at a dirty tree")
    return 0


def _uninstall(args: Namespace) -> int:
    from ralph.session.hook_install import uninstall
    from ralph.workspace.trust import refuse_inside_loop

    refuse_inside_loop(os.environ, "uninstall hooks")
    done = uninstall(_target(args), os.environ)
    if args.json:
        emit_json(done)
    elif not done.changed:
        say(f"{done.file} has none of Ralph's hooks")
    elif done.exact:
        say(f"{done.file} is {'byte for byte what it was before' if done.file.exists() else 'gone again'}")
    else:
        kept = f"; the file before the hooks: {done.backup}" if done.backup else ""
        say(f"{done.file} has changed since: only Ralph's hooks were removed{kept}")
    return 0


def _status(args: Namespace) -> int:
    from ralph.session.hook_install import Scope, standing, target_for
    from ralph.workspace.find import find_root, root_of

    given = args.project or args.project_dir
    root = root_of(args, os.environ) if given else find_root(Path.cwd(), os.environ)
    scopes = [Scope.USER] if args.user else [Scope.PROJECT] if args.project else list(Scope)
    places = [target_for(scope, root, os.environ) for scope in scopes if scope is Scope.USER or root is not None]
    found = [standing(place, root, os.environ) for place in places]
    if args.json:
        emit_json(found)
        return 0
    for one in found:
        _describe(one)
    return 0


def _describe(one: Any) -> None:
    word = "installed" if one.installed else "not installed" if one.why == "not installed" else "unreadable"
    style = {"installed": "green", "unreadable": "red"}.get(word, "dim")
    say_raw(f"{one.scope:<8} {paint(word, style):<13} {one_line(str(one.file))}")
    if word == "unreadable":
        say(f"         {one.why}")
    if not one.installed:
        return
    other = "" if one.is_current else "  (of another Ralph installation: `ralph hooks install` replaces it)"
    say(f"         calls {one_line(one.interpreter)}{other}")
    if one.missing:
        say(f"         missing: {', '.join(one.missing)}; `ralph hooks install` adds them")
    say(f"         {'would act' if one.would_act else 'silent'}: {one.why}")
