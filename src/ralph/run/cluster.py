"""Ray nodes on this machine: a cluster to try it out, or one node of a larger cluster. Started and ended by pid.

`ray stop` is never used: it ends processes by their names, also those of others. Ray listens only on the address that
it is told, by default the loopback, and every connection needs the token.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ralph.core.environment import child_environment
from ralph.core.errors import BadData, SetupError, UsageError
from ralph.host.files import make_folder, read_state, write_bytes
from ralph.host.locks import Lock, Owner
from ralph.host.process.service import start_service
from ralph.host.process.table import ProcessId
from ralph.host.process.tree import end_tree, is_alive, marked
from ralph.state.names import CLUSTER, CLUSTER_LOCK, CLUSTER_RECORD, CLUSTER_TOKEN
from ralph.state.places import state_home

SLOT = "agent_slot"
"""The custom resource of a node: how many agents it runs at the same time."""
PROOF_SLOT = "proof_slot"
"""The same for proofs of merged work, which do not wait until a session is over."""
LOOPBACK = "127.0.0.1"
SETTINGS = {
    "RAY_AUTH_MODE": "token",
    "RAY_USAGE_STATS_ENABLED": "0",
    # A node that hangs is noticed after about 40 seconds; with Ray's own values after 7 minutes.
    "RAY_grpc_client_keepalive_time_ms": "10000",
    "RAY_grpc_client_keepalive_timeout_ms": "10000",
    "RAY_health_check_period_ms": "2000",
    "RAY_health_check_timeout_ms": "5000",
    "RAY_health_check_failure_threshold": "3",
}
"""Environment variables of every process of Ray that we start."""
MARK = "RALPH_CLUSTER"
_READY = b"Ray runtime started"
_PATIENCE = 120.0
_ATTEMPTS = 3
"""Ray itself gives up on a node that is not there after 30 seconds, which a busy machine may need."""
_GRACE = 4.0
_OBJECT_STORE = 80_000_000
"""Bytes. The least that Ray accepts is 75 MiB; nothing of ours is in it."""
_MOST_NODES = 64


class Node(Struct, frozen=True):
    name: str
    slots: int
    pid: int
    start: str

    @property
    def process(self) -> ProcessId:
        return ProcessId(self.pid, self.start)


class Cluster(Struct, frozen=True, kw_only=True):
    address: str
    """HOST:PORT of the head."""
    mark: str
    folder: str = ""
    """Ours only, for Ray's sockets and logs, whose own folder is open to all; empty in another machine's cluster."""
    nodes: tuple[Node, ...] = ()


class Down(Struct, frozen=True):
    processes: int
    address: str = ""


def require_ray() -> None:
    if find_spec("ray") is None:
        raise SetupError("Ray is not installed", hint="install it: `pip install 'ralph-loop-engine[ray]'`")


def folder_of(env: Mapping[str, str]) -> Path:
    return state_home(env) / CLUSTER


def token_file(env: Mapping[str, str]) -> Path:
    """The token of the cluster that was started or joined here, or else the one that Ray itself would use."""
    own = folder_of(env) / CLUSTER_TOKEN
    if own.exists():
        return own
    return Path(env.get("RAY_AUTH_TOKEN_PATH") or Path(env.get("HOME") or Path.home()) / ".ray" / "auth_token")


def read_cluster(env: Mapping[str, str]) -> Cluster | None:
    with contextlib.suppress(OSError, BadData, ValueError):
        return msgspec.convert(json.loads(read_state(folder_of(env) / CLUSTER_RECORD)), Cluster)
    return None


def live_nodes(cluster: Cluster) -> tuple[Node, ...]:
    return tuple(node for node in cluster.nodes if is_alive(node.process))


def up(
    env: Mapping[str, str], *, nodes: int, slots: int, listen: str = LOOPBACK, tell: Callable[[str], None]
) -> Cluster:
    """Start a head without slots, and nodes with them."""
    _check_count(nodes, "--nodes", 0, _MOST_NODES)
    _check_count(slots, "--slots", 1, 1000)
    with _alone(env):
        token = secrets.token_hex(32).encode()
        cluster = _new(env, f"{listen}:{_free_port(listen)}", token, tempfile.mkdtemp(prefix="ralph-ray-"))
        host, _, port = cluster.address.rpartition(":")
        ray_folder = ("--disable-usage-stats", "--temp-dir", f"{cluster.folder}/ray")
        head = ("--head", "--port", port, "--node-ip-address", host, "--include-dashboard=false", *ray_folder)
        with _undone_on_errors(env):
            cluster = _start(env, cluster, "head", 0, head)
            tell(f"head: listens on {cluster.address}")
            for number in range(1, nodes + 1):  # one by one: Ray mixes up the files of nodes that start together
                join = ("--address", cluster.address, "--node-ip-address", host)
                cluster = _start(env, cluster, f"node-{number}", slots, join)
                tell(f"node-{number}: {slots} slots")
    return cluster


def join(env: Mapping[str, str], *, address: str, slots: int, token: bytes, tell: Callable[[str], None]) -> Cluster:
    """Start a node of another machine's cluster. Without slots, this machine can only start runs there."""
    _check_count(slots, "--slots", 0, 1000)
    require_reachable(address)
    with _alone(env):
        cluster = _new(env, address, token, "")
        with _undone_on_errors(env):
            cluster = _start(env, cluster, "node", slots, ("--address", address))
        tell(f"joined {address} with {slots} slots")
    return cluster


