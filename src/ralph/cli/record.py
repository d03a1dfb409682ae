"""`ralph record`: make an animated picture of a run from its journal."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from pathlib import Path

from ralph.cli.output import emit_bytes, note, warn
from ralph.core.errors import BadData, UsageError
from ralph.core.events import Record
from ralph.core.exit_codes import ExitCode
from ralph.core.text import one_line
from ralph.host.files import write_bytes
from ralph.host.redaction import redact_struct
from ralph.journal.records import read
from ralph.recording.cast import as_cast
from ralph.recording.gif import as_gif
from ralph.recording.storyboard import Size, Storyboard, storyboard
from ralph.recording.svg import as_svg
from ralph.recording.theme import Theme
from ralph.workspace.find import root_of
from ralph.workspace.runs import run_to_show

_LIMITS = {"seconds": (5, 120), "columns": (40, 240), "rows": (12, 60)}
_STDOUT = "-"


def run(args: Namespace) -> int:
    for name, (least, most) in _LIMITS.items():
        if not least <= getattr(args, name) <= most:
            raise UsageError(f"--{name} must be between {least} and {most}, not {getattr(args, name)}")
    target = _target(next(name for name in (args.svg, args.cast, args.gif) if name is not None))
    journal, workspace = _journal(args)
    board = storyboard(_records(journal), Size(args.columns, args.rows), args.seconds)
    data = _picture(board, args, workspace)
    if target is None:
        emit_bytes(data)
        return ExitCode.COMPLETE
    try:
        write_bytes(target, data)
    except OSError as error:
        name = one_line(str(target), 100)
        raise UsageError(f"cannot write {name}: {error.strerror or error}", hint="name another file") from None
    note(f"wrote {one_line(str(target), 200)}: {board.seconds:.0f} s, {_kilobytes(len(data))}")
    return ExitCode.COMPLETE


def _target(name: str) -> Path | None:
    """None: stdout. Asked first, so that nothing is computed in vain."""
    if name == _STDOUT:
        if sys.stdout.isatty():
            raise UsageError("stdout is a terminal", hint="name a file, or redirect the output")
        return None
    path = Path(name)
    if path.is_dir() or not path.parent.is_dir():
        raise UsageError(
            f"cannot write the picture to {one_line(repr(name), 100)}", hint="name a file in an existing folder"
        )
    return path


def _journal(args: Namespace) -> tuple[Path, Path]:
    """The journal, and the workspace whose programs are not used. A copied journal is named by its path."""
    if args.run.endswith(".jsonl"):
        return Path(args.run), Path.cwd()
    return run_to_show(args, os.environ), root_of(args, os.environ)


def _records(journal: Path) -> list[Record]:
    records: list[Record] = []
    try:
        for record in read(journal):
            records.append(redact_struct(record))
    except BadData as error:  # what stands before the damage still makes a picture
        if not records:
            raise
        warn(str(error))
    if not records:
        raise UsageError(f"the journal {one_line(str(journal), 200)} is empty", hint="`ralph runs` lists the runs")
    return records


def _picture(board: Storyboard, args: Namespace, workspace: Path) -> bytes:
    theme = Theme(args.theme)
    if args.gif is not None:
        return as_gif(board, theme, os.environ, workspace)
    return (as_cast(board, theme) if args.cast is not None else as_svg(board, theme)).encode()


def _kilobytes(size: int) -> str:
    return f"{size / 1000:.0f} kB" if size < 1_000_000 else f"{size / 1_000_000:.1f} MB"
