"""sbx, the microVMs of Docker Sandboxes, and its old spelling `docker sandbox`. Built from the documentation, and
tested only against a stand-in that behaves like it.

A workspace has one sandbox, which stays. It has its own kernel, tools, home folder and network filter; the folders it
was created with are at the same paths inside. So a command is looked up on the PATH inside, HOME is the one inside with
links to the login, and Ralph's proxy sees nothing.

`exec` leaves the command running when it is killed itself, so all that carries the label in its environment is ended
inside. Files may reach this machine a moment later, and what changed here while it ran may never reach the inside: so
there is a pause after each command, and a restart where a person may have worked in between.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from ralph.core.errors import SetupError
from ralph.core.text import one_line
from ralph.host.process.enclosure import Start
from ralph.host.process.programs import which
from ralph.host.process.start import CannotStart, Finished, run
from ralph.sandbox.bwrap import own_folders
from ralph.sandbox.hosts import parse_hosts
from ralph.sandbox.wall import Found, Wall

NAME = "sbx"
TITLE = "Docker Sandboxes"
MOUNTS = False
KEEPS = True
"""One sandbox for all that runs for a workspace."""
SYNC_SECONDS = 2.5
"""After a command, until its files can be read here."""
KVM = Path("/dev/kvm")
_AGENTS = ("claude", "codex", "copilot", "gemini", "kiro", "opencode")
"""Templates that have the client of that name."""
_LABEL = "RALPH_SANDBOX_LABEL"
_OF_THE_HOST = re.compile(
    r"PATH|HOME|PWD|OLDPWD|SHELL|USER|LOGNAME|TMPDIR|TEMP|TMP|VIRTUAL_ENV|SSH_AUTH_SOCK"
    r"|XDG_.*|LD_.*|DYLD_.*|(HTTPS?|ALL|NO|FTP)_PROXY",
    re.IGNORECASE,
)
"""Variables with paths and addresses that mean something else inside."""
_SYSTEM = ("/usr", "/bin", "/lib", "/opt", "/System", "/Library")
"""The sandbox has its own."""
_CREATE_SECONDS, _SETUP_SECONDS, _USUAL_SECONDS = 900, 1800, 60
_LOGIN = """
home=$(getent passwd agent | cut -d: -f6); home=${home:-/home/agent}
for path in "$1"/.[!.]*; do
    [ -e "$path" ] || continue
    link="$home/${path##*/}"
    rm -rf "$link"; ln -s "$path" "$link"; chown -h agent:agent "$link" 2>/dev/null || true
