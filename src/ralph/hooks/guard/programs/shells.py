"""Shells: the code they run is parsed like the command itself."""

from ralph.hooks.guard import acts
from ralph.hooks.guard.invoke import Invocation, invoke
from ralph.hooks.guard.marks import NETWORK, OPAQUE, OUTPUT, UNKNOWN, is_known
from ralph.hooks.guard.options import Options
from ralph.hooks.guard.quick import is_risky
from ralph.hooks.guard.shell import Unreadable
from ralph.hooks.guard.state import Shell
from ralph.hooks.guard.wordlist import one_of

_VALUED_LONG = ("--rcfile", "--init-file", "--init-command", "--features")


def judge_script(shell: Shell, text: str, argv: list[str], stdin: str = "") -> str:
    """Text that a shell runs: literal, or from another source."""
    from ralph.hooks.guard.parser import parse
    from ralph.hooks.guard.walk import end, run_script

    if not text.strip() or text.strip() in (UNKNOWN, OUTPUT):
        return UNKNOWN
    shell.deeper()
    try:
        script = parse(text)
    except Unreadable as problem:
        if NETWORK in text:
            shell.deny("remote-code", "This runs downloaded code", argv)
        if OPAQUE in text:
            shell.deny("opaque", "The guard cannot see what this runs", argv)
        if is_risky(text):
            shell.deny("unreadable", f"The guard cannot parse what this runs ({problem})", argv)
        return UNKNOWN
    out = run_script(shell, script, stdin)
    end(shell)
    shell.depth -= 1
    return out


def run_shell(call: Invocation) -> str:
    options = Options(call.args, "oO", _VALUED_LONG, stops=True)
    for path in options.all("--rcfile", "--init-file"):
        judge_script(call.shell.fork(), acts.contents(call.shell, path), call.argv)
    is_text = "-c" in options.flags
    if "-n" in options.flags and not is_text:
        return ""
    rest = options.rest
    for command in options.all("--init-command"):
        call.run_text(command)
    if is_text:
        if not rest:
            return ""
        shell = _started(call)
        shell.params = rest[2:]
        if len(rest) > 1:
            shell.vars["0"] = [rest[1]]
        return judge_script(shell, rest[0], call.argv, call.stdin)
    if rest and not options.has("-s") and rest[0] != "-":
        return run_file(call, rest[0], rest[1:])
    shell = _started(call)
    shell.params = rest
    return judge_script(shell, call.stdin, call.argv)


def _started(call: Invocation) -> Shell:
    """A new shell, with the variables that were set only for it."""
    shell = call.shell.fork()
    shell.vars.update({name: [value] for name, value in call.env.items()})
    return shell


def run_file(call: Invocation, path: str, args: list[str]) -> str:
    """A script that the command itself wrote; others are part of the project."""
    text = call.stdin if path in ("/dev/stdin", "/dev/fd/0") else acts.contents(call.shell, path)
    first = text.partition("\n")[0]
    if first.startswith("#!") and not any(name in first for name in ("sh", "env bash")):
        program = first[2:].split()
        if program and program[0].endswith("/env"):
            program = program[1:]
        if program and is_known(first):
            return invoke(call.shell, [*program, path, *args], call.stdin, {})
    shell = _started(call)
    shell.params = args
    return judge_script(shell, text, call.argv, call.stdin)


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


JUDGES = {
    **dict.fromkeys(one_of("sh bash zsh dash ksh mksh fish ash csh tcsh rbash yash"), run_shell),
    "busybox": box,
    "toybox": box,
    **dict.fromkeys(one_of("pwsh powershell powershell.exe cmd cmd.exe"), power_shell),
    "*": run_itself,
}
