"""`ralph agents`: which agents there are, what each can do, and the conformance suite."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ralph.agents.registry import AGENTS
from ralph.agents.registry import agent as find_agent
from ralph.cli.output import emit_json, note, paint, say_raw
from ralph.core.agent_traits import login_of, traits_of
from ralph.core.errors import SetupError, UsageError
from ralph.core.exit_codes import ExitCode
from ralph.core.ports import Agent, Session
from ralph.core.text import one_line, plural
from ralph.doctor.findings import at_once
from ralph.doctor.machine import version_of
from ralph.host.process.table import require_process_control
from ralph.state.places import home
from ralph.workspace.trust import refuse_inside_loop

_PATIENCE = 6.0
_SIDE = 13
NO_VERSION = "no answer"


class Known(Struct, frozen=True, kw_only=True):
    """One agent, as it is here."""

    name: str
    title: str
    program: str = ""
    """Its path. Empty: not installed."""
    version: str = ""
    tried: str = ""
    login: str = ""
    has_login: bool | None = None
    """None: not known."""
    hooks: bool
    unguarded: str = ""
    reports_usage: bool
    reports_cost: bool
    install: str = ""
    log_in: str = ""
    variables: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    cannot: dict[str, str] = {}
    notes: tuple[str, ...] = ()
    problem: str = ""
    """Why it cannot be loaded: then nothing else is known of it."""

    @property
    def needs_program(self) -> bool:
        return bool(self.install)


def list_agents(args: Namespace) -> int:
    broken = {name: error for name, error in AGENTS.third_party().items() if error}
    usable = [find_agent(name) for name in AGENTS.names() if name not in broken]
    programs = {agent.NAME: _program(agent) for agent in usable}
    asked = {name: partial(version_of, path, os.environ, _PATIENCE) for name, path in programs.items() if path}
    versions = at_once(asked, _PATIENCE + 1)
    found = [_known(agent, programs[agent.NAME], versions.get(agent.NAME, "")) for agent in usable]
    found += [_broken(name, error) for name, error in broken.items()]
    if args.json:
        emit_json(found)
        return ExitCode.COMPLETE
    wide = max(len(one.name) for one in found)
    for one in found:
        say_raw(f"{one.name:<{wide}}  {_state(one)}")
    if any(one.needs_program and not (one.program and one.has_login) for one in found):
        note("`ralph agents show NAME` shows how to install a client and log in")
    return ExitCode.COMPLETE


def _state(one: Known) -> str:
    if one.problem:
        return paint(one.problem, "red")
    if not one.needs_program:
        return one.title
    if not one.program:
        return paint(f"not installed: {one.install}", "dim")
    words, style = {True: ("logged in", ""), False: ("no login", "yellow"), None: ("login unknown", "")}[one.has_login]
    login = paint(f"{words:<13}", style) if style else f"{words:<13}"
    guard = "guarded by hooks" if one.hooks else "no hooks: use the sandbox"
    version = NO_VERSION if one.version.startswith("(") else one.version
    return f"{version:<12}  {login}  {guard}"


def show_agent(args: Namespace) -> int:
    agent = find_agent(args.name)
    program = _program(agent)
    one = _known(agent, program, version_of(program, os.environ, _PATIENCE) if program else "")
    if args.json:
        emit_json(one)
    else:
        for line in _lines(one):
            say_raw(line)
    return ExitCode.COMPLETE


def _lines(one: Known) -> Iterator[str]:
    yield paint(f"{one.name}: {one.title}", "bold")
    if one.needs_program:
        version = f" {one.version}" if one.version else ""
        yield _row("program", f"{one.program}{version}" if one.program else f"not installed: {one.install}")
        if one.tried:
            yield _row("tested with", one.tried)
        yield _row("login", one.login or ("none found" if one.has_login is False else "unknown"))
        if not one.login and one.log_in:
            yield _row("", one.log_in)
    if one.hooks:
        yield _row("guard", f"by hooks{f', except {one.unguarded}' if one.unguarded else ''}")
    else:
        yield _row("guard", "no hooks: commands and edits are not checked before they happen; use the sandbox")
    cost = "cost" if one.reports_cost else "no cost, which is estimated from list prices"
    yield _row("reports", f"tokens and {cost}" if one.reports_usage else "neither tokens nor cost")
    if one.hosts:
        yield _row("hosts", ", ".join(one.hosts))
    if one.variables:
        yield _row("variables", ", ".join(one.variables))
    for title, (scenario, why) in zip(("cannot", *[""] * len(one.cannot)), one.cannot.items(), strict=False):
        yield _row(title, f"{scenario}: {why}")
    for title, text in zip(("notes", *[""] * len(one.notes)), one.notes, strict=False):
        yield _row(title, text)


def _row(title: str, text: str) -> str:
    return f"  {title:<{_SIDE}}{text}"


def _program(agent: Agent) -> str:
    if not traits_of(agent).install:
        return ""
    try:
        return agent.find(session_for(), os.environ.get("PATH", ""))
    except SetupError:
        return ""


def session_for(program: str = "") -> Session:
    """For finding a program. A path is made absolute: trials run in folders of their own.

    No program is searched inside the working directory, which may be somebody else's project; except in the home
    folder and above it, where clients are often installed.
    """
    here, own = Path.cwd(), home(os.environ)
    given = str(Path(program).expanduser().absolute()) if "/" in program else program
    cwd = Path("/nonexistent") if own.is_relative_to(here) else here
    return Session(prompt="", cwd=cwd, command=(given,) if given else ())


def _known(agent: Agent, program: str, version: str) -> Known:
    traits, login = traits_of(agent), login_of(agent, os.environ, home(os.environ))
    hosts = getattr(agent, "hosts", None)
    return Known(
        name=agent.NAME,
        title=agent.TITLE,
        program=program,
        version=version,
        tried=traits.tried,
        login=login.by,
        has_login=bool(login.by) if login.is_known else None,
        hooks=agent.HOOKS,
        unguarded=traits.unguarded,
        reports_usage=traits.reports_usage and agent.REPORTS_CALLS,
        reports_cost=traits.reports_cost,
        install=traits.install,
        log_in=traits.log_in,
        variables=agent.ENV,
        hosts=hosts(os.environ) if hosts else (),
        cannot=traits.cannot,
        notes=traits.notes,
    )


def _broken(name: str, error: SetupError) -> Known:
    return Known(name=name, title=name, hooks=False, reports_usage=False, reports_cost=False, problem=str(error))


def test_agent(args: Namespace) -> int:
    from ralph.trial.scenarios import BY_NAME
    from ralph.trial.stage import rehearsal_of
    from ralph.trial.suite import Mark, rehearse_all

    require_process_control()
    refuse_inside_loop(os.environ, "test an agent")
    agent = find_agent(args.name)
    for name in args.only:
        if name not in BY_NAME:
            raise UsageError(f"unknown scenario {one_line(repr(name), 60)}", hint=f"one of {', '.join(BY_NAME)}")
    rehearsal_of(agent, "http://127.0.0.1:9")
    program = _tried(agent, args.program)
    version = version_of(program, os.environ, 15.0)
    if not args.json:
        note(f"{agent.TITLE} {version} ({program}), on a scripted model")
    marks: list[Mark] = []
    for mark in rehearse_all(agent, args.only, program=program, version=version, keep=args.keep):
        marks.append(mark)
        if args.record and mark.recording is not None and mark.passed:
            folder = Path(args.record) / agent.NAME
            folder.mkdir(parents=True, exist_ok=True)
            data = msgspec.json.format(msgspec.json.encode(mark.recording), indent=1)
            (folder / f"{mark.scenario}.json").write_bytes(data + b"\n")
        if not args.json:
            for line in _mark_lines(mark):
                say_raw(line)
    failed = [mark for mark in marks if mark.problems]
    if args.json:
        emit_json([_as_json(mark) for mark in marks])
    else:
        passed = sum(mark.passed for mark in marks)
        rest = len(marks) - passed - len(failed)
        cannot = f", {rest} that the client cannot do" if rest else ""
        say_raw(f"{plural(passed, 'scenario')} passed, {len(failed)} failed{cannot}")
    return ExitCode.UNFINISHED if failed else ExitCode.COMPLETE


def _tried(agent: Agent, given: str) -> str:
    try:
        return agent.find(session_for(given), os.environ.get("PATH", ""))
    except SetupError as error:
        if given:
            error.hint = "correct --program, or leave it out"
        raise


def _mark_lines(mark: Any) -> Iterator[str]:
    if mark.cannot:
        yield f"  {paint('–', 'dim')} {mark.scenario:<10} {mark.title}: {mark.cannot}"
        return
    sign = paint("✓", "green") if mark.passed else paint("✗", "red")
    yield f"  {sign} {mark.scenario:<10} {mark.title} ({mark.seconds:.1f} s)"
    for problem in mark.problems:
        yield f"      {one_line(problem, 300)}"
    if mark.kept:
        yield f"      kept: {mark.kept}"


def _as_json(mark: Any) -> dict[str, Any]:
    return {
        "scenario": mark.scenario,
        "title": mark.title,
        "passed": mark.passed,
        "problems": mark.problems,
        "cannot": mark.cannot,
        "seconds": round(mark.seconds, 1),
        "kept": mark.kept,
    }
