"""Calling `ralph` from a test: as a process of its own, or faster, inside this one."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ralph.cli.main import main


class Completed(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def ralph(
    *arguments: str | bytes | Path, cwd: Path, env: Mapping[str, str] | None = None, stdin: str | bytes = b""
) -> Completed:
    """Run the real command line. `env` adds to the environment of the test. A warning inside Ralph is an error."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "ralph", *arguments],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        input=stdin.encode() if isinstance(stdin, str) else stdin,
        capture_output=True,
        timeout=120,
        check=False,
    )
    return Completed(done.returncode, _text(done.stdout), _text(done.stderr))


def ralph_here(
    *arguments: str | Path, cwd: Path, env: Mapping[str, str] | None = None, stdin: str | bytes = b""
) -> Completed:
    """The same without a new process, some twenty times faster. Not for signals, terminals, or what happens at exit."""
    text = [str(argument) for argument in arguments]
    given = stdin.encode() if isinstance(stdin, str) else stdin
    with contextlib.chdir(cwd), _environment(env or {}), _streams(given) as (out, err):
        before, sys.argv = sys.argv, ["ralph", *text]
        try:
            code = main(text)
        except SystemExit as stop:  # argparse leaves this way after --help
            code = stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
        finally:
            sys.argv = before
            sys.stdout.flush()
            sys.stderr.flush()
        return Completed(code, _text(out.getvalue()), _text(err.getvalue()))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")


@contextlib.contextmanager
def _environment(changes: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(changes)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextlib.contextmanager
def _streams(stdin: bytes) -> Iterator[tuple[io.BytesIO, io.BytesIO]]:
    """Standard streams that are no terminals, with a `buffer` as the real ones have."""
    before = sys.stdin, sys.stdout, sys.stderr
    out, err = io.BytesIO(), io.BytesIO()
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")
    sys.stdout = io.TextIOWrapper(out, encoding="utf-8", errors="surrogateescape")
    sys.stderr = io.TextIOWrapper(err, encoding="utf-8", errors="backslashreplace")
    try:
        yield out, err
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.detach()  # so that collecting it does not close the buffer
        sys.stdin, sys.stdout, sys.stderr = before
