"""The syntax of the commands about clusters of machines."""

from __future__ import annotations

from argparse import ArgumentParser

from ralph.cli.arguments import add_json


def cluster(parser: ArgumentParser) -> None:
    """Show the nodes of the Ray cluster that was started or joined on this machine: where
    they are, whether they are alive, their agent slots, and how many are in use.

    examples:
      ralph cluster status           the nodes and their slots
      ralph cluster status --json    for scripts
    """
    add_json(parser)


def cluster_up(parser: ArgumentParser) -> None:
    """Start a Ray cluster on this machine: a head, and nodes with slots for agents.

    It listens on the loopback only, unless --listen names another address, and every
    connection needs a token. Each node takes about 400 MB of memory. Needs the extra
    `ralph-loop-engine[ray]`. `ralph run --parallel 6 --on ray` then works there.

    examples:
      ralph cluster up --nodes 3 --slots 2       six agents at the same time
      ralph cluster up --nodes 1 --listen 10.0.0.5    so that other machines can join
    """
    parser.add_argument(
        "--nodes", type=int, default=2, metavar="N", help="how many nodes, besides the head (default: 2)"
    )
    _add_slots(parser, 2)
    parser.add_argument(
        "--listen", metavar="ADDRESS", default="127.0.0.1", help="the address of this machine (default: 127.0.0.1)"
    )
    add_json(parser)


def cluster_join(parser: ArgumentParser) -> None:
    """Add this machine to a Ray cluster as a node, with slots for agents.

    With --slots 0 no agent works here; runs can still be started from here. Copy the
    token from the head, where `ralph cluster status` shows its path.

    examples:
      ralph cluster join 10.0.0.5:6379 --slots 4 --token-file token
      ralph cluster join 10.0.0.5:6379 --slots 0 --token-file token    only to start runs
    """
    parser.add_argument("address", metavar="HOST:PORT", help="the address of the head")
    _add_slots(parser, 2)
    parser.add_argument("--token-file", metavar="FILE", required=True, help="a file with the token of the cluster")
    add_json(parser)


def cluster_down(parser: ArgumentParser) -> None:
    """End the nodes on this machine, with the agents that work there, and remove their
    files. Nodes on other machines of the cluster end only if the head was here.

    examples:
      ralph cluster down
    """
    add_json(parser)


def _add_slots(parser: ArgumentParser, usual: int) -> None:
    parser.add_argument(
        "--slots",
        type=int,
        default=usual,
        metavar="S",
        help=f"how many agents a node runs at a time (default: {usual})",
    )
