"""`ralph sandbox`: what it is, a terminal or a command in it, which hosts it refused, and how to remove it."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ralph.cli.output import ask_trust, emit_json, emit_line, is_interactive, note, paint, say, say_raw, warn
from ralph.core.errors import UsageError
from ralph.core.exit_codes import ExitCode
from ralph.core.text import one_line, plural
from ralph.host.process.foreground import is_terminal, run_here, stoppable
from ralph.host.process.table import require_process_control
from ralph.run.launch import agree
from ralph.run.sandbox_status import BackendState, HostOrigin, Status, status
from ralph.run.sandbox_tools import OUTSIDE_RUNS, Inside, open_inside, reset, shell_of
from ralph.run.spec import Launched
from ralph.sandbox.decisions import Decision, HostSummary, read_decisions, summary
from ralph.sandbox.hosts import command_to_allow, command_to_allow_all, shown
from ralph.sandbox.wall import Quota
from ralph.state.names import NETWORK_LOG
from ralph.state.places import workspace_state
from ralph.state.runs import journal_path
from ralph.views.words import clock
from ralph.workspace.find import find_root, open_ref, open_settings, root_of, store_for
from ralph.workspace.runs import chosen_run
from ralph.workspace.settings_check import refuse_misfits, refuse_unknown_names
from ralph.workspace.trust import refuse_inside_loop

_SIDE = 11
_MOST_REFUSED = 5


def show_status(args: Namespace) -> int:
    root, _, settings = open_settings(args)
    ref = None
    if root is not None and find_root(root, os.environ):
        ref, settings = open_ref(args)
    found = status(settings, ref, os.environ)
    if args.json:
        emit_json(found)
    else:
        for line in _status_lines(found):
            say_raw(line)
    return ExitCode.COMPLETE


def _status_lines(found: Status) -> Iterator[str]:
    style = "green" if found.backend else "yellow"
    yield _row("sandbox", paint(found.title or "none", style))
    yield _row("", one_line(found.why, 300))
    if found.hint and not found.backend:
        yield _row("", f"fix: {one_line(found.hint, 200)}")
    for title, backend in zip(("kinds", *[""] * 9), found.backends, strict=False):
        yield _row(title, _backend_line(backend))
    yield from _network_lines(found)
    yield _row("limits", _limits(found.limits))
    if not found.workspace:
        return
    yield _row("workspace", found.workspace)
    if found.clone:
        yield _row("clone", f"{found.clone.folder} on branch {found.clone.branch}")
        ahead = f"{plural(found.clone.ahead, 'commit')} ahead of your checkout"
        behind = f", {found.clone.behind} behind" if found.clone.behind else ""
        yield _row("", f"{ahead}{behind}" if found.clone.ahead or behind else "nothing that your checkout has not")
        if found.clone.ahead:
            yield _row("", f"`git merge {found.clone.branch}` brings them in")
    yield _row("home", f"{found.home} ({found.home_bytes / 1e6:.1f} MB)")
    setup = f"{found.setup}: {one_line(found.setup_command, 100)}" if found.setup_command else "none"
    yield _row("set-up", setup)


def _row(title: str, text: str) -> str:
    return f"{title:<{_SIDE}}{text}"


def _backend_line(backend: BackendState) -> str:
    if backend.is_usable:
        version = f" {backend.version}" if backend.version else ""
        return f"{backend.name:<8}{paint('usable', 'green')}: {backend.title}{version}"
    fix = f"; fix: {backend.hint}" if backend.hint else ""
    return f"{backend.name:<8}{one_line(f'{backend.why_not}{fix}', 300)}"


def _network_lines(found: Status) -> Iterator[str]:
    if not found.backend:
        return
    if found.network == "open":
        yield _row("network", paint("OPEN: everything can be reached from inside (sandbox.network: open)", "red"))
    elif found.network == "none":
        yield _row("network", "none (sandbox.network: none)")
    else:
        lines = [_host_line(host) for host in found.hosts] or ["no host"]
        for title, line in zip(("network", *[""] * len(lines)), lines, strict=False):
            yield _row(title, line)


def _host_line(host: HostOrigin) -> str:
    names = f" ({', '.join(host.names)})" if host.names else ""
    checks = "" if host.for_checks else ", not for checks"
    return f"{host.entry}{names}: {host.origin}{checks}"


def _limits(limits: Quota) -> str:
    values = {
        "processes": limits.processes,
        "MB of memory": limits.memory_mb,
        "MB written": limits.disk_mb,
        "seconds of processor time": limits.cpu_seconds,
    }
    return ", ".join(f"{value} {what}" for what, value in values.items() if value) or "none"


def open_shell(args: Namespace) -> int:
    prepared = _prepared(args)
    if not is_terminal():
        raise UsageError(
            "stdin, stdout and stderr have to be a terminal for a shell",
            hint="`ralph sandbox exec -- COMMAND` runs one command",
        )
    with stoppable(), open_inside(prepared, os.environ, note, is_check=False) as inside:
        note(f"in {inside.title}, as the agent sees it, in {inside.cwd}")
        note("nothing that you change or commit there is kept; leave with `exit`")
        return _run([shell_of(os.environ)], inside)


def run_command(args: Namespace) -> int:
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    prepared = _prepared(args)
    if not command:
        raise UsageError("no command", hint="for instance `ralph sandbox exec -- npm test`")
    with stoppable(), open_inside(prepared, os.environ, note, is_check=args.check) as inside:
        return _run(command, inside)


def _run(command: Sequence[str], inside: Inside) -> int:
    before = inside.state()
    code, problem = run_here(command, cwd=inside.cwd, env=inside.env, enclosure=inside.enclosure)
    if problem:
        warn(problem)
    if inside.clone is not None and inside.state() != before:
        note("what was changed there is not kept: the next command or run starts from what is committed")
    refused = inside.refused()
    for host in refused[:_MOST_REFUSED]:
        note(f"the sandbox refused {shown(host.host, host.port)}: {host.why}", "yellow")
    if refused:
        note("`ralph sandbox log shell` shows how to allow it")
    return code


def _prepared(args: Namespace) -> Launched:
    """The plan and its settings, if its commands are trusted: the set-up of the sandbox is one of them."""
    require_process_control()
    refuse_inside_loop(os.environ, "open the sandbox")
    ref, settings = open_ref(args)
    refuse_unknown_names(settings)
    refuse_misfits(settings, ref)
    prepared = Launched(ref=ref, settings=settings, plan=store_for(ref, os.environ).load().plan)
    agree(prepared, os.environ, trust=args.trust, ask=ask_trust if is_interactive() else None, tell=note)
    return prepared


# --- log -------------------------------------------------------------------------------------------------------------


def show_log(args: Namespace) -> int:
    _, settings = open_ref(args)
    present = settings.config.sandbox.allow_hosts
    log = _log_file(args)
    if not log.is_file():
        raise UsageError(
            f"{one_line(args.run or log.parent.name, 60)} has no network log",
            hint="it ran without a sandbox, or with sandbox.network set to open or none",
        )
    decisions = read_decisions(log)
    if args.all:
        for decision in decisions:
            emit_line(decision) if args.json else say(_decision_line(decision))
        return ExitCode.COMPLETE
    groups = summary(decisions)
    refused, allowed = [one for one in groups if one.why], [one for one in groups if not one.why]
    if args.json:
        emit_json({"run": log.parent.name, "allowed": allowed, "refused": list(_with_commands(refused, present))})
        return ExitCode.COMPLETE
    for line in (*_allowed_lines(allowed), *_refused_lines(refused, present)):
        say_raw(line)
    if not groups:
        note(f"nothing was reached from inside in {log.parent.name}")
    return ExitCode.COMPLETE


def _log_file(args: Namespace) -> Path:
    if args.run == OUTSIDE_RUNS:
        state = workspace_state(root_of(args, os.environ), os.environ)
        return journal_path(state, OUTSIDE_RUNS).with_name(NETWORK_LOG)
    return chosen_run(args, os.environ, args.run).with_name(NETWORK_LOG)


def _with_commands(refused: Iterable[HostSummary], present: Sequence[str]) -> Iterator[dict[str, object]]:
    for one in refused:
        allow = command_to_allow(one.host, one.port, one.why, present)
        yield {"host": one.host, "port": one.port, "why": one.why, "count": one.count, "allow": allow}


def _allowed_lines(allowed: Sequence[HostSummary]) -> Iterator[str]:
    if allowed:
        yield paint("reached", "bold")
    for one in allowed:
        failed = f", no connection: {one.last.failed}" if one.last.failed else ""
        traffic = f", {_bytes(one.up)} sent, {_bytes(one.down)} received" if one.up or one.down else ""
        yield f"  {one_line(shown(one.host, one.port), 100)}: {_times(one.count)}{traffic}{one_line(failed, 200)}"


def _refused_lines(refused: Sequence[HostSummary], present: Sequence[str]) -> Iterator[str]:
    if refused:
        yield paint("refused", "bold")
    for one in refused:
        yield paint(f"  {one_line(shown(one.host, one.port), 100)}: {_times(one.count)}, {one.why}", "yellow")
        yield f"    allow it: {command_to_allow(one.host, one.port, one.why, present)}"
    if len(refused) > 1:
        yield f"  allow all of them: {command_to_allow_all([(o.host, o.port, o.why) for o in refused], present)}"


def _decision_line(decision: Decision) -> str:
    begin, place = f"{clock(decision.time)} {decision.name:<7}", shown(decision.host, decision.port)
    if not decision.method:
        return f"{begin} closed  {place}: {_bytes(decision.up)} sent, {_bytes(decision.down)} received"
    answer, why = "refused" if decision.why else "allowed", decision.why or decision.failed
    count = f" ({decision.count} times)" if decision.count > 1 else ""
    return f"{begin} {answer} {decision.method} {place}{count}{f': {why}' if why else ''}"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _bytes(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e5 else f"{count / 1e3:.1f} kB"


# --- reset -----------------------------------------------------------------------------------------------------------


def remove_sandbox(args: Namespace) -> int:
    refuse_inside_loop(os.environ, "remove the sandbox")
    root = root_of(args, os.environ)
    removed = reset(root, os.environ, force=args.force)
    if args.json:
        emit_json(removed)
        return ExitCode.COMPLETE
    for path in removed.paths:
        say(f"removed {path}")
    if removed.microvm:
        say(f"removed the sandbox {removed.microvm} of sbx")
    for branch in removed.kept_branches:
        say(f"kept branch {branch}, which has work that your checkout does not have: `git merge {branch}`")
    if not removed.paths and not removed.microvm:
        note("there was nothing to remove")
    return ExitCode.COMPLETE
