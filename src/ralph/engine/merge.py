"""The merge queue at work: merged commits are made here, and workers prove them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from ralph.core.events import QueueProved, QueueProving
from ralph.core.plan import Mode
from ralph.core.text import one_line
from ralph.core.verdict import Kind
from ralph.core.worker import Examine, Examined
from ralph.engine import queue as merge_queue
from ralph.engine.judge import judge
from ralph.engine.queue import Entry, Queue
from ralph.engine.run import Run
from ralph.engine.workers import Active, Build, Crew, QueueRules
from ralph.host.git.checkpoint import head_of
from ralph.host.git.command import ask
from ralph.host.git.merging import commit_object, keep_ref, merge_onto, same_but_own
from ralph.host.git.repo import Repo

_MERGED = "refs/ralph/merged/"


class MergeQueue:
    """`active`: the iterations of the run, which the loop keeps. `give_back` returns one, with the reason and what a
    check or a conflict printed."""

    def __init__(
        self,
        run: Run,
        crew: Crew,
        repo: Repo,
        rules: QueueRules,
        active: dict[int, Active],
        give_back: Callable[[Active, str, str], None],
    ) -> None:
        self._run, self._crew, self._repo, self._rules = run, crew, repo, rules
        self._active, self._give_back = active, give_back
        self._queue = Queue()
        self._builds: dict[str, Build] = {}
        self._made: dict[str, str] = {}
        """By key of a build: its merged commit."""
        self._onto: dict[str, str] = {}
        """By merged commit of one entry: the commit that it was made on."""
        self._outputs: dict[int, str] = {}
        """By iteration: what a clash or a red check printed."""

    def tip(self) -> str:
        return head_of(self._repo)[1] or ""

    def add(self, active: Active) -> None:
        entry = Entry(active.number, active.story, active.candidate, active.base)
        self._queue = merge_queue.enqueue(self._queue, entry)

    def clear(self) -> None:
        self._queue = Queue()
        self._builds.clear()

    def close(self) -> None:
        """Forget merged commits: their parts are on the branch or on refs of their own."""
        forget_merged(self._repo, self._run.id)

    def remove(self, iteration: int) -> None:
        self._queue = merge_queue.removed(self._queue, iteration)

    def lost(self, worker: int) -> None:
        """What this worker proved is wanted again."""
        for key, build in list(self._builds.items()):
            if build.worker == worker:
                del self._builds[key]
                self._queue = merge_queue.stopped(self._queue, key)

    def ready(self) -> tuple[Entry, ...]:
        return merge_queue.ready(self._queue, self.tip())

    def merge_of(self, entry: Entry) -> tuple[str, str] | None:
        """The merged commit of a ready entry, and the commit that it was made on: like the tip, but for Ralph's own
        files. None: it was merged in a batch."""
        merged = merge_queue.merged_alone(self._queue, entry.iteration)
        return (merged, self._onto[merged]) if merged in self._onto else None

    def landed(self, iteration: int, tip: str, *, as_proven: bool) -> None:
        self._queue = merge_queue.landed(self._queue, iteration, tip, as_proven=as_proven)

    def prove(self) -> bool:
        """Build and prove what the queue asks for. True: something changed that may be landed at once."""
        rules = self._rules
        tip = self.tip()
        self._queue = merge_queue.moved(self._queue, tip)  # so that proofs on the old tip are stopped now
        for key in merge_queue.obsolete(self._queue, tuple(self._builds)):
            self._crew.cancel(self._builds.pop(key).worker)
            self._queue = merge_queue.stopped(self._queue, key)
        changed = False
        for wanted in merge_queue.wanted(self._queue, tip, batch=rules.batch, speculate=rules.speculate):
            onto = merge_queue.merged_commit(self._queue, wanted.onto_key) or tip
            merged = self._made.get(wanted.key) or self._merge(wanted.key, onto, wanted.entries)
            if not merged:
                changed = True
                break
            if self._is_proven(wanted.entries, merged):
                self._queue = merge_queue.building(self._queue, wanted.key, merged)
                self._queue = merge_queue.proved(self._queue, wanted.key, passed=True)
                changed = True
                continue
            worker = self._crew.idle(for_proof=True)
            if not worker:
                break
            self._queue = merge_queue.building(self._queue, wanted.key, merged)
            self._examine(wanted.key, wanted.entries, onto, merged, worker)
        return self._return_failed() or changed

    def _return_failed(self) -> bool:
        """Entries at the head that clash with the tip, or are red on it."""
        failed = merge_queue.failed(self._queue)
        for entry in failed:
            failure = merge_queue.failure(self._queue, entry.iteration)
            why = failure.why if failure else "it does not go together with what was merged"
            self._give_back(self._active[entry.iteration], why, self._outputs.pop(entry.iteration, ""))
        return bool(failed)

    def _merge(self, key: str, onto: str, entries: Sequence[Entry]) -> str:
        """The commit with all of them; empty: one clashes, and was returned."""
        head = onto
        for entry in entries:
            merged = merge_onto(self._repo, head, entry.commit, entry.base)
            if merged.conflicts:
                some = ", ".join(one_line(path, 60) for path in merged.conflicts[:5])
                why = f"its changes conflict with work that was merged meanwhile: {some}"
                self._outputs[entry.iteration] = merged.text
                self._queue = merge_queue.clashed(self._queue, key, entry.iteration, why)
                return ""
            head = commit_object(self._repo, merged.tree, [head], f"ralph: {entry.story}, merged")
        self._made[key] = head
        if len(entries) == 1:
            self._onto[head] = onto
        keep_ref(self._repo, f"{_MERGED}{self._run.id}/{entries[-1].iteration}-{head[:12]}", head)
        return head

    def _is_proven(self, entries: Sequence[Entry], merged: str) -> bool:
        """Nothing was merged since the worker proved it, or it is a review, or a test that has to fail."""
        own = self._run.places.is_own
        for entry in entries:
            active = self._active[entry.iteration]
            same = len(entries) == 1 and same_but_own(self._repo, merged, entry.commit, own)
            if not (same or self._is_review(active, entry) or active.work.mode is Mode.ACCEPTANCE):
                return False
        return True

    def _is_review(self, active: Active, entry: Entry) -> bool:
        """Without changes. Another claim without changes is about the tree that it is merged into: prove it there."""
        is_review = active.work.mode is Mode.REVIEW
        return is_review and same_but_own(self._repo, entry.commit, entry.base, self._run.places.is_own)

    def _examine(self, key: str, entries: tuple[Entry, ...], onto: str, merged: str, worker: int) -> None:
        run = self._run
        actives = [self._active[entry.iteration] for entry in entries]
        run.journal.write(
            QueueProving(
                iterations=tuple(entry.iteration for entry in entries), onto=onto, merged=merged, worker=worker
            )
        )
        outfit = self._crew.outfit()
        claims = [one.judged is not None and one.judged.verdict.kind is Kind.ACCEPTED for one in actives]
        order = Examine(
            key=key,
            iteration=entries[0].iteration,
            works=tuple(one.work for one in actives),
            onto=onto,
            merged=merged,
            is_claimed=any(claims),
            kept=run.proof.prover.kept([one.story for one in actives]),
            files=outfit.files,
            state=outfit.state,
        )
        begun = run.control.clock()
        self._builds[key] = Build(key=key, entries=entries, onto=onto, merged=merged, worker=worker, begun=begun)
        self._crew.assign(worker, order)

    def examined(self, message: Examined) -> None:
        run = self._run
        build = self._builds.pop(message.key, None)
        if build is None or any(entry.iteration not in self._active for entry in build.entries):
            return
        if message.interrupted:
            self._queue = merge_queue.stopped(self._queue, message.key)
            return
        failures = []
        for entry in build.entries:
            active = self._active[entry.iteration]
            assert active.judged is not None
            evidence = replace(active.judged.evidence, checks=message.checks)
            if len(build.entries) == 1:
                evidence = replace(evidence, proof=message.proof or evidence.proof)
            active.merged_evidence = evidence
            verdict = judge(evidence)
            if not verdict.kind.keeps_work:
                failures.append(verdict)
        why = failures[0].headline if failures else ""
        run.journal.write(
            QueueProved(
                iterations=tuple(entry.iteration for entry in build.entries),
                merged=build.merged,
                passed=not failures,
                why=why,
                seconds=round(max(run.control.clock() - build.begun, 0), 3),
            )
        )
        if failures:
            output = "\n\n".join(check.tail for check in message.checks if not check.passed and check.tail)
            self._outputs.update({entry.iteration: output for entry in build.entries})
        red = f"green alone, red merged: {why}" if failures else ""
        self._queue = merge_queue.proved(self._queue, message.key, not failures, red)
        self._return_failed()


def forget_merged(repo: Repo, run: str) -> None:
    listed = ask(repo, "for-each-ref", "--format=delete %(refname)", f"{_MERGED}{run}/")
    if listed.out:
        ask(repo, "update-ref", "--stdin", stdin=listed.out)
