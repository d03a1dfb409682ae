"""Programs that read and print: harmless themselves, but their output may be run or sent away."""

import binascii

from ralph.guard import effects
from ralph.guard.invocation import Invocation
from ralph.guard.parser import unescape
from ralph.guard.paths import normal
from ralph.guard.taint import (
    EVERYONE,
    KEY,
    LOCAL,
    OPAQUE,
    PARENT,
    SECRET,
    UNKNOWN,
    is_known,
    is_secret_name,
    secret_marks,
    taints,
)


def sed(call: Invocation) -> str:
    options = call.options()
    scripts = options.all("-e", "--expression")
    paths = options.rest
    if not scripts and not options.has("-f", "--file"):
        scripts, paths = paths[:1], paths[1:]
    in_place = options.has("-i", "--in-place") or any(arg.startswith("-i") for arg in call.args)
    if in_place and paths and paths[0] == "" and "-i" in call.args:  # BSD: -i ''
        paths = paths[1:]
    data = call.files(paths)
    for text in scripts:
        _judge_sed(call, text, data)
    if in_place:
        call.write(*paths)
        return ""
    call.look(*paths)
    return _sed_edited(scripts, data)


def _judge_sed(call: Invocation, script: str, data: str) -> None:
    for line in script.replace(";", "\n").split("\n"):
        body = line.strip().lstrip("0123456789,$ {")
        if body.startswith("e ") or (body == "e" and data):
            call.run_text(body[2:] or data)
        elif body.startswith(("w ", "W ")):
            effects.write(call.shell, body[2:].strip(), call.argv)
        elif body.startswith("s") and len(body) > 3 and not body[1].isalnum():
            parts = _sed_parts(body)
            flags = parts[2] if len(parts) > 2 else ""
            if "e" in flags.partition("w")[0]:
                call.run_text(parts[1].replace("&", data.strip()))
            if "w" in flags:
                effects.write(call.shell, flags.partition("w")[2].strip(), call.argv)


def _sed_parts(text: str) -> list[str]:
    """Parts of an `s` command: pattern, replacement, flags."""
    mark = text[1]
    parts: list[str] = []
    current, i = "", 2
    while i < len(text):
        if text[i] == "\\" and i + 1 < len(text):
            current += text[i + 1] if text[i + 1] == mark else text[i : i + 2]
            i += 2
            continue
        if text[i] == mark and len(parts) < 2:
            parts.append(current)
            current = ""
        else:
            current += text[i]
        i += 1
    return [*parts, current]


def _sed_edited(scripts: list[str], data: str) -> str:
    """Replacing one literal text with another can be followed; anything else cannot."""
    if not data or not is_known(data):
        return data if data.strip(UNKNOWN + "\n") == "" and data else UNKNOWN + taints(data) if data else UNKNOWN
    for script in scripts:
        parts = _sed_parts(script) if script.startswith("s") and len(script) > 3 and not script[1].isalnum() else []
        if len(parts) < 3 or any(letter in parts[0] for letter in ".*[]^$\\+?(){}|") or set(parts[2]) - set("g"):
            return OPAQUE
        data = data.replace(parts[0], parts[1].replace("\\", ""), -1 if "g" in parts[2] else 1)
    return data


_MOST_ROUNDS = 50


def formatted(form: str, args: list[str]) -> str:
    """The format is reused until no argument is left."""
    out = ""
    rest = list(args)
    for _ in range(_MOST_ROUNDS):
        text, used = _once(form, rest)
        out += text
        rest = rest[used:]
        if not rest or not used:
            break
    return out


def _once(form: str, args: list[str]) -> tuple[str, int]:
    out: list[str] = []
    used, i = 0, 0
    plain = ""
    while i < len(form):
        if form[i] != "%":
            plain += form[i]
            i += 1
            continue
        if form.startswith("%%", i):
            plain += "%"
            i += 2
            continue
        stop = i + 1
        while stop < len(form) and form[stop] in "-+ #0123456789.*'lhjz":
            stop += 1
        if stop < len(form) and form[stop] == "(":
            stop = form.find(")", stop) + 1 or len(form)
        letter = form[stop] if stop < len(form) else "s"
        value = args[used] if used < len(args) else ""
        used += 1
        out += [unescape(plain), _converted(letter, value, form[i + 1 : stop])]
        plain = ""
        i = stop + 1
    return "".join(out) + unescape(plain), used


