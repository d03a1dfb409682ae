"""The merge queue: what to prove next, and what may land. Pure: every function returns a new queue.

Accepted candidates wait in order. The first is merged onto the tip and proved; meanwhile the next ones are proved on
top of it, as if it passed. Several entries can be proved together (a batch); if that fails, parts of the batch are
proved until the entry that fails is known: halves, or as many parts as can be proved at the same time.

A proof is valid for one content: the tip plus certain entries in a certain order. It never depends on how those entries
were grouped, so results of one grouping are used in another.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace


class Entry(Struct, frozen=True):
    """A candidate: the work of one iteration, accepted by its worker."""

    iteration: int
    story: str
    commit: str
    base: str


class Build(Struct, frozen=True):
    """Entries to merge in order, and to prove together."""

    key: str
    onto_key: str
    """The build whose merged commit it goes on; empty: the tip."""
    entries: tuple[Entry, ...]


class Result(StrEnum):
    RUNNING = "running"
    PASSED = "passed"
    FAILED = "failed"
    CLASHED = "clashed"
    """The last entry of the content does not merge with those before it."""


class Proof(Struct, frozen=True):
    key: str
    content: tuple[int, ...]
    """The iterations that are merged onto the tip of the queue, in order."""
    size: int
    """How many of the last ones are proved here for the first time; more than `content` when some have landed."""
    result: Result = Result.RUNNING
    merged: str = ""
    why: str = ""


class Queue(Struct, frozen=True):
    entries: tuple[Entry, ...] = ()
    tip: str = ""
    """The commit that the proofs start from."""
    proofs: tuple[Proof, ...] = ()


class _Step(NamedTuple):
    """A group of entries on top of `onto`, and its proof if there is one."""

    onto: tuple[int, ...]
    entries: tuple[Entry, ...]
    proof: Proof | None


_Proofs = Mapping[tuple[int, ...], Proof]


def enqueue(queue: Queue, entry: Entry) -> Queue:
    """Add it at the end. One that waits already is not added again."""
    if any(other.iteration == entry.iteration for other in queue.entries):
        return queue
    return replace(queue, entries=(*queue.entries, entry))


def wanted(queue: Queue, tip: str, *, batch: int = 1, speculate: int = 0) -> tuple[Build, ...]:
    """The builds to start now, in order: the first group on the tip, and up to `speculate` groups on top of it.

    Start them in this order. Call `building` or `clashed` for each; after a clash, ask again.
    """
    queue = moved(queue, tip)
    found: list[Build] = []
    open_builds = 0
    keys = {(): ""} | {proof.content: proof.key for proof in queue.proofs}
    for step in _steps(queue, batch, speculate):
        if step.proof and step.proof.result is Result.PASSED:
            continue
        if open_builds > speculate:
            break
        open_builds += 1
        if step.proof is None:
            group = tuple(entry.iteration for entry in step.entries)
            key = _key(tip, step.onto, group)
            keys[*step.onto, *group] = key
            found.append(Build(key, keys[step.onto], step.entries))
    return tuple(found)


def building(queue: Queue, key: str, merged_commit: str) -> Queue:
    """The entries of this build are merged, and are being proved."""
    tip, onto, group = _parts(key)
    queue = moved(queue, tip)
    return _with(queue, Proof(key, (*onto, *group), len(group), merged=merged_commit))


def clashed(queue: Queue, key: str, iteration: int, why: str = "") -> Queue:
    """This entry of a build does not merge with what comes before it. The rest of the build is merged without it.

    Look at `failed` again: if the entry is the first one, nothing else will happen to it.
    """
    tip, onto, group = _parts(key)
    queue = moved(queue, tip)
    before = group[: group.index(iteration)]
    content = (*onto, *before, iteration)
    return _with(queue, Proof(_key(tip, (*onto, *before), (iteration,)), content, 1, Result.CLASHED, why=why))


def proved(queue: Queue, key: str, passed: bool, why: str = "") -> Queue:
    """The result of a build. One that is no longer in the queue is ignored."""
    result = Result.PASSED if passed else Result.FAILED
    return replace(
        queue,
        proofs=tuple(
            replace(proof, result=result, why=why) if proof.key == key and proof.result is Result.RUNNING else proof
            for proof in queue.proofs
        ),
    )


def stopped(queue: Queue, key: str) -> Queue:
    """The build ended without a result: it was cancelled, or its worker was lost. It is wanted again if needed."""
    return replace(queue, proofs=tuple(p for p in queue.proofs if p.key != key or p.result is not Result.RUNNING))


def ready(queue: Queue, tip: str) -> tuple[Entry, ...]:
    """The entries at the head that may land now, in order. Each is proven on what comes before it.

    The entries of a batch land together: their result is proven, the states between them are not.
    """
    if tip != queue.tip:
        return ()
    landable = 0
    known = _known(queue)
    content: tuple[int, ...] = ()
    for number, entry in enumerate(queue.entries, 1):
        content = (*content, entry.iteration)
        proof = known.get(content)
        if proof and proof.result in (Result.FAILED, Result.CLASHED):
            break
        if proof and proof.result is Result.PASSED and number - proof.size <= landable:
            landable = number
    return queue.entries[:landable]


def failed(queue: Queue) -> tuple[Entry, ...]:
    """The entries at the head that clash with the tip, or fail on it. Return them, and call `removed`.

    Those further back may still pass if one before them fails.
    """
    known = _known(queue)
    found = []
    for entry in queue.entries:
        proof = known.get((entry.iteration,))
        if proof is None or proof.result not in (Result.FAILED, Result.CLASHED):
            break
        found.append(entry)
    return tuple(found)


def failure(queue: Queue, iteration: int) -> Proof | None:
    """Why an entry of `failed` has failed."""
    return _known(queue).get((iteration,))


def merged_commit(queue: Queue, key: str) -> str:
    """The merged commit of a build. Empty: not known, or the build is to go on the tip, which the caller knows better:
    the queue may not have heard yet that it moved."""
    return next((proof.merged for proof in queue.proofs if key and proof.key == key), "")


def merged_alone(queue: Queue, iteration: int) -> str:
    """The merged commit of the first entry, if that was made for it alone."""
    proof = _known(queue).get((iteration,))
    return proof.merged if proof is not None and proof.size == 1 else ""


def landed(queue: Queue, iteration: int, tip: str, *, as_proven: bool = True) -> Queue:
    """The entry is on the branch, whose tip is now `tip`. `as_proven`: with exactly the content that was proven.

    If so, the builds on top of it stay valid. Otherwise everything is proved again.
    """
    entries = _without(queue.entries, iteration)
    if not as_proven:
        return Queue(entries, tip)
    kept = tuple(
        replace(proof, content=proof.content[1:])
        for proof in queue.proofs
        if proof.content[0] == iteration and len(proof.content) > 1
    )
    return Queue(entries, tip, kept)


def moved(queue: Queue, tip: str) -> Queue:
    """Somebody else moved the branch: everything is proved again, on the new tip."""
    return queue if tip == queue.tip else Queue(queue.entries, tip)


def removed(queue: Queue, iteration: int) -> Queue:
    """The entry was returned or cancelled. What was built on it is built again without it."""
    kept = tuple(proof for proof in queue.proofs if iteration not in proof.content)
    return Queue(_without(queue.entries, iteration), queue.tip, kept)


def obsolete(queue: Queue, running: Collection[str]) -> tuple[str, ...]:
    """Those of the running builds that no longer matter. Stop them, and call `stopped`."""
    used = {step.proof.key for step in _steps(queue, known_only=True) if step.proof}
    return tuple(key for key in running if key not in used)


def _steps(queue: Queue, batch: int = 1, speculate: int = 0, *, known_only: bool = False) -> Iterator[_Step]:
    """The groups in order, each on top of the one before, as if everything without a result passed.

    An entry that fails on what comes before it is left out: if that lands, the entry is returned.
    """
    known = _known(queue)
    onto: tuple[int, ...] = ()
    left = queue.entries
    while left:
        size, proof = _group(known, onto, left, batch, speculate)
        if size == 0:
            left = left[1:]
            continue
        if proof is None and known_only:
            return
        group = left[:size]
        yield _Step(onto, group, proof)
        onto = (*onto, *(entry.iteration for entry in group))
        left = left[size:]


def _group(
    known: _Proofs, onto: tuple[int, ...], left: Sequence[Entry], batch: int, speculate: int
) -> tuple[int, Proof | None]:
    """How many entries the next group has, and its proof. 0: the first one fails here."""
    content, running = onto, None
    most = max((proof.size for proof in known.values()), default=0)
    limit = max(batch, 1)
    for size, entry in enumerate(left[: max(limit, most)], 1):
        content = (*content, entry.iteration)
        proof = known.get(content)
        if proof is None:
            continue
        if proof.result is Result.CLASHED:
            limit = min(limit, size - 1)  # those before it
            break
        if proof.result is Result.FAILED:
            parts = speculate + 2  # with one proof, the rest of two halves is known
            limit = min(limit, -(-size // parts) if size > 1 else 0)
            break
        if proof.size >= size and proof.result is Result.PASSED:
            return size, proof
        if proof.size >= size and running is None:
            running = (size, proof)
    if running:
        return running
    return min(limit, len(left)), None


def _known(queue: Queue) -> _Proofs:
    return {proof.content: proof for proof in queue.proofs}


def _with(queue: Queue, proof: Proof) -> Queue:
    """The last word on a content counts."""
    others = tuple(other for other in queue.proofs if other.content != proof.content)
    return replace(queue, proofs=(*others, proof))


def _without(entries: tuple[Entry, ...], iteration: int) -> tuple[Entry, ...]:
    return tuple(entry for entry in entries if entry.iteration != iteration)


def _key(tip: str, onto: Sequence[int], group: Sequence[int]) -> str:
    """`tip:1.2+3.4`: the entries 3 and 4, on top of 1 and 2."""
    return f"{tip}:{'.'.join(map(str, onto))}+{'.'.join(map(str, group))}"


def _parts(key: str) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
    tip, _, numbers = key.rpartition(":")
    onto, _, group = numbers.partition("+")
    return tip, _numbers(onto), _numbers(group)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(".") if number)
