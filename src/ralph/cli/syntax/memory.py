"""The syntax of `ralph memory`."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentParser

from ralph.cli.arguments import add_config, add_trust, add_workspace


def memory_add(parser: ArgumentParser) -> None:
    """Record something for later sessions, with date, story and commit. Duplicates are
    skipped.

    It goes to the plan's learnings.md or progress log; with --repo to CLAUDE.md or
    AGENTS.md, which every session reads. Inside a session it becomes part of the
    agent's request file.

    examples:
      ralph memory add "The tests need a running Redis"
      ralph memory add --story US-003 "Prices are in cents everywhere"
      ralph memory add --repo "This project uses bun, not npm"
    """
    parser.add_argument("text", nargs="+", metavar="TEXT", help="one learning per argument")
    parser.add_argument("--story", metavar="ID", default="", help="the story it belongs to")
    parser.add_argument("--repo", action="store_true", help="write to CLAUDE.md or AGENTS.md, for every plan")
    add_workspace(parser)


def memory(parser: ArgumentParser) -> None:
    """List what sessions learned so far. A search sorts by relevance.

    examples:
      ralph memory add "The tests need a running Redis"
      ralph memory                        all of them
      ralph memory --search "login form"  most relevant first
      ralph memory --story US-003 --json  of one story, for scripts
    """
    parser.add_argument("--search", metavar="WORDS", default="", help="only learnings with one of these words")
    parser.add_argument("--story", metavar="ID", default="", help="only learnings of this story")
    add_workspace(parser, json=True)


def memory_compact(parser: ArgumentParser) -> None:
    """Summarise the learnings with an agent when they have grown large. The original is
    kept beside the summary.

    The agent can read everything and change nothing. It must keep each learning or
    give a reason for dropping it. Old entries of a progress log are archived.

    examples:
      ralph memory compact                 if it exceeds memory.compact_tokens
      ralph memory compact --force         in any case
      ralph memory compact --no-agent      only remove exact duplicates
    """
    parser.add_argument("--force", action="store_true", help="even if it is small")
    parser.add_argument("--no-agent", action="store_true", help="only remove exact duplicates")
    add_trust(parser)
    group = parser.add_argument_group("agent")
    for flags, name, metavar in ((("-m", "--model"), "model", "MODEL"), (("--agent",), "agent", "NAME")):
        key = f"planning.{name}"
        group.add_argument(
            *flags, dest=f"setting:{key}", default=SUPPRESS, metavar=metavar, help=f"the {name} that summarises [{key}]"
        )
    add_workspace(parser, json=True)


def memory_budget(parser: ArgumentParser) -> None:
    """Show how many tokens every session starts with (prompt, plan, log, readme,
    memory), and what to cut.

    Exit code 1 if it is more than `context.budget_tokens`. For money, see
    `ralph runs cost`.

    examples:
      ralph memory budget           the parts and their sizes
      ralph memory budget --json    for scripts: exit code 1 if it is too much
    """
    add_config(parser)
    add_workspace(parser, json=True)
