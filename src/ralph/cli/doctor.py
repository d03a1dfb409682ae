"""`ralph doctor`: check the machine, the next run and the notifications."""

from __future__ import annotations

import os
import time
from argparse import Namespace
from pathlib import Path

from ralph.cli.output import ask_trust, emit_json, is_interactive, note, paint, say, say_raw
from ralph.core.errors import PlanError, SetupError
from ralph.core.exit_codes import ExitCode
from ralph.core.plan import Plan
from ralph.core.ports import PlanRef
from ralph.core.text import plural
from ralph.doctor.findings import Level, Line, Subject, examine, is_well
from ralph.doctor.probes import DOCTOR, preflight
from ralph.host.process.signals import StopSignal
from ralph.notify.message import Message, Moment, NotSent
from ralph.workspace.find import find_root, open_ref, open_settings, root_of, store_for
from ralph.workspace.trust import ensure_trusted, gather

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ralph.notify.channels import Channel

_STYLES = {Level.OK: "green", Level.WARN: "yellow", Level.FAIL: "red"}


def check_machine(args: Namespace) -> int:
    here = Path.cwd()
    root = root_of(args, os.environ) if args.project_dir else find_root(here, os.environ)
    lines = examine(Subject(here, root, os.environ), DOCTOR)
    if args.json:
        emit_json({"ok": is_well(lines), "workspace": root, "findings": lines})
    else:
        print_findings(lines)
    return ExitCode.COMPLETE if is_well(lines) else ExitCode.ENVIRONMENT


def print_findings(lines: list[Line]) -> None:
    for line in lines:
        say_raw(f"{paint(f'{line.level.value:<5}', _STYLES[line.level])} {line.topic:<11} {line.text}")
        if line.level is not Level.OK and line.fix:
            say_raw(f"{'':<18}{paint(f'fix: {line.fix}', 'dim')}")
    counts = {level: sum(line.level is level for line in lines) for level in Level}
    note(f"{counts[Level.FAIL]} to fix, {plural(counts[Level.WARN], 'warning')}, {counts[Level.OK]} ok")


def check_run(args: Namespace) -> int:
    from ralph.run.spec import Launched

    ref, settings = open_ref(args)
    prepared = Launched(ref=ref, settings=settings, plan=_plan(ref))
    lines = preflight(prepared, os.environ, checks=args.checks)
    if args.json:
        emit_json({"ok": is_well(lines), "findings": lines})
    else:
        print_findings(lines)
    return ExitCode.COMPLETE if is_well(lines) else ExitCode.ENVIRONMENT


def _plan(ref: PlanRef) -> Plan:
    """The plan. If it cannot be read, that is a finding, and the other checks still run."""
    try:
        return store_for(ref, os.environ).load().plan
    except PlanError:
        return Plan(name=ref.name, stories=())


def test_notifications(args: Namespace) -> int:
    from ralph.notify.channels import channels
    from ralph.run.notifications import SHORTEST

    root, _, settings = open_settings(args)
    config = settings.config.notify
    ways = channels(config, root or Path.cwd(), os.environ)
    if not ways:
        raise SetupError(
            "no notification is configured",
            hint="`ralph config set --user notify.desktop true`; docs/notifications.md describes the other channels",
        )
    if root is not None:
        asks = ask_trust if is_interactive() and not args.json else None
        ensure_trusted(root, gather(root, settings, []), os.environ, flag=args.trust, ask=asks, report=note)
    message = Message(
        event=Moment.DONE,
        title="Ralph: a test",
        text="This is what a notification looks like.",
        workspace=str(root or ""),
        at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    )
    results = {way.name: _problem(way, message, max(config.timeout, SHORTEST)) for way in ways}
    if args.json:
        emit_json([{"way": name, "sent": not problem, "problem": problem} for name, problem in results.items()])
    else:
        for name, problem in results.items():
            say(f"{name}: {f'not sent: {problem}' if problem else 'sent'}", "red" if problem else "green")
    return ExitCode.UNFINISHED if any(results.values()) else ExitCode.COMPLETE


def _problem(way: Channel, message: Message, timeout: float) -> str:
    with StopSignal() as stop:
        try:
            way.send(message, timeout, stop)
        except NotSent as error:
            return str(error)
    return ""
