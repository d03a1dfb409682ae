"""Follows a script statement by statement, taking every branch, and passes each command to its program's rules.

Nothing is run. A command's output is followed where it is plain text (echo, printf, base64 …), because what
one command prints may be what the next one runs.
"""

from ralph.guard import effects
from ralph.guard import syntax as sh
from ralph.guard.expansion import bounded, expand, text_of
from ralph.guard.invocation import invoke
from ralph.guard.parser import DECLARES, literal, parse
from ralph.guard.patterns import one_of
from ralph.guard.state import Shell
from ralph.guard.taint import KEY, UNKNOWN, is_known, taints

_RUN = one_of(
    """
    PROMPT_COMMAND GIT_SSH_COMMAND GIT_PAGER GIT_EDITOR GIT_SEQUENCE_EDITOR GIT_EXTERNAL_DIFF GIT_ASKPASS
    GIT_PROXY_COMMAND PAGER MANPAGER EDITOR VISUAL BROWSER SSH_ASKPASS LESSOPEN LESSCLOSE RSYNC_RSH GIT_SSH SUDO_ASKPASS
    """
)
"""Their value is eventually run as a command by some program."""
_HISTORY = frozenset(("HISTFILE", "HISTSIZE", "HISTFILESIZE", "HISTCONTROL", "HISTIGNORE", "SAVEHIST"))
_OURS = ("RALPH_", "CLAUDE_CODE_SIMPLE", "CLAUDE_CONFIG_DIR")


def judge_variable(shell: Shell, name: str, value: str) -> None:
    shown = [f"{name}={value}"]
    if name.startswith(_OURS):
        shell.deny("tampering", "This changes the variables that tie Ralph's hooks to their run", shown)
    elif name in _HISTORY:
        off = value in ("", "0", "/dev/null") or (name == "HISTIGNORE" and value == "*")
        if off:
            shell.deny("audit", "This disables the shell history", shown)
    elif name in _RUN and value and is_known(value):
        run_text(shell.fork(), value)
    elif name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG"):
        _configuration(shell, effects.contents(shell, value), shown)
    elif name in ("PS0", "PS1", "PS2", "PS4", "PROMPT") and ("`" in value or "$(" in value):
        run_text(shell.fork(), f': "{value}"')
    elif name in ("LD_PRELOAD", "LD_AUDIT", "DYLD_INSERT_LIBRARIES") and value.startswith(
        ("/tmp/", "/var/tmp/", "/dev/shm/")
    ):
        shell.deny("opaque", "This loads code into every program", shown)
    elif name in ("HUSKY", "HUSKY_SKIP_HOOKS") and value in ("0", "1") and (value == "0") == (name == "HUSKY"):
        shell.deny("tampering", "This disables the project's git hooks", shown)
    elif name.startswith("GIT_CONFIG_VALUE_") or name == "GIT_CONFIG_PARAMETERS":
        _configuration(shell, value, shown)
    elif name.startswith("BASH_FUNC_"):
        run_text(shell.fork(), f"imported {value}; imported")
    elif name == "BASH_ENV" or name == "ENV" or name == "ZDOTDIR":
        _startup(shell, value)


def judge_unset(shell: Shell, name: str) -> None:
    if name.startswith(_OURS):
        shell.deny("tampering", "This changes the variables that tie Ralph's hooks to their run", ["unset", name])
    if name in _HISTORY:
        shell.deny("audit", "This disables the shell history", ["unset", name])


def _configuration(shell: Shell, value: str, shown: list[str]) -> None:
    if "hookspath" in value.lower():
        shell.deny("tampering", "This disables git's hooks", shown)
    for line in value.split("\n"):
        if "!" in line:
            run_text(shell.fork(), line.partition("!")[2].strip("'\""))


def _startup(shell: Shell, path: str) -> None:
    """A file that the next shell runs first."""
    from ralph.guard.effects import contents
    from ralph.guard.programs.shells import judge_script

    if ((text := contents(shell, path)) and "/" in path) or is_known(text):
        judge_script(shell.fork(), text, [f"BASH_ENV={path}"])


_MOST_TURNS = 10
_MOST_TRAPS = 3
"""A trap may set another one."""
_LONGEST_OUTPUT = 200_000


def run_text(shell: Shell, text: str, stdin: str = "") -> str:
    """A command line in the same shell, as with `eval`."""
    shell.deeper()
    try:
        return run_script(shell, parse(text), stdin)
    finally:
        shell.depth -= 1


def run_apart(shell: Shell, script: sh.Script, stdin: str = "", is_captured: bool = False) -> str:
    """In a subshell that knows what this one knows."""
    inner = shell.fork()
    inner.is_captured = shell.is_captured or is_captured
    inner.deeper()
    out = run_script(inner, script, stdin)
    end(inner)
    return out


