"""What is known about a shell while a command is followed: variables, functions, current folder, written files."""

from ralph.guard.categories import BY_ID
from ralph.guard.paths import Place, Places
from ralph.guard.patterns import matches, pairs
from ralph.guard.syntax import Script
from ralph.guard.taint import NETWORK, OPAQUE, PARENT, UNKNOWN, Names, readable


class Rule:
    def __init__(self, program: str, args: str, category: str, reason: str) -> None:
        self.program, self.args, self.category, self.reason = program, args, category, reason

    def fits(self, argv: list[str]) -> bool:
        if not argv:
            return self.program == "*" and self.args == "*"
        name = argv[0].rpartition("/")[2]
        is_program = matches(self.program, name) or matches(self.program, argv[0])
        return is_program and matches(self.args, " ".join(argv[1:]))


class Rules:
    """From the section `guard` of the compiled policy. Entries of an unexpected type are skipped."""

    def __init__(self, section: dict[str, object]) -> None:
        self.allow = _rules(section.get("allow"))
        self.deny = _rules(section.get("deny"))
        if section.get("push") is True:
            self.allow.append(Rule("git", "*push*", "git-push", ""))

    def allows(self, category: str, argv: list[str]) -> bool:
        return any(rule.category in ("", category) and rule.fits(argv) for rule in self.allow)

    def denies(self, argv: list[str]) -> Rule | None:
        return next((rule for rule in self.deny if rule.fits(argv)), None)


def _rules(value: object) -> list[Rule]:
    found: list[Rule] = []
    for item in value if isinstance(value, (list, tuple)) else ():
        if isinstance(item, str) and item.strip():
            program, _, args = item.strip().partition(" ")
            found.append(Rule(program, args.strip() or "*", "", ""))
        elif isinstance(item, dict):
            program, args = _text(item, "program", "*"), _text(item, "args", "*")
            category, reason = _text(item, "category", ""), _text(item, "reason", "")
            if "program" in item or category:
                found.append(Rule(program, args, category, reason))
    return found


def _text(item: dict[object, object], name: str, otherwise: str) -> str:
    value = item.get(name)
    return value if isinstance(value, str) else otherwise


_STEPS = 12_000
_DEEPEST = 24
_VARIANTS = 16
_LONGEST_SHOWN = 120


class Denied(Exception):
    def __init__(self, category: str, reason: str, argv: list[str]) -> None:
        super().__init__(reason)
        self.category = category
        self.reason = reason
        self.argv = argv


class TooMuch(Exception):
    """The command does more than the guard follows."""


class Meter:
    """Shared by a shell and everything it starts, so that a command cannot keep the guard busy."""

    def __init__(self) -> None:
        self.steps, self.variants, self.pipes = _STEPS, _VARIANTS, 0

    def step(self) -> None:
        self.steps -= 1
        if self.steps < 0:
            raise TooMuch


