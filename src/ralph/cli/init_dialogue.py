"""The questions of `ralph init`: checks, permissions, cost, the first story, files for proofs."""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from ralph.archive.commit import repository
from ralph.cli.output import ask_line, is_interactive, note, paint, warn
from ralph.cli.syntax.plan import FAILING, MISSING
from ralph.config.layers import load
from ralph.config.schema import Config
from ralph.core.environment import child_environment
from ralph.core.errors import BadData, RalphError, UsageError
from ralph.core.plan import Story
from ralph.core.ports import PlanRef
from ralph.core.text import one_line
from ralph.host.files import read_bytes
from ralph.host.process.signals import StopSignal
from ralph.plans.registry import layout
from ralph.proof.dependencies import local_settings
from ralph.proof.place import expected_place, request_for
from ralph.setup.check_trials import Trial, try_check
from ralph.setup.scaffold import Started
from ralph.setup.toolchain import ProposedCheck, Toolchain, has_tests, with_test_command
from ralph.workspace.trust import gather, may_run


class Questions(Struct, frozen=True):
    asks: bool

    @classmethod
    def at_terminal(cls, *, wanted: bool = True) -> Questions:
        """With `wanted` false nothing is asked, as without a terminal."""
        return cls(wanted and is_interactive() and sys.stdout.isatty())

    def yes(self, text: str, flag: bool | None, *, default: bool = True, unasked: bool | None = None) -> bool:
        """`flag`: the answer from the command line. `unasked`: the answer without a terminal."""
        if flag is not None:
            return flag
        if not self.asks:
            return default if unasked is None else unasked
        while True:
            answer = ask_line(f"{text} [{'Y/n' if default else 'y/N'}] ").lower()
            if not answer:
                return default
            if answer in ("y", "yes", "n", "no"):
                return answer.startswith("y")
            note("answer y or n")

    def choice(self, text: str, options: Mapping[str, str], flag: str | None, default: str) -> str:
        """One of the names in `options`, or a unique prefix of one. Each has an explanation."""
        if flag is not None or not self.asks:
            return flag if flag is not None else default
        note(text)
        width = max(map(len, options))
        for name, meaning in options.items():
            note(f"  {name:<{width}}  {meaning}")
        while True:
            answer = ask_line(f"{'/'.join(options)} [{default}] ").lower()
            names = [name for name in options if name.startswith(answer)]
            if not answer or answer == default:
                return default
            if answer in options or len(names) == 1:
                return answer if answer in options else names[0]
            note(f"answer one of: {', '.join(options)}")

    def line(self, text: str, flag: str | None, default: str = "") -> str:
        if flag is not None or not self.asks:
            return flag if flag is not None else default
        return ask_line(f"{text} ") or default

    def lines(self, text: str, more: str, flag: Sequence[str] | None) -> tuple[str, ...]:
        """One answer per line, until an empty one. `more` asks for each after the first."""
        if flag is not None or not self.asks:
            return tuple(flag or ())
        answers: list[str] = []
        while answer := ask_line(f"{text if not answers else more} "):
            answers.append(answer)
        return tuple(answers)


REQUIREMENTS = "requirements.md"


_PREFERRED = ("claude", "codex", "gemini", "copilot", "qwen")
"""Before clients that take the keys of any vendor."""


class ChosenAgent(Struct, frozen=True):
    name: str
    why: str = ""
    """Empty: the settings name it already."""
    is_default: bool = False
    is_flag: bool = False


def choose_agent(root: Path, flag: str | None) -> ChosenAgent:
    """The flag, the settings, or the first client that is installed and logged in; else one that is installed."""
    from ralph.agents.registry import AGENTS
    from ralph.agents.registry import agent as find_agent
    from ralph.config.layers import Kind, project_config
    from ralph.core.agent_traits import login_of, traits_of
    from ralph.core.ports import Session
    from ralph.state.places import home

    if flag is not None:
        if wrong := AGENTS.trouble_with(flag):
            raise wrong
        return ChosenAgent(flag, "--agent", is_flag=True)
    settings = load(root=root, layout="", name=None, env=os.environ, flags={})
    default = settings.config.agent.name
    is_set = settings.origin("agent.name").kind is not Kind.DEFAULT or settings.config.agent.command
    if is_set or project_config(root).exists():  # what other plans here are worked on with stays
        return ChosenAgent(default)
    session, installed = Session(prompt="", cwd=root), ""
    for name in dict.fromkeys((default, *_PREFERRED, *AGENTS.built_in())):
        known = find_agent(name)
        if not traits_of(known).program:
            continue
        try:
            known.find(session, os.environ.get("PATH", ""))
        except RalphError:
            continue
        if login_of(known, os.environ, home(os.environ)).by:
            return ChosenAgent(name, "installed and logged in", name == default)
        installed = installed or name
    why = "installed; no client appears to be logged in" if installed else "the default; no client is installed"
    return ChosenAgent(installed or default, why, (installed or default) == default)


