"""A worker: iterations in a clone of its own, for a driver that decides, merges and keeps the journal.

It prepares, acts and judges as any run does. What it accepts becomes a candidate: a commit on the base it was given.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import platform
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import msgspec
from msgspec.structs import replace

from ralph import __version__
from ralph.core.agent import Outcome
from ralph.core.authorship import Session as SessionRecord
from ralph.core.authorship import Span
from ralph.core.errors import RalphError, SetupError
from ralph.core.events import (
    AgentStarted,
    AnyEvent,
    IterationEnded,
    Noted,
    Record,
    RunEnded,
    RunStarted,
)
from ralph.core.evidence import CheckResult, Ended, How
from ralph.core.moves import Reason
from ralph.core.plan import Mode, Plan
from ralph.core.ports import Session
from ralph.core.proof import Proof
from ralph.core.rules import Patience
from ralph.core.run_ports import Attempt
from ralph.core.verdict import Kind
from ralph.core.worker import (
    CANDIDATES,
    Admit,
    Alive,
    Allowed,
    Begin,
    Charge,
    End,
    Examine,
    Examined,
    Failed,
    Finished,
    Message,
    Query,
    Ready,
    Reply,
    Reserve,
    Ticket,
    Told,
)
from ralph.engine.act import act
from ralph.engine.evidence import prove
from ralph.engine.prepare import prepare
from ralph.engine.run import Control
from ralph.engine.settle import Judgement, judge_and_record, message_for, undo
from ralph.host.clocks import SteadyClock
from ralph.host.files import make_folder, write_bytes, write_text
from ralph.host.git.command import ask, git
from ralph.host.git.merging import commit_object, left_markers, put_tree, without
from ralph.host.process.channel import Closed, read_frame, write_frame
from ralph.host.process.fork_server import serve_forks
from ralph.host.process.signals import StopSignal
from ralph.host.process.table import ProcessId
from ralph.host.process.tree import adopt_orphans, identify
from ralph.host.process.watchdog import Watchdog
from ralph.journal.records import Journal
from ralph.proof.checks import made_by_checks
from ralph.run import hub
from ralph.run.clones import anchored
from ralph.run.confinement import confined
from ralph.run.hub import Hub
from ralph.run.recovery import end_processes_of, marked
from ralph.run.repository import ours
from ralph.run.spec import RunSpec
from ralph.run.wiring import make_run
from ralph.run.worker_clone import open_worker_clone, reset, write_files
from ralph.sandbox.choice import choose, chosen_before
from ralph.state.names import AGENTS_ENDED, CHECK_OUTPUTS, LAST_RUN, RAW
from ralph.state.places import plan_state, workspace_state
from ralph.state.runs import journal_path, last_run_id, new_run_id

Send = Callable[[Message], None]
_CLOCK_GRAIN = 0.02
"""Seconds by which the time of a file may differ from that of the clock."""
_BEAT = 2.0
"""Seconds between two signs of life."""
_OWN = (RunStarted, IterationEnded, RunEnded)
"""Events that the driver does not get: it writes its own."""
_LONGEST_LOG = 16 << 20


class Link:
    """The pipe to the driver: orders in their order, answers to queries, and a request to stop, from one thread."""

    def __init__(self, receive: Callable[[], bytes], send: Callable[[bytes], None], stop: StopSignal) -> None:
        self._receive, self._send, self._stop = receive, send, stop
        self._orders: queue.SimpleQueue[Begin | Ticket | Examine | None] = queue.SimpleQueue()
        self._replies: queue.SimpleQueue[Reply | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._count = 0
        self.is_ending = False
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        try:
            while True:
                order = pickle.loads(self._receive())
                if isinstance(order, End):
                    self.is_ending = True
                    if order.signum:
                        self._stop.request(order.signum)
                    else:
                        self._orders.put(None)
                elif isinstance(order, Reply):
                    self._replies.put(order)
                else:
                    self._orders.put(order)
        except (Closed, OSError, ValueError, EOFError, pickle.UnpicklingError):
            self.is_ending = True
            self._stop.request(signal.SIGTERM)  # the driver is gone: nobody would take what is done now
            self._orders.put(None)
            self._replies.put(None)

    def order(self) -> Begin | Ticket | Examine | None:
        return self._orders.get()

    def send(self, message: Message) -> None:
        with self._lock:
            self._send(msgspec.json.encode(message))

    def show_life(self) -> None:
        """From a thread of its own: the driver gives up a worker that is frozen."""

        def beat() -> None:
            with contextlib.suppress(Closed, OSError, ValueError):
                while True:
                    self.send(Alive())
                    time.sleep(_BEAT)

        threading.Thread(target=beat, daemon=True).start()

    def ask(self, question: Reserve | Charge | Admit) -> Any:
        """None: the driver is gone."""
        self._count += 1
        self.send(Query(self._count, question))
        while (reply := self._replies.get()) is not None:
            if reply.number == self._count:
                return reply.value
        return None


class RemoteBudget:
    """The driver's budget, for sessions here."""

    def __init__(self, link: Link, run_agent: Callable[[Session, str, Patience], tuple[Ended, Outcome]]) -> None:
        self._link, self._run_agent = link, run_agent

    def news(self, plan: Plan) -> tuple[AnyEvent, ...]:
        return ()

    def __call__(self, session: Session, step: str, patience: Patience) -> tuple[Ended, Outcome]:
        allowed = self._link.ask(Reserve(task=session.task, model=session.model, budget_usd=session.budget_usd))
        if not isinstance(allowed, Allowed):
            return Ended(How.NOT_RUN, detail="the driver is gone"), Outcome()
        if allowed.refusal is not None:
            return Ended(How.NOT_RUN, detail=allowed.refusal.detail), allowed.refusal
        if allowed.usd is not None:
            session = replace(session, budget_usd=allowed.usd)
        ended, outcome = self._run_agent(session, step, patience)
        self._link.ask(Charge(name=allowed.name, task=session.task, model=session.model, ended=ended, outcome=outcome))
        return ended, outcome


