"""Runs checks in the workspace: clean environment, bounded output, time limit, nothing left alive."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from ralph.config.checks import ChosenCheck
from ralph.core.evidence import CheckResult
from ralph.core.text import clean
from ralph.host.files import make_folder, write_bytes
from ralph.host.process.enclosure import Enclosure
from ralph.host.process.signals import StopSignal
from ralph.host.process.start import CannotStart, run, shell
from ralph.host.redaction import redact

_KEPT = 200_000
_TAIL_LINES = 100


def run_check(
    name: str,
    command: str,
    *,
    root: Path,
    env: Mapping[str, str],
    timeout: float | None,
    cwd: str = "",
    required: bool = True,
    stop: StopSignal | None = None,
    keep: Callable[[bytes], str] | None = None,
    read: Callable[[bytes], object] | None = None,
    enclosure: Enclosure | None = None,
) -> CheckResult:
    """Run one command. It never raises for what the command does; that is its result.

    `keep` receives the output of a failing command, and returns where it saved it. `read` receives any output.
    """
    folder = Path(os.path.realpath(root / cwd)) if cwd else root
    if not folder.is_relative_to(os.path.realpath(root)):
        outside = f"{cwd} leads out of the workspace, so the check was not run"
        return CheckResult(name=name, command=command, passed=False, code=126, tail=outside, required=required)
    try:
        finished = run(
            shell(command), cwd=folder, env=env, timeout=timeout, limit=_KEPT, stop=stop, enclosure=enclosure
        )
    except CannotStart as error:
        return CheckResult(name=name, command=command, passed=False, code=127, tail=str(error), required=required)
    output = finished.out + finished.err + (f"\n{finished.problem}\n".encode() if finished.problem else b"")
    if read is not None:
        read(output)
    return CheckResult(
        name=name,
        command=command,
        passed=finished.ok,
        code=finished.code,
        seconds=round(timeout if finished.timed_out and timeout else finished.duration, 3),  # without the kill's grace
        timed_out=finished.timed_out,
        tail=tail(output),
        digest=hashlib.sha256(output).hexdigest(),
        required=required,
        output=keep(output) if keep and output and not finished.ok else "",
    )


def tail(output: bytes, lines: int = _TAIL_LINES) -> str:
    """The last lines, safe for a prompt, a log and a terminal."""
    text = clean(output.decode("utf-8", "replace"))
    return "\n".join(line[:500] for line in text.rstrip().splitlines()[-lines:])


def keeper(folder: Path, label: str, check: ChosenCheck) -> Callable[[bytes], str]:
    """Write an output under a label, such as the iteration, and return its path. The next one replaces it."""

    def keep(output: bytes) -> str:
        path = make_folder(folder, private=True) / f"{label}-{_as_file_name(check)}.txt"
        write_bytes(path, redact(output), mode=0o600, durable=False)
        return str(path)

    return keep


def _as_file_name(check: ChosenCheck) -> str:
    """Readable, and different for every check."""
    words = "".join(char if char.isascii() and char.isalnum() else "-" for char in check.name[:40]).strip("-")
    return f"{words}-{hashlib.sha256(f'{check.cwd} {check.command}'.encode('utf-8', 'replace')).hexdigest()[:6]}"
