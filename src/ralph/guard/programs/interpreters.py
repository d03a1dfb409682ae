"""Interpreters: code passed on the command line, on stdin, or in a file that the command itself wrote."""

from ralph.guard import effects
from ralph.guard.effects import contents
from ralph.guard.invocation import Invocation, Options, invoke
from ralph.guard.patterns import pairs
from ralph.guard.taint import OPAQUE, UNKNOWN, is_known


def python(call: Invocation) -> str | None:
    args = call.args
    i = 0
    while i < len(args) and args[i].startswith("-") and args[i] != "-":
        arg = args[i]
        if arg.startswith("--"):
            i += 1
            continue
        for at, letter in enumerate(arg[1:], 1):
            if letter in "cm":
                value = arg[at + 1 :] or (args[i + 1] if i + 1 < len(args) else "")
                rest = args[i + 1 :] if arg[at + 1 :] else args[i + 2 :]
                return _python_code(call, value) if letter == "c" else _python_module(call, value, rest)
            if letter in "WXQ":
                i += 0 if arg[at + 1 :] else 1
                break
        i += 1
    if i < len(args) and args[i] != "-":
        return _python_file(call, args[i], args[i + 1 :])
    return _python_code(call, call.stdin) if call.stdin else None


def _python_file(call: Invocation, path: str, rest: list[str]) -> str | None:
    name = path.rpartition("/")[2]
    if name == "manage.py":
        return invoke(call.shell, ["manage.py", *rest], call.stdin, call.env)
    if name == "setup.py" and {"upload", "register"} & set(rest):
        call.deny("publishing")
    text = call.stdin if path == "/dev/stdin" else contents(call.shell, path)
    return _python_code(call, text) if text.strip(UNKNOWN) else None


def _python_module(call: Invocation, name: str, rest: list[str]) -> str | None:
    if name in ("this", "json.tool", "venv", "site", "platform"):
        return None
    if name in ("timeit", "code", "pdb"):
        for code in rest:
            _python_code(call, code)
        return None
    if name == "base64" and ("-d" in rest or "-u" in rest):
        return OPAQUE
    return call.run([name.rpartition(".")[2] if name.startswith("pip.") else name, *rest])


def _python_code(call: Invocation, code: str) -> str | None:
    judge_source(call, code)
    from ralph.guard.programs.python_code import judge_python

    judge_python(call, code)
    return OPAQUE if "print" in code or "write" in code else call.output()


def judge_source(call: Invocation, code: str) -> None:
    call.shell.deny_hidden(code.strip()[:3], call.argv)


_CODE_FLAGS = pairs(
    """
    perl=eE ruby=e node=ep nodejs=ep bun=ep php=rRBE lua=e luajit=e osascript=e Rscript=e R=e julia=eE groovy=e
    elixir=e erl= ghc=e expect=c tclsh= irb=e ts-node=ep tsx=ep crystal= jshell= scala=e guile=c racket=e sbcl=
    swift=e octave= pike=e qjs=e
    """
)
"""The letters of options whose value is code."""
_HOME_IN_TEXT = (
    "$ENV{HOME}",
    "$ENV{'HOME'}",
    "#{Dir.home}",
    "#{ENV['HOME']}",
    "${process.env.HOME}",
    "${os.homedir()}",
)
"""The home folder inside a string."""
_CODE_LONG = ("--eval", "--print", "--run", "-eval", "--command", "-noshell-eval", "--expr")
_VALUED = pairs("perl=IMm ruby=rICEKTW node=rC nodejs=rC php=cdfgStz lua=l bun=r")
_LANGUAGE = pairs("nodejs=node bun=node deno=node ts-node=node tsx=node qjs=node irb=ruby luajit=lua")


def script(call: Invocation) -> str | None:
    """perl, ruby, node, php and others."""
    flags = _CODE_FLAGS[call.name]
    language = _LANGUAGE.get(call.name, call.name)
    in_place = call.name in ("perl", "ruby")
    options = Options(
        call.args, flags + _VALUED.get(call.name, ""), (*_CODE_LONG, "--require", "--import"), stops=not in_place
    )
    codes = [value for name, value in options.values if (name[-1:] in flags and len(name) == 2) or name in _CODE_LONG]
    if in_place and options.has("-i"):
        call.write(*options.rest)
    printed = False
    for code in codes:
        _judge_code(call, language, f"console.log({code})" if "-p" in options.flags and language == "node" else code)
        printed = True
    if not codes and options.rest and options.rest[0] != "-":
        text = contents(call.shell, options.rest[0])
        _judge_code(call, language, text)
    elif not codes and call.stdin:
        _judge_code(call, language, call.stdin)
        printed = True
    return OPAQUE if printed else None


def _judge_code(call: Invocation, language: str, code: str) -> None:
    if not code.strip(UNKNOWN + " \n"):
        return
    judge_source(call, code)
    for form in _HOME_IN_TEXT:
        code = code.replace(form, call.shell.places.home)
    from ralph.guard.programs.script_code import judge_code

    judge_code(call, language, code)


def deno(call: Invocation) -> str | None:
    words = call.options().rest
    if words[:1] == ["eval"] and len(words) > 1:
        _judge_code(call, "node", words[1])
        return OPAQUE
    from ralph.guard.programs.rules import judge

    return judge(call)


