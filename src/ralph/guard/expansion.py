"""Expand words to text: braces, tildes, variables, substitutions, splitting. Unknown values become marks."""

from ralph.guard.parser import unescape
from ralph.guard.patterns import braces, has_glob, matches
from ralph.guard.state import Shell
from ralph.guard.syntax import Lit, Part, Proc, Quoted, Sub, Sum, Var, Word
from ralph.guard.taint import OUTPUT, PLACEHOLDER, UNKNOWN, is_known, is_mark, secret_marks, taints

_MOST_FIELDS = 200
_LONGEST = 100_000
_LONGEST_EDITED = 4000


def expand(shell: Shell, word: Word) -> list[str]:
    """The fields a word expands to: none, one or several."""
    if len(word) == 1 and isinstance(word[0], Lit):
        text = word[0].text
        if word[0].quoted:
            return [text]
        if "{" not in text and not text.startswith("~"):
            return [text]
    fields: list[str] = []
    for each in _brace_expanded(word):
        fields += _fields(shell, each)
    return [bounded(field) for field in fields[:_MOST_FIELDS]]


def text_of(shell: Shell, word: Word) -> str:
    """A word where it is not split: in an assignment, a here-document, a redirection."""
    out = ""
    for i, part in enumerate(word):
        if i == 0 and isinstance(part, Lit) and not part.quoted:
            out += _tilde(shell, part.text)
        else:
            out += " ".join(_values(shell, part))
    return bounded(out)


def bounded(text: str) -> str:
    """Limits the length: `a=$a$a$a`, repeated forty times, need not be known in full."""
    return text if len(text) <= _LONGEST else UNKNOWN + taints(text)


def _brace_expanded(word: Word) -> list[Word]:
    if not any(isinstance(part, Lit) and not part.quoted and "{" in part.text for part in word):
        return [word]
    first = ord(PLACEHOLDER)
    flat = "".join(
        part.text if isinstance(part, Lit) and not part.quoted else chr(first + i) for i, part in enumerate(word)
    )
    found = braces(flat)
    if found == [flat]:
        return [word]
    return [_unflattened(text, word, first) for text in found]


def _unflattened(text: str, word: Word, first: int) -> Word:
    parts: Word = []
    plain = ""
    for letter in text:
        if ord(letter) >= first:
            parts += [Lit(plain), word[ord(letter) - first]]
            plain = ""
        else:
            plain += letter
    return [*parts, Lit(plain)]


def _fields(shell: Shell, word: Word) -> list[str]:
    fields: list[str] = []
    current = ""
    is_open = False
    """The current field has content, even if it is empty."""
    for i, part in enumerate(word):
        if isinstance(part, Lit):
            current += _tilde(shell, part.text) if i == 0 and not part.quoted else part.text
            is_open = is_open or part.quoted or bool(part.text)
            continue
        if isinstance(part, Quoted):
            values = _quoted(shell, part)
            if not values:
                continue
            fields += [current + values[0], *values[1:-1]] if len(values) > 1 else []
            current = values[-1] if len(values) > 1 else current + values[0]
            is_open = True
            continue
        for number, value in enumerate(_values(shell, part)):
            pieces = _split(shell, value)
            if number and is_open:
                fields.append(current)
                current, is_open = "", False
            if not pieces:
                if value and is_open:  # nothing but blanks: they end the field
                    fields.append(current)
                    current, is_open = "", False
                continue
            if value[:1].isspace() and is_open and current:
                fields.append(current)
                current = ""
            fields += [current + pieces[0], *pieces[1:-1]] if len(pieces) > 1 else []
            current = pieces[-1] if len(pieces) > 1 else current + pieces[0]
            is_open = True
            if value[-1:].isspace():
                fields.append(current)
                current, is_open = "", False
    if is_open:
        fields.append(current)
    return fields


def _split(shell: Shell, value: str) -> list[str]:
    """Split the result of an unquoted expansion."""
    ifs = shell.vars.get("IFS")
    if ifs and ifs[0] not in (" \t\n", "") and is_known(ifs[0]):
        for letter in ifs[0]:
            value = value.replace(letter, " ")
    return value.split()


def _quoted(shell: Shell, part: Quoted) -> list[str]:
    """One field, except for `"$@"` and `"${array[@]}"`."""
    fields = [""]
    for each in part.parts:
        if isinstance(each, Var) and (each.name == "@" or each.index == "@"):
            values = variable(shell, each)
            if not values and len(part.parts) == 1:
                return []
            values = values or [""]
            fields[-1] += values[0]
            fields += values[1:]
        else:
            fields[-1] += " ".join(_values(shell, each))
    return fields


def _tilde(shell: Shell, text: str) -> str:
    if not text.startswith("~"):
        return text
    name, slash, rest = text[1:].partition("/")
    if name == "":
        return shell.places.home + slash + rest
    if name in ("+", "-"):
        return (shell.cwd if name == "+" else UNKNOWN) + slash + rest
    return (("/root" if name == "root" else f"/home/{name}") + slash + rest) if name.isalnum() else text


