"""The connection to a Ray cluster, in a process of its own: `python -m ralph.run.ray_client HOST:PORT` lists the nodes.

Ray takes a second to import, replaces signal handlers and prints to stderr, so a run does not import it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct

from ralph.core.errors import SetupError
from ralph.core.text import one_line
from ralph.host.process.start import run
from ralph.run.cluster import SLOT, client_environment, require_reachable, require_token

_NAMESPACE = "ralph"
_PATIENCE = 60.0


class NodeState(Struct, frozen=True):
    id: str
    host: str
    is_alive: bool
    slots: int
    used: int
    is_head: bool = False


def nodes_of(address: str, env: Mapping[str, str]) -> tuple[NodeState, ...]:
    """The nodes of a cluster, the head first. A node of it has to run on this machine."""
    require_token(address, env)
    require_reachable(address)
    argv = [sys.executable, "-m", __name__, address]
    done = run(argv, cwd=Path("/"), env={**env, **client_environment(env)}, timeout=_PATIENCE)
    if done.code:
        raise why_not_connected(address, done.err.decode(errors="replace"))
    return msgspec.json.decode(done.out.splitlines()[-1], type=tuple[NodeState, ...])


def why_not_connected(address: str, output: str) -> SetupError:
    lines = [line for line in output.splitlines() if line.strip()]
    return SetupError(
        f"could not connect to the cluster at {address}: {one_line(lines[-1], 300) if lines else 'it did not answer'}",
        hint=f"this machine has to be a node of it: `ralph cluster join {address} --slots 0 --token-file FILE`",
    )


@contextmanager
def connected(address: str) -> Iterator[None]:
    """Only in a process of its own, with `client_environment`."""
    import ray

    ray.init(address=address, namespace=_NAMESPACE, log_to_driver=False, configure_logging=False, logging_level="ERROR")
    try:
        yield
    finally:
        ray.shutdown()


def _nodes() -> tuple[NodeState, ...]:
    import ray
    from ray._private.state import available_resources_per_node

    free = available_resources_per_node()
    found = []
    for node in ray.nodes():
        resources, name = node.get("Resources", {}), str(node["NodeID"])
        slots = int(resources.get(SLOT, 0))
        used = slots - int(free.get(name, {}).get(SLOT, 0)) if node["Alive"] else 0
        host = str(node.get("NodeManagerHostname") or node.get("NodeManagerAddress", ""))
        is_head = "node:__internal_head__" in resources
        found.append(NodeState(name, host, bool(node["Alive"]), slots, used, is_head))
    return tuple(sorted(found, key=lambda node: (not node.is_head, not node.is_alive, node.id)))


def main(address: str) -> int:
    with connected(address):
        found = _nodes()
    os.write(1, msgspec.json.encode(found) + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