def down(env: Mapping[str, str]) -> Down:
    """End every process of this machine's nodes, and what they started, and remove their files."""
    folder = folder_of(env)
    if not folder.is_dir():
        return Down(0)
    with Lock(folder / CLUSTER_LOCK).held_by(Owner.here("cluster")):
        return _down(env)


def _down(env: Mapping[str, str]) -> Down:
    cluster, folder = read_cluster(env), folder_of(env)
    if cluster is None:
        return Down(0)
    roots = [node.process for node in cluster.nodes]
    ended = end_tree(roots, grace=_GRACE, also=lambda: marked(MARK, cluster.mark))
    if ended.survivors:
        pids = ", ".join(str(process.pid) for process in ended.survivors)
        raise SetupError(f"could not end these processes of the cluster: {pids}", hint="end them by hand")
    if cluster.folder and Path(cluster.folder).name.startswith("ralph-ray-"):
        shutil.rmtree(cluster.folder, ignore_errors=True)
    for path in (*folder.glob("*.log"), folder / CLUSTER_TOKEN, folder / CLUSTER_RECORD):
        path.unlink(missing_ok=True)
    return Down(ended.found, cluster.address)


def require_reachable(address: str) -> None:
    host, _, port = address.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise UsageError(f"{address!r} is not an address of a cluster", hint="write HOST:PORT, such as 10.0.0.5:6379")
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except OSError as error:
        raise SetupError(
            f"no cluster answers at {address}: {error.strerror or error}",
            hint="`ralph cluster status` on its head shows the address",
        ) from None


def node_environment(env: Mapping[str, str], cluster: Cluster) -> dict[str, str]:
    """No secrets of the caller: what an agent needs is sent to its worker when that starts."""
    token = {"RAY_AUTH_TOKEN_PATH": str(folder_of(env) / CLUSTER_TOKEN)}
    return child_environment(env) | SETTINGS | token | {MARK: cluster.mark}


def address_of(on: str, env: Mapping[str, str]) -> str:
    """HOST:PORT for the setting `on`: that of `ray://HOST:PORT`, or of the cluster started or joined here."""
    _, separator, given = on.partition("://")
    if separator and given.strip("/"):
        return given.strip("/")
    if (cluster := read_cluster(env)) is not None:
        return cluster.address
    if "://" not in (address := env.get("RAY_ADDRESS", "")) and address not in ("", "auto"):
        return address
    raise UsageError(
        "this machine has no Ray cluster", hint="`ralph cluster up` starts one; `--on ray://HOST:PORT` names another"
    )


