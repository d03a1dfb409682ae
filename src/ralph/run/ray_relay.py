"""The process between a run and its workers on a Ray cluster: `python -m ralph.run.ray_relay HOST:PORT`.

Frames on stdin and stdout carry the number of a connection and a kind. It ends when stdin closes, so also when the run
is killed; Ray then ends its workers, on all nodes.
"""

from __future__ import annotations

import os
import struct
import sys
import threading
from collections.abc import Callable
from typing import IO, Any

import msgspec
from msgspec import Struct

from ralph import __version__
from ralph.host.process.channel import Closed, read_frame, write_frame
from ralph.run.cluster import PROOF_SLOT, SLOT
from ralph.run.ray_client import connected
from ralph.run.ray_worker import INCOMING, OUTGOING, RemoteWorker

HEAD = struct.Struct(">IB")
CONNECTED, OPEN, OPEN_PROVER, DATA, CLOSE, KILL, ENDED = range(7)
_POLL = 5.0
"""Seconds that a worker's node waits for frames before it answers that there are none."""
_SILENCE = 40.0
"""Seconds without an answer after which a node counts as lost. Ray itself takes about as long."""

Send = Callable[[int, int, bytes], None]


class Goodbye(Struct, frozen=True):
    code: int | None = None
    why: str = ""


class Connection:
    """To one worker. Its actor waits until a node has a free slot."""

    def __init__(self, ray: Any, number: int, send: Send, *, is_prover: bool) -> None:
        self._ray, self._number, self._send = ray, number, send
        self._is_over = False
        slot = {PROOF_SLOT: 1} if is_prover else {SLOT: 1}
        if is_prover and PROOF_SLOT not in ray.cluster_resources():
            slot = {}  # the nodes were not started by us
        kind = ray.remote(num_cpus=0, max_restarts=0, concurrency_groups={INCOMING: 1, OUTGOING: 1})(RemoteWorker)
        self._actor = kind.options(resources=slot, scheduling_strategy="SPREAD").remote()
        opened = self._call("open", INCOMING, __version__)
        threading.Thread(target=self._follow, args=(opened,), daemon=True).start()

    def _call(self, name: str, group: str, *args: object) -> Any:
        return getattr(self._actor, name).options(concurrency_group=group).remote(*args)

    def send(self, data: bytes) -> None:
        self._call("send", INCOMING, data)

    def close(self) -> None:
        self._call("close", INCOMING)

    def kill(self) -> None:
        self._is_over = True
        self._ray.kill(self._actor)

    def _follow(self, opened: Any) -> None:
        from ray.exceptions import GetTimeoutError, RayError

        try:
            goodbye = self._until_closed(opened)
        except GetTimeoutError:
            goodbye = Goodbye(why=f"its node has not answered for {_SILENCE:.0f} seconds")
            self._ray.kill(self._actor)
        except RayError as error:
            goodbye = Goodbye(why=_reason(error))
        if not self._is_over:
            self._send(self._number, ENDED, msgspec.json.encode(goodbye))

    def _until_closed(self, opened: Any) -> Goodbye:
        ray = self._ray
        if refusal := ray.get(opened):
            return Goodbye(1, refusal)
        while True:
            frames, is_open, code, words = ray.get(self._call("receive", OUTGOING, _POLL), timeout=_SILENCE)
            for frame in frames:
                self._send(self._number, DATA, frame)
            if not is_open:
                if code == 0:
                    ray.get(self._call("clean", INCOMING), timeout=_SILENCE)
                return Goodbye(code, words)


def _reason(error: Exception) -> str:
    """Ray explains on several lines what may have happened to an actor, so only its kind is kept, unless our own code
    failed there."""
    from ray.exceptions import RayTaskError

    if isinstance(error, RayTaskError):
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        return f"it could not be started: {lines[-1][:300] if lines else type(error).__name__}"
    return f"its node or its process is gone ({type(error).__name__})"


def main(address: str) -> int:
    incoming: IO[bytes] = os.fdopen(os.dup(0), "rb")
    outgoing: IO[bytes] = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever Ray prints must not end up among the frames
    lock = threading.Lock()

    def send(number: int, kind: int, data: bytes) -> None:
        try:
            with lock:
                write_frame(outgoing, HEAD.pack(number, kind) + data)
        except (OSError, ValueError):
            return  # the run is gone; stdin says so, too

    import ray

    with connected(address):
        send(0, CONNECTED, b"")
        serve(lambda: read_frame(incoming), send, ray)
    return 0


def serve(receive: Callable[[], bytes], send: Send, ray: Any) -> None:
    connections: dict[int, Connection] = {}
    while True:
        try:
            frame = receive()
        except (Closed, OSError, ValueError):
            return
        number, kind = HEAD.unpack_from(frame)
        if kind in (OPEN, OPEN_PROVER):
            connections[number] = Connection(ray, number, send, is_prover=kind == OPEN_PROVER)
            continue
        connection = connections.get(number)
        if connection is None:
            continue
        if kind == DATA:
            connection.send(frame[HEAD.size :])
        elif kind == CLOSE:
            connection.close()
        elif kind == KILL:
            connections.pop(number).kill()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
