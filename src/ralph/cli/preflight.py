"""Check everything a run needs: plan, settings, trust, agent, login, prompts,
repository, disk. Nothing is started, and no model is called.

Every problem is listed with its fix. Exit code 78 if one of them stops a run.
`--checks` also runs the checks. `ralph doctor` checks the machine."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace

from ralph.cli.arguments import add_json, add_workspace
from ralph.cli.doctor import print_findings
from ralph.cli.output import emit_json
from ralph.core.errors import PlanError
from ralph.core.exit_codes import ExitCode
from ralph.core.plan import Plan
from ralph.core.ports import PlanRef
from ralph.doctor.doctor import is_well
from ralph.doctor.preflight import preflight
from ralph.run.launch import Launched
from ralph.workspace.find import open_ref, store_for

EXAMPLES = """
ralph preflight             every problem, with its fix
ralph preflight --checks    also run the checks once
ralph preflight --json      for scripts
"""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("--checks", action="store_true", help="also run the checks once")
    parser.add_argument("--config", metavar="NAME", help="also read .ralph/configs/NAME")
    add_json(parser)
    add_workspace(parser)


def run(args: Namespace) -> int:
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
