"""Test the notifications configured under `notify:`.

Exit code 0 if every message was sent, 1 otherwise."""

from __future__ import annotations

import os
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path

from ralph.cli.arguments import add_json, add_workspace
from ralph.cli.output import ask, emit_json, is_interactive, note, say
from ralph.config.trust import Verdict
from ralph.core.errors import SetupError
from ralph.core.exit_codes import ExitCode
from ralph.host.process.signals import StopSignal
from ralph.notify.message import Message, Moment, NotSent
from ralph.run.notifications import SHORTEST, Channel, channels
from ralph.workspace.find import open_settings
from ralph.workspace.trust import ensure_trusted, gather

EXAMPLES = """
ralph notify test            send one message through each channel
ralph notify test --json     the results, for scripts
"""
_TEST = """
ralph notify test
"""


def configure(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    test = actions.add_parser("test", help="send one message through each channel", examples=_TEST)
    test.add_argument("--config", metavar="NAME", help="also read .ralph/configs/NAME")
    test.add_argument("--trust", action="store_true", help="trust the commands this workspace defines")
    add_json(test)
    add_workspace(test)


def run(args: Namespace) -> int:
    root, _, settings = open_settings(args)
    config = settings.config.notify
    ways = channels(config, root or Path.cwd(), os.environ)
    if not ways:
        raise SetupError(
            "no notification is configured",
            hint="`ralph config set --user notify.desktop true`; docs/notifications.md describes the other channels",
        )
    if root is not None:
        asks = _ask if is_interactive() and not args.json else None
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


def _ask(verdict: Verdict) -> bool:
    for line in verdict.difference:
        note(line)
    return ask("Run these commands?")
