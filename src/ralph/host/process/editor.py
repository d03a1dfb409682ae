"""The user's editor, in their terminal."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path

from ralph.core.errors import SetupError

_OTHERWISE = "vi"


def edit(path: Path, env: Mapping[str, str]) -> None:
    """Returns when the editor is closed. The file is as the user left it."""
    wanted = env.get("VISUAL") or env.get("EDITOR") or _OTHERWISE
    hint = "set EDITOR to an editor that is installed, e.g. EDITOR=nano"
    try:
        argv = shlex.split(wanted)
    except ValueError:
        raise SetupError(f"EDITOR is not a valid command line: {wanted}", hint=hint) from None
    try:
        code = subprocess.call([*(argv or [_OTHERWISE]), os.fspath(path)], env=dict(env))
    except OSError as error:
        raise SetupError(f"could not start the editor {wanted}: {error.strerror}", hint=hint) from None
    if code:
        raise SetupError(f"the editor {wanted} exited with code {code}", hint="nothing was changed; try again")