def run_as_file(shell: Shell, part: sh.Proc) -> str:
    """`<(…)` and `>(…)`: a path, and what it stands for."""
    shell.meter.pipes += 1
    path = f"/dev/fd/{62 + shell.meter.pipes}"
    if part.is_input:
        shell.files[path] = run_apart(shell, part.script, is_captured=True)
    else:
        shell.listeners[path] = part.script
        run_apart(shell, part.script, UNKNOWN)
    return path


def end(shell: Shell) -> None:
    """Run the traps when a shell ends."""
    for _ in range(_MOST_TRAPS):
        traps, shell.traps = shell.traps, []
        for trap in traps:
            run_text(shell, trap)


def run_script(shell: Shell, script: sh.Script, stdin: str = "") -> str:
    out = ""
    for i, node in enumerate(script):
        if isinstance(node, sh.Branch):
            variants = _branch(shell, node, stdin)
            for variant in variants[1:]:
                if shell.meter.variants <= 0:
                    break
                shell.meter.variants -= 1
                out += run_script(variant, script[i + 1 :], stdin)
            continue
        out += run(shell, node, stdin)
        if len(out) > _LONGEST_OUTPUT:
            out = UNKNOWN + taints(out)
    return out


def run(shell: Shell, node: sh.Node, stdin: str = "") -> str:
    if isinstance(node, sh.Simple):
        return _simple(shell, node, stdin)
    if isinstance(node, sh.Pipe):
        return _pipe(shell, node, stdin)
    if isinstance(node, sh.Redirected):
        return _redirected(shell, node, stdin)
    if isinstance(node, sh.Group):
        return run_apart(shell, node.body, stdin) if node.is_subshell else run_script(shell, node.body, stdin)
    if isinstance(node, sh.Background):
        shell.spawned += 1
        out = run(shell, node.node, stdin)
        shell.spawned -= 1
        return out
    if isinstance(node, sh.Loop):
        return _loop(shell, node, stdin)
    if isinstance(node, sh.Function):
        shell.functions[node.name] = node.body
        return ""
    if isinstance(node, sh.Branch):
        _branch(shell, node, stdin)
    return ""


def _simple(shell: Shell, node: sh.Simple, stdin: str) -> str:
    if not node.words:
        for assign in node.assigns:
            _assign(shell, assign)
        return _write_redirects(shell, node.redirects, "", [])
    shell.stdin = stdin
    argv = [field for word in node.words for field in expand(shell, word)]
    if argv and argv[0] in DECLARES:
        is_reference = any(arg[:1] == "-" and "n" in arg for arg in argv[1:])
        for assign in node.assigns:
            if is_reference:
                shell.references[assign.name] = text_of(shell, assign.value)
            else:
                _assign(shell, assign)
        env: dict[str, str] = {}
    else:
        env = {assign.name: text_of(shell, assign.value) for assign in node.assigns}
        for name, value in env.items():
            judge_variable(shell, name, value)
    stdin = _read_redirects(shell, node.redirects, stdin)
    out = invoke(shell, argv, stdin, env) if argv else ""
    if node.redirects:
        out = _write_redirects(shell, node.redirects, out, argv)
    if KEY in out and not shell.is_captured:
        shell.deny("exfiltration", "This shows a password or a token", argv)
    return out


def _assign(shell: Shell, assign: sh.Assign) -> None:
    name = shell.references.get(assign.name, assign.name)
    if assign.items is not None:
        values = [field for item in assign.items for field in expand(shell, item)]
        for value in values:
            if value.startswith("[") and "]=" in value:
                key, _, member = value[1:].partition("]=")
                shell.vars[f"{name}[{key}]"] = [member]
        values = [value.partition("]=")[2] if value.startswith("[") and "]=" in value else value for value in values]
        shell.vars[name] = [*shell.vars.get(name, []), *values] if assign.adds else values
        return
    value = text_of(shell, assign.value)
    if assign.adds:
        value = bounded((shell.vars.get(name) or [""])[0] + value)
    if assign.index:
        run_text(shell.fork(), f": {assign.index}") if "$(" in assign.index or "`" in assign.index else None
        shell.vars[f"{name}[{assign.index}]"] = [value]
        if assign.index.isdigit():
            members = [*shell.vars.get(name, [])]
            members += [""] * (min(int(assign.index), 100) + 1 - len(members))
            members[min(int(assign.index), 100)] = value
            shell.vars[name] = members
        return
    judge_variable(shell, name, value)
    shell.vars[name] = [value]


def _pipe(shell: Shell, node: sh.Pipe, stdin: str) -> str:
    shell.spawned += 1
    for item in node.items:
        inner = shell.fork()
        inner.is_captured = shell.is_captured or item is not node.items[-1]
        stdin = run(inner, item, stdin)
        end(inner)
    shell.spawned -= 1
    return stdin


