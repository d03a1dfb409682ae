"""One command with its arguments: find the function that knows the program, and call it."""

import sys

from ralph.hooks.guard.acts import contents, is_secret
from ralph.hooks.guard.categories import BY_ID
from ralph.hooks.guard.globs import has_glob, matches
from ralph.hooks.guard.marks import NETWORK, OPAQUE, SECRET, UNKNOWN, is_known, taints
from ralph.hooks.guard.options import Options
from ralph.hooks.guard.programs.table import MODULES, NOTORIOUS
from ralph.hooks.guard.state import Shell
from ralph.hooks.guard.working_folder import judge_folder

_MOST_CALLS = 3
_PACKAGE = "ralph.hooks.guard.programs."


class Invocation:
    """A program about to be run. `run` and `run_text` follow what it runs in turn."""

    __slots__ = ("args", "argv", "env", "name", "shell", "stdin")

    def __init__(self, shell: Shell, name: str, argv: list[str], stdin: str, env: dict[str, str]) -> None:
        self.shell = shell
        self.name = name
        self.argv = argv
        self.args = argv[1:]
        self.stdin = stdin
        self.env = env

    def deny(self, category: str, what: str = "") -> None:
        self.shell.deny(category, what or f"This {BY_ID[category].meaning}", self.argv)

    def options(self, valued: str = "", valued_long: tuple[str, ...] = (), stops: bool = False) -> Options:
        return Options(self.args, valued, valued_long, stops)

    def run(self, argv: list[str], stdin: str | None = None) -> str:
        if not argv:
            return ""
        return invoke(self.shell, argv, self.stdin if stdin is None else stdin, self.env)

    def run_text(self, text: str, stdin: str | None = None) -> str:
        """In a subshell."""
        from ralph.hooks.guard.programs.shells import judge_script

        return judge_script(self.shell.fork(), text, self.argv, self.stdin if stdin is None else stdin)

    def output(self) -> str:
        """The output of an unknown program: only what goes into it is known."""
        found = taints(self.stdin)
        for arg in self.args:
            found += taints(arg)
            if not arg.startswith("-") and self.shell.files and is_known(arg):
                found += taints(self.shell.files.get(self.shell.full(arg), ""))
            if is_secret(self.shell, arg):
                found += SECRET
        return UNKNOWN + found if found else UNKNOWN

    def files(self, paths: list[str]) -> str:
        """The content of files, one after the other; stdin if there are none."""
        if not paths:
            return self.stdin
        return "".join(self.stdin if path == "-" else contents(self.shell, path) for path in paths)


def invoke(shell: Shell, argv: list[str], stdin: str, env: dict[str, str], is_program: bool = False) -> str:
    """Returns its output. `is_program`: functions and aliases of that name are ignored."""
    shell.meter.step()
    name = argv[0]
    if name in shell.functions and not is_program:
        return _call_function(shell, name, argv, stdin)
    if name in shell.aliases and not is_program:
        return _call_alias(shell, name, argv, stdin)
    if rule := shell.rules.denies(argv):
        shell.deny(rule.category or "project", rule.reason or "The project's rules deny this", argv)
    base = name.rpartition("/")[2].rstrip("!") or name
    if shell.files and is_known(name) and "/" in name:
        base = shell.files.get(shell.full(name), "").partition("program:")[2] or base  # a copy, or a link
    if has_glob(base) or not is_known(name):
        base = _guessed(shell, base, argv)
    call = Invocation(shell, base, argv, stdin, env)
    if (module := MODULES.get(base)) is None:
        module = _by_shape(call)
    if _asks_for_help(call, module):
        return UNKNOWN
    judge = _load(module).JUDGES.get(base) or _load(module).JUDGES["*"]  # type: ignore[attr-defined]
    out = judge(call)
    judge_folder(shell, base, argv)  # last: what the program itself is denied for says more
    return call.output() if out is None else str(out)


def _load(module: str) -> object:
    path = _PACKAGE + module
    if path not in sys.modules:
        __import__(path)
    return sys.modules[path]


_RUN_OTHERS = frozenset(("shells", "wrappers", "interpreters", "builtins", "lists"))


def _asks_for_help(call: Invocation, module: str) -> bool:
    args = call.args
    if not args:
        return False
    if module in _RUN_OTHERS:
        return args[0] in ("--help", "--version")
    return ("--help" in args and ("--" not in args or args.index("--") > args.index("--help"))) or args == ["--version"]


def _by_shape(call: Invocation) -> str:
    """Programs recognized by part of their name, scripts, and all others."""
    base = call.name
    if base.startswith("mkfs."):
        return "disks"
    if base.startswith(("python", "pypy")):
        return "interpreters"
    if base.startswith("git-"):
        return "git"
    if call.shell.files and is_known(call.argv[0]) and call.shell.full(call.argv[0]) in call.shell.files:
        return "shells"
    if "/" in call.argv[0] and base.endswith((".sh", ".bash")):
        return "shells"
    return "others"


def _guessed(shell: Shell, base: str, argv: list[str]) -> str:
    """The program's name is a pattern, or unknown."""
    if NETWORK in argv[0]:
        shell.deny("remote-code", "This runs downloaded code", argv)
    if OPAQUE in argv[0]:
        shell.deny("opaque", "The guard cannot see what this runs", argv)
    flags = {letter for arg in argv[1:] if arg.startswith("-") and not arg.startswith("--") for letter in arg[1:]}
    if "r" in flags and "f" in flags:
        return "rm"  # `$x -rf …`
    if has_glob(base) and is_known(base) and any(letter.isalpha() for letter in base):
        return next((name for name in NOTORIOUS if matches(base, name)), base)
    return base


def _call_function(shell: Shell, name: str, argv: list[str], stdin: str) -> str:
    from ralph.hooks.guard.walk import run_script

    before = [spawned for called, spawned in shell.calls if called == name]
    if before and shell.spawned > before[0]:
        shell.deny("fork-bomb", f"{name} starts itself in an endless loop", argv)
    if len(before) >= _MOST_CALLS:
        return UNKNOWN
    params, shell.params = shell.params, argv[1:]
    shell.calls = [*shell.calls, (name, shell.spawned)]
    shell.deeper()
    out = run_script(shell, shell.functions[name], stdin)
    shell.depth -= 1
    shell.calls = shell.calls[:-1]
    shell.params = params
    return out


def _call_alias(shell: Shell, name: str, argv: list[str], stdin: str) -> str:
    from ralph.hooks.guard.walk import run_text

    text = shell.aliases.pop(name)
    rest = " ".join("'" + arg.replace("'", "'\\''") + "'" for arg in argv[1:])
    try:
        return run_text(shell, f"{text} {rest}", stdin)
    finally:
        shell.aliases[name] = text
