"""Shells: the code they run is parsed like the command itself."""

from ralph.guard.decision import is_risky
from ralph.guard.effects import contents
from ralph.guard.evaluator import end, judge_unset, judge_variable, run_script, run_text
from ralph.guard.invocation import Invocation, invoke
from ralph.guard.parser import parse, unescape
from ralph.guard.paths import normal
from ralph.guard.programs.text import formatted
from ralph.guard.state import Shell
from ralph.guard.syntax import Unreadable
from ralph.guard.taint import OPAQUE, OUTPUT, SECRET, UNKNOWN, is_known, is_mark, secret_marks


def change_folder(call: Invocation) -> str:
    shell = call.shell
    words = [arg for arg in call.args if arg == "-" or not arg.startswith("-")]
    if call.name == "popd":
        stack = shell.vars.get("DIRSTACK", [])
        shell.cwd = stack[-1] if stack else UNKNOWN
        shell.vars["DIRSTACK"] = stack[:-1]
        return ""
    if call.name == "pushd":
        shell.vars["DIRSTACK"] = [*shell.vars.get("DIRSTACK", []), shell.cwd]
    target = words[0] if words else shell.places.home
    before, shell.vars["OLDPWD"] = shell.vars.get("OLDPWD", [UNKNOWN]), [shell.cwd]
    if target == "-":
        shell.cwd = before[0]
    elif target.startswith("/"):
        shell.cwd = normal(target)
        if shell.places.is_guess and shell.places.could_be_workspace(shell.cwd):
            shell.places = shell.places.moved(shell.cwd)
    elif target and is_mark(target[0]):
        shell.cwd = target
    elif target:
        shell.cwd = normal(f"{shell.cwd}/{target}") if shell.cwd.startswith("/") else shell.cwd
    return ""


def evaluate(call: Invocation) -> str:
    return judge_script(call.shell, " ".join(call.args), call.argv, call.stdin)


def source(call: Invocation) -> str:
    if not call.args:
        return ""
    params = call.shell.params
    call.shell.params = call.args[1:] or params
    text = call.stdin if call.args[0] in ("/dev/stdin", "/dev/fd/0", "-") else contents(call.shell, call.args[0])
    out = judge_script(call.shell, text, call.argv, call.stdin)
    call.shell.params = params
    return out


def replace(call: Invocation) -> str:
    """`exec`: replaces the shell with a command, if there is one."""
    return call.run(call.options().rest)


def trap(call: Invocation) -> str:
    words = [arg for arg in call.args if arg != "--"]
    if len(words) > 1 and words[0] not in ("-", "") and not words[0].startswith("-"):
        call.shell.traps = [*call.shell.traps, words[0]]
    return ""


def alias(call: Invocation) -> str:
    for arg in call.args:
        name, equals, value = arg.partition("=")
        if equals and is_known(name):
            run_text(call.shell.fork(), value)
            call.shell.aliases[name] = value
    return UNKNOWN


def unalias(call: Invocation) -> str:
    for arg in call.args:
        call.shell.aliases.pop(arg, None)
    if "-a" in call.args:
        call.shell.aliases.clear()
    return ""


def declare(call: Invocation) -> str:
    """Literal assignments are already set; these come from expansions."""
    for arg in call.args:
        name, equals, value = arg.partition("=")
        if equals and name.isidentifier():
            judge_variable(call.shell, name, value)
            call.shell.vars[name] = [value]
    prints = any(arg.startswith("-") and "p" in arg for arg in call.args) or all(arg[:1] in "-+" for arg in call.args)
    return UNKNOWN + SECRET + "".join(map(secret_marks, call.args)) if prints else ""


def unset(call: Invocation) -> str:
    for arg in call.args:
        judge_unset(call.shell, arg)
        call.shell.vars.pop(arg, None)
        call.shell.functions.pop(arg, None)
    return ""


def read(call: Invocation) -> str:
    options = call.options()
    line = call.stdin.split("\n")[0]
    if array := options.value("-a"):
        call.shell.vars[array] = line.split() or [UNKNOWN]
        return ""
    names = options.rest or ["REPLY"]
    fields = line.split(None, len(names) - 1) if is_known(line) else [line.strip()]
    for number, name in enumerate(names):
        value = fields[number] if number < len(fields) else fields[-1] if fields and not is_known(line) else ""
        call.shell.vars[name] = [value or UNKNOWN]
    return ""


def read_lines(call: Invocation) -> str:
    rest = call.options().rest
    call.shell.vars[rest[0] if rest else "MAPFILE"] = call.stdin.splitlines()[:20] or [UNKNOWN]
    return ""


def set_options(call: Invocation) -> str:
    args = call.args
    if not args:
        return UNKNOWN + SECRET
    if "history" in args and ("+o" in args or (call.name == "shopt" and "-u" in "".join(args))):
        call.deny("audit", "This disables the shell history")
    if call.name == "set":
        if "--" in args:
            call.shell.params = args[args.index("--") + 1 :]
        elif not args[0].startswith(("-", "+")):
            call.shell.params = args
    return ""