def _converted(letter: str, value: str, width: str) -> str:
    if letter == "b":
        return unescape(value)
    if letter == "c":
        return value[:1]
    if letter in "diouxX" and is_known(value):
        return _number(letter, value)
    if "." in width and (precision := width.rpartition(".")[2]).isdigit():
        return value[: int(precision)]
    return value


def _number(letter: str, value: str) -> str:
    try:
        number = ord(value[1]) if value[:1] in "'\"" and len(value) > 1 else int(value or "0", 0)
    except ValueError:
        return "0"
    return {"o": f"{number:o}", "x": f"{number:x}", "X": f"{number:X}"}.get(letter, str(number))


def translated(text: str, args: list[str]) -> str:
    """`tr`."""
    flags = "".join(arg[1:] for arg in args if arg.startswith("-") and len(arg) > 1 and not arg.startswith("--"))
    sets = [_set(arg) for arg in args if not arg.startswith("-") or arg == "-"]
    if not sets or "c" in flags or "C" in flags:
        return OPAQUE if is_known(text) else UNKNOWN
    if "d" in flags:
        return "".join(letter for letter in text if letter not in sets[0])
    if len(sets) < 2:
        return text
    new = sets[1] + sets[1][-1:] * max(0, len(sets[0]) - len(sets[1]))
    table = dict(zip(sets[0], new, strict=False))
    return "".join(table.get(letter, letter) for letter in text)


_CLASSES = {
    "[:upper:]": "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "[:lower:]": "abcdefghijklmnopqrstuvwxyz",
    "[:digit:]": "0123456789",
    "[:space:]": " \t\n\r\v\f",
    "[:blank:]": " \t",
}


def _set(text: str) -> str:
    for name, letters in _CLASSES.items():
        text = text.replace(name, letters)
    text = unescape(text)
    out = ""
    i = 0
    while i < len(text):
        if i + 2 < len(text) and text[i + 1] == "-" and text[i] <= text[i + 2]:
            out += "".join(chr(number) for number in range(ord(text[i]), ord(text[i + 2]) + 1))
            i += 3
        else:
            out += text[i]
            i += 1
    return out


def cut(text: str, characters: str, delimiter: str, fields: str) -> str:
    """`cut -c` and `cut -d -f`, line by line."""
    wanted = _ranges(characters or fields)
    lines = []
    for line in text.splitlines():
        if characters:
            lines.append("".join(line[low:high] for low, high in wanted))
        else:
            parts = line.split(delimiter)
            kept = [part for low, high in wanted for part in parts[low:high]] if len(parts) > 1 else parts
            lines.append(delimiter.join(kept))
    return "\n".join(lines) + "\n"


def _ranges(text: str) -> list[tuple[int, int | None]]:
    found: list[tuple[int, int | None]] = []
    for piece in text.split(","):
        low, dash, high = piece.partition("-")
        if (low and not low.isdigit()) or (high and not high.isdigit()):
            continue
        first = int(low or 1) - 1
        found.append((first, (int(high) if high else None) if dash else first + 1))
    return found


def cat(call: Invocation) -> str:
    """Also head, tail, sort and others that print part of it, or reorder it: all of it is judged."""
    paths = call.options().rest
    call.run_texts(*(arg[2:] for arg in call.args if arg.startswith("+!")))  # less and more start with a command
    call.look(*paths)
    return call.files(paths)


def transform(call: Invocation) -> str:
    """The output differs from the input: what was readable no longer is."""
    paths = [arg for arg in call.args if not arg.startswith("-")]
    call.look(*paths)
    return _changed(call.stdin or call.files(paths))


def _changed(data: str) -> str:
    return OPAQUE if data and is_known(data) else UNKNOWN + taints(data)


