"""Work through the plan: one agent session per iteration, judged by checks that
Ralph runs itself.

Accepted work is committed. Everything else is saved under refs/ralph/rescue/
and rolled back. The run ends when every story is done and the checks pass on
the final tree, or tells you why it stopped."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace, _ArgumentGroup
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from functools import partial

from ralph.app.last_run import last_run
from ralph.app.launching import STASHED, Launched, agree, launch, prepare_spec
from ralph.app.named_variants import refuse_unknown_names
from ralph.app.sandbox import sandbox
from ralph.app.step_misfits import refuse_misfits
from ralph.cli.arguments import add_workspace
from ralph.cli.limit_question import BaselineQuestion, LimitQuestion
from ralph.cli.output import ask, can_draw, emit_line, is_interactive, lost_output, note, say, warn
from ralph.cli.plain_view import PlainView
from ralph.cli.summary import print_summary
from ralph.cli.words import TERMINAL_CLOSED
from ralph.config.flags import add_options
from ralph.config.trust import Verdict
from ralph.core.errors import SetupError, UsageError
from ralph.core.events import Record
from ralph.core.moves import Reason
from ralph.host.ptable import require_process_control
from ralph.host.signals import StopSignal
from ralph.journal.run_state import RunState
from ralph.journal.statistics import Tally
from ralph.journal.writing import Listener

EXAMPLES = """
ralph run                          until every story is done
ralph run -n 5 --model sonnet      at most five iterations, with this model
ralph run --once --verbose         one iteration, and show what the agent does
ralph run --acceptance hidden      another session writes tests first, unseen by the one that implements
ralph run --exam                   another session writes end-to-end tests at the end
ralph run --max-cost 10            stop before it costs more than $10
ralph run --dry-run                show story, prompt, command and checks only
"""

_COMMON = ("max_iterations", "agent.model", "budget.run_usd", "max_run_time", "review.when")
_SETTINGS = {
    "limits": (
        "timeout",
        "idle_timeout",
        "max_loops_per_task",
        "circuit_breaker.on_stuck",
        "agent.budget_usd",
        "budget.run_tokens",
        "rate_limit_per_hour",
        "token_limit_per_hour",
        "limit_share",
        "on_limit",
        "max_allowed_iterations",
    ),
    "agent": (
        "agent.name",
        "agent.command",
        "agent.script",
        "prompt",
        "agent.allowed_tools",
        "agent.disallowed_tools",
        "permissions",
        "web",
        "allow_paths",
        "agent.fallback_model",
        "fallback",
        "routing.enabled",
    ),
    "review": (
        "review.cap",
        "review.on_cap",
        "review.on_stalemate",
        "review.agent",
        "review.model",
        "review.reviewers",
    ),
    "checks and git": (
        "proof.minimum",
        "acceptance",
        "exam",
        "baseline",
        "tamper",
        "tests",
        "canary",
        "rollback",
        "push",
        "archive.on_complete",
    ),
}
"""Heading in `--help` → the settings that can be changed for one run."""


def configure(parser: ArgumentParser) -> None:
    """The common options come first, without a heading; everything else has one."""
    parser.add_argument("--dry-run", action="store_true", help="show story, prompt, command and checks; change nothing")
    parser.add_argument(
        "--story", dest="stories", action="append", default=[], metavar="ID", help="only this story; repeatable"
    )
    parser.add_argument("--once", action="store_true", help="run one iteration")
    add_options(parser, _COMMON)
    parser.add_argument("--detach", action="store_true", help="run in the background, without a terminal")
    parser.add_argument("--worktree", action="store_true", help="work in a separate git worktree, on its own branch")
    add_workspace(parser)
    groups = {title: parser.add_argument_group(title) for title in ("before the run", *_SETTINGS, "output")}
    for title, keys in _SETTINGS.items():
        add_options(groups[title], keys)
    before = groups["before the run"]
    before.add_argument("--trust", action="store_true", help="trust the commands this workspace defines")
    before.add_argument("--stash", action="store_true", help="stash uncommitted changes first")
    before.add_argument("--reset-circuit", action="store_true", help="retry failed stories and forget usage limits")
    before.add_argument(
        "--allow-broken-checks", action="store_true", help="start although a check cannot run or fails before any work"
    )
    before.add_argument("--config", metavar="NAME", help="also read .ralph/configs/NAME")
    where = before.add_mutually_exclusive_group()
    where.add_argument("--sandbox", action="store_true", help="refuse to run outside a container")
    where.add_argument("--no-sandbox", action="store_true", help="run anywhere (default)")
    add_output(groups["output"])


def add_output(shown: _ArgumentGroup) -> None:
    shown.add_argument("-v", "--verbose", action="store_true", help="also show what the agent does")
    shown.add_argument("-q", "--quiet", action="store_true", help="print only the summary")
    shown.add_argument("--plain", action="store_true", help="print lines instead of the live view, and ask nothing")
    shown.add_argument("--json", action="store_true", help="print events, one JSON object per line")


def run(args: Namespace, extra_env: dict[str, str] | None = None) -> int:
    if sum((args.quiet, args.json, args.verbose)) > 1:
        raise UsageError("--quiet, --verbose and --json exclude each other", hint="use one of them")
    if args.sandbox and not sandbox(os.environ):
        raise SetupError(
            "not inside a sandbox, and Ralph does not create one",
            hint="run Ralph in a container, or leave out --sandbox",
        )
    prepared = prepare_spec(args, os.environ, extra_env)
    refuse_unknown_names(prepared.settings)
    for problem in (*prepared.settings.warnings, *refuse_misfits(prepared.settings, prepared.ref)):
        warn(str(problem))
    if args.dry_run:
        from ralph.app.dry_run import dry_run

        for line in dry_run(prepared, os.environ):
            say(line)
        return 0
    return _run(args, prepared)


def _run(args: Namespace, prepared: Launched) -> int:
    require_process_control()
    last = last_run(prepared.ref, os.environ)
    if last is not None and last.reason == Reason.TERMINAL_CLOSED:
        note(TERMINAL_CLOSED)
    asks = None if args.plain or args.json or not is_interactive() else _ask_trust
    with _all_at_once(prepared):
        agree(prepared, os.environ, trust=args.trust, ask=asks, tell=note)
    if not args.detach:
        return _carry_out(args, prepared, asks=asks is not None)
    from ralph.cli.detached import run_detached

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
            ended = launch(prepared, os.environ, stop, listeners, tell=tell, ask=limit, ask_baseline=baseline)
    with lost_output():  # the run is over, and its result does not depend on its output
        if not args.json:
            print_summary(state, tally.figures())
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
        from ralph.app.preflight import with_the_rest  # only when something is wrong

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


def _ask_trust(verdict: Verdict) -> bool:
    for line in verdict.difference:
        note(line)
    return ask("Run these commands?")
