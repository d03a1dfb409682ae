"""Inside srt: `python -I -S srt_entry.py FOLDER -- COMMAND…` becomes the command, with its folder and environment.

srt itself runs outside, so it gets neither: a program or a variable that the sandboxed command controls would act
outside, too. It imports nothing of Ralph, to start fast.
"""

import json
import os
import sys
from pathlib import Path

_OUTER = frozenset({"PATH", "HOME", "LANG", "PWD", "OLDPWD", "SHLVL", "_"})
"""Variables of srt's own environment. The others are those it sets for the command: the proxy, TMPDIR."""


def main(arguments: "list[str]") -> None:
    at = arguments.index("--")
    command = arguments[at + 1 :]
    start = json.loads(Path(arguments[0], "start.json").read_text(encoding="utf-8", errors="surrogateescape"))
    env = {**start["env"], **{name: value for name, value in os.environ.items() if name not in _OUTER}}
    try:
        os.chdir(start["cwd"])
        os.execvpe(command[0], command, env)
    except OSError as error:
        sys.stderr.write(f"could not start {command[0]} in {start['cwd']}: {error.strerror}\n")
        sys.exit(127 if isinstance(error, FileNotFoundError) else 126)


if __name__ == "__main__":
    main(sys.argv[1:])
