"""`ralph run` and `ralph build`: work through the plan."""

from __future__ import annotations

import contextlib
import os
import selectors
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path

from ralph.cli.output import (
    ask_trust,
    can_draw,
    emit_bytes,
    emit_json,
    emit_line,
    fail,
    is_interactive,
    lost_output,
    note,
    say,
    warn,
)
from ralph.cli.plain_view import PlainView
from ralph.config.keys import BUILD_VARIABLES
from ralph.core.errors import SetupError, UsageError
from ralph.core.events import AgentStarted, Record, RunStarted, WaitStarted
from ralph.core.exit_codes import ExitCode
from ralph.core.moves import Reason
from ralph.core.text import one_line
from ralph.host.process.detach import Background, Waiting, fork
from ralph.host.process.signals import StopSignal
from ralph.host.process.table import require_process_control
from ralph.journal.records import Listener
from ralph.journal.run_state import RunState
from ralph.journal.statistics import Tally
from ralph.run.launch import Caller, agree, launch, prepare_spec
from ralph.run.repository import STASHED
from ralph.run.spec import Launched
from ralph.state.clones import read_clone
from ralph.state.names import OUTPUT_LOG
from ralph.state.places import plan_state, workspace_state
from ralph.state.runs import journal_path
from ralph.views.words import TERMINAL_CLOSED, until_when
from ralph.workspace.runs import last_run
from ralph.workspace.settings_check import refuse_misfits, refuse_unknown_names

_PATIENCE = 5.0
_WORKING = "working"


def run_detached(run: Callable[[Listener], int], *, as_json: bool) -> int:
    """Call `run` in a background process, with a listener that must get each record first."""
    side = fork()
    if isinstance(side, Background):
        return run(_Reporter(side))
    return _wait(side, as_json=as_json)


class _Reporter:
    """Signals the launcher that the run has started, and redirects the output to the log."""

    def __init__(self, background: Background) -> None:
        self._background = background

    def __call__(self, record: Record) -> None:
        match record.event:
            case RunStarted(run=run, workspace=workspace):
                log = journal_path(workspace_state(Path(workspace), os.environ), run).with_name(OUTPUT_LOG)
                self._background.log_to(log)
                self._background.tell(f"{run} {log}")
            case AgentStarted() | WaitStarted():
                self._background.tell(_WORKING)


def _wait(side: Waiting, *, as_json: bool) -> int:
    first = side.hear()
    if first is None:
        code = side.end()
        if code > 128 and code not in (ExitCode.INTERRUPTED, ExitCode.TERMINATED):
            fail(f"the run was killed by signal {code - 128} before it started")
        return code
    run, _, log = first.partition(" ")
    if side.hear(_PATIENCE) is None:
        emit_bytes(Path(log).read_bytes())
        return side.end()
    if as_json:
        emit_json({"run": run, "pid": side.pid, "log": log})
        return int(ExitCode.COMPLETE)
    say(f"run {run} started in the background (pid {side.pid})")
    say("  watch it   ralph watch")
    say("  stop it    ralph stop")
    say(f"  output     {log}")
    return int(ExitCode.COMPLETE)


SECONDS = 30.0
_BASELINE_SECONDS = 300.0
_LOOK = 0.2
_AT_LIMIT = {"w": "wait", "wait": "wait", "e": "exit", "exit": "exit"}
_AT_BASELINE = {
    "c": "continue", "continue": "continue", "n": "no-worse", "no-worse": "no-worse", "s": "stop", "stop": "stop",
}  # fmt: skip


class _Question:
    """`quiet` returns a context in which no live view draws over the question."""

    def __init__(self, stop: StopSignal, quiet: Callable[[], AbstractContextManager[object]]) -> None:
        self._stop = stop
        self._quiet = quiet

    def _answer(
        self, answers: Mapping[str, str], help_text: str, seconds: float, is_enough: Callable[[], bool] = lambda: False
    ) -> str:
        """One of `answers`; "nobody" after the time limit; empty if another request to the run arrives first."""
        deadline = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector, contextlib.suppress(OSError, ValueError):
            selector.register(sys.stdin, selectors.EVENT_READ, data=True)
            selector.register(self._stop.fileno(), selectors.EVENT_READ)
            while not self._stop.requested and (left := deadline - time.monotonic()) > 0:
                if is_enough():
                    return ""
                for key, _ in selector.select(min(left, _LOOK)):
                    if not key.data:
                        self._stop.drain()
                    elif not (typed := os.read(sys.stdin.fileno(), 4096)):
                        return "nobody"
                    elif answer := answers.get(typed.decode("utf-8", "replace").strip().lower()):
                        return answer
                    else:
                        note(help_text)
        return "nobody"


class LimitQuestion(_Question):
    """At a usage limit: wait or exit? Without an answer `on_limit` decides."""

    def __init__(
        self, stop: StopSignal, quiet: Callable[[], AbstractContextManager[object]], *, exits: bool = False
    ) -> None:
        super().__init__(stop, quiet)
        self._silence = f"without an answer within {SECONDS:.0f} s it {'exits' if exits else 'waits'}"

    def __call__(self, why: str, until: float, is_enough: Callable[[], bool]) -> str:
        with self._quiet():
            note(f"{one_line(why)}, until {until_when(until, time.time())}.", "yellow")
            note(f"Wait, or exit? [w/e], then Enter; {self._silence}.", "bold")
            return self._answer(_AT_LIMIT, "w waits, e exits", SECONDS, is_enough)