def bun(call: Invocation) -> str | None:
    if any(arg in ("-e", "-p", "--eval", "--print") for arg in call.args[:2]):
        return script(call)
    from ralph.guard.programs.rules import judge

    return judge(call)


def php(call: Invocation) -> str | None:
    if "-S" in call.args:
        call.run(["httpd", *(arg for arg in call.args if ":" not in arg)])
    if call.args[:1] and call.args[0].rpartition("/")[2] in ("artisan", "console"):
        return invoke(call.shell, ["artisan", *call.args[1:]], call.stdin, call.env)
    return script(call)


def ruby(call: Invocation) -> str | None:
    if "-run" in call.args and "httpd" in call.args:
        call.run(["httpd", *call.args[call.args.index("httpd") + 1 :]])
    if call.args[:1] and call.args[0].rpartition("/")[2] in ("rails", "rake"):
        return invoke(call.shell, [call.args[0].rpartition("/")[2], *call.args[1:]], call.stdin, call.env)
    return script(call)


def awk(call: Invocation) -> str | None:
    options = call.options()
    for path in options.all("-f", "--file"):
        _judge_code(call, "awk", call.stdin if path in ("-", "/dev/stdin") else contents(call.shell, path))
    codes = options.all("-e", "--source") or ([] if options.has("-f", "--file") else options.rest[:1])
    for code in codes:
        _judge_code(call, "awk", code)
    if options.value("-i") == "inplace":
        call.write(*options.rest[1:])
    paths = options.rest[1:]
    call.look(*paths)
    if any("BEGIN" in code or '"' in code for code in codes):
        return OPAQUE
    data = call.stdin or call.files(paths)
    if data.strip() in ("*", "./*"):
        return data
    return OPAQUE if data and is_known(data) else call.output()


def make(call: Invocation) -> None:
    options = call.options()
    for text in options.all("--eval"):
        _recipes(call, text.replace(";", "\n\t"))
    for path in options.all("-f", "--file", "--makefile", "--justfile"):
        _recipes(call, call.stdin if path in ("-", "/dev/stdin") else contents(call.shell, path))
    for word in options.rest:
        name, equals, value = word.partition("=")
        if equals and name == "SHELL":
            call.run_text(value)
    folder = options.value("-C", "--directory") or "."
    written = call.shell.files.get(call.shell.full(f"{folder}/Makefile"))
    if written and not options.has("-f", "--file"):
        _recipes(call, written)


def _recipes(call: Invocation, text: str) -> None:
    judge_source(call, text)
    for line in text.split("\n"):
        if line.startswith(("\t", "    ")) and is_known(line):
            call.run_text(line.strip().lstrip("@-+").replace("$$", "$"))
        elif ";" in line and ":" in line.partition(";")[0]:
            call.run_text(line.partition(";")[2])
        elif "$(shell " in line:
            call.run_text(line.partition("$(shell ")[2].rstrip(")"))


def compiler(call: Invocation) -> None:
    """C code from stdin, or written by the command itself."""
    for path in call.options().rest:
        text = call.stdin if path == "-" else call.shell.files.get(call.shell.full(path), "")
        _judge_code(call, "node", text)


def debugger(call: Invocation) -> None:
    """gdb and lldb: they run programs, and shells."""
    args = call.args
    for i, arg in enumerate(args):
        if arg in ("-ex", "--eval-command", "-iex", "-o", "--one-line") and i + 1 < len(args):
            command = args[i + 1]
            for mark in ("shell ", "!", "platform shell ", "make "):
                if command.startswith(mark):
                    call.run_text(command[len(mark) :])
            if command.startswith(("python ", "script ")):
                _python_code(call, command.partition(" ")[2])
        if arg in ("--args", "--"):
            call.run(args[i + 1 :])
            break


def editor(call: Invocation) -> None:
    """vim, ed, emacs: commands with an exclamation mark go to a shell."""
    texts = [call.stdin]
    args = call.args
    for i, arg in enumerate(args):
        is_command = arg in ("--cmd", "--eval", "--funcall") or (
            arg[:1] == "-" and arg[1:2] != "-" and arg[-1] in "cef"
        )
        if is_command and i + 1 < len(args):
            texts.append(args[i + 1])
        elif arg.startswith("+"):
            texts.append(arg[1:])
    for text in texts:
        for line in text.split("\n"):
            _editor_line(call, line.strip().lstrip(":"))
    for path in args:
        if not path.startswith(("-", "+")) and path not in texts:
            effects.write(call.shell, path, call.argv, appends=True)


def _editor_line(call: Invocation, line: str) -> None:
    for mark in ("silent !", "silent! !", "!", "r !", "r!", "%!", "w !", "sil! !", "exe '!", 'exe "!', "execute '!"):
        if line.startswith(mark):
            call.run_text(line[len(mark) :].rstrip("'\""))
            return
    if "call-process" in line or "start-process" in line:
        call.run([piece for piece in line.partition("-process")[2].split('"')[1::2] if piece])
    for name in (
        "system(",
        "shell-command ",
        "shell-command-to-string ",
        "delete-directory ",
        "delete-file ",
        "os.execute(",
    ):
        if name in line:
            inside = line.partition(name)[2].strip("'\") \n").partition('"')[0]
            if name.startswith("delete"):
                effects.delete(call.shell, _home(call, inside.strip('"')), call.argv, True)
            else:
                call.run_text(inside)


def _home(call: Invocation, path: str) -> str:
    return call.shell.places.home + path[1:] if path.startswith("~") else path
