"""What `printf` makes of its arguments, `tr` of its input, `cut` of its lines: enough to see through tricks."""

from ralph.hooks.guard.escapes import unescape
from ralph.hooks.guard.marks import OPAQUE, UNKNOWN, is_known

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
