"""Asks once before the commands of a workspace run, and stores the answer in the state folder."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from ralph.agents.registry import AGENTS
from ralph.config.layers import WORKSPACE, Settings
from ralph.config.schema import Agent
from ralph.config.trust import (
    Commands,
    NamedCommand,
    Record,
    Status,
    Verdict,
    agree,
    check_trust,
    commands_of,
    commands_of_plan,
    is_outside,
    is_sound,
)
from ralph.core.errors import BadData, NotTrusted
from ralph.core.fallback import parts, reviewer_parts
from ralph.core.plan import Plan
from ralph.core.secrets import sealed
from ralph.host.files import keep_aside, make_folder, read_bytes, sync_folder, write_bytes
from ralph.state.locks import is_below_run
from ralph.state.places import as_text, trust_file
from ralph.state.streams import main_workspace

LIMIT = 16 * 1024 * 1024
_YES = frozenset({"1", "true", "yes", "on"})


def gather(root: Path, settings: Settings, plans: Iterable[tuple[Path, Plan]]) -> Commands:
    """Every command of the workspace's config, of its settings for Claude Code and of these plans, with its file."""
    found = [*commands_of(settings, root=str(root)), *_scripts(root, settings), *_agents(root, settings)]
    found += _of_client(root)
    for file, plan in plans:
        name = file.relative_to(root).as_posix() if file.is_relative_to(root) else str(file)
        found += commands_of_plan(plan, name)
    return tuple(found)


def _scripts(root: Path, settings: Settings) -> list[NamedCommand]:
    """A script contains commands too: its content counts, not only its name."""
    scripts = []
    for layer in settings.layers:
        script = layer.values.get("agent.script")
        if layer.kind in WORKSPACE and script and script.value:
            source = Path(layer.file).relative_to(root).as_posix()
            try:
                within = None if is_outside(str(script.value), str(root)) else root
                content = hashlib.sha256(read_bytes(root / script.value, within=within, limit=LIMIT)).hexdigest()
            except BadData:
                content = "not readable"
            scripts.append(NamedCommand(source, f"content of {script.written}", content))
    return scripts


_ROUTES = ("routing.simple", "routing.medium", "routing.complex")
_REVIEWERS = "review.reviewers"


def _agents(root: Path, settings: Settings) -> Iterator[NamedCommand]:
    """Agents among the models of `routing` and the reviewers. As for `agent.name`, the default one needs no trust."""
    for layer in settings.layers:
        if layer.kind not in WORKSPACE:
            continue
        source = Path(layer.file).relative_to(root).as_posix()
        named = [(key, str(layer.values[key].value)) for key in _ROUTES if key in layer.values]
        if _REVIEWERS in layer.values:
            named += [(_REVIEWERS, name) for name in layer.values[_REVIEWERS].value if "@" in name]
        for key, name in named:
            choice = reviewer_parts(name, AGENTS.names())[1] if key == _REVIEWERS else name
            if parts(choice, AGENTS.names())[0] not in ("", Agent().name):
                yield NamedCommand(source, key, name)


_CLIENT_SETTINGS = ".claude/settings.json"
_CLIENT_HELPERS = (
    "apiKeyHelper", "awsAuthRefresh", "awsCredentialExport", "gcpAuthRefresh", "otelHeadersHelper", "statusLine",
)  # fmt: skip
"""Settings of Claude Code that name a program."""