def base64(call: Invocation) -> str:
    options = call.options()
    call.look(*options.rest)
    data = call.files(options.rest or options.all("-i"))
    if not options.has("-d", "-D", "--decode"):
        if not is_known(data):
            return UNKNOWN + taints(data)
        return binascii.b2a_base64(data.encode(), newline=False).decode() + "\n"
    if not is_known(data) or not data:
        return OPAQUE + taints(data)
    if call.name == "base32" or options.has("--base32"):
        return _base32(data)
    return decoded(data)


def decoded(data: str) -> str:
    data = "".join(data.split()).replace("-", "+").replace("_", "/")
    try:
        return binascii.a2b_base64(data + "=" * (-len(data) % 4)).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return OPAQUE


def _base32(data: str) -> str:
    import base64 as coding

    try:
        return coding.b32decode("".join(data.split())).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return OPAQUE


def xxd(call: Invocation) -> str:
    options = call.options()
    call.look(*options.rest[:1])
    data = call.files(options.rest[:1])
    if not options.has("-r"):
        return UNKNOWN + taints(data)
    if not data or not is_known(data):
        return OPAQUE + taints(data)
    digits = "".join(line.partition(":")[2].strip() if ":" in line else line for line in data.splitlines())
    try:
        return bytes.fromhex("".join(digits.split()).replace("0x", "").replace("\\x", "")).decode("utf-8", "replace")
    except ValueError:
        return OPAQUE


def reverse(call: Invocation) -> str:
    data = call.files(call.options().rest)
    return "\n".join(line[::-1] for line in data.split("\n"))


def translate(call: Invocation) -> str:
    if not is_known(call.stdin):
        return call.stdin if call.stdin.strip(LOCAL + "./* \n") == "" else UNKNOWN + taints(call.stdin)
    return translated(call.stdin, call.args)


def cut_lines(call: Invocation) -> str:
    options = call.options()
    data = call.files(options.rest)
    if not is_known(data):
        return UNKNOWN + taints(data)
    return cut(data, options.value("-c", "-b") or "", options.value("-d") or "\t", options.value("-f") or "1-")


def unpack(call: Invocation) -> str:
    """What was compressed or encrypted cannot be read here."""
    from ralph.guard.programs.rules import apply_rules

    unpacks = call.name in ("zcat", "gunzip", "bunzip2", "unxz", "uudecode", "gpg", "bzcat", "xzcat") or any(
        arg in ("-d", "-dc", "-cd", "--decompress", "--decrypt", "-D") or (arg.startswith("-d") and len(arg) < 4)
        for arg in call.args
    )
    apply_rules(call, call.name, call.args)
    return (OPAQUE if unpacks else "") + call.output()


def openssl(call: Invocation) -> str:
    words = [arg for arg in call.args if not arg.startswith("-")]
    flags = {arg for arg in call.args if arg.startswith("-")}
    if words[:1] == ["s_client"]:
        from ralph.guard.programs.network import judge_socket

        return judge_socket(call, call.args)
    if "-d" in flags:
        if words[:1] == ["base64"] or (flags & {"-base64", "-a"} and len(flags - {"-base64", "-a", "-d", "-A"}) == 0):
            path = call.args[call.args.index("-in") + 1] if "-in" in call.args[:-1] else ""
            data = effects.contents(call.shell, path) if path else call.stdin
            return decoded(data) if data and is_known(data) else OPAQUE + taints(data)
        return OPAQUE + taints(call.output())
    return call.output()


def tee(call: Invocation) -> str:
    options = call.options()
    for path in options.rest:
        effects.redirect(call.shell, path, ">>" if options.has("-a", "--append") else ">", call.stdin, call.argv)
    return call.stdin


def base_name(call: Invocation) -> str:
    rest = call.options().rest
    if not rest or not is_known(rest[0]):
        return call.output()
    path = rest[0].rstrip("/")
    if call.name == "dirname":
        return (path.rpartition("/")[0] or ("/" if path.startswith("/") else ".")) + "\n"
    name = path.rpartition("/")[2]
    return (name.removesuffix(rest[1]) if len(rest) > 1 else name) + "\n"


def working_folder(call: Invocation) -> str:
    return call.shell.cwd + "\n"


