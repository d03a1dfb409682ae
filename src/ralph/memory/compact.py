"""`ralph memory compact`: an agent summarises the learnings of a plan. The original is kept beside it, named by date.

Every learning must be covered by a new one or dropped by number with a reason, so nothing is lost unnoticed.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ralph.config.layers import Settings
from ralph.core.errors import BadData, RalphError, SetupError
from ralph.core.learning import LONGEST, PATTERNS, Learning, distinct, written
from ralph.core.ports import PlanRef
from ralph.core.problems import Place, Problem
from ralph.core.text import clean, estimate_tokens, one_line
from ralph.host.files import sync_folder, write_bytes
from ralph.host.git.repo import identify
from ralph.journal.records import Listener
from ralph.memory.store import Memory, learnings_in, memory_of, memory_text
from ralph.prompts.memory import cost, summary_prompt
from ralph.session.json_answer import Unusable, object_schema, read_json_answer
from ralph.session.single import Interrupted, Sessions
from ralph.state.locks import is_at_work, turn
from ralph.state.places import plan_state, planning_folder
from ralph.state.runs import new_run_id
from ralph.workspace.find import repository_of, store_for

_SHOWN = 20


class Condensed(Struct, frozen=True, forbid_unknown_fields=True):
    text: str
    sources: tuple[int, ...] = msgspec.field(name="from")
    """Numbers of the learnings it replaces."""


class Dropped(Struct, frozen=True, forbid_unknown_fields=True):
    number: int
    why: str


class Digest(Struct, frozen=True, forbid_unknown_fields=True):
    learnings: tuple[Condensed, ...]
    dropped: tuple[Dropped, ...] = ()


def digest_schema() -> dict[str, Any]:
    number = {"type": "integer", "minimum": 1}
    numbers = {"type": "array", "items": number, "minItems": 1}
    text = {"type": "string", "maxLength": LONGEST}
    return object_schema(
        {
            "learnings": {"type": "array", "items": object_schema({"text": text, "from": numbers}, ["text", "from"])},
            "dropped": {"type": "array", "items": object_schema({"number": number, "why": text}, ["number", "why"])},
        },
        ["learnings"],
    )


def read_digest(text: str, before: Sequence[Learning]) -> Digest:
    """The summary in an agent's answer. Raises Unusable."""
    return read_json_answer(text, Digest, lambda digest: _problems(digest, before))


def _problems(digest: Digest, before: Sequence[Learning]) -> Iterator[Problem]:
    known = set(range(1, len(before) + 1))
    covered: set[int] = {drop.number for drop in digest.dropped}
    for place, one in enumerate(digest.learnings):
        covered |= set(one.sources)
        if not one_line(one.text):
            yield _wrong(f"learnings[{place}].text", "it is empty")
        if len(one_line(one.text)) > LONGEST:
            yield _wrong(f"learnings[{place}].text", f"it has more than {LONGEST} characters", "split it")
        if not one.sources:
            yield _wrong(
                f"learnings[{place}].from",
                "it is based on no learning",
                "list the numbers of the learnings it comes from",
            )
    for drop in digest.dropped:
        if not drop.why.strip():
            yield _wrong("dropped", f"{drop.number} is dropped without a reason")
    if unknown := sorted(covered - known):
        yield _wrong("from", f"no learning {_listed(unknown)}", f"they are numbered 1 to {len(before)}")
    if missing := sorted(known - covered):
        hint = "put each into the `from` of a new learning, or into `dropped` with a reason"
        yield _wrong("learnings", f"{_listed(missing)} not accounted for", hint)
    if not unknown and not missing and not digest.learnings:
        yield _wrong("learnings", "all learnings are dropped", "keep what a later session would have to rediscover")
    elif not unknown and sum(map(cost, condensed(digest, before))) >= sum(map(cost, before)):
        yield _wrong(
            "learnings", "the summary is not shorter than the learnings", "use fewer learnings and fewer words"
        )


def _wrong(path: str, message: str, hint: str = "") -> Problem:
    return Problem("digest", message, Place(path=path), hint)


def _listed(numbers: Sequence[int]) -> str:
    more = f" and {len(numbers) - _SHOWN} more" if len(numbers) > _SHOWN else ""
    return ", ".join(map(str, numbers[:_SHOWN])) + more


