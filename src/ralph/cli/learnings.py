"""List what was learned so far. A search sorts by relevance."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from ralph.cli.arguments import add_json, add_workspace
from ralph.cli.output import emit_json, note, paint, say, say_raw
from ralph.cli.words import plural
from ralph.core.learning import Learning, written
from ralph.core.text import one_line
from ralph.memory.store import learnings_elsewhere, learnings_of, memory_of, waiting
from ralph.prompts.memory import Cue, cost, ranked, terms
from ralph.workspace.find import open_plan

EXAMPLES = """
ralph learnings                        all of them
ralph learnings --search "login form"  most relevant first
ralph learnings --story US-003 --json  of one story, for scripts
"""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("--search", metavar="WORDS", default="", help="only learnings with one of these words")
    parser.add_argument("--story", metavar="ID", default="", help="only learnings of this story")
    add_json(parser)
    add_workspace(parser)


def run(args: Namespace) -> int:
    opened = open_plan(args)
    memory = memory_of(opened.ref, opened.layout.locations(opened.ref), os.environ)
    everything = learnings_of(memory)
    found = [one for one in everything if not args.story or one.story == args.story]
    if args.search.strip():
        found = _search([*found, *learnings_elsewhere(opened.ref, memory, os.environ)], args.search)
    if args.json:
        emit_json({"file": memory.path, "total": len(everything), "learnings": found})
        return 0
    pending = set(waiting(memory))
    for one in found:
        mark = "•" if one.accepted else "?"
        line = f"{paint(mark, 'green' if one.accepted else 'yellow')} {one_line(written(one))}"
        say_raw(line + (paint("  pending, recorded by the run", "dim") if one in pending else ""))
    if not found:
        say("No learnings yet." if not everything else "No matching learnings.")
    tokens = sum(map(cost, everything))
    if everything:
        shown = f"{len(found)} of " if len(found) < len(everything) else ""
        note(f"{shown}{plural(len(everything), 'learning')} in {memory.name}, about {tokens:,} tokens", "dim")
    return 0


def _search(learnings: Sequence[Learning], words: str) -> list[Learning]:
    wanted = terms(words)
    found = [one for one in learnings if wanted & terms(one.text) or words.casefold() in one.text.casefold()]
    return ranked(found, Cue(words=wanted))