def shift(call: Invocation) -> str:
    count = int(call.args[0]) if call.args and call.args[0].isdigit() else 1
    call.shell.params = call.shell.params[count:]
    return ""


def echo(call: Invocation) -> str:
    args = call.args
    escapes = False
    while args and args[0] in ("-n", "-e", "-E", "-ne", "-en", "-nE", "-En", "-r", "--"):
        escapes = escapes or "e" in args[0]
        args = args[1:]
    text = " ".join(args)
    if escapes or call.name == "print":
        text = unescape(text)
    return text if "-n" in call.args[:1] else text + "\n"


def printf(call: Invocation) -> str:
    args = call.args
    name = ""
    if args and args[0].startswith("-v"):
        name = args[0][2:] or (args[1] if len(args) > 1 else "")
        args = args[1:] if args[0] != "-v" else args[2:]
    if args and args[0] == "--":
        args = args[1:]
    text = formatted(args[0], args[1:]) if args else ""
    if name:
        call.shell.vars[name] = [text]
        return ""
    return text


def command(call: Invocation) -> str:
    args = call.args
    while args and args[0].startswith("-") and args[0] != "--":
        if "v" in args[0].lower():
            return f"/usr/bin/{args[1]}\n" if len(args) > 1 else ""
        args = args[1:]
    if args and args[0] == "--":
        args = args[1:]
    return invoke(call.shell, args, call.stdin, call.env, is_program=True) if args else ""


def nothing(call: Invocation) -> str:
    return ""


def unknown(call: Invocation) -> str:
    return UNKNOWN


def judge_script(shell: Shell, text: str, argv: list[str], stdin: str = "") -> str:
    """Text that a shell runs: literal, or from another source."""
    if not text.strip() or text.strip() in (UNKNOWN, OUTPUT):
        return UNKNOWN
    shell.deeper()
    try:
        script = parse(text)
    except Unreadable as problem:
        shell.deny_hidden(text, argv)
        if is_risky(text):
            shell.deny("unreadable", f"The guard cannot parse what this runs ({problem})", argv)
        return UNKNOWN
    out = run_script(shell, script, stdin)
    end(shell)
    shell.depth -= 1
    return out


def run_shell(call: Invocation) -> str:
    options = call.options()
    for path in options.all("--rcfile", "--init-file"):
        judge_script(call.shell.fork(), contents(call.shell, path), call.argv)
    is_text = "-c" in options.flags
    if "-n" in options.flags and not is_text:
        return ""
    rest = options.rest
    call.run_texts(*options.all("--init-command"))
    if is_text:
        if not rest:
            return ""
        shell = _started(call, rest[2:])
        if len(rest) > 1:
            shell.vars["0"] = [rest[1]]
        return judge_script(shell, rest[0], call.argv, call.stdin)
    if rest and not options.has("-s") and rest[0] != "-":
        return run_file(call, rest[0], rest[1:])
    return judge_script(_started(call, rest), call.stdin, call.argv)


def _started(call: Invocation, params: list[str]) -> Shell:
    """A new shell, with the variables that were set only for it."""
    shell = call.shell.fork()
    shell.vars.update({name: [value] for name, value in call.env.items()})
    shell.params = params
    return shell


def run_file(call: Invocation, path: str, args: list[str]) -> str:
    """A script that the command itself wrote; others are part of the project."""
    text = call.stdin if path in ("/dev/stdin", "/dev/fd/0") else contents(call.shell, path)
    first = text.partition("\n")[0]
    if first.startswith("#!") and not any(name in first for name in ("sh", "env bash")):
        program = first[2:].split()
        if program and program[0].endswith("/env"):
            program = program[1:]
        if program and is_known(first):
            return invoke(call.shell, [*program, path, *args], call.stdin, {})
    return judge_script(_started(call, args), text, call.argv, call.stdin)


def run_itself(call: Invocation) -> str:
    """A script called by its path."""
    return run_file(call, call.argv[0], call.args)


def box(call: Invocation) -> str:
    """busybox and toybox: the name of the program comes first."""
    return call.run(call.args) if call.args and not call.args[0].startswith("-") else UNKNOWN


def power_shell(call: Invocation) -> str:
    args = [arg.lower() for arg in call.args]
    text = " ".join(args)
    if ("iex" in text or "invoke-expression" in text) and any(
        part in text for part in ("http", "irm", "iwr", "downloadstring")
    ):
        call.deny("remote-code", "This runs downloaded code")
    for i, arg in enumerate(args[:-1]):
        if arg.startswith(("-e", "-enc")) and "ncodedcommand".startswith(arg.lstrip("-")[1:]):
            call.deny("opaque", "This runs an encoded command")
            call.run_text(_wide(call.args[i + 1]))
        elif arg in ("-c", "-command", "/c", "/k"):
            call.run_text(" ".join(call.args[i + 1 :]).replace("\\", "\\\\"))
            break
    if not args:
        call.run_text(call.stdin)
    return UNKNOWN


def _wide(text: str) -> str:
    import binascii

    try:
        return binascii.a2b_base64(text).decode("utf-16-le", "replace")
    except (binascii.Error, ValueError):
        return OPAQUE
