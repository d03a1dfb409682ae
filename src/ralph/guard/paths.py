"""Where a path leads, relative to the workspace. The guard judges the command's text; in a run it follows links."""

import os

from ralph.guard.alias import follow_alias
from ralph.guard.patterns import has_glob, matches, one_of, takes_everything
from ralph.guard.tables import lists, load
from ralph.guard.taint import OUTPUT, UNKNOWN, Names, is_known, is_mark

NOTHING = "nothing"
INSIDE = "inside"
ROOT = "root"
"""The workspace itself, or a folder above it."""
ALL = "all"
"""Everything in the workspace."""
GIT = "git"
GIT_HOOK = "git-hook"
OWN = "own"
"""Ralph's files, or the agent's settings."""
TEMP = "temp"
TEMP_ROOT = "temp-root"
STARTUP = "startup"
HISTORY = "history"
LOG = "log"
RIGHTS = "rights"
SYSTEM = "system"
OUTSIDE = "outside"
DEVICE = "device"
KERNEL = "kernel"
NULL = "null"
NET = "net"
UNSURE = "unsure"
MAYBE_ROOT = "maybe-root"
"""Starts with a variable that may be empty, which would leave a system folder."""

_PATHS, _HOME = (lists(load("paths")[name]) for name in ("paths", "home"))
_USUAL = one_of("workspace workspaces repo repos app project projects code work src")
"""Where containers keep the project they work on."""


class Place:
    def __init__(self, kind: str, path: str) -> None:
        self.kind, self.path = kind, path


class Places:
    def __init__(self, workspace: str, home: str, temp: tuple[str, ...], names: Names) -> None:
        self.workspace = normal(workspace)
        self.home = normal(home)
        self.temp = (*_PATHS["temp"], *(normal(each) for each in temp if each.startswith("/") and normal(each) != "/"))
        self.names = names
        self.is_home_within = (self.home + "/").startswith(self.workspace + "/")
        self.is_guess = False
        """The workspace is unknown: a path that looks like one counts as one."""
        self.follows_links = False
        """Check the disk: a link in the workspace leads to where it points."""
        self.alias = ("", "")
        """Another path of a folder, and the folder."""

    def locate(self, text: str, cwd: str) -> Place:
        if not text:
            return Place(NOTHING, "")
        if text.startswith("~/") or text == "~":
            text = self.home + text[1:]
        if not text.startswith("/"):
            if is_mark(text[0]):
                return self._unsure(text)
            if not cwd.startswith("/"):
                wide = text.strip("./*") == ""
                return Place(MAYBE_ROOT if wide and cwd not in (UNKNOWN, OUTPUT) else UNSURE, text)
            text = f"{cwd}/{text}"
        return self._absolute(normal(text))

    def on_disk(self, place: Place, follow: bool = True) -> Place:
        """The real location. Without `follow` the last part may be a link, which is then meant itself."""
        path = place.path
        if not self.follows_links or not path.startswith("/") or not is_known(path) or has_glob(path):
            return place
        if place.kind in (NULL, NET, DEVICE, KERNEL):
            return place
        folder, _, name = path.rpartition("/")
        real = os.path.realpath(path) if follow else f"{os.path.realpath(folder or '/').rstrip('/')}/{name}"
        return place if real == path else self._absolute(real)

    def _unsure(self, text: str) -> Place:
        rest = text.lstrip("".join(letter for letter in text if is_mark(letter)))
        if rest.startswith("/") and self.names.names_in(text[0]):
            top = normal(rest).lstrip("/").split("/")[0]
            if not top or top in _PATHS["top"] or takes_everything(top):
                return Place(MAYBE_ROOT, text)
        return Place(UNSURE, text)

    def _absolute(self, path: str) -> Place:
        path = follow_alias(path, *self.alias)
        parts = path[1:].split("/") if path != "/" else []
        fixed = next((i for i, part in enumerate(parts) if has_glob(part) or not is_known(part)), len(parts))
        prefix = "/" + "/".join(parts[:fixed])
        rest = parts[fixed:]
        if self._holds_workspace(prefix, rest):
            return Place(ROOT, path)
        if prefix == self.workspace or prefix.startswith(self.workspace + "/"):
            kind = self._inside(parts[len(self.workspace[1:].split("/")) :])
            if not (kind == INSIDE and self.is_home_within and self._is_below(prefix, self.home)):
                return Place(kind, path)
        return Place(self._outside(path, prefix, rest), path)

    def _holds_workspace(self, prefix: str, rest: list[str]) -> bool:
        """The path is the workspace or above it, or a pattern that matches one of its parents."""
        if not rest:
            return prefix == "/" or (self.workspace + "/").startswith(prefix + "/")
        above = prefix if prefix == "/" else prefix + "/"
        if not self.workspace.startswith(above):
            return False
        below = self.workspace[len(above) :].split("/")
        return all(
            (has_glob(pattern) and matches(pattern, name)) or pattern == name
            for pattern, name in zip(rest, below, strict=False)
        ) and len(rest) <= len(below)

    def _inside(self, parts: list[str]) -> str:
        if not parts:
            return ROOT
        if len(parts) == 1 or (len(parts) == 2 and parts[1] == "**"):
            if takes_everything(parts[0]):
                return ALL
            if has_glob(parts[0]) and parts[0].startswith(".") and matches(parts[0], ".git"):
                return GIT
        if ".git" in parts:
            return _in_git(parts[parts.index(".git") + 1 :])
        return OWN if _is_own(parts) else INSIDE

    def _outside(self, path: str, prefix: str, rest: list[str]) -> str:
        if path in _PATHS["null"] or path.startswith("/dev/fd/") or (path.startswith("/proc") and "/fd/" in path):
            return NULL
        for folder in self.temp:
            if path == folder or (prefix == folder and rest and takes_everything(rest[0])):
                return TEMP_ROOT
            if path.startswith(folder + "/"):
                return TEMP
        if path.startswith(("/dev/tcp/", "/dev/udp/")):
            return NET
        if path == "/dev" or path.startswith("/dev/"):
            return DEVICE
        if path.startswith(("/proc", "/sys/")):
            return KERNEL
        if (tail := self._below_home(path)) is not None:
            return _in_home(tail)
        if path.startswith(_PATHS["rights"]):
            return RIGHTS
        if path.startswith(_PATHS["startup"]):
            return STARTUP
        if path.startswith("/var/log"):
            return LOG
        top, _, below = path[1:].partition("/")
        if self.is_guess and top in _USUAL:
            return self._inside(below.split("/")) if below.strip("/*") else ROOT
        return SYSTEM if top in _PATHS["top"] or not prefix.strip("/") else OUTSIDE

    def moved(self, workspace: str) -> "Places":
        other = Places(workspace, self.home, self.temp, self.names)
        other.alias = self.alias
        return other

    def could_be_workspace(self, path: str) -> bool:
        """A folder in a home folder that is not one of the standard ones."""
        tail = self._below_home(path)
        if not tail:
            return False
        first = tail.split("/")[0]
        return not first.startswith(".") and first not in _HOME["personal"] and is_known(tail)

    def _below_home(self, path: str) -> str | None:
        if self._is_below(path, self.home):
            return path[len(self.home) + 1 :]
        parts = path.split("/")
        if parts[1] == "root":
            return "/".join(parts[2:])
        if parts[1] in ("home", "Users") and len(parts) > 2:
            return "/".join(parts[3:])
        return None

    def _is_below(self, path: str, folder: str) -> bool:
        return path == folder or path.startswith(folder + "/")


