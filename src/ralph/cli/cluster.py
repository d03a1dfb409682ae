"""`ralph cluster`: start, show and end the nodes of a Ray cluster on this machine."""

from __future__ import annotations

import os
from argparse import Namespace
from pathlib import Path

from ralph.cli.output import emit_json, note, paint, say, say_raw
from ralph.core.errors import UsageError
from ralph.core.exit_codes import ExitCode
from ralph.core.text import one_line, plural
from ralph.host.files import read_state
from ralph.run.cluster import (
    Cluster,
    address_of,
    down,
    join,
    live_nodes,
    read_cluster,
    require_ray,
    token_file,
    up,
)
from ralph.run.ray_client import nodes_of
from ralph.workspace.trust import refuse_inside_loop


def start_nodes(args: Namespace) -> int:
    refuse_inside_loop(os.environ, "start a cluster")
    cluster = up(os.environ, nodes=args.nodes, slots=args.slots, listen=args.listen, tell=note)
    if args.json:
        emit_json(_summary(cluster))
        return ExitCode.COMPLETE
    total = args.nodes * args.slots
    say(f"the cluster is up: {plural(args.nodes, 'node')}, {plural(total, 'slot')}; every connection needs its token")
    if args.listen not in ("127.0.0.1", "::1", "localhost"):
        say(f"it can be reached from other machines at {cluster.address}; connections are not encrypted")
    say(f"`ralph run --parallel {max(total, 1)} --on ray` works there; `ralph cluster down` ends it")
    return ExitCode.COMPLETE


def join_cluster(args: Namespace) -> int:
    refuse_inside_loop(os.environ, "join a cluster")
    try:
        token = read_state(Path(args.token_file).expanduser()).strip()
    except OSError as error:
        raise UsageError(f"could not read the token in {args.token_file}: {error.strerror}") from None
    if not token:
        raise UsageError(f"{args.token_file} has no token", hint="copy the file that `ralph cluster status` shows")
    cluster = join(os.environ, address=args.address, slots=args.slots, token=token, tell=note)
    if args.json:
        emit_json(_summary(cluster))
    return ExitCode.COMPLETE


def show_status(args: Namespace) -> int:
    require_ray()
    cluster, address = read_cluster(os.environ), address_of("", os.environ)
    if cluster is not None and not live_nodes(cluster):
        raise UsageError(
            f"the nodes of the cluster at {address} on this machine have ended",
            hint="`ralph cluster down` removes what is left of them; `ralph cluster up` starts new ones",
        )
    found = nodes_of(address, os.environ)
    if args.json:
        emit_json({"address": address, "token_file": str(token_file(os.environ)), "nodes": found})
        return ExitCode.COMPLETE
    alive = [node for node in found if node.is_alive]
    used, slots = sum(node.used for node in alive), sum(node.slots for node in alive)
    say(f"cluster   {address}: {plural(len(alive), 'node')}, {used} of {plural(slots, 'slot')} in use")
    say(f"token     {token_file(os.environ)}")
    for node in found:
        state = paint("alive", "green") if node.is_alive else paint("dead", "red")
        count = f"{node.used} of {plural(node.slots, 'slot')} in use" if node.slots else "no slots"
        role = "head, " if node.is_head else ""
        say_raw(f"{node.id[:8]}  {one_line(node.host, 40)}: {state}, {role}{count if node.is_alive else 'lost'}")
    return ExitCode.COMPLETE


def end_nodes(args: Namespace) -> int:
    refuse_inside_loop(os.environ, "end a cluster")
    ended = down(os.environ)
    if args.json:
        emit_json(ended)
    elif ended.address:
        say(f"ended the nodes of {ended.address} on this machine ({ended.processes} processes)")
    else:
        note("this machine has no nodes of a cluster")
    return ExitCode.COMPLETE


def _summary(cluster: Cluster) -> dict[str, object]:
    return {"address": cluster.address, "nodes": cluster.nodes, "token_file": str(token_file(os.environ))}