def require_token(address: str, env: Mapping[str, str]) -> None:
    if not token_file(env).exists():
        raise SetupError(
            f"there is no token for the cluster at {address}",
            hint=f"`ralph cluster join {address} --token-file FILE` with the token of its head",
        )


def require_cluster(on: str, env: Mapping[str, str]) -> None:
    """Raises an error if the setting `on` names no cluster that a run could use."""
    if on != "ray" and not on.startswith("ray://"):
        raise UsageError(f"on: {on!r} is not a kind of cluster", hint="use `ray`, or `ray://HOST:PORT`")
    require_ray()
    address = address_of(on, env)
    require_token(address, env)
    require_reachable(address)


def client_environment(env: Mapping[str, str]) -> dict[str, str]:
    """Variables that Ray reads when it is imported, for a process that connects to the cluster."""
    return SETTINGS | {"RAY_AUTH_TOKEN_PATH": str(token_file(env)), "RAY_BACKEND_LOG_LEVEL": "error"}


def _start(env: Mapping[str, str], cluster: Cluster, name: str, slots: int, arguments: tuple[str, ...]) -> Cluster:
    recorded = cluster

    def record(process: ProcessId) -> None:
        nonlocal recorded
        recorded = replace(cluster, nodes=(*cluster.nodes, Node(name, slots, process.pid, process.start)))
        _write(env, recorded)

    argv = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--num-cpus", "0", "--num-gpus", "0"]
    argv += ["--object-store-memory", str(_OBJECT_STORE), *arguments]
    if slots:
        argv += ["--resources", json.dumps({SLOT: slots, PROOF_SLOT: slots})]
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            start_service(
                argv,
                label=f"Ray ({name})",
                env=node_environment(env, cluster),
                log=folder_of(env) / f"{name}.log",
                ready=_READY,
                patience=_PATIENCE,
                record=record,
            )
            break
        except SetupError:
            if attempt == _ATTEMPTS:
                raise  # its log has the reason
    return recorded


def _new(env: Mapping[str, str], address: str, token: bytes, folder: str) -> Cluster:
    write_bytes(folder_of(env) / CLUSTER_TOKEN, token + b"\n", mode=0o600)
    cluster = Cluster(address=address, mark=secrets.token_hex(8), folder=folder)
    _write(env, cluster)
    return cluster


def _write(env: Mapping[str, str], cluster: Cluster) -> None:
    write_bytes(folder_of(env) / CLUSTER_RECORD, msgspec.json.encode(cluster) + b"\n", mode=0o600)


@contextlib.contextmanager
def _alone(env: Mapping[str, str]) -> Iterator[None]:
    """Hold the lock, and refuse if there is a cluster already. What is left of one that was killed is removed."""
    require_ray()
    folder = make_folder(folder_of(env), private=True)
    with Lock(folder / CLUSTER_LOCK).held_by(Owner.here("cluster")):
        known = read_cluster(env)
        if known is not None and (alive := live_nodes(known)):
            names = ", ".join(node.name for node in alive)
            raise UsageError(
                f"this machine already has nodes of the cluster at {known.address}: {names}",
                hint="`ralph cluster down` ends them",
            )
        _down(env)
        yield


@contextlib.contextmanager
def _undone_on_errors(env: Mapping[str, str]) -> Iterator[None]:
    try:
        yield
    except BaseException:
        with contextlib.suppress(SetupError):
            _down(env)
        raise


def _check_count(value: int, option: str, least: int, most: int) -> None:
    if not least <= value <= most:
        raise UsageError(f"{option} has to be between {least} and {most}, not {value}")


def _free_port(host: str) -> int:
    try:
        with socket.socket() as probe:
            probe.bind((host, 0))
            return int(probe.getsockname()[1])
    except OSError as error:
        raise UsageError(
            f"this machine cannot listen on {host}: {error.strerror or error}", hint="pass one of its own addresses"
        ) from None
