"""Look at everything a run needs before it starts: plan, settings, trust, agent, login, prompts, repository, disk.

All that is wrong is told at once, each with its fix. Nothing is started and nothing is asked of a model; `--checks`
runs the checks on the tree as it is. Exit code 78 when something would stop a run. `ralph doctor` looks at the machine.
"""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace

from ralph.app.doctor import is_well
from ralph.app.launching import Launched
from ralph.app.named_variants import refuse_unknown_names
from ralph.app.preflight import preflight
from ralph.app.workspace import open_ref, store_for
from ralph.cli.arguments import add_json, add_workspace
from ralph.cli.doctor import print_findings
from ralph.cli.output import emit_json
from ralph.core.exit_codes import ExitCode

EXAMPLES = """
ralph preflight             every line that is not ok says what to do
ralph preflight --checks    also run the checks once
ralph preflight --json      for scripts
"""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("--checks", action="store_true", help="run the checks on the tree as it is")
    parser.add_argument("--config", metavar="NAME", help="use .ralph/configs/NAME as well")
    add_json(parser)
    add_workspace(parser)


def run(args: Namespace) -> int:
    ref, settings = open_ref(args)
    refuse_unknown_names(settings)
    prepared = Launched(ref=ref, settings=settings, plan=store_for(ref, os.environ).load().plan)
    lines = preflight(prepared, os.environ, checks=args.checks)
    if args.json:
        emit_json({"ok": is_well(lines), "findings": lines})
    else:
        print_findings(lines)
    return ExitCode.COMPLETE if is_well(lines) else ExitCode.ENVIRONMENT