def _values(shell: Shell, part: Part) -> list[str]:
    if isinstance(part, Lit):
        return [part.text]
    if isinstance(part, Quoted):
        return [" ".join(_quoted(shell, part))]
    if isinstance(part, Var):
        return variable(shell, part)
    from ralph.guard.evaluator import run_apart, run_as_file

    if isinstance(part, Sub):
        return [run_apart(shell, part.script, shell.stdin, True).rstrip("\n").replace(UNKNOWN, OUTPUT)]
    if isinstance(part, Proc):
        return [run_as_file(shell, part)]
    if isinstance(part, Sum):
        for script in part.scripts:
            run_apart(shell, script)
    return ["1"]


def variable(shell: Shell, var: Var) -> list[str]:
    name = var.name
    if var.op == "!":
        return _indirect(shell, var)
    values = _members(shell, var)
    if var.op == "":
        return values if values is not None else [_not_set(shell, name)]
    arg = var.arg or []
    if var.op in (":-", "-", ":=", "="):
        if values is None or (values == [""] and ":" in var.op):
            given = text_of(shell, arg)
            if "=" in var.op:
                shell.vars[name] = [given]
            return [given]
        return values
    if var.op in (":+", "+"):
        return [text_of(shell, arg)]
    if var.op in (":?", "?"):
        return values if values is not None else [UNKNOWN]  # it stops there when the variable is empty
    if values is None:
        return ["0"] if var.op == "length" else [_not_set(shell, name)]
    if var.op == "length":
        return [str(len(values) if var.index in ("@", "*") else len(values[0]) if values else 0)]
    return _changed(shell, values, var, text_of(shell, arg))


def _members(shell: Shell, var: Var) -> list[str] | None:
    values = shell.value(var.name)
    index = var.index
    if not index or values is None:
        if values is not None and var.name not in ("@", "*") and not index:
            return values[:1] or [""]
        return values
    if index in ("@", "*"):
        return values
    if (keyed := shell.vars.get(f"{var.name}[{index}]")) is not None:
        return keyed
    if index.lstrip("-").isdigit():
        number = int(index)
        return [values[number]] if -len(values) <= number < len(values) else [""]
    return values[:1]


def _indirect(shell: Shell, var: Var) -> list[str]:
    if var.index in ("@", "*"):  # the keys of an array
        return [str(number) for number in range(len(shell.value(var.name) or []))]
    target = shell.value(var.name)
    if not target or not is_known(target[0]):
        return [UNKNOWN]
    found = shell.value(target[0])
    return found if found is not None else [_not_set(shell, target[0])]


def _not_set(shell: Shell, name: str) -> str:
    if name in ("@", "*") or name.isdigit():
        return UNKNOWN if not shell.params else ""
    mark = shell.names.mark(name)
    return mark + secret_marks(name)


def _changed(shell: Shell, values: list[str], var: Var, arg: str) -> list[str]:
    op = var.op
    if op == ":":
        return _slice(values, var, arg)
    return [_edited(value, op, arg) for value in values]


def _slice(values: list[str], var: Var, arg: str) -> list[str]:
    start, _, length = arg.partition(":")
    try:
        low = int(start.strip(" ()") or 0)
        count = int(length) if length.strip() else None
    except ValueError:
        return [UNKNOWN]
    if var.index in ("@", "*") or var.name in ("@", "*"):
        low -= 1 if var.name in ("@", "*") and low > 0 else 0
        return values[low:][:count]
    return ["".join(_cut(value, low, count)) for value in values[:1]]


def _cut(text: str, low: int, count: int | None) -> str:
    rest = text[low:] if low >= 0 or -low <= len(text) else ""
    return rest if count is None else rest[:count]


def _edited(value: str, op: str, arg: str) -> str:
    if len(value) > _LONGEST_EDITED:
        return value
    if op in ("^^", "^"):
        return value.upper() if op == "^^" else value[:1].upper() + value[1:]
    if op in (",,", ","):
        return value.lower() if op == ",," else value[:1].lower() + value[1:]
    if op == "@":
        return unescape(value) if arg == "E" else value
    if op[0] == "/":
        return _replaced(value, op, arg)
    if any(is_mark(letter) for letter in value) and has_glob(arg):
        return value
    return _trimmed(value, op, arg)


def _replaced(value: str, op: str, arg: str) -> str:
    pattern, _, new = arg.partition("/")
    if not pattern or not is_known(pattern):
        return value
    if has_glob(pattern):
        return new if matches(pattern, value) else UNKNOWN
    if op == "/#":
        return new + value[len(pattern) :] if value.startswith(pattern) else value
    if op == "/%":
        return value[: -len(pattern)] + new if value.endswith(pattern) else value
    return value.replace(pattern, new, -1 if op == "//" else 1)


def _trimmed(value: str, op: str, pattern: str) -> str:
    """`#`, `##`, `%`, `%%`: remove the shortest or longest match at the beginning or the end."""
    cuts = range(len(value) + 1)
    if op in ("##", "%"):
        cuts = range(len(value), -1, -1)
    for cut in cuts:
        if op[0] == "#" and matches(pattern, value[:cut]):
            return value[cut:]
        if op[0] == "%" and matches(pattern, value[cut:]):
            return value[:cut]
    return value
