"""Inside srt: `main([FOLDER, "--", COMMAND…])` becomes the command, with its folder and environment.

srt itself runs outside, so it gets neither: a program or a variable that the sandboxed command controls would act
outside, too. What srt leaves to the command is taken away here: capabilities, user namespaces, and, as root, writing
to the kernel's settings.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from ralph.host.process.privileges import drop_capabilities, filter_system_calls, make_read_only

_OUTER = frozenset({"PATH", "HOME", "LANG", "PWD", "OLDPWD", "SHLVL", "_"})
"""Variables of srt's own environment. The others are those it sets for the command: the proxy, TMPDIR."""
_CANNOT_CONFINE = 125


def main(arguments: Sequence[str]) -> int:
    at = arguments.index("--")
    command = arguments[at + 1 :]
    folder = Path(arguments[0])
    start = json.loads((folder / "start.json").read_text(encoding="utf-8", errors="surrogateescape"))
    env = {**start["env"], **{name: value for name, value in os.environ.items() if name not in _OUTER}}
    if sys.platform == "linux":
        try:
            make_read_only(start["read_only"])
            drop_capabilities()
            filter_system_calls((folder / "filter").read_bytes())
        except OSError as error:
            return _complain(f"could not confine {command[0]}: {error}", _CANNOT_CONFINE)
    try:
        os.chdir(start["cwd"])
        os.execvpe(command[0], list(command), env)
    except OSError as error:
        code = 127 if isinstance(error, FileNotFoundError) else 126
        return _complain(f"could not start {command[0]} in {start['cwd']}: {error.strerror}", code)


def _complain(text: str, code: int) -> int:
    sys.stderr.write(f"ralph: {text}\n")
    return code