class Worker:
    def __init__(self, begin: Begin, link: Link, stop: StopSignal, env: Mapping[str, str]) -> None:
        self._begin, self._link, self._stop, self._env = begin, link, stop, env
        self._has_baseline = False
        self._has_candidates = True
        self._is_quiet = False
        self._base = begin.base
        self._hub = Hub(begin.source) if begin.is_hub else None

    def work(self) -> None:
        """Until the driver says that it is over."""
        begun = time.monotonic()
        begin, env = self._begin, self._env
        state = plan_state(begin.ref, env)
        make_folder(state, private=True)
        if last := last_run_id(state):
            end_processes_of([last])
        opened, lost = open_worker_clone(begin, env)
        settings = begin.settings
        settings = replace(settings, config=anchored(settings.config, opened.clone))
        config = settings.config
        if begin.sandbox is None:
            chosen = choose(config.sandbox.use, env, image=config.sandbox.image)
        else:
            chosen = chosen_before(*begin.sandbox)
        run_id = new_run_id(time.time())
        self._spec = spec = RunSpec(
            run=run_id,
            ref=opened.ref,
            settings=settings,
            repo=opened.repo,
            options=begin.options,
            is_clone=True,
            trace=begin.trace,
        )
        self._own = ours(spec, env)
        self._state = state
        clock = SteadyClock()
        path = journal_path(workspace_state(spec.ref.root, env), run_id)
        with ExitStack() as stack:
            stack.enter_context(marked(state))
            confinement = stack.enter_context(confined(spec, chosen, opened.clone, env, self._tell))
            write_text(state / LAST_RUN, run_id + "\n")
            self._journal = journal = Journal(path, clock)
            stack.callback(journal.close)
            journal.listen(self._forward)
            journal.write(self._started())
            watchdog = stack.enter_context(Watchdog(run_id, path.with_name(AGENTS_ENDED)))
            journal.listen(lambda record: _follow(watchdog, record.event))
            if confinement is not None:
                confinement.write = journal.write
                confinement.set_up()
            self._run = make_run(
                spec,
                journal,
                Control(self._stop, clock),
                env,
                confinement=confinement,
                budget_for=lambda runner: RemoteBudget(self._link, runner),
            )
            if lost:
                journal.write(Noted(f"what a killed worker left is in {lost}", warning=True))
            me = identify(os.getpid())
            self._link.send(
                Ready(
                    pid=os.getpid(),
                    start=me.start if me else "",
                    run=run_id,
                    where=platform.node() if begin.is_hub else "",
                    folder=str(opened.repo.root),
                    seconds=round(time.monotonic() - begun, 3),
                    has_lost_work=bool(lost),
                )
            )
            while (order := self._link.order()) is not None:
                if isinstance(order, Ticket):
                    self._link.send(self._iterate(order))
                elif isinstance(order, Examine):
                    self._link.send(self._examine(order))
                if self._link.is_ending:
                    break
            reset(spec.repo.root, self._base)  # the next worker here must not take it for lost work
            journal.write(RunEnded(Reason.ON_REQUEST))

    def _started(self) -> RunStarted:
        spec, config = self._spec, self._spec.config
        return RunStarted(
            run=spec.run,
            workspace=str(spec.ref.root),
            layout=spec.ref.layout,
            plan=str(spec.ref.path),
            name=spec.ref.name,
            pid=os.getpid(),
            host=platform.node(),
            version=__version__,
            agent=config.agent.name,
            model=config.agent.model,
            limits=spec.limits,
        )

    def _tell(self, text: str) -> None:
        self._link.send(Told(Noted(text)))

    def _forward(self, record: Record) -> None:
        if not self._is_quiet and not isinstance(record.event, _OWN):
            self._link.send(Told(record.event))

    def _admit(self) -> str:
        answer = self._link.ask(Admit())
        return answer if isinstance(answer, str) else "the driver is gone"

    def _iterate(self, ticket: Ticket) -> Finished:
        run, work = self._run, ticket.work
        self._sync(ticket.base, ticket.files, ticket.state)
        self._is_quiet = True
        for event in ticket.past:
            self._journal.write(event)
        self._is_quiet = False
        run.proof.prover.take_kept(ticket.kept)
        reading = run.plan.load()
        if not self._has_baseline and work.mode is not Mode.SETUP:
            if stop := run.proof.checks.baseline(reading.plan, run.tree.tree, reading.plan.story(work.story)):
                return Finished(iteration=ticket.iteration, stop=stop)
            self._has_baseline = True
        attempt = prepare(run, work, reading, ticket.iteration, ticket.free, ticket.most)
        if ticket.carried:
            self._get(ticket.carried)
            self._carry(ticket.carried)
        acted = act(run, attempt, ticket.feedback, self._admit)
        evidence = acted.evidence
        if ticket.carried and (left := left_markers(self._spec.repo, acted.inspection.tree, evidence.changed)):
            some = ", ".join(left[:5])
            evidence = replace(evidence, objections=(*evidence.objections, f"conflict markers are left in {some}"))
        judged = judge_and_record(run, acted.attempt, evidence, acted.inspection)
        if judged.verdict.kind.keeps_work:
            done = Finished(iteration=ticket.iteration, candidate=self._candidate(judged))
            reset(self._spec.repo.root, ticket.base)
        else:
            undone = undo(run, judged.attempt, judged.verdict, judged.attempt.reading)
            done = Finished(iteration=ticket.iteration, undone=undone)
        if work.mode is Mode.ACCEPTANCE:
            done = replace(done, acceptance=run.proof.acceptance.draft_of(work.story))
        self._end(judged.attempt, judged.verdict.kind)
        if self._hub is not None:
            hub.publish_rescue(self._spec.repo.root, self._hub, self._begin.run, self._spec.run)
            done = replace(done, logs=take_logs(self._journal.path.parent))
        return done

    def _carry(self, tree: str) -> None:
        """Start the session with earlier work, which counts as its own."""
        begun = time.time()
        put_tree(self._spec.repo, tree)
        life = Span(begun - _CLOCK_GRAIN, time.time() + _CLOCK_GRAIN)
        self._run.tree.note_session(SessionRecord(life=life, is_agent=True))

    def _end(self, attempt: Attempt, kind: Kind) -> None:
        """In the worker's own journal. Accepted work is not on the branch yet: the next base may be without it."""
        kind = Kind.RETURNED if kind.keeps_work else kind
        self._journal.write(
            IterationEnded(iteration=attempt.number, story=attempt.work.story, mode=attempt.mode, kind=kind)
        )

    def _candidate(self, judged: Judgement) -> str:
        """A commit on the base with all that was accepted, without Ralph's own files."""
        repo, inspection = self._spec.repo, judged.inspection
        base = self._base
        outputs = made_by_checks(self._state)

        def is_left_out(path: str) -> bool:
            """Ralph's own files, and untracked ones that checks and tools have left."""
            if self._own.is_ours(path):
                return True
            is_output = path in outputs or self._own.is_left_by_tools(path)
            return is_output and ask(repo, "cat-file", "-e", f"{base}:{path}").code != 0

        tree = without(repo, inspection.tree, base, is_left_out)
        commit = commit_object(repo, tree, [base], message_for(judged.attempt, judged.verdict))
        ref = f"{CANDIDATES}{self._begin.run}/{judged.attempt.number}"
        self._has_candidates = True
        git(repo, "update-ref", ref, commit)
        for number, made in enumerate(inspection.commits[-1:], 1):
            git(repo, "update-ref", f"{ref}-commits-{number}", made)
        if self._hub is not None:
            name = attempt_name(judged.attempt.number, self._spec.run)
            hub.publish(repo.root, self._hub, self._begin.run, name, commit)
        return commit

    def _get(self, wanted: str) -> None:
        """A commit or a tree of the driver's, if it is on another machine."""
        if self._hub is not None:
            hub.get(self._spec.repo.root, self._hub, self._begin.run, wanted)

    def _sync(self, base: str, files: Mapping[str, bytes], state: Mapping[str, bytes]) -> None:
        self._get(base)
        reset(self._spec.repo.root, base)
        if base != self._base:
            self._run.proof.checks.forget_tests()
        self._base = base
        if self._has_candidates:
            taken = ask(self._spec.repo, "for-each-ref", "--format=delete %(refname)", CANDIDATES)
            ask(self._spec.repo, "update-ref", "--stdin", stdin=taken.out)  # the driver has them
            self._has_candidates = False
        write_files(self._spec.ref.root, files)
        for name, data in state.items():
            make_folder((self._state / name).parent, private=True)
            write_bytes(self._state / name, data, mode=0o600, durable=False)
        self._run.proof.acceptance.reread()

    def _examine(self, order: Examine) -> Examined:
        """The proof procedure on a merged tree, as if one session had made all of it."""
        run = self._run
        self._sync(order.onto, order.files, order.state)
        run.proof.prover.take_kept(order.kept)
        reading = run.plan.load()
        if not self._has_baseline:
            run.proof.checks.baseline(reading.plan, run.tree.tree, None)
            self._has_baseline = True
        checks: tuple[CheckResult, ...] = ()
        proof: Proof | None = None
        interrupted = False
        for number, work in enumerate(order.works):
            story = reading.plan.story(work.story)
            if number and story is not None and not story.verify:
                continue  # the checks of all stories have run
            attempt = Attempt(
                number=order.iteration,
                work=replace(work, mode=Mode.IMPLEMENT if work.mode is Mode.REVIEW else work.mode),
                story=story,
                attempt=1,
                reading=reading,
                checkpoint=run.tree.checkpoint(),
                begun=run.control.clock(),
            )
            if not number:
                self._get(order.merged)
                put_tree(self._spec.repo, order.merged)
            inspection = run.tree.inspect(attempt.checkpoint)
            changed = tuple(path for path in inspection.changed if not run.places.is_own(path))
            more, proof, interrupted = prove(run, attempt, inspection, changed, is_claimed=order.is_claimed)
            checks += more
        return Examined(key=order.key, checks=checks, proof=proof, interrupted=interrupted)


