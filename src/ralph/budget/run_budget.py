"""The budget of a run: reserves money before a session, settles after it, and reports before each decision what is
left.

Everything that counts is in the journal, so that a decision can be derived again. The ledger is shared by several runs.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache

import msgspec
from msgspec import Struct

from ralph.budget.forecast import forecast, with_chance
from ralph.budget.settings import budget_of, ledger_of, plan_name, prices_of
from ralph.config.prices import PriceTable
from ralph.config.schema import Config
from ralph.core.agent import Outcome, Trouble
from ralph.core.errors import SetupError
from ralph.core.events import (
    AnyEvent,
    Charged,
    IterationEnded,
    IterationStarted,
    Noted,
    Record,
    Reserved,
    RunEnded,
    SpendingSeen,
    WorkerLost,
)
from ralph.core.evidence import Ended, How
from ralph.core.money import (
    MICROS,
    NOTHING,
    Amount,
    Basis,
    Budget,
    Elsewhere,
    Extent,
    Scope,
    Spending,
    amount_of,
    dollars,
    figure,
    micros,
    overspent,
    rooms,
    share,
    spend,
    story_rooms,
)
from ralph.core.moves import Reason
from ralph.core.plan import Mode, Plan, State
from ralph.core.ports import PlanRef, Session, Task
from ralph.core.rules import Patience
from ralph.core.verdict import Kind
from ralph.core.worker import Allowed
from ralph.host.git.repo import Repo
from ralph.host.process.tree import identify
from ralph.journal.ledger import Book, Finished, Foretold, Iterated, Ledger, Reserve, Settle, local_day
from ralph.journal.records import Journal
from ralph.workspace.killed_sessions import charge, elsewhere_in, is_alive, settle_dead

_FREE = (Kind.LIMIT, Kind.TRANSPORT, Kind.INTERRUPTED, Kind.RETURNED)

Run = Callable[[Session, str, Patience], tuple[Ended, Outcome]]


def _extent(ended: Ended, outcome: Outcome) -> Extent:
    if outcome.trouble is Trouble.BUDGET or ended.how in (How.TIMED_OUT, How.SILENT):
        return Extent.CUT
    return Extent.WHOLE if outcome.finished and outcome.ok else Extent.UNKNOWN


class Account(Struct, frozen=True):
    """Who spends, and within which budgets."""

    run: str
    plan: str
    budget: Budget
    ledger: Ledger
    prices: Callable[[], PriceTable]
    review: bool = False
    acceptance: bool = False
    workers: int = 1
    """Sessions that may run at the same time."""
    only: Sequence[str] = ()
    """The stories named with --story; empty: all."""


def account_of(
    run: str, ref: PlanRef, repo: Repo, config: Config, env: Mapping[str, str], only: Sequence[str] = ()
) -> Account:
    prices = cache(lambda: prices_of(config, ref.root))
    if config.budget.prices:
        prices()  # report an invalid file before anything starts
    return Account(
        run,
        plan_name(ref),
        budget_of(config),
        ledger_of(ref.root, repo, env),
        prices,
        review=config.review.when == "always",
        acceptance=config.acceptance != "off",
        workers=config.parallel,
        only=only,
    )


class RunBudget:
    def __init__(self, account: Account, journal: Journal, run_agent: Run, clock: Callable[[], float]) -> None:
        self._account = account
        self._run, self._plan, self._budget = account.run, account.plan, account.budget
        self._ledger = account.ledger
        self._journal = journal
        self._run_agent = run_agent
        self._clock = clock
        self._spending = Spending()
        self._iterations = 0
        self._begun: float | None = None
        self._foreseen: tuple[int, Amount] | None = None
        self._sessions = 0
        self._running: set[int] = set()
        """Iterations with several workers that have not ended."""
        self._aside: set[str] = set()
        self._warned: set[str] = set()
        journal.listen(self._listen)

    def news(self, plan: Plan) -> Iterator[AnyEvent]:
        """What the next decision needs to know and the journal does not say yet."""
        is_first, now = self._begun is None, self._clock()
        if self._begun is None:
            self._begun = now
        try:
            book = self._ledger.refresh()
        except SetupError as error:
            if self._budget.is_set:
                raise
            yield from self._warn_once(str(error))
            book, is_first = Book(local_day), False
        if is_first:
            yield from self._close_dead(book, now)
        yield from self._spent(book, now, is_first)
        only = self._account.only
        still = sum(story.is_open and (not only or story.id in only) for story in plan.stories)
        spent = (
            self._spending.run if self._budget.least_chance else NOTHING
        )  # money spent without result makes it less likely
        if (still, spent) != self._foreseen:
            self._foreseen = still, spent
            yield from self._foresee(book, still, is_first, now)

    def _close_dead(self, book: Book, now: float) -> Iterator[AnyEvent]:
        dead = [held for held in book.open if not is_alive(held, now)]
        for line in list(settle_dead(dead, self._charge, now, book.costliest)):
            self._append(line)
            if line.basis is Basis.UNKNOWN:
                yield Noted(f"run {line.run} was killed during a session whose cost is unknown", warning=True)
            elif line.basis is not Basis.REPORTED:
                sum_ = dollars(line.micros) if line.micros else f"{line.tokens:,} tokens"
                how = "from its raw output" if line.basis is Basis.ESTIMATED else "its output is lost"
                yield Noted(f"run {line.run} was killed during a session; {sum_} are counted for it ({how})")
        if count := self._ledger.damaged:
            what = "1 line" if count == 1 else f"{count} lines"
            yield Noted(f"{what} of {self._ledger.path} could not be read; the amount is not counted", warning=True)
        self._ledger.refresh()

    def _spent(self, book: Book, now: float, is_first: bool) -> Iterator[AnyEvent]:
        budget = self._budget
        stories = book.of_plan(self._plan) if is_first and (budget.story_usd or budget.story_tokens) else {}
        needs = book.needs_of(self._plan) if is_first and budget.is_set else {}
        elsewhere = elsewhere_in(book, self._run, now) if budget.is_shared else Elsewhere()
        if stories or needs or elsewhere != self._spending.elsewhere:
            yield SpendingSeen(elsewhere=elsewhere, stories=stories, needs=needs)

    def _foresee(self, book: Book, stories: int, is_first: bool, now: float) -> Iterator[AnyEvent]:
        if not stories:
            return
        seen = forecast(book.samples, stories, review=self._account.review, acceptance=self._account.acceptance)
        yield with_chance(seen, book.samples, rooms(self._budget, self._spending.run, self._spending.elsewhere))
        if is_first:
            self._append(Foretold(t=now, run=self._run, iterations=seen.iterations, seconds=seen.seconds, usd=seen.usd))

    def __call__(self, session: Session, step: str, patience: Patience) -> tuple[Ended, Outcome]:
        """Run the agent within its allowance, and record the cost."""
        allowed = self.reserve(session.task, session.budget_usd)
        if allowed.refusal is not None:
            return Ended(How.NOT_RUN, detail=allowed.refusal.detail), allowed.refusal
        if allowed.usd is not None:
            session = msgspec.structs.replace(session, budget_usd=allowed.usd)
        ended, outcome = self._run_agent(session, step, patience)
        self.charge(allowed.name, session.task, session.model, ended, outcome)
        return ended, outcome

    def reserve(self, task: Task, budget_usd: float) -> Allowed:
        """Before a session. `budget_usd`: the session's own limit; 0: none."""
        self._sessions += 1
        name = f"{self._run}/{task.iteration}/{self._sessions}"
        allowed, refusal = self._reserve(task, budget_usd, name)
        usd = max(allowed // 100, 1) / 10_000 if allowed is not None else None
        return Allowed(name=name, usd=usd, refusal=refusal)

    def charge(self, name: str, task: Task, model: str, ended: Ended, outcome: Outcome) -> None:
        """After a session. `name`: of its reservation."""
        if ended.how is not How.FAILED_TO_START or outcome.cost_usd is not None:
            charged = self._charge(name, task.iteration, task.story, model, outcome)
            if task.mode in (Mode.IMPLEMENT, Mode.FIX) and not task.verdict_only:
                charged = msgspec.structs.replace(charged, extent=_extent(ended, outcome))
        else:
            charged = Charged(iteration=task.iteration, story=task.story, id=name, basis=Basis.REPORTED, usd=0)
        self._journal.write(charged)
        self._settle(charged)
        for note in self._remarks(charged):
            self._journal.write(note)

    def _reserve(self, task: Task, budget_usd: float, name: str) -> tuple[int | None, Outcome | None]:
        cap = micros(budget_usd) or None
        if not self._budget.is_set:
            return cap, None
        if not self._budget.is_shared:
            return self._set_aside(task, name, cap, self._spending.elsewhere)
        with self._ledger.alone(self._run):
            book = self._ledger.refresh()
            return self._set_aside(task, name, cap, elsewhere_in(book, self._run, self._clock()))

    def _set_aside(
        self, task: Task, name: str, cap: int | None, elsewhere: Elsewhere
    ) -> tuple[int | None, Outcome | None]:
        limits = [
            *rooms(self._budget, self._spending.run, elsewhere, self._spending.held_by(self._running)),
            *story_rooms(self._budget, self._spending.of(task.story) if task.story else NOTHING),
        ]
        for room in limits:
            if room.is_spent:
                why = f"{room.key} is {figure(room, room.limit)}; {figure(room, room.spent)} spent"
                return None, Outcome(trouble=Trouble.BUDGET, detail=why)
            if room.is_taken:  # another run was first; not the fault of this attempt
                who = "other sessions of this run have" if room.scope is Scope.RUN else "another run has"
                why = f"{who} reserved the rest of {room.key}"
                return None, Outcome(trouble=Trouble.TRANSPORT, detail=why)
        book = self._ledger.book
        allowed = share(limits, cap, book.costliest, self._account.workers)
        counted = [room.left for room in limits if not room.is_money]
        tokens = min([*counted, book.largest]) if counted else 0
        me = identify(os.getpid())
        line = Reserve(
            id=name,
            t=self._clock(),
            run=self._run,
            plan=self._plan,
            story=task.story,
            micros=allowed,
            tokens=tokens,
            pid=os.getpid(),
            start=me.start if me else "",
            host=platform.node(),
            journal=str(self._journal.path),
        )
        usd = None if allowed is None else allowed / MICROS
        self._journal.write(Reserved(iteration=task.iteration, id=name, usd=usd, tokens=tokens))
        self._ledger.append(line, durable=True)  # what cannot be recorded must not be spent
        return allowed, None

    def _charge(self, name: str, iteration: int, story: str, model: str, outcome: Outcome) -> Charged:
        return charge(self._account.prices(), name, iteration, story, model, outcome)

    def _settle(self, charged: Charged) -> None:
        amount = amount_of(charged)
        self._append(
            Settle(
                id=charged.id,
                t=self._clock(),
                run=self._run,
                plan=self._plan,
                story=charged.story,
                basis=charged.basis,
                micros=None if amount.unknown else amount.micros,
                tokens=amount.tokens,
                extent=charged.extent,
            )
        )

    def _remarks(self, charged: Charged) -> Iterator[Noted]:
        if charged.basis is Basis.UNKNOWN and (charged.tokens or self._budget.is_set):
            model = charged.model or "the agent"
            yield from self._warn_once(
                f"the cost of {model} is unknown: a dollar budget cannot be enforced, a token budget only if it "
                "reports tokens (budget.prices sets a price file)"
            )
        over = overspent(self._budget, {charged.story: self._spending.of(charged.story)}) if charged.story else {}
        for story, room in over.items():
            if story not in self._aside:
                self._aside.add(story)
                spent = f"{figure(room, room.spent)} of {figure(room, room.limit)} ({room.key})"
                yield Noted(f"{story} has used up its budget, {spent}, and is set aside unless it is done", True)

    def _warn_once(self, text: str) -> Iterator[Noted]:
        if text not in self._warned:
            self._warned.add(text)
            yield Noted(text, warning=True)

    def _append(self, line: Settle | Iterated | Foretold | Finished) -> None:
        """If a line is lost, the reservation stays counted: too much, never too little."""
        try:
            self._ledger.append(line)
        except SetupError as error:
            self._warned.add(str(error))

    def _listen(self, record: Record) -> None:
        event, t = record.event, record.t
        self._spending = spend(self._spending, event)
        match event:
            case IterationStarted(iteration=number, worker=worker) if worker:
                self._running.add(number)
            case WorkerLost(iteration=number) | IterationEnded(iteration=number):
                self._running.discard(number)
        match event:
            case IterationEnded(kind=kind) if kind not in _FREE:
                self._iterations += 1
                over = event.completes or event.story_state in (State.DONE, State.FAILED)
                spot = {"t": t, "run": self._run, "plan": self._plan, "story": event.story}
                self._append(Iterated(**spot, seconds=event.seconds, over=over))  # type: ignore[arg-type]
            case RunEnded(reason=Reason.COMPLETE) if self._begun is not None:
                known = None if self._spending.run.unknown else self._spending.run.micros
                seconds = max(t - self._begun, 0)
                self._append(Finished(t=t, run=self._run, iterations=self._iterations, seconds=seconds, micros=known))