def _in_git(parts: list[str]) -> str:
    if not parts:
        return GIT
    if parts[0] in ("hooks", "config"):
        return GIT_HOOK
    if parts == ["info", "exclude"] or parts[-1].endswith(".lock") or parts[-1] == "COMMIT_EDITMSG":
        return INSIDE
    return GIT


def _is_own(parts: list[str]) -> bool:
    first, second = parts[0], parts[1] if len(parts) > 1 else ""
    if first == ".ralph":
        return not is_known(second) or second in (
            "",
            "config.yaml",
            "config.yml",
            "config.json",
            "configs",
            "hooks",
            "state",
            "*",
            "**",
        )
    if first in (".claude", ".codex", ".gemini"):
        return (
            not is_known(second)
            or second in ("", "hooks", "config.toml", "hooks.json", "*", "**")
            or second.startswith("settings")
        )
    return first in (".ralph-active", ".ralph.yaml", ".ralph.yml", ".mcp.json")


def _in_home(tail: str) -> str:
    parts = tail.split("/")
    if parts[-1] in _HOME["histories"]:
        return HISTORY
    if parts[0] in _HOME["startup-names"] or tail.startswith(_HOME["startup-folders"]):
        return STARTUP
    if any(tail == own or tail.startswith(own + "/") for own in _HOME["own"]):
        return OWN
    return OUTSIDE


def normal(path: str) -> str:
    """Absolute, without `.`, `..` and doubled slashes."""
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            if parts:
                parts.pop()
        elif part and part != ".":
            parts.append(part)
    return "/" + "/".join(parts)
