"""Shell builtins: they change what the guard knows about the shell."""

from ralph.hooks.guard.acts import contents
from ralph.hooks.guard.environment import judge_unset, judge_variable
from ralph.hooks.guard.escapes import unescape
from ralph.hooks.guard.invoke import Invocation, invoke
from ralph.hooks.guard.marks import SECRET, UNKNOWN, is_known, is_mark
from ralph.hooks.guard.options import Options
from ralph.hooks.guard.places import normal
from ralph.hooks.guard.programs.formatting import formatted
from ralph.hooks.guard.wordlist import one_of


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
    from ralph.hooks.guard.programs.shells import judge_script

    return judge_script(call.shell, " ".join(call.args), call.argv, call.stdin)


def source(call: Invocation) -> str:
    from ralph.hooks.guard.programs.shells import judge_script

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
    return call.run(call.options(valued="a", stops=True).rest)


def trap(call: Invocation) -> str:
    words = [arg for arg in call.args if arg != "--"]
    if len(words) > 1 and words[0] not in ("-", "") and not words[0].startswith("-"):
        call.shell.traps = [*call.shell.traps, words[0]]
    return ""


def alias(call: Invocation) -> str:
    from ralph.hooks.guard.walk import run_text

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
    prints = any(arg.startswith("-") and "p" in arg for arg in call.args) or not call.args
    return UNKNOWN + SECRET if prints else ""


def unset(call: Invocation) -> str:
    for arg in call.args:
        judge_unset(call.shell, arg)
        call.shell.vars.pop(arg, None)
        call.shell.functions.pop(arg, None)
    return ""


def read(call: Invocation) -> str:
    options = call.options(valued="adinNptu")
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
    rest = call.options(valued="cCdnOsu").rest
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


def history(call: Invocation) -> str:
    options = call.options(valued="d")
    if options.has("-c", "-d"):
        call.deny("audit", "This erases the shell history")
    return UNKNOWN


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


def enable(call: Invocation) -> str:
    options = Options(call.args, "f")
    if path := options.value("-f"):
        call.deny("opaque", f"This loads {path} into the shell")
    return ""


JUDGES = {
    "cd": change_folder,
    "chdir": change_folder,
    "pushd": change_folder,
    "popd": change_folder,
    "eval": evaluate,
    "source": source,
    ".": source,
    "exec": replace,
    "trap": trap,
    "alias": alias,
    "unalias": unalias,
    "export": declare,
    "declare": declare,
    "typeset": declare,
    "local": declare,
    "readonly": declare,
    "unset": unset,
    "read": read,
    "mapfile": read_lines,
    "readarray": read_lines,
    "set": set_options,
    "shopt": set_options,
    "shift": shift,
    "echo": echo,
    "print": echo,
    "printf": printf,
    "history": history,
    "command": command,
    "builtin": command,
    "enable": enable,
    "type": unknown,
    "jobs": unknown,
    "dirs": unknown,
    **dict.fromkeys(one_of("test [ true false : let return exit wait bg fg"), nothing),
    **dict.fromkeys(one_of("disown umask ulimit hash getopts times sleep break continue"), nothing),
}
