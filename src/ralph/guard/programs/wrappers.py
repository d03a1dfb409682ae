"""Programs that run other programs: `env`, `timeout`, `nohup`, `npx` and many more. What they run is judged."""

from ralph.guard.evaluator import judge_unset, judge_variable
from ralph.guard.invocation import Invocation, Options, invoke
from ralph.guard.patterns import one_of
from ralph.guard.tables import PROGRAMS, lines_about
from ralph.guard.taint import OPAQUE, SECRET, UNKNOWN, is_known

_RUNS_AFTER_WORD = one_of("bundle asdf mise rtx apptainer singularity doppler op honcho foreman")
_RUN_WORDS = frozenset(("exec", "run", "x", "e", "add"))


def wrapped(call: Invocation) -> str | None:
    skip, letters, *long = lines_about(PROGRAMS["wrappers"], call.name)[0].split()
    valued, valued_long, skipped = letters.replace("-", ""), tuple(long), int(skip)
    options = Options(call.args, valued, valued_long, stops=True)
    rest = options.rest
    while call.name == "dotenv" and rest[:1] in (["run"], ["--"]):
        rest = rest[1:]
    if call.name in _RUNS_AFTER_WORD and not (rest and rest[0] in _RUN_WORDS):
        from ralph.guard.programs.rules import judge

        return judge(call)
    if skipped:
        inner = Options(rest[skipped:], valued, valued_long, stops=True)
        rest = inner.rest
        if call.name == "sg" and (text := inner.value("-c")):
            return call.run_text(text)
    for name, value in options.values:
        if name in ("--exec", "--startas", "-x") and call.name == "start-stop-daemon":
            rest = [value, *rest]
    out = run_with_variables(call, rest) if rest else None
    if call.name == "systemd-run":
        from ralph.guard.programs.rules import apply_rules

        apply_rules(call, call.name, call.args[: len(call.args) - len(rest)])
    return out


def run_with_variables(call: Invocation, rest: list[str]) -> str:
    env = dict(call.env)
    while rest and "=" in rest[0][1:] and "/" not in rest[0].partition("=")[0]:
        name, _, value = rest[0].partition("=")
        judge_variable(call.shell, name, value)
        env[name] = value
        rest = rest[1:]
    return invoke(call.shell, rest, call.stdin, env) if rest else UNKNOWN


def env(call: Invocation) -> str:
    options = call.options()
    if folder := options.value("-C", "--chdir"):
        call.shell = call.shell.fork()
        call.shell.cwd = call.shell.full(folder)
    for name in options.all("-u", "--unset"):
        judge_unset(call.shell, name)
    if split := options.value("-S", "--split-string"):
        return call.run_text(" ".join([split, *options.rest]))
    rest = options.rest[1:] if options.rest[:1] == ["-"] else options.rest
    out = run_with_variables(call, rest)
    has_command = any("=" not in word for word in rest)
    return out if has_command else UNKNOWN + SECRET


def flock(call: Invocation) -> str:
    options = call.options()
    if command := options.value("-c", "--command"):
        return call.run_text(command)
    rest = options.rest[1:]
    if rest[:1] in (["-c"], ["--command"]):
        return call.run_text(" ".join(rest[1:]))
    return call.run(rest)


def watch(call: Invocation) -> str:
    return call.run_text(" ".join(call.options().rest))


def hyperfine(call: Invocation) -> str:
    """Also concurrently: each word is a command."""
    options = call.options()
    call.run_texts(*options.rest, *options.all("--prepare", "-p", "--cleanup", "-c", "--setup", "-s"))
    return UNKNOWN


def script(call: Invocation) -> str | None:
    options = call.options()
    if command := options.value("-c", "--command"):
        return call.run_text(command)
    if len(options.rest) > 1:  # the BSD form: file, then command
        return call.run(options.rest[1:])
    if not options.rest and call.stdin:
        return call.run_text(call.stdin)
    return None


def parallel(call: Invocation) -> str:
    options = call.options()
    words = options.rest
    at = next((i for i, word in enumerate(words) if word in (":::", "::::", ":::+")), len(words))
    command, items = words[:at], [word for word in words[at + 1 :] if not word.startswith(":::")]
    if at == len(words):
        items = call.stdin.splitlines()[:10]
    for item in items or [UNKNOWN]:
        if not command:
            call.run_text(item)
            continue
        line = " ".join(command)
        call.run_text(line.replace("{}", item) if "{}" in line else f"{line} {item}")
    return UNKNOWN


def node_runner(call: Invocation) -> str | None:
    """npx and similar fetch a package and run its program."""
    options = call.options()
    call.run_texts(*options.all("-c", "--call"))
    rest = options.rest
    if not rest:
        return None
    program = rest[0]
    if program.startswith("@") and "/" in program:
        program = program.partition("/")[2]
    return call.run([program.partition("@")[0], *rest[1:]])


_PUBLISHES = frozenset(("publish", "upload", "release"))


def runner(call: Invocation) -> str | None:
    word, letters, *long = lines_about(PROGRAMS["runners"], call.name)[0].split()
    words, valued, valued_long = word.strip("-").split("|"), letters.strip("-"), tuple(long)
    options = Options(call.args, "" if call.name != "wsl" else valued, valued_long, stops=True)
    rest = options.rest
    if words != [""] and (not rest or rest[0] not in words):
        if rest and rest[0] in _PUBLISHES and "--dry-run" not in call.args:
            call.deny("publishing")
        if call.name == "uv" and rest[:1] in (["pip"], ["tool"]):
            return call.run(rest) if rest[0] == "pip" else None
        return None
    inner = Options(rest[1:] if words != [""] else rest, valued, valued_long, stops=True)
    command = inner.rest
    for given in inner.all("-c"):
        command = [given, *command]
    if call.name == "uv" and inner.has("-m"):
        return call.run(["python", "-m", *command])
    if call.name == "uv" and command and command[0].endswith(".py"):
        command = ["python", *command]
    return call.run(command) if command else None


def nodemon(call: Invocation) -> None:
    options = call.options()
    for command in options.all("-x", "--exec"):
        call.run_text(" ".join([command, *options.rest]))


def terminal(call: Invocation) -> str | None:
    """tmux, screen, terminals: they run a command, or type one."""
    args = call.args
    for i, arg in enumerate(args):
        if arg in ("-e", "-x", "--"):
            call.run_text(" ".join(args[i + 1 :]))
            return None
    return None


def perf(call: Invocation) -> str | None:
    options = call.options()
    inner = Options(options.rest[1:], "eoFpcCtD", (), stops=True)
    return call.run(inner.rest) if options.rest[:1] in (["stat"], ["record"], ["trace"]) and inner.rest else None


def cron_like(call: Invocation) -> str:
    """run-parts: a folder of programs."""
    return OPAQUE if not is_known(" ".join(call.args)) else UNKNOWN
