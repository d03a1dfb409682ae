"""`ralph sandbox test`: try to escape from each sandbox that works here, and print what happened."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterator

from ralph.cli.output import emit_json, note, paint, say_raw
from ralph.core.errors import SetupError, UsageError
from ralph.core.exit_codes import ExitCode
from ralph.core.text import one_line
from ralph.host.process.table import require_process_control
from ralph.sandbox import escapes
from ralph.sandbox.choice import BACKENDS, Chosen, try_backend
from ralph.sandbox.escapes import Outcome, Result
from ralph.sandbox.home import readable_folders
from ralph.sandbox.wall import Wall, Walled
from ralph.workspace.trust import refuse_inside_loop

_STYLES = {
    Result.REFUSED: "green",
    Result.WORKS: "green",
    Result.ESCAPED: "red bold",
    Result.FAILED: "red",
    Result.SKIPPED: "dim",
}


def try_escapes(args: Namespace) -> int:
    require_process_control()
    refuse_inside_loop(os.environ, "test the sandbox")
    if args.backend and args.backend not in BACKENDS:
        raise UsageError(f"unknown sandbox {one_line(repr(args.backend), 60)}", hint=f"one of {', '.join(BACKENDS)}")
    tried = {name: try_backend(name, os.environ) for name in ([args.backend] if args.backend else BACKENDS)}
    usable = {name: chosen for name, chosen in tried.items() if chosen.backend is not None}
    if not usable:
        first = next(iter(tried.values()))
        raise SetupError(f"no sandbox to test: {first.why_not}", hint=first.hint or "see `ralph sandbox status`")
    outcomes: dict[str, list[Outcome]] = {}
    for name, chosen in usable.items():
        if not args.json:
            note(f"trying {chosen.title} …")
        outcomes[name] = list(_try(name, chosen))
        if not args.json:
            for line in _table(chosen, outcomes[name]):
                say_raw(line)
    if args.json:
        emit_json(
            {
                name: {"title": usable[name].title, "ok": all(one.is_good for one in rows), "rows": rows}
                for name, rows in outcomes.items()
            }
        )
    is_well = all(one.is_good for rows in outcomes.values() for one in rows)
    return ExitCode.COMPLETE if is_well else ExitCode.UNFINISHED


def _try(name: str, chosen: Chosen) -> Iterator[Outcome]:
    backend = chosen.backend
    assert backend is not None, "only usable ones are tried"

    def make(wall: Wall) -> Walled:
        return Walled(backend, chosen.program, wall)

    yield from escapes.try_escapes(make, backend=name)
    yield from escapes.try_work(make, readable=tuple(readable_folders(os.environ, os.environ, ())))


def _table(chosen: Chosen, outcomes: list[Outcome]) -> Iterator[str]:
    yield paint(chosen.title, "bold")
    group = ""
    for outcome, (mark, of, what, detail) in zip(outcomes, escapes.rows(outcomes), strict=True):
        if of != group:
            group = of
            yield f"  {group}"
        shown = f": {detail}" if detail else ""
        yield f"    {paint(f'{mark:<8}', _STYLES[outcome.result])} {what}{paint(shown, 'dim')}"
    counts = {result: sum(one.result is result for one in outcomes) for result in Result}
    yield "  " + ", ".join(f"{count} {result.value}" for result, count in counts.items() if count)
