"""One command with its arguments: find the function that knows the program, and call it."""

import sys

from ralph.guard import effects
from ralph.guard import paths as at
from ralph.guard.categories import BY_ID
from ralph.guard.effects import contents, is_secret
from ralph.guard.patterns import has_glob, matches, one_of
from ralph.guard.state import Shell
from ralph.guard.tables import JUDGES, NOTORIOUS, PROGRAMS, lines_about, options_of
from ralph.guard.taint import KEY, SECRET, UNKNOWN, is_known, taints

_BUILD = one_of(
    """
    make gmake ninja npm yarn pnpm bun cargo mvn mvnw gradle gradlew poetry pdm bundle composer mix patch tox nox
    """
)
_GIT = one_of(
    """
    add am apply branch checkout cherry-pick commit fetch init merge mv pull rebase restore revert rm stash submodule
    switch tag worktree
    """
)
_FOLDER_OPTIONS = ("-C", "--directory", "--prefix", "--cwd", "--dir")
_CREATES = {"clone": 1, "init": 0, "worktree": 1}
"""Git commands that create a folder, and the position of its name among their arguments."""


def judge_folder(shell: Shell, name: str, argv: list[str]) -> None:
    for option in "|".join(lines_about(PROGRAMS["outputs"], name)).split("|"):
        for word, following in zip(argv, [*argv[1:], ""], strict=True) if option else ():
            path = following if word == option else word.partition("=")[2] if word.startswith(f"{option}=") else ""
            if path:
                effects.write(shell, path, argv, appends=True)
    if name not in _BUILD and name != "git":
        return
    folder, words = ".", [*argv[1:]]
    while words and words[0] in _FOLDER_OPTIONS:
        folder, words = words[1] if len(words) > 1 else ".", words[2:]
    if name == "git" and words[:1] == ["config"] and _changes_global(words[1:]):
        shell.deny("outside", "This changes git's global settings", argv)
    if name == "git" and (not words or words[0] not in _GIT):
        _judge_created(shell, words, argv)
        return
    place = shell.places.on_disk(shell.locate(folder))
    is_above = place.kind == at.ROOT and place.path != shell.places.workspace
    if (place.kind in (at.OUTSIDE, at.SYSTEM) or is_above) and is_known(place.path):
        shell.deny("outside", f"This works in {place.path}, outside the workspace", argv)
    _judge_created(shell, words, argv)


def _judge_created(shell: Shell, words: list[str], argv: list[str]) -> None:
    at_word = _CREATES.get(words[0]) if words else None
    plain = [word for word in words[1:] if not word.startswith("-")]
    if argv[0].rpartition("/")[2] != "git" or at_word is None or len(plain) <= at_word:
        return
    if words[0] != "worktree" or plain[0] == "add":
        effects.make_folder(shell, plain[at_word], argv)


def _changes_global(words: list[str]) -> bool:
    if not {"--global", "--system"} & set(words):
        return False
    plain = [word for word in words if not word.startswith("-")]
    if {"--get", "--get-all", "--get-regexp", "--list", "-l"} & set(words) or plain[:1] in (["get"], ["list"]):
        return False
    return len(plain) > 1 or any(word.startswith(("--unset", "--edit", "-e", "--re")) for word in words)


_OFF = ("false", "f", "no", "n", "off", "none", "0")


def is_switched_off(args: list[str], names: list[str]) -> bool:
    """`--dry-run=false`, `--dry-run false` as npm reads it, or `--no-dry-run`, which git also takes abbreviated."""
    for arg, following in zip(args, [*args[1:], ""], strict=False):
        name, _, value = arg.partition("=")
        if name in names and name[0] == "-" and (value.lower() in _OFF or (arg == name and following == "false")):
            return True
        if name.startswith("--no-") and len(name) > 6 and any(each.startswith(f"--{name[5:]}") for each in names):
            return True
    return False


