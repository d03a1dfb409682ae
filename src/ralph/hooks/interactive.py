"""Ends an interactive client when it stops, so that the surrounding shell loop starts a fresh one (`RALPH_LOOP=1`).

    while :; do RALPH_LOOP=1 claude "$(cat prompt.md)"; test -e .ralph/COMPLETE && break; done

Without the variable nothing happens, and a client of `ralph run` is left alone: it ends on its own.
"""

import os

TYPE_CHECKING = False  # `typing` is not imported for it
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_NAMES = ("claude", "node")
_MOST = 3
"""A client starts a hook directly or through a shell. A client further up is unrelated."""
_SIGINT = 2


def end_client(env: "Mapping[str, str]") -> int:
    """Interrupt the client that started this process. Returns its PID, or 0 if there is nothing to end."""
    if not is_asked_for(env) or not (pid := find_client(env)):
        return 0
    try:
        os.kill(pid, _SIGINT)
    except OSError:
        return 0
    return pid


def is_asked_for(env: "Mapping[str, str]") -> bool:
    """A run sets RALPH_LOOP too, for other reasons; a client that prints and exits needs no help."""
    if env.get("RALPH_LOOP") != "1" or env.get("RALPH_RUN") or env.get("RALPH_POLICY"):
        return False
    return not env.get("CLAUDE_CODE_ENTRYPOINT", "").startswith("sdk")


def find_client(env: "Mapping[str, str]") -> int:
    """Only an ancestor of this process is ever used: a PID in the environment may be old and reused."""
    above = dict(_above(os.getpid()))
    given = env.get("CLAUDE_PID", "")
    if given.isdecimal() and int(given) in above:
        return int(given)
    return next((pid for pid, name in above.items() if name in _NAMES), 0)


def _above(pid: int) -> "Iterator[tuple[int, str]]":
    """Parent, grandparent and so on, each with its name."""
    parent, _ = _look(pid)
    for _ in range(_MOST):
        if parent <= 1:
            return
        pid = parent
        parent, name = _look(pid)
        yield pid, name


def _look(pid: int) -> tuple[int, str]:
    """PID of the parent, and name of the program."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            # The name is in parentheses and may hold anything, a ")" too.
            start, _, rest = stream.read().rpartition(b")")
        return int(rest.split()[1]), start.partition(b"(")[2].decode("utf-8", "replace")
    except (OSError, IndexError, ValueError):
        return _ask_ps(pid)


def _ask_ps(pid: int) -> tuple[int, str]:
    import subprocess

    command = ["ps", "-o", "ppid=", "-o", "comm=", "-p", str(pid)]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=5, check=False)
        parent, name = done.stdout.decode("utf-8", "replace").split(None, 1)
        return int(parent), os.path.basename(name.strip())
    except (OSError, ValueError, subprocess.SubprocessError):
        return 0, ""