def _redirected(shell: Shell, node: sh.Redirected, stdin: str) -> str:
    stdin = _read_redirects(shell, node.redirects, stdin)
    before = shell.is_captured
    shell.is_captured = before or any(
        redirect.op[0] == ">" and redirect.fd in ("", "1") and text_of(shell, redirect.word) != "/dev/null"
        for redirect in node.redirects
    )
    out = run(shell, node.node, stdin)
    shell.is_captured = before
    return _write_redirects(shell, node.redirects, out, ["{ … }"])


def _loop(shell: Shell, node: sh.Loop, stdin: str) -> str:
    if node.name:
        values = [field for word in node.words for field in expand(shell, word)]
        out = ""
        for value in list(dict.fromkeys(values))[:_MOST_TURNS] or [UNKNOWN]:
            shell.vars[node.name] = [value]
            out += run_script(shell, node.body, stdin)
        return out
    if _never_ends(node) and _spawns(node.body):
        shell.deny("fork-bomb", "This starts an unlimited number of processes", ["while true; do … & done"])
    lines = stdin.splitlines()[:_MOST_TURNS] if is_known(stdin) and "\n" in stdin else [stdin]
    out = ""
    for line in lines:
        run_script(shell, node.condition, line)
        out += run_script(shell, node.body, line)
    return out


def _never_ends(node: sh.Loop) -> bool:
    first = node.condition[0] if len(node.condition) == 1 else None
    return isinstance(first, sh.Simple) and len(first.words) == 1 and literal(first.words[0]) in ("true", ":")


def _spawns(body: sh.Script) -> bool:
    names = {literal(node.words[0]) for node in body if isinstance(node, sh.Simple) and node.words}
    return any(isinstance(node, sh.Background) for node in body) and not names & {"sleep", "wait", "read"}


def _branch(shell: Shell, node: sh.Branch, stdin: str) -> list[Shell]:
    """The shells that may continue: one for each different outcome. The first one is this shell."""
    run_script(shell, node.always, stdin)
    before = shell.fork()
    outcomes: list[Shell] = [shell]
    for i, arm in enumerate(node.arms):
        inner = shell if i == 0 else before.fork()
        run_script(inner, arm, stdin)
        if i == 0:
            continue
        shell.functions.update(inner.functions)
        shell.traps += inner.traps
        if all(inner.vars != other.vars or inner.cwd != other.cwd for other in outcomes):
            outcomes.append(inner)
    if len(node.arms) == 1 and (before.vars != shell.vars or before.cwd != shell.cwd):
        outcomes.append(before)
    return outcomes


def _read_redirects(shell: Shell, redirects: list[sh.Redirect], stdin: str) -> str:
    for redirect in redirects:
        if redirect.op == "<&":
            stdin = shell.streams.get(text_of(shell, redirect.word), stdin)
            continue
        if redirect.op not in ("<<", "<<<", "<", "<>"):
            continue
        text = text_of(shell, redirect.word)
        if redirect.op == "<<<":
            text += "\n"
        elif redirect.op != "<<":
            effects.look(shell, text, ["<", text])
            text = effects.contents(shell, text)
        if redirect.fd in ("", "0"):
            stdin = text
        else:
            shell.streams[_descriptor(shell, redirect.fd)] = text
    return stdin


def _write_redirects(shell: Shell, redirects: list[sh.Redirect], out: str, argv: list[str]) -> str:
    """The output that remains for the next command."""
    for redirect in redirects:
        op = redirect.op
        if op in ("<<", "<<<", "<", "<&") and not _is_network(shell, redirect):
            continue
        target = text_of(shell, redirect.word)
        if op == ">&" and (process := _coprocess(shell, redirect.word)):
            run_apart(shell, process, out)
        if op == ">&" and (opened := shell.outputs.get(target)):
            effects.redirect(shell, opened, ">>", out, argv)
        if op == ">&" and (target.isdigit() or target == "-" or target in shell.outputs or not is_known(target)):
            continue
        if op in (">", ">>", "<>", ">|") and redirect.fd not in ("", "1", "2"):
            shell.outputs[_descriptor(shell, redirect.fd)] = target
        is_output = redirect.fd in ("", "1") and op != "<>"
        effects.redirect(shell, target, op, out if is_output else "", argv)
        if is_output:
            out = ""
    return out


def _coprocess(shell: Shell, word: sh.Word) -> sh.Script | None:
    """What reads from `${NAME[1]}`."""
    parts = [inner for part in word for inner in (part.parts if isinstance(part, sh.Quoted) else [part])]
    names = [part.name for part in parts if isinstance(part, sh.Var) and part.index == "1"]
    return shell.functions.get(f"coproc {names[0]}") if names else None


def _descriptor(shell: Shell, fd: str) -> str:
    """`{name}` has the shell choose a number, and set the variable to it."""
    if fd[:1] == "{":
        shell.vars[fd[1:-1]] = [fd]
    return fd


def _is_network(shell: Shell, redirect: sh.Redirect) -> bool:
    return redirect.op == "<" and text_of(shell, redirect.word).startswith(("/dev/tcp/", "/dev/udp/"))
