"""srt, the sandbox runtime of Anthropic (npm `@anthropic-ai/sandbox-runtime`): bubblewrap on Linux, Seatbelt on macOS.

It changes what can be read and written, and no paths: HOME inside is the private folder itself. All traffic goes to
Ralph's own proxy. srt starts in an empty folder, because it makes placeholders for files that nobody may write, such
as `.bashrc` and `.mcp.json`, in the folder in which it starts: git could no longer add all files there. It also starts
with an environment of its own, since it runs outside and looks its helpers up on PATH.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType

import ralph
from ralph.core.environment import run_marks
from ralph.core.errors import SetupError
from ralph.host.process.enclosure import Start
from ralph.host.process.programs import which
from ralph.sandbox import cgroup, masks, relay, seccomp, srt_entry, srt_launcher, terminal_entry
from ralph.sandbox.bwrap import _limits as process_limits
from ralph.sandbox.bwrap import own_folders
from ralph.sandbox.wall import PROXY_PORT, Found, Wall

NAME = "srt"
TITLE = "Anthropic sandbox runtime"
MOUNTS = False
_PACKAGE = "@anthropic-ai/sandbox-runtime"
_OLDEST = (0, 0, 78)
"""Settings change between its versions, and one that it does not know is ignored."""
_HELPERS = {"linux": {"bwrap": "bubblewrap", "socat": "socat", "rg": "ripgrep"}, "darwin": {"rg": "ripgrep"}}
_HIDDEN = {"linux": ("/home", "/root", "/tmp", "/var/tmp", "/run"), "darwin": ("/Users",)}
_MARKS = tuple(name for name, _ in run_marks(""))
"""By these, a later run finds what a killed one left behind."""
_START = "import sys; sys.path.append(sys.argv.pop(1)); from %s import main; sys.exit(main(sys.argv[1:]))"
"""Appended, so that nothing beside Ralph can stand in for the standard library."""
_PROXIED = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
_OWN_PROC = ("/proc/", "/dev/")
_LONGEST_FOLDER = 40
"""srt makes a socket there; the path of a socket has at most 107 bytes."""


def find(env: Mapping[str, str]) -> Found:
    helpers = _HELPERS.get(sys.platform)
    if helpers is None:
        return Found(why_not="srt is supported on Linux and macOS")
    path = env.get("PATH", os.defpath)
    program = which("srt", path)
    if not program:
        return Found(why_not="srt is not installed", hint=f"npm install -g {_PACKAGE}")
    version = _version(program)
    text = ".".join(map(str, version))
    if version < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        why_not = f"srt {text} is older than {oldest}" if version else f"{program} is not {_PACKAGE}"
        return Found(program, text, why_not=why_not, hint=f"npm install -g {_PACKAGE}@latest")
    missing = [package for helper, package in {"node": "nodejs", **helpers}.items() if not which(helper, path)]
    if missing:
        names = ", ".join(missing)
        return Found(program, text, why_not=f"srt needs {names}, not installed here", hint=f"install {names}")
    return Found(program, text)


def _version(program: str) -> tuple[int, ...]:
    try:
        values = json.loads((_package(program) / "package.json").read_bytes())
    except (OSError, ValueError):
        return ()
    is_srt = isinstance(values, dict) and values.get("name") == _PACKAGE
    return tuple(map(int, re.findall(r"\d+", str(values.get("version")))[:3])) if is_srt else ()


def _package(program: str) -> Path:
    """The program is a link to `dist/cli.js` of the package."""
    return Path(os.path.realpath(program)).parent.parent


def enter(program: str, wanted: Start, wall: Wall, label: str) -> Start:
    if not wanted.cwd.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(wanted.cwd))
    if any(mount.source != mount.target for mount in wall.mounts):
        raise SetupError("srt cannot show files at other paths", hint="use the sandbox bwrap or docker")
    if wall.is_network_open:
        raise SetupError("srt cannot open the network", hint="use the sandbox bwrap, or list hosts to allow")
    folder = _folder(label)
    home = wall.home_source or folder / "home"
    (folder / "start").mkdir(parents=True, mode=0o700)
    folder.chmod(0o700)
    home.mkdir(exist_ok=True)
    _write(folder / "settings.json", _json(_settings(program, wall, home, folder)))
    _write(folder / "filter", seccomp.compiled())
    inside = {name: value for name, value in wanted.env.items() if name.upper() not in _PROXIED}
    start = {"cwd": str(wanted.cwd), "env": inside | {"HOME": str(home)}, "read_only": masks.read_only()}
    _write(folder / "start.json", _json(start))
    groups = map(str, cgroup.create(label, wall.quota))
    launcher = (*_python(srt_launcher, "-I"), str(folder), str(wall.proxy or ""), *groups, "--")
    runtime = (program, "--settings", str(folder / "settings.json"), "--")
    terminal = _python(terminal_entry, "-IS") if wanted.is_terminal else ()
    entry = (*_python(srt_entry, "-IS"), str(folder), "--", *_inner(wall), *terminal)
    return Start((*launcher, *runtime, *entry, *wanted.argv), folder / "start", _outer(wanted.env, wall, home, folder))


def _python(module: ModuleType, option: str) -> tuple[str, ...]:
    return (sys.executable, option, "-c", _START % module.__name__, str(Path(ralph.__file__).parent.parent))


def _inner(wall: Wall) -> Iterator[str]:
    if limits := "; ".join(process_limits(wall.quota)):
        yield from ("/bin/sh", "-c", f'{{ {limits}; }} 2>/dev/null; exec "$@"', "sh")
    if wall.forwards and wall.proxy and sys.platform == "linux":
        yield from (sys.executable, "-I", "-S", relay.__file__, str(PROXY_PORT), *map(str, wall.forwards), "--")


def end(program: str, label: str) -> str:
    """The launcher has ended what was inside, and removed the folder unless it was killed."""
    shutil.rmtree(_folder(label), ignore_errors=True)
    return cgroup.end(label)


def _folder(label: str) -> Path:
    base = tempfile.gettempdir()
    return Path(os.path.realpath(base if len(base) <= _LONGEST_FOLDER else "/tmp"), label)


def _json(values: object) -> bytes:
    return json.dumps(values, ensure_ascii=False).encode("utf-8", "surrogateescape")


def _write(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


def _settings(program: str, wall: Wall, home: Path, folder: Path) -> dict[str, object]:
    """srt takes characters such as `*` in a path for a pattern; on Linux it ignores patterns to write to."""
    writable = _existing((home, *wall.writable))
    for path in writable:
        if re.search(r"[*?\[\]]", path):
            raise SetupError(f"srt cannot make {path} writable: its name has a *, ? or bracket", hint="rename it")
    network: dict[str, object] = {"allowedDomains": [], "deniedDomains": []}
    if sys.platform == "darwin" and wall.forwards:
        network["allowLocalBinding"] = True  # no network of its own there: this is all services of the loopback
    return {
        "network": network,
        "filesystem": {
            "denyRead": _existing((*map(Path, (*_HIDDEN.get(sys.platform, ()), *_private())), wall.home, *wall.hidden)),
            "allowRead": _existing((folder, _package(program), *own_folders(), *wall.readable)),
            "allowWrite": writable,
            "denyWrite": _existing(wall.read_only),
            "allowGitConfig": True,  # `read_only` says where it is not
        },
    }


def _private() -> tuple[str, ...]:
    """What root, or a user of a special group, can read and others cannot. srt makes its own /proc."""
    found = masks.private()
    return tuple(path for path in (*found.files, *found.folders) if not path.startswith(_OWN_PROC))


def _existing(paths: Iterable[Path]) -> list[str]:
    """Without those that do not exist: srt would make them."""
    return list(dict.fromkeys(str(path) for path in paths if os.path.lexists(path)))


def _outer(env: Mapping[str, str], wall: Wall, home: Path, folder: Path) -> dict[str, str]:
    """The environment of srt itself, without what the sandboxed command could have put there."""
    inside = [os.path.realpath(path) for path in (*wall.writable, home)]
    path = [
        place
        for place in os.environ.get("PATH", os.defpath).split(os.pathsep)
        if Path(place).is_absolute() and not any(Path(os.path.realpath(place)).is_relative_to(one) for one in inside)
    ]
    marks = {name: env[name] for name in _MARKS if name in env}
    temporary = "/tmp" if sys.platform == "linux" else str(home)
    places = {"HOME": str(home), "TMPDIR": str(folder), "CLAUDE_CODE_TMPDIR": temporary}
    return {"PATH": os.pathsep.join(path), "LANG": "C.UTF-8", **places, **marks}