class Options:
    """Short flags are kept individually (`-rf` is `-r` and `-f`); long ones may be abbreviated, as in GNU tools and
    git."""

    def __init__(
        self, args: list[str], valued: str = "", valued_long: "tuple[str, ...]" = (), stops: bool = False
    ) -> None:
        self.args = args
        self.flags: set[str] = set()
        self.values: list[tuple[str, str]] = []
        self.rest: list[str] = []
        self.shortest = 4
        """An abbreviation is longer; git takes any that is unique."""
        self.after: list[str] = []
        """The words after `--`."""
        i = 0
        while i < len(args):
            arg = args[i]
            i += 1
            if arg == "--":
                self.after = args[i:]
                self.rest += args[i:]
                break
            if arg.startswith("--"):
                name, equals, value = arg.partition("=")
                self.flags.add(name)
                if equals:
                    self.values.append((name, value))
                elif name in valued_long and i < len(args):
                    self.values.append((name, args[i]))
                    i += 1
            elif arg.startswith("-") and len(arg) > 1:
                i = self._short(arg, args, i, valued, valued_long)
            else:
                self.rest.append(arg)
                if stops:
                    self.rest += args[i:]
                    break

    def _short(self, arg: str, args: list[str], i: int, valued: str, valued_long: "tuple[str, ...]") -> int:
        if arg in valued_long:  # `-name`, as find and openssl have them
            self.flags.add(arg)
            if i < len(args):
                self.values.append((arg, args[i]))
            return i + 1
        for position, letter in enumerate(arg[1:], 1):
            flag = "-" + letter
            self.flags.add(flag)
            if letter in valued:
                if arg[position + 1 :]:
                    self.values.append((flag, arg[position + 1 :]))
                elif i < len(args):
                    self.values.append((flag, args[i]))
                    i += 1
                break
        return i

    def has(self, *names: str) -> bool:
        """Whether one of them is present. A long name may be abbreviated."""
        for name in names:
            if name in self.flags:
                return True
            if name.startswith("--") and any(
                len(flag) > self.shortest and name.startswith(flag) for flag in self.flags
            ):
                return True
        return False

    @property
    def is_dry_run(self) -> bool:
        return self.has("-n", "--dry-run") and not is_switched_off(self.args, ["--dry-run"])

    def value(self, *names: str) -> str | None:
        found = [value for name, value in self.values if name in names]
        return found[-1] if found else None

    def all(self, *names: str) -> list[str]:
        return [value for name, value in self.values if name in names]


_NOT_SHOWING = frozenset(PROGRAMS["not-showing"].split())
_READERS = frozenset(PROGRAMS["readers"].split())
_USES, _USED = ("-i", "-k", "-c", "-K"), ("key", "ident", "cred", "conf", "auth", "token", "cert", "pass", "secret")
"""Options whose value a program uses to log in, and parts of their names."""
_DISKS = ("/dev/sd", "/dev/nvme", "/dev/hd", "/dev/vd", "/dev/xvd", "/dev/mem", "/dev/kmem", "/dev/disk", "/dev/mapper")
_HANDLERS = ("command_not_found_handle", "command_not_found_handler")
"""Functions that bash and zsh call for a program that they do not find."""
_MOST_CALLS = 3
_PACKAGE = "ralph.guard.programs."


def parse_options(program: str, args: list[str]) -> Options:
    return Options(args, *(options_of(program) or ()))


class Invocation:
    """A program about to be run. `run` and `run_text` follow what it runs in turn."""

    def __init__(self, shell: Shell, name: str, argv: list[str], stdin: str, env: dict[str, str]) -> None:
        self.shell, self.name, self.argv = shell, name, argv
        self.args = argv[1:]
        self.stdin = stdin
        self.env = env

    def deny(self, category: str, what: str = "") -> None:
        self.shell.deny(category, what or f"This {BY_ID[category].meaning}", self.argv)

    def options(self) -> Options:
        return parse_options(self.name, self.args)

    def run(self, argv: list[str], stdin: str | None = None) -> str:
        if not argv:
            return ""
        return invoke(self.shell, argv, self.stdin if stdin is None else stdin, self.env)

    def run_text(self, text: str, stdin: str | None = None) -> str:
        """In a subshell."""
        from ralph.guard.programs.shells import judge_script

        return judge_script(self.shell.fork(), text, self.argv, self.stdin if stdin is None else stdin)

    def run_texts(self, *texts: str) -> None:
        for text in texts:
            self.run_text(text)

    def look(self, *paths: str) -> None:
        for path in paths:
            if path.startswith(_DISKS):
                self.deny("devices", f"This reads the raw device {path}")
            effects.look(self.shell, path, self.argv)

    def write(self, *paths: str) -> None:
        for path in paths:
            effects.write(self.shell, path, self.argv)

    def store(self, path: str, text: str) -> None:
        self.write(path)
        effects.keep(self.shell, path, text)

    def delete(self, *paths: str) -> None:
        """With everything in them."""
        for path in paths:
            effects.delete(self.shell, path, self.argv, recursive=True)

    def output(self) -> str:
        """The output of an unknown program: only what goes into it is known. A login does not show its password."""
        found = "" if "login" in self.args else taints(self.stdin)
        for arg in self.args:
            found += taints(arg).replace(KEY, "")
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
    judge = JUDGES.get(base) or _by_shape(call)
    if (
        judge == "rules.judge"
        and "/" not in name
        and (handler := next((each for each in _HANDLERS if each in shell.functions), ""))
    ):
        _call_function(shell, handler, ["", *argv], stdin)
    if _asks_for_help(call, judge):
        return UNKNOWN
    module, _, function = judge.partition(".")
    if _PACKAGE + module not in sys.modules:
        __import__(_PACKAGE + module)
    out = getattr(sys.modules[_PACKAGE + module], function)(call)
    judge_folder(shell, base, argv)  # last: what the program itself is denied for says more
    _judge_reading(call, judge)
    text = call.output() if out is None else str(out)
    if lines_about(PROGRAMS["prints"], base):
        from ralph.guard.programs.rules import prints_secrets

        text += SECRET + KEY if prints_secrets(call) else ""
    return text


