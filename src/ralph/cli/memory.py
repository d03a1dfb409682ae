"""`ralph memory`: list, record and compact learnings; show what every session starts with."""

from __future__ import annotations

import os
import time
from argparse import Namespace
from collections.abc import Sequence

from ralph.cli.control import working_ref
from ralph.cli.output import emit_json, note, paint, say, say_raw
from ralph.core.errors import UsageError
from ralph.core.exit_codes import ExitCode
from ralph.core.learning import LONGEST, Learning, written
from ralph.core.text import one_line, plural
from ralph.host.process.table import require_process_control
from ralph.memory.learn import learn, learn_for_repository, learn_in_session
from ralph.memory.store import learnings_elsewhere, learnings_of, memory_of, waiting
from ralph.prompts.memory import Cue, cost, ranked, terms
from ralph.workspace.find import open_plan, open_ref, opened_at
from ralph.workspace.plan_edit import find_story, prose
from ralph.workspace.trust import ensure_trusted, gather, refuse_inside_loop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ralph.memory.compact import Compacted
    from ralph.run.context_size import ContextSize, TokenEstimate


def show_learnings(args: Namespace) -> int:
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


def add_learning(args: Namespace) -> int:
    texts = [_sentence(text) for text in args.text]
    if args.repo and args.story:
        raise UsageError("--repo and --story exclude each other", hint="use one of them")
    if args.repo:
        refuse_inside_loop(os.environ, "write to files that every later session reads")
        return _for_repository(args, texts)
    if request := learn_in_session(texts, args.story, os.environ):
        say(f"added to {request.name}; the loop records it when this session ends")
        return 0
    opened = open_plan(args)
    opened = opened_at(working_ref(args, opened.ref), opened.settings, os.environ)
    story = find_story(opened.plan, args.story).id if args.story else ""
    kept = learn(opened, texts, story, time.time(), os.environ)
    where = memory_of(opened.ref, opened.layout.locations(opened.ref), os.environ).name
    for _ in range(kept.known):
        say("known already", "dim")
    if kept.new:
        later = "the current run will record it in" if kept.waits else "kept in"
        say(f"{plural(len(kept.new), 'learning')}: {later} {where}")
    return 0


def _for_repository(args: Namespace, texts: list[str]) -> int:
    opened = open_plan(args)
    path, count = learn_for_repository(opened, texts, time.time(), os.environ)
    say(f"{plural(count, 'learning')} kept in {path.relative_to(opened.root)}" if count else "known already")
    return 0


def _sentence(text: str) -> str:
    text = " ".join(prose("the learning", text).split())
    if not text:
        raise UsageError("the learning is empty", hint='`ralph memory add "…"`')
    if len(text) > LONGEST:
        raise UsageError(
            f"the learning has {len(text)} characters, more than {LONGEST}",
            hint="write it to a file of the project, and record where that is",
        )
    return text


def compact_learnings(args: Namespace) -> int:
    from ralph.memory.compact import compact, deduplicate, is_large, size_of_memory

    refuse_inside_loop(os.environ, "compact the learnings")
    ref, settings = open_ref(args)
    if args.no_agent:
        return _told(args, deduplicate(ref, os.environ))
    if not args.force and not is_large(ref, settings, os.environ):
        most = settings.config.memory.compact_tokens
        size = size_of_memory(ref, os.environ)
        if args.json:
            emit_json({"archive": None, "tokens_before": size, "tokens_after": size})
            return 0
        say(f"about {size:,} tokens, less than {most:,} (memory.compact_tokens); --force compacts anyway")
        return 0
    require_process_control()
    ensure_trusted(ref.root, gather(ref.root, settings, []), os.environ, flag=args.trust, report=note)
    return _told(args, compact(ref, settings, os.environ, note, force=args.force))


def _told(args: Namespace, done: Compacted) -> int:
    if args.json:
        emit_json(done)
        return 0
    if done.archive is None:
        say("Nothing to change.")
        return 0
    say(f"{plural(done.before, 'learning')} → {done.after}, {done.tokens_before:,} tokens → {done.tokens_after:,}")
    say(f"the original is kept in {done.archive}")
    for one in done.dropped:
        say(f"  left out: {one}", "dim")
    return 0


def show_budget(args: Namespace) -> int:
    from ralph.run.context_size import context_size

    opened = open_plan(args)
    size = context_size(opened.ref, opened.settings, opened.plan, os.environ)
    code = ExitCode.UNFINISHED if size.over else ExitCode.COMPLETE
    if args.json:
        emit_json(_document(size))
        return code
    say(f"{'part':<13} {'tokens':>8} {'share':>6}  file", "bold")
    for part in size.parts:
        mark = f"  over its own {part.budget:,}" if part.budget and part.tokens > part.budget else ""
        line = f"{part.name:<13} {part.tokens:>8,} {part.tokens / size.total:>6.0%}  {one_line(part.file, 60)}{mark}"
        say(line.rstrip(), "yellow" if mark else "")
    of = f" of {size.budget:,} (context.budget_tokens)" if size.budget else ""
    say(f"{'total':<13} {size.total:>8,}{of}", "red" if size.over else "bold")
    if size.estimate.overhead:
        note(f"the client adds about {size.estimate.overhead:,} tokens, which are not counted here", "dim")
    note(_basis(size.estimate), "dim")
    if size.to_cut:
        say()
        say(f"over by {size.over:,}; what to cut:" if size.over else "what to cut:", "yellow")
        for part in size.to_cut:
            say(f"  {part.file or part.name}, {part.tokens:,}: {part.how}")
    return code


def _basis(estimate: TokenEstimate) -> str:
    if estimate.is_measured:
        sessions = plural(estimate.samples, "session")
        return f"measured in {sessions} of this workspace: {estimate.chars_per_token:.2f} characters per token"
    return f"estimated at {estimate.chars_per_token:.0f} characters per token"


def _document(size: ContextSize) -> dict[str, object]:
    return {
        "total": size.total,
        "budget": size.budget,
        "over": size.over,
        "parts": [
            {
                "part": p.name,
                "file": p.file,
                "tokens": p.tokens,
                "share": round(p.tokens / size.total, 4),
                "budget": p.budget,
            }
            for p in size.parts
        ],
        "cut": [{"part": p.name, "file": p.file, "tokens": p.tokens, "how": p.how} for p in size.to_cut],
        "basis": size.estimate,
    }