def real_path(call: Invocation) -> str:
    rest = call.options().rest
    if not rest or not is_known(rest[0]) or not call.shell.cwd.startswith("/"):
        return call.output()
    return normal(rest[0] if rest[0].startswith("/") else f"{call.shell.cwd}/{rest[0]}") + "\n"


def make_temp(call: Invocation) -> str:
    options = call.options()
    folder = options.value("-p", "--tmpdir")
    name = options.rest[0] if options.rest else "tmp.0123456789"
    if "/" in name:
        return name + "\n"
    if folder or not options.rest or options.has("-t"):
        return f"{folder or '/tmp'}/{name}\n"
    return f"./{name}\n"


def which(call: Invocation) -> str:
    return "".join(f"/usr/bin/{name}\n" for name in call.options().rest)


def print_environment(call: Invocation) -> str:
    names = call.options().rest
    if not names:
        return UNKNOWN + SECRET
    return "".join(call.shell.names.mark(name) + secret_marks(name) for name in names)


def date(call: Invocation) -> str:
    if call.options().has("-s", "--set"):
        call.deny("system", "This sets the clock")
    return "20240101\n"


def sequence(call: Invocation) -> str:
    return "1\n2\n3\n"


def yes(call: Invocation) -> str:
    return (" ".join(call.args) or "y") + "\n"


def json(call: Invocation) -> str:
    if call.name == "yq" and any(arg in ("-i", "--inplace") for arg in call.args):
        call.write(call.args[-1])
        return ""
    if {"-n", "-rn", "-nr", "--null-input"} & set(call.args):
        return OPAQUE
    return _changed(call.stdin) if call.stdin else call.output()


def list_files(call: Invocation) -> str:
    options = call.options()
    if not options.rest:
        return "*\n"
    return "".join(f"{path}\n" if "*" in path or options.has("-d") else f"{path}/{LOCAL}\n" for path in options.rest)


def search(call: Invocation) -> str:
    """grep and similar. What they select from a list of names is still names, but no longer all of them."""
    options = call.options()
    if program := options.value("--pre"):
        call.run([program, UNKNOWN])
    words = options.rest if options.has("-e", "-f", "--files") else options.rest[1:]
    call.look(*words)
    if options.has("--files"):
        return "".join(f"{path}/*\n" for path in words) or "*\n"
    if options.has("-l", "--files-with-matches", "-L"):
        return "".join(f"{path}/{LOCAL}\n" for path in words) or LOCAL
    if words or not call.stdin:
        return call.output()
    if SECRET in call.stdin and options.rest and is_secret_name(options.rest[0]):
        return call.stdin + KEY
    if EVERYONE in call.stdin and not options.has("-v", "--invert-match"):
        from ralph.guard.programs.system import is_broad, is_ours

        pattern = options.value("-e") or (options.rest[0] if options.rest else "")
        return EVERYONE if is_broad(pattern) or is_ours(pattern) else UNKNOWN
    if options.has("-o", "--only-matching") and is_known(call.stdin):
        return OPAQUE
    if call.stdin.strip() in ("*", "./*", f"./{LOCAL}") and not options.has("-v", "--invert-match"):
        return LOCAL
    return call.stdin


def processes(call: Invocation) -> str:
    """Which processes: all of them, unless some are named."""
    from ralph.guard.programs.system import is_broad, is_ours

    text = " ".join(call.args)
    if call.name in ("pgrep", "pidof"):
        options = call.options()
        if not options.rest and not options.has("-P", "-t"):
            return EVERYONE
        return EVERYONE if any(is_broad(word) or is_ours(word) for word in options.rest) else UNKNOWN
    if "ppid" in text and "--ppid" not in text:
        return PARENT
    if any(is_broad(after) for flag, after in zip(call.args, call.args[1:], strict=False) if flag == "-C"):
        return EVERYONE
    named = any(flag in text for flag in ("-p", "-C", "--pid", "--ppid"))
    return UNKNOWN if named and "-ep" not in text else EVERYONE


def open_files(call: Invocation) -> str:
    """`lsof -t -i` lists every process with a connection; with a port it is one program."""
    text = " ".join(call.args)
    return UNKNOWN if ":" in text or "-p" in call.args or "+D" in call.args or "-t" not in text else EVERYONE
