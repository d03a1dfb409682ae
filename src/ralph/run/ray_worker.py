"""A worker on a node of a Ray cluster: an actor that starts the ordinary worker process there and passes frames on."""

from __future__ import annotations

import os
import secrets
import sys
import threading
from pathlib import Path

from ralph import __version__
from ralph.host.files import make_folder
from ralph.host.process.channel import Channel, Closed, start_channel, wait_for
from ralph.host.removal import remove_tree
from ralph.run.cluster import MARK
from ralph.state.names import CLUSTER, CLUSTER_WORKERS
from ralph.state.places import state_home

INCOMING, OUTGOING = "incoming", "outgoing"
"""Concurrency groups of the actor, one thread each: what goes in keeps its order, and does not wait for what comes
out."""
_STDERR = "stderr.log"


class RemoteWorker:
    """Ends with its actor process: the worker's stdin closes, so it ends its agent and exits."""

    def __init__(self) -> None:
        self._channel: Channel | None = None
        self._home = Path()
        self._is_open = threading.Event()

    def open(self, version: str) -> str:
        """Start the process. Returns why not; empty: it runs."""
        if version != __version__:
            return f"this node has Ralph {__version__}, the run has {version}; install the same version on all machines"
        env = {name: value for name, value in os.environ.items() if not name.startswith("RAY_") and name != MARK}
        self._home = state_home(env) / CLUSTER / CLUSTER_WORKERS / secrets.token_hex(6)
        make_folder(self._home, private=True)
        env["RALPH_STATE_HOME"] = str(self._home)
        self._channel = start_channel([sys.executable, "-m", "ralph.run.worker"], Path("/"), env, self._home / _STDERR)
        self._is_open.set()
        return ""

    def send(self, data: bytes) -> None:
        if self._channel is not None:
            try:
                self._channel.send(data)
            except Closed:
                return  # `receive` reports the end

    def close(self) -> None:
        if self._channel is not None:
            self._channel.close()

    def receive(self, seconds: float) -> tuple[list[bytes], bool, int | None, str]:
        """The frames that arrived within this time, whether there may be more, the exit code, and the last words."""
        if not self._is_open.wait(seconds):
            return [], True, None, ""
        channel = self._channel
        assert channel is not None
        wait_for([channel], [], seconds)
        frames = list(channel.receive())
        if channel.is_open:
            return frames, True, None, ""
        code = channel.ended(5.0)
        return frames, False, code, self._last_words()

    def _last_words(self) -> str:
        try:
            lines = (self._home / _STDERR).read_text("utf-8", "replace").strip().splitlines()
        except OSError:
            return ""
        return lines[-1][:200] if lines else ""

    def clean(self) -> None:
        """After an orderly end: all that it made is with the run."""
        remove_tree(self._home)