def condensed(digest: Digest, before: Sequence[Learning]) -> tuple[Learning, ...]:
    """The learnings that remain. A summary that draws on a failed attempt, even in part, stays marked as not
    accepted.
    """
    learnings = []
    for one in digest.learnings:
        sources = [before[number - 1] for number in sorted(set(one.sources))]
        stories = {source.story for source in sources}
        learnings.append(
            Learning(
                text=one_line(clean(one.text), LONGEST),
                story=stories.pop() if len(stories) == 1 else "",
                date=max((source.date for source in sources), default=""),
                commit=sources[0].commit if len(sources) == 1 else "",
                accepted=all(source.accepted for source in sources),
            )
        )
    return tuple(learnings)


def as_notes(text: str, lines: Sequence[str], remark: str) -> str:
    """A new `learnings.md`: its title, and these lines."""
    first = text.lstrip("\ufeff").partition("\n")[0].rstrip()
    title = first if re.match(r"#[ \t]+\S", first) else "# Learnings"
    return f"{title}\n\n<!-- {remark} -->\n\n" + "".join(f"- {line}\n" for line in lines)


def as_log(text: str, lines: Sequence[str], remark: str) -> str:
    """A new progress log: its old beginning, and these lines as its curated section. Entries follow below it."""
    head: list[str] = []
    for line in text.lstrip("\ufeff").splitlines():
        if re.match(r"#{2,6}[ \t]|-{3,}[ \t]*$", line):
            break
        head.append(line.rstrip())
    beginning = "\n".join(head).strip() or "# Progress"
    curated = "".join(f"- {line}\n" for line in lines)
    return f"{beginning}\n\n## {PATTERNS}\n\n<!-- {remark} -->\n\n{curated}\n---\n"


def without_duplicates(text: str, learnings: Sequence[Learning]) -> tuple[str, int]:
    """The text without lines that repeat an earlier line word for word, and how many were removed."""
    lines = text.splitlines(keepends=True)
    seen: set[str] = set()
    gone: set[int] = set()
    for learning in learnings:
        alone = 0 < learning.line <= len(lines) and learning.text in lines[learning.line - 1]  # not over several lines
        if learning.text in seen and alone:
            gone.add(learning.line - 1)
        seen.add(learning.text)
    return "".join(line for place, line in enumerate(lines) if place not in gone), len(gone)


Tell = Callable[[str], None]
_LONGEST_PREVIOUS = 100_000


class Compacted(Struct, frozen=True):
    file: Path
    archive: Path | None = None
    """Path of the original. None: nothing changed."""
    before: int = 0
    after: int = 0
    """Number of learnings before and after."""
    tokens_before: int = 0
    tokens_after: int = 0
    """Of the whole file."""
    dropped: tuple[str, ...] = ()
    """What the agent left out, and why."""


def size_of_memory(ref: PlanRef, env: Mapping[str, str]) -> int:
    """Estimated tokens of the learnings, or of the whole log, which agents also read."""
    return estimate_tokens(memory_text(_memory(ref, env)))


def is_large(ref: PlanRef, settings: Settings, env: Mapping[str, str]) -> bool:
    most = settings.config.memory.compact_tokens
    return bool(most) and size_of_memory(ref, env) > most


def _memory(ref: PlanRef, env: Mapping[str, str]) -> Memory:
    return memory_of(ref, store_for(ref, env).layout.locations(ref), env)


def compact(
    ref: PlanRef,
    settings: Settings,
    env: Mapping[str, str],
    tell: Tell,
    *,
    force: bool = False,
    listeners: tuple[Listener, ...] = (),
) -> Compacted:
    """Compact with an agent. The caller has already checked that its program may be started.

    Nothing is written before there is a usable summary; the agent gets one chance to correct it. A log whose learnings
    fit into a prompt needs no agent: its entries make it large, and they go into the archive.
    """
    memory = _memory(ref, env)
    text = _read(memory)
    learnings = distinct(learnings_in(memory, text))
    if not learnings and not memory.is_log:
        return Compacted(memory.path)
    digest, kept = Digest(()), learnings
    if force or not memory.is_log or sum(map(cost, learnings)) > settings.config.memory.prompt_tokens:
        digest = _ask(ref, settings, env, learnings, tell, listeners)
        kept = condensed(digest, learnings)
    day = time.strftime("%Y-%m-%d", time.gmtime())
    archive = _free_name(memory.path, day)
    remark = f"Summarised on {day}. The original is {archive.name}."
    write = as_log if memory.is_log else as_notes
    new = write(text, [written(one) for one in kept], remark)
    dropped = tuple(f"{learnings[one.number - 1].text} — {one_line(one.why, 200)}" for one in digest.dropped)
    _swap(ref, memory, text, new, archive, env)
    return Compacted(
        memory.path, archive, len(learnings), len(kept), estimate_tokens(text), estimate_tokens(new), dropped
    )