def _judge_reading(call: Invocation, judge: str) -> None:
    """Any program may read a file that it is given; an unknown one may just need the value of an option."""
    if call.name in _NOT_SHOWING or call.shell.is_elsewhere:
        return
    reads = call.name in _READERS or judge.startswith(("text.", "files.", "interpreters.", "databases.", "network."))
    reads = reads and call.name != "openssl"  # which also signs with keys
    before = ""
    for arg in call.args:
        path = arg.rpartition("=")[2] if arg.startswith(("-", "if=")) else arg.lstrip("@")
        option = arg.partition("=")[0] if arg[:1] == "-" else before
        if (
            path[:1] != "-"
            and (" " not in path or path[0] == "/")
            and (reads or not (option in _USES or any(word in option for word in _USED)))
        ):
            effects.look(call.shell, path, call.argv)
        if " " in arg and judge.startswith(
            ("databases.", "interpreters.editor")
        ):  # a statement, or a command of an editor
            call.look(*(word.strip("\"'()") for word in arg.split() if word.strip("\"'(")[:1] == "/"))
        before = arg if arg[:1] == "-" else ""


def _asks_for_help(call: Invocation, judge: str) -> bool:
    args = call.args
    if judge.startswith(("shells.", "wrappers.", "interpreters.")):  # the option may be for what they run
        return args[:1] in (["--help"], ["--version"])
    return ("--help" in args and ("--" not in args or args.index("--") > args.index("--help"))) or args == ["--version"]


def _by_shape(call: Invocation) -> str:
    """Programs recognized by part of their name, scripts, and all others."""
    base = call.name
    if base.startswith(("python", "pypy")):
        return "interpreters.python"
    if base.startswith("git-"):
        return "git.git"
    if call.shell.files and is_known(call.argv[0]) and call.shell.full(call.argv[0]) in call.shell.files:
        return "shells.run_itself"
    if "/" in call.argv[0] and base.endswith((".sh", ".bash")):
        return "shells.run_itself"
    return "rules.judge"


def _guessed(shell: Shell, base: str, argv: list[str]) -> str:
    """The program's name is a pattern, or unknown."""
    shell.deny_hidden(argv[0], argv)
    flags = {letter for arg in argv[1:] if arg.startswith("-") and not arg.startswith("--") for letter in arg[1:]}
    if "r" in flags and "f" in flags:
        return "rm"  # `$x -rf …`
    if has_glob(base) and is_known(base) and any(letter.isalpha() for letter in base):
        return next((name for name in NOTORIOUS if matches(base, name)), base)
    return base


def _call_function(shell: Shell, name: str, argv: list[str], stdin: str) -> str:
    from ralph.guard.evaluator import run_script

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
    from ralph.guard.evaluator import run_text

    text = shell.aliases.pop(name)
    rest = " ".join("'" + arg.replace("'", "'\\''") + "'" for arg in argv[1:])
    try:
        return run_text(shell, f"{text} {rest}", stdin)
    finally:
        shell.aliases[name] = text
