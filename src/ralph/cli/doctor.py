"""Check this machine and this workspace, and show how to fix what is wrong.

Agent clients are only asked for their version, in an empty home and without
network access. Exit code 78 if something would stop a run."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from pathlib import Path

from ralph.cli.arguments import add_json, add_project
from ralph.cli.output import emit_json, note, paint, say_raw
from ralph.core.exit_codes import ExitCode
from ralph.core.text import plural
from ralph.doctor.doctor import Level, Line, Patient, examine, is_well
from ralph.doctor.workspace_probes import PROBES
from ralph.workspace.find import find_root, root_of

EXAMPLES = """
ralph doctor             every problem, with its fix
ralph doctor --json      for scripts
"""

_STYLES = {Level.OK: "green", Level.WARN: "yellow", Level.FAIL: "red"}


def configure(parser: ArgumentParser) -> None:
    add_project(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    here = Path.cwd()
    root = root_of(args, os.environ) if args.project_dir else find_root(here, os.environ)
    lines = examine(Patient(here, root, os.environ), PROBES)
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
