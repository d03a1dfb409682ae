"""The project's checks in `ralph init`: each is run once, then used, left out, or turned into the first story."""

from __future__ import annotations

import os
from argparse import Namespace
from pathlib import Path

import msgspec
from msgspec import Struct

from ralph.cli.output import note, paint
from ralph.cli.questions import Questions
from ralph.config.layers import load
from ralph.config.schema import Config
from ralph.core.environment import child_environment
from ralph.core.plan import Story
from ralph.core.text import one_line
from ralph.host.process.signals import StopSignal
from ralph.setup.check_trials import Trial, try_check
from ralph.setup.toolchain import ProposedCheck, Toolchain, has_tests, with_test_command
from ralph.workspace.trust import gather, may_run

FAILING = {
    "no-worse": "use it, but do not reject work for today's failures (baseline: no-worse)",
    "fix-first": "use it, and make fixing it story 1",
    "off": "leave it out, as a comment in .ralph/config.yaml",
}
MISSING = {
    "off": "leave it out, as a comment in .ralph/config.yaml",
    "keep": "use it; install what is missing before `ralph run`",
}
_LOOKS = {"passes": "green", "fails": "red", "missing": "yellow", "empty": "yellow", "timeout": "yellow"}


class Decision(Struct, frozen=True):
    toolchain: Toolchain
    trials: tuple[Trial, ...] = ()
    stories: tuple[Story, ...] = ()
    """The stories that fix failing checks."""
    no_worse: bool = False


def ask_test_command(questions: Questions, detected: Toolchain, flag: str | None) -> Toolchain:
    if flag is None and has_tests(detected):
        return detected
    text = "No test command was detected. The command that runs the tests (Enter: none):"
    command = one_line(questions.line(text, flag).strip())
    return with_test_command(detected, command) if command else detected


def run_and_decide(questions: Questions, args: Namespace, found: Toolchain, root: Path, timeout: float) -> Decision:
    trials = _run(found, root, timeout, is_loud=not args.json)
    checks: list[ProposedCheck] = []
    off: list[ProposedCheck] = []
    stories: list[Story] = []
    no_worse = False
    for trial in trials:
        answer = _decide(questions, args, trial)
        if answer == "off":
            off.append(msgspec.structs.replace(trial.check, why=_why_off(trial), file=""))
            continue
        checks.append(trial.check)
        no_worse = no_worse or trial.outcome == "fails" or (trial.outcome == "empty" and trial.code != 0)
        if answer == "fix-first":
            stories.append(_fix(trial))
        if not questions.asks and trial.outcome == "fails" and args.failing_checks is None and not args.json:
            note(f"{trial.check.name} fails now and is used with baseline: no-worse (--failing-checks)")
    toolchain = msgspec.structs.replace(found, checks=tuple(checks), off=tuple(off))
    return Decision(toolchain, tuple(trials), tuple(stories), no_worse)


def _run(found: Toolchain, root: Path, timeout: float, *, is_loud: bool) -> list[Trial]:
    if is_loud and found.checks:
        note(f"running each check once, for at most {timeout:.0f} s (--no-run-checks skips this)", "dim")
    settings = load(root=root, layout="", name=None, env=os.environ, flags={})
    config = settings.config if may_run(root, gather(root, settings, []), os.environ) else Config()
    env = child_environment(os.environ, config.agent.env, everything=config.env == "caller")
    width = max((len(check.name) for check in found.checks), default=0)
    wide = max((len(one_line(check.line, 60)) for check in found.checks), default=0)
    trials = []
    with StopSignal() as stop:
        for check in found.checks:
            trial = try_check(check, root, env, timeout, stop)
            if stop.requested:
                raise KeyboardInterrupt
            trials.append(trial)
            if is_loud:
                note(f"  {trial.check.name:<{width}}  {one_line(trial.check.line, 60):<{wide}}  {outcome(trial)}")
    return trials


def outcome(trial: Trial) -> str:
    words = {
        "passes": f"passes, {trial.seconds:.1f} s",
        "fails": f"fails, {trial.seconds:.1f} s: {trial.reason}",
        "empty": "runs no tests: it proves nothing until it does (--test-command names another)",
        "missing": f"cannot run: {trial.reason}" + (f"; {trial.fix}" if trial.fix else ""),
        "timeout": f"{trial.reason}: used anyway; a run allows it 10 m",
    }[trial.outcome]
    return paint(words, _LOOKS[trial.outcome])


def _decide(questions: Questions, args: Namespace, trial: Trial) -> str:
    command = one_line(trial.check.line, 60)
    if trial.outcome == "fails":
        return questions.choice(f"`{command}` fails now.", FAILING, args.failing_checks, "no-worse")
    if trial.outcome == "missing":
        text = f"`{command}` cannot run: {trial.reason}." + (f" To install it: {trial.fix}." if trial.fix else "")
        return questions.choice(text, MISSING, args.missing_checks, "off")
    return "keep"


def _why_off(trial: Trial) -> str:
    if trial.outcome == "fails":
        return f"failed when `ralph init` ran it: {trial.reason}"
    return f"could not run: {trial.reason}" + (f"; {trial.fix}" if trial.fix else "")


def _fix(trial: Trial) -> Story:
    command = trial.check.line
    return Story(
        id=f"fix-{trial.check.name}",
        title=f"Make the {trial.check.name} check pass",
        description=f"`{command}` fails before any work has started. Fix the code, not the check.",
        criteria=(f"`{command}` exits with 0",),
        verify=(command,),
        priority=1,
    )