def compact_when_large(
    ref: PlanRef, settings: Settings, env: Mapping[str, str], tell: Tell, listeners: tuple[Listener, ...] = ()
) -> Compacted | None:
    """For commands whose main job is something else: an error is reported but does not fail them."""
    if is_at_work(plan_state(ref, env)):
        return None
    try:
        if not is_large(ref, settings, env):
            return None
        tell("the learnings have grown large; an agent is summarising them")
        done = compact(ref, settings, env, tell, listeners=listeners)
    except (RalphError, OSError) as error:
        tell(f"the learnings were not changed; try `ralph memory compact` again: {error}")
        return None
    if done.archive is not None:
        tell(f"reduced from {done.tokens_before:,} to {done.tokens_after:,} tokens; the original is {done.archive}")
    return done


def deduplicate(ref: PlanRef, env: Mapping[str, str]) -> Compacted:
    """Remove exact duplicates, without an agent. The entries of a log are not changed."""
    memory = _memory(ref, env)
    text = _read(memory)
    learnings = [one for one in learnings_in(memory, text) if one.curated or not memory.is_log]
    new, count = without_duplicates(text, learnings)
    archive = _free_name(memory.path, time.strftime("%Y-%m-%d", time.gmtime())) if count else None
    if archive is not None:
        _swap(ref, memory, text, new, archive, env)
    before = len(learnings)
    return Compacted(memory.path, archive, before, before - count, estimate_tokens(text), estimate_tokens(new))


def _read(memory: Memory) -> str:
    if is_at_work(memory.state):
        raise SetupError(
            f"a run is active and writes {memory.name}", hint="try again when the run has ended; see `ralph status`"
        )
    if memory.path.is_symlink():
        raise SetupError(f"{memory.name} is a symbolic link", hint="replace it with the file itself")
    try:
        return memory_text(memory, errors="strict")
    except UnicodeDecodeError:
        raise BadData(f"{memory.path} is not UTF-8", hint="save it as UTF-8") from None


def _ask(
    ref: PlanRef,
    settings: Settings,
    env: Mapping[str, str],
    learnings: tuple[Learning, ...],
    tell: Tell,
    listeners: tuple[Listener, ...],
) -> Digest:
    folder = repository_of(ref.root, env)
    sessions = Sessions(
        root=ref.root,
        repo=identify(folder) if folder else None,
        config=settings.config,
        env=env,
        folder=planning_folder(ref.root, env) / f"compact-{new_run_id(time.time())}",
        kind="compact",
        listeners=listeners,
    )
    schema = msgspec.json.encode(digest_schema()).decode()
    previous, problems, is_repaired = "", tuple[str, ...](), False
    while True:
        try:
            answer = sessions.ask(summary_prompt(learnings, schema, previous, problems), schema)
        except Interrupted as error:
            error.hint = "try again; the learnings were not changed"
            raise
        if answer.put_back:
            tell(f"the agent changed {', '.join(one_line(path, 60) for path in answer.put_back[:5])}; restored")
        try:
            return read_digest(answer.text, learnings)
        except Unusable as error:
            if is_repaired:
                raise BadData(
                    f"the agent's corrected summary is still invalid: {error}",
                    hint=f"its output is in {sessions.raw}; the learnings were not changed",
                ) from None
            is_repaired = True
            tell(f"the summary is invalid ({error}); asking the agent to correct it")
            previous = answer.text[:_LONGEST_PREVIOUS]
            problems = tuple(
                f"{p.where.path}: {p.message}" + (f" ({p.hint})" if p.hint else "") for p in error.problems
            )


def _free_name(path: Path, day: str) -> Path:
    """`learnings.2026-11-15.md`, with a number appended if it is taken."""
    number, name = 1, path.with_name(f"{path.stem}.{day}{path.suffix}")
    while os.path.lexists(name):
        number += 1
        name = path.with_name(f"{path.stem}.{day}-{number}{path.suffix}")
    return name


def _swap(ref: PlanRef, memory: Memory, before: str, new: str, archive: Path, env: Mapping[str, str]) -> None:
    """Write the original beside it first, then the new text: a kill in between loses nothing."""
    with turn(ref, env):
        now = _read(memory)
        if not now.startswith(before):
            raise SetupError(
                f"{memory.name} changed in the meantime; nothing was written",
                hint="try again",
            )
        write_bytes(archive, now.encode())
        write_bytes(memory.path, (new + now[len(before) :]).encode())
        sync_folder(memory.path.parent)
