"""The sandbox of the next run, for people: which one and why, what it lets through, and what it keeps."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from ralph.agents.registry import agent as find_agent
from ralph.config.layers import Settings
from ralph.core.errors import RalphError, SetupError
from ralph.core.ports import PlanRef
from ralph.host.git.command import ask, line
from ralph.run.clones import why_not as why_no_clone
from ralph.run.confinement import choose_sandbox, quota_of, setup_of, used_agents
from ralph.run.spec import RunSpec
from ralph.sandbox.choice import BACKENDS, Chosen, backend_of, try_backend
from ralph.sandbox.hosts import REGISTRIES
from ralph.sandbox.wall import Quota
from ralph.state.clones import read_clone
from ralph.state.names import AGENT_HOME, SANDBOX, SANDBOX_SETUP
from ralph.state.places import plan_state, workspace_state
from ralph.workspace.find import find_repo


class Decided(Struct, frozen=True):
    """The sandbox that a run would have, or why it would have none."""

    chosen: Chosen
    why: str
    hint: str = ""
    stops: bool = False
    """The run would not start."""

    @property
    def line(self) -> str:
        return f"{self.chosen.title}: {self.why}" if self.chosen.backend else self.why


class BackendState(Struct, frozen=True, kw_only=True):
    name: str
    title: str
    is_usable: bool
    program: str = ""
    version: str = ""
    why_not: str = ""
    hint: str = ""


class HostOrigin(Struct, frozen=True):
    entry: str
    origin: str
    """Who needs it, or where the setting is."""
    names: tuple[str, ...] = ()
    """The hosts that one word stands for."""
    for_checks: bool = False


class CloneState(Struct, frozen=True, kw_only=True):
    folder: str
    branch: str
    ahead: int
    """Commits that the checkout does not have."""
    behind: int


class Status(Struct, frozen=True, kw_only=True):
    backend: str
    """Empty: none."""
    title: str
    why: str
    hint: str
    backends: tuple[BackendState, ...]
    network: str
    hosts: tuple[HostOrigin, ...]
    limits: Quota
    workspace: str = ""
    clone: CloneState | None = None
    home: str = ""
    home_bytes: int = 0
    setup: str = ""
    """`none`, `done` or `pending`."""
    setup_command: str = ""


def decide_sandbox(settings: Settings, env: Mapping[str, str]) -> Decided:
    """The same decision that a run makes, by starting a sandbox."""
    use = settings.config.sandbox.use
    reasons: list[str] = []
    try:
        chosen = choose_sandbox(settings, env, reasons.append)
    except SetupError as error:
        return Decided(Chosen(), error.message, error.hint, stops=True)
    if chosen.backend is None:
        why = reasons[0] if reasons else "sandbox: none, as the settings say"
        return Decided(chosen, why, chosen.hint)
    if use in BACKENDS:
        return Decided(chosen, f"the settings say `sandbox: {use}` ({settings.origin('sandbox.use')})")
    return Decided(chosen, f"the strongest that works here (`sandbox: {use}`)")


def backend_states(env: Mapping[str, str], decided: Decided) -> Iterator[BackendState]:
    """Every kind of sandbox: whether it can be used here, proven by starting one, or why not."""
    for name in BACKENDS:
        backend, chosen = backend_of(name), decided.chosen
        tried = chosen if chosen.backend is not None and name == chosen.backend.NAME else try_backend(name, env)
        yield BackendState(
            name=name,
            title=backend.TITLE,
            is_usable=not tried.why_not,
            program=tried.program,
            version=tried.version,
            why_not=tried.why_not,
            hint=tried.hint,
        )


def host_origins(settings: Settings, env: Mapping[str, str]) -> Iterator[HostOrigin]:
    """What can be reached from inside, and who asked for it."""
    config = settings.config
    for name in used_agents(config):
        known = getattr(find_agent(name), "hosts", None)
        for entry in known(env) if known else ():
            yield HostOrigin(entry, f"agent {name}")
    for entry in config.sandbox.allow_hosts:
        names = REGISTRIES.get(entry.lower(), ())
        yield HostOrigin(
            entry, f"sandbox.allow_hosts ({settings.origin('sandbox.allow_hosts')})", names, for_checks=True
        )


def status(settings: Settings, ref: PlanRef | None, env: Mapping[str, str]) -> Status:
    decided = decide_sandbox(settings, env)
    config = settings.config
    is_listed = config.sandbox.network == "listed"
    machine = {
        "backend": decided.chosen.backend.NAME if decided.chosen.backend else "",
        "title": decided.chosen.title,
        "why": decided.why,
        "hint": decided.hint,
        "backends": tuple(backend_states(env, decided)),
        "network": config.sandbox.network,
        "hosts": tuple(host_origins(settings, env)) if is_listed else (),
        "limits": quota_of(config),
    }
    if ref is None:
        return Status(**machine)  # type: ignore[arg-type]
    state = workspace_state(ref.root, env) / SANDBOX
    own_home = state / AGENT_HOME
    command, setup = _setup(settings, ref, decided, state, env)
    return Status(
        **machine,  # type: ignore[arg-type]
        workspace=workspace_line(settings, ref, decided.chosen, env),
        clone=_clone_state(ref, env),
        home=str(own_home),
        home_bytes=_size(own_home),
        setup=setup,
        setup_command=command,
    )


def workspace_line(settings: Settings, ref: PlanRef, chosen: Chosen, env: Mapping[str, str]) -> str:
    """Where the agent works, as a phrase for people."""
    wanted = settings.config.workspace
    if read_clone(plan_state(ref, env)) is not None:
        return "in the clone, whose work is not in your checkout yet"
    if wanted == "in-place":
        return "in your checkout (workspace: in-place)"
    if wanted == "auto" and chosen.backend is None:
        return "in your checkout: there is no sandbox"
    if wanted == "auto" and chosen.backend is not None and not chosen.backend.MOUNTS:
        return f"in your checkout: {chosen.backend.TITLE} has no clone"
    try:
        why = why_no_clone(ref, find_repo(ref, settings, env), settings.config)
    except RalphError as error:
        return f"not known: {error.message}"
    if why:
        return f"in your checkout: {why}" if wanted == "auto" else f"no clone can be made: {why}"
    return "in a clone; your checkout is advanced at the end" if wanted == "auto" else "in a clone that you merge"


def _clone_state(ref: PlanRef, env: Mapping[str, str]) -> CloneState | None:
    known = read_clone(plan_state(ref, env))
    if known is None or not Path(known.tree).is_dir():
        return None
    head = line(ask(Path(known.checkout), "rev-parse", "--verify", "--quiet", "HEAD").out)
    counts = line(ask(Path(known.tree), "rev-list", "--left-right", "--count", f"{head}...HEAD").out).split()
    behind, ahead = map(int, counts) if len(counts) == 2 else (0, 0)
    return CloneState(folder=known.tree, branch=known.branch, ahead=ahead, behind=behind)


def _setup(settings: Settings, ref: PlanRef, decided: Decided, state: Path, env: Mapping[str, str]) -> tuple[str, str]:
    if decided.chosen.backend is None:
        return "", "none"
    try:
        spec = RunSpec(run="status", ref=ref, settings=settings, repo=find_repo(ref, settings, env))
    except SetupError:
        return "", "none"
    command, key = setup_of(spec, decided.chosen.backend.NAME)
    record = state / SANDBOX_SETUP
    is_done = record.is_file() and record.read_text() == key
    return command, ("done" if is_done else "pending") if command else "none"


def _size(folder: Path) -> int:
    total = 0
    for parent, _, files in os.walk(folder):
        for name in files:
            try:
                total += os.lstat(os.path.join(parent, name)).st_size  # noqa: PTH118 - there may be many
            except OSError:
                continue
    return total
