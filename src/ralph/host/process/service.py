"""A process that outlives the command that starts it: in a session of its own, with its output in a log."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ralph.core.errors import SetupError
from ralph.core.text import one_line
from ralph.host.process.start import why_not_started
from ralph.host.process.table import ProcessId, require_process_control
from ralph.host.process.tree import end_tree, identify

_LOOK = 0.1


def start_service(
    argv: Sequence[str],
    *,
    label: str,
    env: Mapping[str, str],
    log: Path,
    ready: bytes,
    patience: float,
    record: Callable[[ProcessId], None],
) -> None:
    """Returns when its log has the text `ready`. Raises SetupError if it ends before that, or takes too long.

    `record` is called as soon as it runs: whatever happens to this process, it can be ended later.
    """
    require_process_control()
    with log.open("wb") as output:
        try:
            process = subprocess.Popen(
                list(argv),
                env=dict(env),
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise why_not_started(argv, Path("/"), env, error) from None
    known = identify(process.pid)
    if known is not None:
        record(known)
    try:
        _wait(process, label, log, ready, patience)
    except BaseException:
        end_tree([known] if known else [], grace=1)
        process.wait()
        raise
    process.returncode = 0  # it is not ours to wait for


def _wait(process: subprocess.Popen[bytes], label: str, log: Path, ready: bytes, patience: float) -> None:
    until = time.monotonic() + patience
    while ready not in (text := _text(log)):
        if process.poll() is not None or time.monotonic() > until:
            lines = [line for line in text.decode(errors="replace").splitlines() if line.strip()]
            last = one_line(lines[-1], 300) if lines else "it printed nothing"
            why = "did not start in time" if process.returncode is None else "ended at once"
            raise SetupError(f"{label} {why}: {last}", hint=f"its output: {log}")
        time.sleep(_LOOK)


def _text(log: Path) -> bytes:
    with contextlib.suppress(OSError):
        return log.read_bytes()
    return b""