def show_agent(root: Path, chosen: ChosenAgent, *, only_missing: bool) -> None:
    """The agent and its login. `only_missing`: start nothing, and warn only if there is no such program."""
    from ralph.agents.registry import agent as find_agent
    from ralph.config.layers import load
    from ralph.core.ports import Session
    from ralph.doctor.findings import Level
    from ralph.doctor.machine import client, login
    from ralph.workspace.trust import gather, may_run

    settings = load(root=root, layout="", name=None, env=os.environ, flags={})
    agent = settings.config.agent
    command = agent.command if agent.name == chosen.name else ()
    if chosen.why:
        other = "" if chosen.is_flag else "; --agent NAME chooses another one, `ralph agents` lists them"
        note(f"agent: {chosen.name} ({chosen.why}){other}")
    trusted = may_run(root, gather(root, settings, []), os.environ)
    session = Session(prompt="", cwd=root, command=command)
    try:
        if only_missing:
            find_agent(chosen.name).find(session, os.environ.get("PATH", ""))
            return
        findings = [client(chosen.name, session, os.environ, trusted=trusted)]
        findings += login(chosen.name, os.environ)
    except RalphError as error:
        warn(f"agent: {error}" + (f" ({error.hint})" if error.hint else ""))
        return
    for word, finding in zip(("agent", "login"), findings, strict=False):
        text = f"{word}: {finding.text}" + (f" ({finding.fix})" if finding.fix else "")
        note(text) if finding.level is Level.OK else warn(text)


def ask_cost(questions: Questions, flag: str | None) -> str:
    """An amount in dollars, or None for no limit."""
    while True:
        text = questions.line("Maximum cost of one run, in US dollars (Enter: no limit)?", flag).lstrip("$").strip()
        try:
            number = float(text or 0)
            if 0 <= number < 1_000_000:
                return f"{number:g}" if number else ""
        except ValueError:
            pass
        problem = f"{one_line(text, 40)!r} is not an amount in dollars"
        if flag is not None:
            raise UsageError(problem, hint="e.g. --max-cost 20")
        note(problem)


def ask_first_story(args: Namespace, questions: Questions, *, has_page: bool) -> tuple[bool, Story | None]:
    if args.plan:
        return True, None
    if args.story is None and questions.asks:
        if has_page and questions.yes(f"Let the agent write the stories from {REQUIREMENTS} now?", None):
            return True, None
        title = questions.line(
            "First story: a title, `plan` to write stories with the agent, Enter to do it later:", None
        )
        if title.lower() == "plan":
            return True, None
    else:
        title = args.story or ""
    if not title.strip():
        return False, None
    criteria = questions.lines(
        "Acceptance criteria (one per line, an empty line ends):",
        "next criterion (Enter ends):",
        args.criterion if args.story else None,
    )
    story = Story(id="first", title=one_line(title.strip()), criteria=tuple(map(one_line, criteria)), priority=1)
    return False, story


def requirements_file(ref: PlanRef) -> dict[str, bytes]:
    """Seed 002: the requirements in the project's folder become those of the plan."""
    where = layout(ref.layout).locations(ref)
    page = where.requirements or (where.specs or ref.folder) / REQUIREMENTS
    source = ref.root / REQUIREMENTS
    if not source.is_file() or page.exists() or page == source:
        return {}
    try:
        return {page.relative_to(ref.root).as_posix(): read_bytes(source, within=ref.root, limit=1024 * 1024)}
    except BadData as error:
        warn(f"{REQUIREMENTS} was not read: {error}")
        return {}


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


def ask_files(questions: Questions, flag: bool | None, root: Path) -> dict[str, str]:
    """The setting `proof.files`, if git ignores files that checks may need."""
    repo = repository(root, os.environ)
    files = local_settings(repo) if repo is not None and repo.root == root else ()
    if not files:
        return {}
    listed = ", ".join(one_line(path, 60) for path in files)
    text = f"Work is proven in a clean checkout, and git ignores {listed}. Copy it there for the checks?"
    if questions.yes(text, flag, unasked=False):
        return {"proof.files": json.dumps(files)}
    if not questions.asks and flag is None:
        note(f"git ignores {listed}; if the checks need it, set proof.files, or pass --proof-files")
    return {}


def show_place(started: Started) -> None:
    """What the first run does before the first story."""
    ref = started.ref
    repo = repository(ref.root, os.environ)
    if repo is None or not started.checks:
        return
    config = load(root=ref.root, layout=ref.layout, name=None, env=os.environ, flags={}).config
    note(expected_place(request_for(ref, repo, config, os.environ)), "dim")