class Shell:
    def __init__(self, places: Places, names: Names, rules: Rules) -> None:
        self.places, self.names, self.rules = places, names, rules
        self.meter = Meter()
        self.cwd = places.workspace
        self.branch = ""
        """The branch that the command itself switched to; empty: unknown."""
        self.vars: dict[str, list[str]] = {}
        self.params: list[str] = []
        self.functions: dict[str, Script] = {}
        self.aliases: dict[str, str] = {}
        self.files: dict[str, str] = {}
        """What the command itself wrote to files, by full path."""
        self.listeners: dict[str, Script] = {}
        """The commands behind `>(…)`, by the path that stands for them."""
        self.streams: dict[str, str] = {}
        """What can be read from other file descriptors."""
        self.outputs: dict[str, str] = {}
        """The files that other file descriptors write to."""
        self.references: dict[str, str] = {}
        """Variables that stand for others (`declare -n`)."""
        self.traps: list[str] = []
        self.calls: list[tuple[str, int]] = []
        """Functions being run, and the process depth."""
        self.spawned = 0
        self.depth = 0
        self.stdin = ""
        """The stdin of a command in a substitution, unless it is redirected."""
        self.is_captured = False
        """The output goes into a variable, a file or another command, and is not displayed."""
        self.is_elsewhere = False
        """On another machine, or in a container: nothing there is the workspace."""

    def fork(self) -> "Shell":
        other = Shell.__new__(Shell)
        other.__dict__.update(self.__dict__)
        other.vars = dict(self.vars)
        other.functions = dict(self.functions)
        other.aliases = dict(self.aliases)
        other.traps = []
        return other

    def elsewhere(self) -> "Shell":
        """A shell that shares only the rules with this one."""
        other = Shell(Places("/elsewhere/there", "/elsewhere/home", (), self.names), self.names, self.rules)
        other.meter = self.meter
        other.depth = self.depth
        other.is_elsewhere = True
        return other

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise TooMuch

    def deny(self, category: str, what: str, argv: list[str]) -> None:
        """Ends the judging with a denial, unless the project allows this command."""
        if self.rules.allows(category, argv):
            return
        shown = readable(" ".join(argv))
        if len(shown) > _LONGEST_SHOWN:
            shown = shown[:_LONGEST_SHOWN] + "…"
        advice = BY_ID[category].advice if category in BY_ID else BY_ID["project"].advice
        raise Denied(category, f"{readable(what)}: `{shown}`. {advice}", argv)

    def deny_hidden(self, code: str, argv: list[str]) -> None:
        """Code that comes from a server, or that cannot be read here."""
        if NETWORK in code:
            self.deny("remote-code", "This runs downloaded code", argv)
        if OPAQUE in code:
            self.deny("opaque", "The guard cannot see what this runs", argv)

    def locate(self, path: str) -> Place:
        return self.places.locate(path, self.cwd)

    def full(self, path: str) -> str:
        """The path under which files are remembered."""
        from ralph.guard.paths import normal

        return normal(path if path.startswith("/") else f"{self.cwd}/{path}")

    def value(self, name: str) -> list[str] | None:
        """The elements of a variable, or None if neither the command nor every shell sets it."""
        name = self.references.get(name, name)
        found = self.vars.get(name)
        if found is not None:
            return found
        if name.isdigit():
            number = int(name)
            if number == 0:
                return [UNKNOWN]
            return [self.params[number - 1]] if number <= len(self.params) else None
        if name in ("@", "*"):
            return self.params
        if name == "#":
            return [str(len(self.params))]
        fixed = self._fixed(name)
        return None if fixed is None else [fixed]

    def _fixed(self, name: str) -> str | None:
        if name == "PWD":
            return self.cwd
        if name in ("HOME", "USERPROFILE"):
            return self.places.home
        if name in ("CLAUDE_PROJECT_DIR", "GITHUB_WORKSPACE", "INIT_CWD", "WORKSPACE", "PROJECT_ROOT"):
            return self.places.workspace
        if name in _IN_HOME:
            return f"{self.places.home}/{_IN_HOME[name]}"
        return _FIXED.get(name)


_IN_HOME = pairs(
    """
    HISTFILE=.bash_history RALPH_STATE_HOME=.local/state/ralph RALPH_POLICY=.local/state/ralph/policy.json
    XDG_STATE_HOME=.local/state XDG_CONFIG_HOME=.config XDG_CACHE_HOME=.cache XDG_DATA_HOME=.local/share
    CARGO_HOME=.cargo GOPATH=go NVM_DIR=.nvm
    """
)
_FIXED = {"IFS": " \t\n", "PPID": PARENT, "_": UNKNOWN, "REPLY": UNKNOWN} | pairs(
    """
    TMPDIR=/tmp TEMP=/tmp TMP=/tmp RUNNER_TEMP=/tmp/runner CLAUDE_CODE_TMPDIR=/tmp/claude USER=user LOGNAME=user
    SHELL=/bin/bash BASH=/bin/bash PATH=/usr/local/bin:/usr/bin:/bin UID=1000 EUID=1000 RANDOM=12345 SECONDS=1
    LINENO=1 OSTYPE=linux-gnu HOSTNAME=host SHELLOPTS=braceexpand:hashall:interactive-comments
    BASHOPTS=checkwinsize:cmdhist ?=0 $=4711 !=4712 -=hB PIPESTATUS=0
    """
)
