"""The syntax of the commands about agents."""

from __future__ import annotations

from argparse import ArgumentParser

from ralph.cli.arguments import add_config, add_json, add_workspace


def agents(parser: ArgumentParser) -> None:
    """List the agents that Ralph can start: whether each is installed here and logged in,
    its version, and what guards it. Nothing is asked over the network.

    examples:
      ralph agents list
      ralph agents --json    for scripts
    """
    add_json(parser)


def agents_show(parser: ArgumentParser) -> None:
    """Show one agent: its program, version and login, how to install it, what it reports,
    what its hooks guard, which variables and hosts it needs, and what it cannot do.

    examples:
      ralph agents show codex
      ralph agents show gemini --json
    """
    parser.add_argument("name", metavar="NAME", help="an agent, as `ralph agents list` names it")
    add_json(parser)


def agents_test(parser: ArgumentParser) -> None:
    """Run the conformance suite on an agent: its real client, in projects made for it, on
    a scripted model on this machine. No key is needed and nothing is spent.

    Exit code 0 if every scenario passes that the client can do, 1 otherwise. The folder
    of a scenario that failed is kept and named.

    examples:
      ralph agents test codex
      ralph agents test codex --only guard --only limit
      ralph agents test mine --program ./my-client    another program than the one on PATH
      ralph agents test codex --record recordings     keep the client's output
    """
    parser.add_argument("name", metavar="NAME", help="an agent, as `ralph agents list` names it")
    parser.add_argument(
        "--only", metavar="SCENARIO", action="append", default=[], help="only this scenario; may be repeated"
    )
    parser.add_argument(
        "--program", metavar="PATH", default="", help="the client's program, instead of the one on PATH"
    )
    parser.add_argument("--record", metavar="FOLDER", default="", help="write what the client printed to this folder")
    parser.add_argument("--keep", action="store_true", help="keep the folders of all scenarios")
    add_json(parser)


def bench(parser: ArgumentParser) -> None:
    """Compare agents: each works through the same small project of three stories, and a
    table shows stories done, false claims caught, calls, tokens, cost and time.

    Without an option the model is scripted, on this machine: that compares the clients,
    not the models, and costs nothing. The script claims one story falsely.

    examples:
      ralph bench claude codex                      the clients alone
      ralph bench claude/haiku codex --yes-spend    the real services, with your login
    """
    parser.add_argument("agents", metavar="AGENT", nargs="+", help="an agent, or agent/model")
    parser.add_argument(
        "--yes-spend", action="store_true", help="use the real services with your login, which costs money"
    )
    parser.add_argument(
        "--max-cost", metavar="USD", type=float, default=1.0, help="the most that each agent may spend; default: 1"
    )
    add_json(parser)


def bench_review(parser: ArgumentParser) -> None:
    """Measure reviewers: each reviews 16 finished stories of a small project twice, once
    as good work and once with a known defect that the checks do not catch, in shuffled
    order. A table shows recall (defects it objected to), false alarms (good stories it
    objected to), cost and time. Without --reviewers, those of the settings are measured.

    Without --yes-spend a scripted model plays the reviewer and objects to every other
    story: then the figures only show that the procedure works with this client.

    examples:
      ralph bench review --reviewers claude               the procedure alone, costs nothing
      ralph bench review --yes-spend                      the reviewers of the settings
      ralph bench review --yes-spend --reviewers claude/opus,quality@claude/haiku --apply
      ralph bench review --yes-spend --only race --only "off by one"
    """
    parser.add_argument(
        "--reviewers",
        metavar="NAMES",
        default="",
        help="AGENT, AGENT/MODEL, or as in review.reviewers: NAME, NAME@AGENT, NAME@AGENT/MODEL; joined by commas",
    )
    parser.add_argument(
        "--only", metavar="KIND", action="append", default=[], help="only defects of this kind; may be repeated"
    )
    parser.add_argument(
        "--rounds", metavar="N", type=int, default=1, help="how often each story is reviewed both ways; default: 1"
    )
    parser.add_argument("--seed", metavar="N", type=int, default=1, help="the order of the stories; default: 1")
    parser.add_argument(
        "--apply", action="store_true", help="set the best reviewer and review.cap; asks first on a terminal"
    )
    parser.add_argument(
        "--yes-spend", action="store_true", help="use the real services with your login, which costs money"
    )
    parser.add_argument(
        "--max-cost", metavar="USD", type=float, default=5.0, help="the most that each reviewer may spend; default: 5"
    )
    add_config(parser)
    add_workspace(parser, json=True)
