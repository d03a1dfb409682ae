"""Show how many tokens every session starts with (prompt, plan, log, readme,
memory), and what to cut.

Exit code 1 if it is more than `context.budget_tokens`. For money, see
`ralph cost`."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace

from ralph.cli.arguments import add_json, add_workspace
from ralph.cli.output import emit_json, note, say
from ralph.core.exit_codes import ExitCode
from ralph.core.text import one_line, plural
from ralph.run.context_size import ContextSize, TokenEstimate, context_size
from ralph.workspace.find import open_plan

EXAMPLES = """
ralph budget           the parts and their sizes
ralph budget --json    for scripts: exit code 1 if it is too much
"""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("--config", metavar="NAME", help="also read .ralph/configs/NAME")
    add_json(parser)
    add_workspace(parser)


def run(args: Namespace) -> int:
    opened = open_plan(args)
    size = context_size(opened.ref, opened.settings, opened.plan, os.environ)
    code = ExitCode.UNFINISHED if size.over else ExitCode.COMPLETE
    if args.json:
        emit_json(_document(size))
        return code
    say(f"{'part':<13} {'tokens':>8} {'share':>6}  file", "bold")
    for part in size.parts:
        mark = f"  over its own {part.budget:,}" if part.budget and part.tokens > part.budget else ""
        line = f"{part.name:<13} {part.tokens:>8,} {part.tokens / size.total:>6.0%}  {one_line(part.file, 60)}{mark}"
        say(line.rstrip(), "yellow" if mark else "")
    of = f" of {size.budget:,} (context.budget_tokens)" if size.budget else ""
    say(f"{'total':<13} {size.total:>8,}{of}", "red" if size.over else "bold")
    if size.estimate.overhead:
        note(f"the client adds about {size.estimate.overhead:,} tokens, which are not counted here", "dim")
    note(_basis(size.estimate), "dim")
    if size.to_cut:
        say()
        say(f"over by {size.over:,}; what to cut:" if size.over else "what to cut:", "yellow")
        for part in size.to_cut:
            say(f"  {part.file or part.name}, {part.tokens:,}: {part.how}")
    return code


def _basis(estimate: TokenEstimate) -> str:
    if estimate.is_measured:
        sessions = plural(estimate.samples, "session")
        return f"measured in {sessions} of this workspace: {estimate.chars_per_token:.2f} characters per token"
    return f"estimated at {estimate.chars_per_token:.0f} characters per token"


def _document(size: ContextSize) -> dict[str, object]:
    return {
        "total": size.total,
        "budget": size.budget,
        "over": size.over,
        "parts": [
            {
                "part": p.name,
                "file": p.file,
                "tokens": p.tokens,
                "share": round(p.tokens / size.total, 4),
                "budget": p.budget,
            }
            for p in size.parts
        ],
        "cut": [{"part": p.name, "file": p.file, "tokens": p.tokens, "how": p.how} for p in size.to_cut],
        "basis": size.estimate,
    }