def _of_client(root: Path) -> Iterator[NamedCommand]:
    """What the workspace's settings for Claude Code make it run, and its environment: with `-p` it does not ask."""
    file = root / _CLIENT_SETTINGS
    if not file.exists():
        return
    try:
        data = read_bytes(file, within=root, limit=LIMIT)
    except BadData:
        yield NamedCommand(_CLIENT_SETTINGS, "content", "not readable")
        return
    try:
        written = msgspec.json.decode(data, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        yield NamedCommand(_CLIENT_SETTINGS, "content", f"sha256 {hashlib.sha256(data).hexdigest()}")
        return
    hooks = written.get("hooks") or {}
    for event, value in hooks.items() if isinstance(hooks, dict) else [("", hooks)]:
        yield NamedCommand(_CLIENT_SETTINGS, f"hooks.{event}", _as_json(value))
    for key in _CLIENT_HELPERS:
        if value := written.get(key):
            yield NamedCommand(_CLIENT_SETTINGS, key, value if isinstance(value, str) else _as_json(value))
    variables = written.get("env") or {}
    for name, value in variables.items() if isinstance(variables, dict) else ():
        yield NamedCommand(_CLIENT_SETTINGS, f"env.{name}", sealed(str(value)))


def _as_json(value: object) -> str:
    return msgspec.json.encode(value, order="deterministic").decode()


def read_record(root: Path, env: Mapping[str, str], report: Callable[[str], None] | None = None) -> Record:
    """The commands trusted so far. A damaged file is kept aside, and nothing is trusted.

    In a stream, what is trusted in the workspace that it was made from is trusted too.
    """
    if (main := main_workspace(root)) != root:
        own = _read_file(trust_file(root, env), report)
        return Record(workspace=as_text(root), sources={**read_record(main, env, report).sources, **own.sources})
    return _read_file(trust_file(root, env), report)


def _read_file(file: Path, report: Callable[[str], None] | None) -> Record:
    if not file.exists():
        return Record()
    try:
        record = msgspec.json.decode(read_bytes(file, limit=LIMIT), type=Record)
        if is_sound(record):
            return record
        problem = "its fingerprints do not match its commands"
    except (msgspec.MsgspecError, UnicodeDecodeError, BadData) as error:
        problem = str(error)
    aside = keep_aside(file)
    if report is not None:
        report(f"{file} is damaged ({problem}); it was kept as {aside.name}, and the workspace is not trusted")
    return Record()


def write_trust(root: Path, commands: Commands, env: Mapping[str, str], now: float | None = None) -> None:
    """Record that these commands are trusted. `ralph init` calls this for what it wrote itself."""
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
    record = agree(read_record(root, env), commands, as_text(root), at)
    file = trust_file(root, env)
    make_folder(file.parent, private=True)
    write_bytes(file, msgspec.json.format(msgspec.json.encode(record)) + b"\n", mode=0o600)


def revoke(root: Path, env: Mapping[str, str]) -> bool:
    """Remove all trust. False if there was none."""
    file = trust_file(root, env)
    if not file.exists():
        return False
    file.unlink()
    sync_folder(file.parent)
    return True


def may_run(root: Path, commands: Commands, env: Mapping[str, str]) -> bool:
    """Whether every command is trusted, without asking. What only looks at a workspace starts nothing otherwise."""
    if is_trusted_by(env) and not is_inside_loop(env):
        return True
    return check_trust(read_record(root, env), commands).status is Status.TRUSTED


def ensure_trusted(
    root: Path,
    commands: Commands,
    env: Mapping[str, str],
    *,
    flag: bool = False,
    ask: Callable[[Verdict], bool] | None = None,
    report: Callable[[str], None] | None = None,
) -> None:
    """Return if every command is trusted; raise NotTrusted otherwise.

    `flag` is `--trust`; `ask` shows a verdict to the user and returns the answer. It is None if stdin is not a
    terminal.
    """
    verdict = check_trust(read_record(root, env, report), commands)
    if verdict.status is Status.TRUSTED:
        return
    if not is_inside_loop(env) and (flag or is_trusted_by(env) or (ask is not None and ask(verdict))):
        write_trust(root, commands, env)
        return
    raise NotTrusted(
        "\n".join([_SAID[verdict.status].format(root=root), *(f"  {line}" for line in verdict.difference)]),
        hint="review them, then run `ralph trust` there; in CI, pass --trust or set RALPH_TRUST=1",
    )


_SAID = {
    Status.NEW: "{root} has commands that are not trusted yet:",
    Status.CHANGED: "{root} has commands that changed since they were trusted:",
}


def is_trusted_by(env: Mapping[str, str]) -> bool:
    return env.get("RALPH_TRUST", "").lower() in _YES


def is_inside_loop(env: Mapping[str, str]) -> bool:
    """Whether an agent called this. One that removed RALPH_LOOP from its environment still descends from the run."""
    return env.get("RALPH_LOOP", "") not in ("", "0") or is_below_run(env)


def refuse_inside_loop(env: Mapping[str, str], what: str) -> None:
    """An agent must not extend its own permissions."""
    if is_inside_loop(env):
        raise NotTrusted(
            f"an agent in a loop cannot {what}",
            hint="only the user can do this, outside the run (RALPH_LOOP is set, or a run started this process)",
        )
