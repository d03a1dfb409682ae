"""`ralph hooks`: install and inspect the Claude Code hooks, write the plugin."""

from __future__ import annotations

import os
from argparse import Namespace
from pathlib import Path
from typing import Any

from ralph.cli.output import emit_json, emit_line, note, paint, say, say_raw, warn
from ralph.core.text import one_line, plural


def at_stop(_: Namespace) -> int:
    from ralph.session.stop_rules import problems_at_stop, problems_by_marker, read_policy

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


def install(args: Namespace) -> int:
    from ralph.session import hook_install
    from ralph.workspace.trust import refuse_inside_loop

    refuse_inside_loop(os.environ, "install hooks")
    target = _target(args)
    done = hook_install.install(target, os.environ)
    if args.json:
        emit_json(done)
    elif not done.changed:
        say(f"{done.file} already has Ralph's hooks")
    else:
        say(f"hooks added to {done.file}" + (f"; backup: {done.backup}" if done.backup else ""))
        note("`ralph run` does not need this; the hooks do nothing outside a run, or without RALPH_LOOP=1")
    if done.changed and hook_install.is_seen_by_git(target):
        name = done.file.relative_to(target.within)
        warn(f"git lists {name} as a new file; add `{name}*` to .git/info/exclude, or a run stops at a dirty tree")
    return 0


def uninstall(args: Namespace) -> int:
    from ralph.session import hook_install
    from ralph.workspace.trust import refuse_inside_loop

    refuse_inside_loop(os.environ, "uninstall hooks")
    done = hook_install.uninstall(_target(args), os.environ)
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


def status(args: Namespace) -> int:
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


def plugin(args: Namespace) -> int:
    from ralph.session.plugin import NAME, write_plugin
    from ralph.workspace.trust import refuse_inside_loop

    refuse_inside_loop(os.environ, "write a plugin")
    folder = Path(os.path.abspath(args.folder))  # noqa: PTH100 - a link to a folder is kept as it is
    done = write_plugin(folder, force=args.force)
    if args.json:
        emit_json(done)
        return 0
    for name in done.files:
        say(f"  {name}")
    say(f"{folder}: " + (f"{plural(len(done.files), 'file')} written" if done.files else "up to date"))
    note(f"try it: claude --plugin-dir {folder}")
    note(f"install it: claude plugin marketplace add {folder} && claude plugin install {NAME}@{NAME}")
    return 0
