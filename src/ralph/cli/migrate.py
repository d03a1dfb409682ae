"""`ralph migrate`: open what an earlier version left, and change what must change."""

from __future__ import annotations

import os
from argparse import Namespace
from pathlib import Path

from ralph.cli.doctor import print_findings
from ralph.cli.output import emit_json, say
from ralph.core.exit_codes import ExitCode
from ralph.core.text import plural
from ralph.doctor.findings import Subject, examine, is_well
from ralph.doctor.upgrade import MIGRATE, stale_hooks
from ralph.session.hook_install import install
from ralph.workspace.find import find_root, root_of
from ralph.workspace.trust import refuse_inside_loop


def run(args: Namespace) -> int:
    here = Path.cwd()
    root = root_of(args, os.environ) if args.project_dir else find_root(here, os.environ)
    subject = Subject(here, root, os.environ)
    stale = stale_hooks(subject)
    if stale and not args.check:
        refuse_inside_loop(os.environ, "rewrite hooks")
        for target in stale:
            install(target, os.environ)
    lines = examine(subject, MIGRATE, None)
    changes = [target.file for target in stale]
    if args.json:
        emit_json({"ok": is_well(lines), "changes": changes, "changed": not args.check, "findings": lines})
    else:
        print_findings(lines)
        files = plural(len(changes), "file")
        say("nothing must change" if not changes else f"{files} must change" if args.check else f"{files} rewritten")
    if not is_well(lines):
        return ExitCode.ENVIRONMENT
    return ExitCode.UNFINISHED if changes and args.check else ExitCode.COMPLETE
