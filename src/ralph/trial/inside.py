"""Runs a command beside a scripted model, with no network but loopback.

    python -m ralph.trial.inside SCRIPT.json REQUESTS.jsonl COMMAND …

The model is at port MODEL_PORT of loopback, if that is set.

Where the system allows it, in a network namespace of its own that has loopback and nothing else. Elsewhere every proxy
variable points to a port nobody listens on, so that only loopback is reached.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path

from ralph.trial.model import serve

_NEWNET, _NEWUSER = 0x40000000, 0x10000000
_SIOCSIFFLAGS, _UP_AND_RUNNING = 0x8914, 0x41


def leave_the_network() -> bool:
    """Into a namespace with loopback alone. False: not possible here."""
    import ctypes  # not everywhere
    import fcntl

    try:
        libc = ctypes.CDLL(None, use_errno=True)
        user, group = os.geteuid(), os.getegid()
        if libc.unshare(_NEWNET if user == 0 else _NEWNET | _NEWUSER) != 0:
            return False
        if user != 0:  # without a name of its own here, it could start no sandbox
            Path("/proc/self/setgroups").write_text("deny")
            Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
            Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as door:
            fcntl.ioctl(door, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _UP_AND_RUNNING))
    except (OSError, AttributeError):
        return False
    return True


def main() -> int:
    script, log, *command = sys.argv[1:]
    alone = leave_the_network()
    turns = json.loads(Path(script).read_text())
    server, address = serve(turns, Path(log), int(os.environ.get("MODEL_PORT", "0")))
    env = {**os.environ, "ANTHROPIC_BASE_URL": address}
    if not alone:
        dead = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:9")
        env |= dead | {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
    process = subprocess.Popen(command, env=env)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda signum, _: process.send_signal(signum))
    code = process.wait()
    server.shutdown()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