done
"""
_IDENTITY = """
git config --global user.email >/dev/null || git config --global user.email ralph@localhost
git config --global user.name >/dev/null || git config --global user.name Ralph
"""
_IS_SET_UP = 'test "$(cat /var/lib/ralph-setup 2>/dev/null)" = "$1"'
_NOTE_SETUP = 'printf %s "$1" > /var/lib/ralph-setup'
_KILL = """
for turn in 1 2 3 4 5; do
    found=
    for file in /proc/[0-9]*/environ; do
        tr '\\0' '\\n' < "$file" 2>/dev/null | grep -qxF "$1" || continue
        pid=${file#/proc/}; kill -KILL "${pid%/environ}" 2>/dev/null && found=1
    done
    [ "$found" ] || break
done
"""


class _Sandbox(Struct, frozen=True):
    name: str
    folders: tuple[str, ...] = ()
    """Empty: it does not say."""


class _Running(Struct, frozen=True):
    sandbox: str
    variables: Path


_prepared: set[tuple[str, str]] = set()
"""Sandboxes that this process has restarted and set up."""
_running: dict[str, _Running] = {}


def find(env: Mapping[str, str]) -> Found:
    path = env.get("PATH", os.defpath)
    program = which("sbx", path)
    docker = "" if program else which("docker", path)
    if docker and _call(docker, "version").ok:
        program = docker
    if not program:
        return Found(why_not="sbx is not installed", hint="see https://docs.docker.com/ai/sandboxes/")
    if sys.platform == "linux" and not os.access(KVM, os.R_OK | os.W_OK):
        exists = KVM.exists()
        why_not = f"sbx needs {KVM}, {'which this user may not open' if exists else 'which does not exist here'}"
        hint = "add the user to the group kvm" if exists else "enable virtualization in the firmware or the hypervisor"
        return Found(program, why_not=why_not, hint=hint)
    version = re.search(rb"v?(\d+\.\d+\.\d+)", _call(program, "version").out)
    text = version[1].decode() if version else ""
    listed = _call(program, *_listing(program))
    if not listed.ok:
        why = _reason(listed)
        is_login = re.search(r"authenticat|sign(ed)? in|log(ged)? ?in", why, re.IGNORECASE)
        hint = "sbx login" if is_login else f"run `{' '.join(_cli(program))} ls` and fix what it says"
        return Found(program, text, why_not="sbx is not logged in" if is_login else f"sbx: {why}", hint=hint)
    return Found(program, text)


def name_of(folder: Path) -> str:
    """The sandbox of a workspace, by its first writable folder."""
    slug = re.sub(r"[^a-z0-9]+", "-", folder.name.lower()).strip("-")[:24]
    digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:10]
    return "-".join(part for part in ("ralph", slug, digest) if part)


def enter(program: str, wanted: Start, wall: Wall, label: str) -> Start:
    """Creates the sandbox if need be, which takes minutes the first time: its image is downloaded."""
    if not wanted.cwd.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(wanted.cwd))
    if any(mount.source != mount.target for mount in wall.mounts):
        raise SetupError("sbx cannot show files at other paths", hint="use the sandbox bwrap or docker")
    if wall.forwards:
        raise SetupError("sbx cannot reach services of this machine at 127.0.0.1", hint="use the sandbox bwrap")
    name = name_of(wall.writable[0])
    _prepare(program, name, wall, Path(wanted.argv[0]).name)
    kept = {key: value for key, value in wanted.env.items() if not _OF_THE_HOST.fullmatch(key)}
    variables = Path(tempfile.gettempdir(), f"{label}.env")
    _write_variables(variables, kept | {_LABEL: label})
    _running[label] = _Running(name, variables)
    long = {key: value for key, value in kept.items() if "\n" in value}
    argv = [*_cli(program), "exec", "-it" if wanted.is_terminal else "-i"]
    argv += ["-w", str(wanted.cwd), "--env-file", str(variables)]
    for key in long:
        argv += ["-e", key]
    first = wanted.argv[0]
    if Path(first).is_absolute() and not _is_inside(Path(first), wall):
        first = Path(first).name
    return Start((*argv, name, first, *wanted.argv[1:]), Path("/"), {**os.environ, **long})


def end(program: str, label: str) -> str:
    running = _running.pop(label, None)
    if running is None:
        return ""
    running.variables.unlink(missing_ok=True)
    if _find_sandbox(program, running.sandbox) is None:  # `exec` fails like a command that fails
        return f"the sandbox {running.sandbox} does not exist any more: it was removed while the command ran"
    _execute(program, running.sandbox, _KILL, f"{_LABEL}={label}", user="root")
    time.sleep(SYNC_SECONDS)
    return ""


def restart(program: str, name: str) -> None:
    """Stop it; the next command starts it, with the files as they are here then. After a pause of the loop."""
    _call(program, "stop", name)


def reset(program: str, name: str) -> bool:
    """Stop and remove it. False if there was none. The next command creates a new one. Raises SetupError."""
    _prepared.discard((program, name))
    if _find_sandbox(program, name) is None:
        return False
    _call(program, "stop", name)
    removed = _call(program, "rm", *([] if _is_old(program) else ["--force"]), name)
    if not removed.ok:
        raise SetupError(f"could not remove the sandbox {name}: {_reason(removed)}")
    return True


def _prepare(program: str, name: str, wall: Wall, agent: str) -> None:
    known = _find_sandbox(program, name)
    if known is not None and (program, name) in _prepared:
        return
    if known is None:
        if not _is_old(program) and not wall.is_network_open:
            _call(program, "policy", "init", "deny-all")  # fails if there is a policy: `_restrict` checks what it is
        template = agent if agent in _AGENTS else "claude"
        created = _call(program, "create", "--name", name, template, *_folders(wall), timeout=_CREATE_SECONDS)
        if not created.ok:
            raise SetupError(f"could not create the sandbox {name}: {_reason(created)}")
    else:
        missing = [folder for folder in map(str, wall.writable) if known.folders and folder not in known.folders]
        if missing:
            hint = "`ralph sandbox reset` removes it; the next run creates a new one"
            raise SetupError(f"the sandbox {name} was created without the folder {missing[0]}", hint=hint)
        restart(program, name)
    _restrict(program, name, wall)
    if wall.home_source is not None:
        _prepare_login(wall.home_source)
        _must(_execute(program, name, _LOGIN, str(wall.home_source), user="root"), "link the login inside")
    _must(_execute(program, name, _IDENTITY), "set the identity of git inside")
    _set_up(program, name, wall.writable[0])
    _prepared.add((program, name))


def _folders(wall: Wall) -> list[str]:
    """What is created inside. Only folders can be, so a single file cannot be read-only in a writable folder."""
    writable = [*wall.writable, *([wall.home_source] if wall.home_source else [])]
    visible = (*wall.readable, *(() if sys.platform == "darwin" else own_folders()))
    fixed = [path for path in visible if not _is_of_system(path)] + list(wall.read_only)
    folders = [str(path) for path in writable if path.is_dir()]
    folders += [f"{path}:ro" for path in fixed if path.is_dir()]
    return list(dict.fromkeys(folders))


def _is_of_system(path: Path) -> bool:
    return any(path.is_relative_to(folder) for folder in _SYSTEM)


def _is_inside(path: Path, wall: Wall) -> bool:
    return any(path.is_relative_to(folder.removesuffix(":ro")) for folder in _folders(wall))


def _restrict(program: str, name: str, wall: Wall) -> None:
    hosts = parse_hosts(wall.hosts)
    if _is_old(program):
        words = ["network", "proxy", name, "--policy", "allow" if wall.is_network_open else "deny"]
        for host in hosts:
            words += ["--allow-host", host.pattern]
        _must(_call(program, *words), "set the network policy")
        return
    allowed = ",".join(f"{host.pattern}:{port}" for host in hosts for port in sorted(host.ports))
    allowed = "**" if wall.is_network_open else allowed
    if allowed:
        _must(_call(program, "policy", "allow", "network", "--sandbox", name, allowed), "set the network policy")
    if not wall.is_network_open and _is_open(_call(program, *_check(name))):
        hint = "`sbx policy reset`, then `sbx policy init deny-all`; or set sandbox.network to open"
        raise SetupError("the network policy of sbx allows all hosts", hint=hint)


def _check(name: str) -> tuple[str, ...]:
    return ("policy", "check", "network", "--sandbox", name, "--json", "example.com:443")


def _is_open(checked: Finished) -> bool:
    """Whether a host that nobody listed is allowed, as far as the answer can be read: its form is not documented."""
    values = _json(checked.out)
    if not isinstance(values, dict):
        return False
    decisions = [values.get(key) for key in ("allowed", "decision", "result", "effect")]
    return any(value is True or str(value).lower() in ("allow", "allowed") for value in decisions)


def _prepare_login(folder: Path) -> None:
    """The client reads these, and takes an empty file for an error."""
    (folder / ".claude").mkdir(exist_ok=True)
    state = folder / ".claude.json"
    text = state.read_text(encoding="utf-8", errors="replace") if state.exists() else ""
    if not text.strip():
        state.write_text("{}\n", encoding="utf-8")
    elif _json(text.encode()) is None:
        raise SetupError(f"{state} is not valid JSON", hint="remove it; the client writes a new one")


def _set_up(program: str, name: str, project: Path) -> None:
    script = project / "sandbox" / "setup.sh"
    if not script.is_file():
        return
    digest = hashlib.sha256(script.read_bytes()).hexdigest()
    if _execute(program, name, _IS_SET_UP, digest, user="root").ok:
        return
    words = ("exec", "-u", "root", "-w", str(project), name, "bash", str(script))
    _must(_call(program, *words, timeout=_SETUP_SECONDS), "run sandbox/setup.sh inside")
    _must(_execute(program, name, _NOTE_SETUP, digest, user="root"), "run sandbox/setup.sh inside")


def _find_sandbox(program: str, name: str) -> _Sandbox | None:
    """Raises SetupError if sbx does not answer: an error is not an absence."""
    listed = _call(program, *_listing(program))
    _must(listed, "list the sandboxes")
    if _is_old(program):
        return _Sandbox(name) if name in listed.out.decode(errors="replace").split() else None
    values = _json(listed.out)
    rows = values.get("sandboxes", []) if isinstance(values, dict) else values
    for row in rows if isinstance(rows, list) else []:
        if isinstance(row, dict) and row.get("name") == name:
            folders = row.get("workspaces") or ()
            return _Sandbox(name, tuple(str(folder).removesuffix(":ro") for folder in folders))
    return None


def _json(text: bytes) -> object:
    """The value in the output; lines about starting the daemon may come before it. None: there is none."""
    start = re.search(rb"^\s*[\[{]", text, re.MULTILINE)
    try:
        return json.loads(text[start.start() :]) if start else None
    except ValueError:
        return None


def _listing(program: str) -> tuple[str, ...]:
    return ("ls", "-q") if _is_old(program) else ("ls", "--json")


def _is_old(program: str) -> bool:
    return Path(program).name == "docker"


def _cli(program: str) -> tuple[str, ...]:
    return (program, "sandbox") if _is_old(program) else (program,)


def _call(program: str, *words: str, timeout: float = _USUAL_SECONDS) -> Finished:
    argv = (*_cli(program), *words)
    try:
        return run(argv, cwd=Path("/"), timeout=timeout, sweep=False)  # it may have started its daemon
    except CannotStart as error:
        return Finished(argv, 127, b"", str(error).encode(), timed_out=False, duration=0)


def _execute(program: str, name: str, script: str, *words: str, user: str = "") -> Finished:
    return _call(program, "exec", *(["-u", user] if user else []), name, "sh", "-c", script, "sh", *words)


def _must(finished: Finished, what: str) -> None:
    if not finished.ok:
        raise SetupError(f"sbx could not {what}: {_reason(finished)}")


def _reason(finished: Finished) -> str:
    if finished.timed_out:
        return f"no answer within {finished.duration:.0f} s"
    lines = (finished.err or finished.out).decode(errors="replace").strip().splitlines()
    return one_line(lines[-1] if lines else f"exit code {finished.code}", 300)


def _write_variables(path: Path, env: Mapping[str, str]) -> None:
    """A file instead of arguments, which all users of this machine can read. It has no way to write a line break."""
    lines = "".join(f"{key}={value}\n" for key, value in env.items() if "\n" not in value)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(lines.encode("utf-8", "surrogateescape"))
