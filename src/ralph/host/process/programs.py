"""Find a program on PATH; run the user's editor."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ralph.core.errors import SetupError

_OTHERWISE = "vi"
_TICK = 0.2


def which(name: str, path: str, outside: Path | None = None) -> str | None:
    """Like `shutil.which`, without the 5 ms that importing shutil takes.

    With `outside`, folders of `path` in this workspace are skipped, relative ones too: a clone or an agent could have
    put the program there.
    """
    if outside is not None:
        path = os.pathsep.join(folder for folder in path.split(os.pathsep) if not _is_inside(folder, outside))
    if sys.platform == "win32":
        from shutil import which as search

        return search(name, path=path)
    if os.path.dirname(name):  # noqa: PTH120 - for a name that is a path, whatever its end is
        return name if _is_program(name) else None
    found = (os.path.join(folder, name) for folder in path.split(os.pathsep) if path)  # noqa: PTH118
    return next(filter(_is_program, found), None)


def _is_program(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)  # noqa: PTH113


def _is_inside(folder: str, workspace: Path) -> bool:
    if not os.path.isabs(folder):  # noqa: PTH117
        return True
    root = Path(os.path.realpath(workspace))
    home = os.path.realpath(os.path.expanduser("~"))  # noqa: PTH111
    # A home that is a workspace, such as a repository of dotfiles, contains the user's own programs.
    return Path(os.path.realpath(folder)).is_relative_to(root) and not Path(home).is_relative_to(root)


def edit(path: Path, env: Mapping[str, str]) -> None:
    """Returns when the editor is closed. The file is as the user left it."""
    import shlex

    wanted = env.get("VISUAL") or env.get("EDITOR") or _OTHERWISE
    hint = "set EDITOR to an editor that is installed, e.g. EDITOR=nano"
    try:
        argv = shlex.split(wanted)
    except ValueError:
        raise SetupError(f"EDITOR is not a valid command line: {wanted}", hint=hint) from None
    try:
        code = run_here([*(argv or [_OTHERWISE]), os.fspath(path)], env)
    except OSError as error:
        raise SetupError(f"could not start the editor {wanted}: {error.strerror}", hint=hint) from None
    if code:
        raise SetupError(f"the editor {wanted} exited with code {code}", hint="nothing was changed; try again")


def run_here(argv: Sequence[str], env: Mapping[str, str], is_over: Callable[[], bool] = lambda: False) -> int:
    """Give the terminal to a program until it ends; returns its exit code. Raises OSError if it cannot be started.

    It is asked to end when `is_over` says so.
    """
    import subprocess

    with subprocess.Popen(list(argv), env=dict(env)) as process:
        while True:
            try:
                return process.wait(_TICK)
            except subprocess.TimeoutExpired:
                if is_over():
                    process.terminate()
