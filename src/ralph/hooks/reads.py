"""Which files a session has read: read before edit. One list per session, outside the workspace."""

import os

from ralph.guard.alias import follow_alias
from ralph.hooks.call import Call


def real(call: Call, path: str) -> str:
    """One name for a file, however it is spelled: absolute, without `..`, links resolved, in the clone."""
    found = os.path.realpath(os.path.join(call.cwd or os.getcwd(), os.path.expanduser(path)))
    if call.policy is None:
        return found
    return follow_alias(found, call.policy.text("checkout"), call.policy.text("clone"))


def remember(call: Call, path: str) -> None:
    if (log := _log(call)) is None:
        return
    line = real(call, path).replace("\n", "\\n") + "\n"
    try:
        descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return
    try:
        os.write(descriptor, line.encode("utf-8", "surrogateescape"))
    finally:
        os.close(descriptor)


def was_seen(call: Call, path: str) -> bool:
    if (log := _log(call)) is None:
        return False
    wanted = real(call, path).replace("\n", "\\n").encode("utf-8", "surrogateescape")
    try:
        with open(log, "rb") as stream:
            return any(line.rstrip(b"\n") == wanted for line in stream)
    except OSError:
        return False


def forget(call: Call) -> None:
    if (log := _log(call)) is not None:
        try:
            os.unlink(log)
        except OSError:
            pass


def _log(call: Call) -> str | None:
    if call.policy is None or not call.policy.state:
        return None
    name = "".join(c for c in call.session if c.isalnum() or c in "-_")[:80] or "session"
    return os.path.join(call.policy.state, f"reads-{name}")