class BaselineQuestion(_Question):
    """A check fails before any work: continue or stop? Without an answer the run stops."""

    def __call__(self, why: str) -> str:
        with self._quiet():
            note(f"{one_line(why)}. With `baseline: strict` every story is rejected until it passes.", "yellow")
            note("Continue (c), do not reject stories for it (n, `baseline: no-worse`), or stop (s)?", "bold")
            return self._answer(_AT_BASELINE, "type c, n or s, then Enter", _BASELINE_SECONDS)


def run(args: Namespace, extra_env: dict[str, str] | None = None) -> int:
    if sum((args.quiet, args.json, args.verbose)) > 1:
        raise UsageError("--quiet, --verbose and --json exclude each other", hint="use one of them")
    prepared = prepare_spec(args, os.environ, extra_env)
    refuse_unknown_names(prepared.settings)
    for problem in (*prepared.settings.warnings, *refuse_misfits(prepared.settings, prepared.ref)):
        warn(str(problem))
    if args.dry_run:
        from ralph.run.dry_run import dry_run

        if prepared.settings.config.parallel > 1 and not args.once:
            from ralph.run.schedule_preview import together

            for line in together(prepared, os.environ):
                say(line)
        for line in dry_run(prepared, os.environ):
            say(line)
        return 0
    return _run(args, prepared)


def _run(args: Namespace, prepared: Launched) -> int:
    require_process_control()
    last = last_run(prepared.ref, os.environ)
    if last is not None and last.reason == Reason.TERMINAL_CLOSED:
        note(TERMINAL_CLOSED)
    asks = None if args.plain or args.json or not is_interactive() else ask_trust
    with _all_at_once(prepared):
        agree(prepared, os.environ, trust=args.trust, ask=asks, tell=note)
    if not args.detach:
        return _carry_out(args, prepared, asks=asks is not None)

    def in_background(reporter: Listener) -> int:
        args.plain = True
        return _carry_out(args, prepared, asks=False, first=reporter)

    return run_detached(in_background, as_json=args.json)


def _carry_out(args: Namespace, prepared: Launched, *, asks: bool, first: Listener | None = None) -> int:
    """Start the run; no questions follow. `first` gets each record before the view does."""
    state, tally = RunState(), Tally()
    told: list[str] = []

    def tell(text: str) -> None:
        told.append(text)
        note(text)

    with ExitStack() as stack:
        stop = stack.enter_context(StopSignal(key=first is None, on_first=partial(_acknowledge, state)))
        view = _view(args, stack)
        listeners: list[Listener] = [*([first] if first else []), state.add, tally.add, *([view] if view else [])]
        limit = baseline = None
        if asks and not args.quiet:
            exits = prepared.settings.config.on_limit == "ask-exit"
            limit = LimitQuestion(stop, _quiet(view), exits=exits)
            baseline = BaselineQuestion(stop, _quiet(view))
        with _all_at_once(prepared, state):
            caller = Caller(env=os.environ, stop=stop, tell=tell, listeners=listeners, ask=limit, ask_baseline=baseline)
            ended = launch(prepared, caller)
    with lost_output():  # the run is over, and its result does not depend on its output
        if not args.json:
            from ralph.cli.summary import print_summary  # only now: the agents should not wait for it

            left = read_clone(plan_state(prepared.ref, os.environ))
            print_summary(state, tally.figures(), left.branch if left else "")
        if STASHED in told:
            note("your work from before the run is still stashed; `git stash pop` restores it", "yellow")
    return int(ended.reason.exit_code)


def _acknowledge(state: RunState) -> None:
    """Say that a signal was noticed before there is a view: a long plan, or a run that was killed, may take a while."""
    if state.started is None:
        with suppress(OSError):
            os.write(2, b"stopping\n")  # print is not safe in a signal handler


@contextmanager
def _all_at_once(prepared: Launched, state: RunState | None = None) -> Iterator[None]:
    """Report all problems that prevent a start at once, not one after the other."""
    try:
        yield
    except (SetupError, UsageError) as error:
        if state is not None and state.started is not None:
            raise
        from ralph.doctor.probes import with_the_rest  # only when something is wrong

        raise with_the_rest(error, prepared, os.environ) from None


def _view(args: Namespace, stack: ExitStack) -> Listener | None:
    if args.json:
        return _emit
    if args.quiet:
        return None
    if args.plain or not can_draw():
        return PlainView(verbose=args.verbose)
    from ralph.cli.live_view import LiveView

    return stack.enter_context(LiveView(verbose=args.verbose))


def _quiet(view: Listener | None) -> Callable[[], AbstractContextManager[object]]:
    from ralph.cli.live_view import LiveView

    return view.held if isinstance(view, LiveView) else nullcontext


def _emit(record: Record) -> None:
    emit_line(record)


def build(args: Namespace) -> int:
    if args.iterations is not None:
        if not args.iterations.isascii() or not args.iterations.isdigit() or int(args.iterations) < 1:
            raise UsageError(f"{args.iterations!r} is not a number of iterations", hint="e.g. `ralph build 10 --prd 1`")
        vars(args).setdefault("setting:max_iterations", int(args.iterations))
    if args.layout is None:
        args.layout = "plan.md"
    return run(args, extra_env=dict(BUILD_VARIABLES))