def attempt_name(iteration: int, worker_run: str) -> str:
    """The name of a candidate on the hub. Only this worker has it."""
    return f"{iteration}-{worker_run}"


def take_logs(folder: Path) -> dict[str, bytes]:
    """Logs of the iteration, by path, removed from here; only the end of a very long one."""
    logs = {}
    for path in sorted(path for name in (RAW, CHECK_OUTPUTS) for path in (folder / name).rglob("*")):
        if path.is_file() and not path.is_symlink():
            logs[str(path.relative_to(folder))] = path.read_bytes()[-_LONGEST_LOG:]
            path.unlink()
    return logs


def _follow(watchdog: Watchdog, event: AnyEvent) -> None:
    if isinstance(event, AgentStarted):
        watchdog.follow(ProcessId(event.pid, event.start))


def serve(receive: Callable[[], bytes], send: Callable[[bytes], None], env: Mapping[str, str]) -> int:
    """A worker on any kind of connection. Returns an exit code."""
    with StopSignal() as stop:
        adopt_orphans()
        link = Link(receive, send, stop)
        begin = link.order()
        if not isinstance(begin, Begin):
            return 0
        if not begin.is_hub:  # a cluster has its own
            link.show_life()
        home = env["RALPH_STATE_HOME"] if begin.is_hub else str(begin.home)  # that machine knows its own folders
        own = {**env, **begin.env, "RALPH_STATE_HOME": home}
        os.environ["RALPH_STATE_HOME"] = own["RALPH_STATE_HOME"]
        try:
            Worker(begin, link, stop, own).work()
        except RalphError as error:
            link.send(Failed(message=str(error), hint=error.hint, is_setup=isinstance(error, SetupError)))
            return 1
    return 0


def main() -> int:
    """`python -m ralph.run.worker`: orders on stdin, messages on stdout. With `--forks N`, a server that forks them."""
    if len(sys.argv) == 3 and sys.argv[1] == "--forks":
        gc.freeze()
        return serve_forks(int(sys.argv[2]), _connected)
    return _connected()


def _connected() -> int:
    incoming: IO[bytes] = os.fdopen(os.dup(0), "rb")
    outgoing: IO[bytes] = os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2, 1)  # whatever prints by mistake must not end up among the messages
    os.close(null)
    return serve(lambda: read_frame(incoming), lambda data: write_frame(outgoing, data), dict(os.environ))


if __name__ == "__main__":
    sys.exit(main())
