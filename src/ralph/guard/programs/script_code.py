"""Code in perl, ruby, node, php, lua, awk and others: calls that start programs, delete, write, connect, evaluate.

The languages differ, but their dangerous functions have distinctive names. So one reader looks for those names in all
of them and takes their constant arguments.
"""

from ralph.guard import effects
from ralph.guard.invocation import Invocation
from ralph.guard.parser import unescape
from ralph.guard.patterns import one_of, pairs
from ralph.guard.programs.databases import harm_in, mongo_harm
from ralph.guard.programs.text import decoded
from ralph.guard.tables import lists, load
from ralph.guard.taint import KEY, NETWORK, OPAQUE, SECRET, UNKNOWN, is_known, secret_marks

_, _NAMES, _PARTS = (lists(section) for section in load("functions").values())
_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
_JOINS = (".", "::", "->", ":")
_COMMENTS = pairs(
    """
    node=// php=//,# perl=# ruby=# awk=# lua=-- osascript=--,# Rscript=# R=# julia=# python=# tclsh=# expect=# groovy=//
    scala=//
    """
)
_QUOTES = ("q", "qq", "qx", "qw", "%x", "%q", "%Q", "x")
_HAVE_PATTERNS = ("node", "ruby", "perl", "awk")
_PAIRS = {"(": ")", "{": "}", "[": "]", "<": ">", "|": "|", "!": "!", "/": "/", "~": "~"}


class Token:
    """`kind`: text, name, number, sign, or command (backticks)."""

    def __init__(self, kind: str, text: str) -> None:
        self.kind, self.text = kind, text


def tokens(code: str, language: str) -> list[Token]:
    found: list[Token] = []
    comments = _COMMENTS.get(language, "#,//").split(",")
    i, end = 0, len(code)
    while i < end:
        letter = code[i]
        if letter in " \t\r":
            i += 1
        elif code.startswith("/*", i) and language in ("node", "php", "groovy", "scala"):
            stop = code.find("*/", i)
            i = end if stop < 0 else stop + 2
        elif any(code.startswith(mark, i) for mark in comments) and not (i and code[i - 1] in "$\\:'\""):
            stop = code.find("\n", i)
            i = end if stop < 0 else stop
        elif letter == "/" and language in _HAVE_PATTERNS and _starts_pattern(found):
            i = _pattern(code, i, found)
        elif letter in "'\"`":
            i = _quoted(code, i, language, found)
        elif letter in _NAME or (
            letter in "$@%" and i + 1 < end and code[i + 1] in _NAME and letter + language != "@php"
        ):
            i = _name(code, i, language, found)
        else:
            found.append(Token("sign", letter))
            i += 1
    return found


def _starts_pattern(found: list[Token]) -> bool:
    """A slash that is not a division: it follows nothing, an operator or a keyword."""
    if not found:
        return True
    last = found[-1]
    return last.text in ("return", "if", "unless", "and", "or", "not") or (
        last.kind == "sign" and last.text not in ")]}"
    )


def _pattern(code: str, start: int, found: list[Token]) -> int:
    i = start + 1
    while i < len(code) and code[i] not in "/\n":
        i += 2 if code[i] == "\\" else 1
    if i >= len(code) or code[i] == "\n":
        found.append(Token("sign", "/"))
        return start + 1
    return i + 1


def _quoted(code: str, start: int, language: str, found: list[Token]) -> int:
    mark = code[start]
    i = start + 1
    while i < len(code) and code[i] != mark:
        i += 2 if code[i] == "\\" else 1
    text = code[start + 1 : i]
    is_command = mark == "`" and (language in ("perl", "ruby", "php", "julia") or _is_tag(found))
    if mark == "'":
        text = text.replace("\\'", "'")
    else:
        text = text.replace("\\\\", "\0")  # an escaped backslash escapes nothing
        for letter in "$@#/`":
            text = text.replace("\\" + letter, letter)
        text = unescape(text.replace("\0", "\\\\"))
    found.append(Token("command" if is_command else "text", text))
    return i + 1


def _is_tag(found: list[Token]) -> bool:
    """`$` before a template string: zx and Bun run it."""
    return bool(found) and (found[-1].text in ("$", "Bun.$") or found[-1].text.endswith(".$"))


def _name(code: str, start: int, language: str, found: list[Token]) -> int:
    i = start + 1
    while i < len(code):
        if code[i] in _NAME or (code[i] in "?!" and language == "ruby" and code[i - 1] in _NAME):
            i += 1
            continue
        join = next((each for each in _JOINS if code.startswith(each, i)), "")
        if join and i + len(join) < len(code) and code[i + len(join)] in _NAME and not code[start].isdigit():
            i += len(join)
            continue
        break
    text = code[start:i]
    if language in ("perl", "ruby") and text in _QUOTES and i < len(code) and code[i] in _PAIRS:
        stop = code.find(_PAIRS[code[i]], i + 1)
        if stop > 0:
            found.append(Token("command" if text in ("qx", "%x", "x") else "text", code[i + 1 : stop]))
            return stop + 1
    found.append(
        Token("number" if text[0].isdigit() else "name", text.replace("::", ".").replace("->", ".").replace(":", "."))
    )
    return i


_OPENERS = ("(", "[", "{")


class Arguments:
    """`items` are members of a list among the arguments: a program's own arguments."""

    def __init__(self, texts: list[str], items: list[str], raw: str) -> None:
        self.texts, self.items, self.raw = texts, items, raw


class Values:
    def __init__(self, call: Invocation, language: str) -> None:
        self.call = call
        self.joins_by_blank = language == "awk"
        self.joins_by_dot = language in ("perl", "php", "lua", "awk")
        self.names: dict[str, str] = {}

    def assign(self, name: str, found: list[Token], start: int) -> None:
        value, _ = self._expression(found, start)
        if value is not None:
            self.names[name.lstrip("$@")] = value

    def arguments(self, found: list[Token], start: int) -> Arguments:
        """After a function name: in parentheses, or up to the end of the statement."""
        is_open = start < len(found) and found[start].text == "("
        i = start + 1 if is_open else start
        texts: list[str] = []
        items: list[str] = []
        first = i
        while i < len(found):
            sign = found[i].text if found[i].kind == "sign" else ""
            if sign in (")", ";", "\n", "}") and (is_open or sign != ")"):
                break
            if sign == "[":
                more, i = self._list(found, i + 1)
                items += more
                continue
            if sign == ",":
                i += 1
                continue
            value, after = self._expression(found, i)
            if value is not None:
                texts.append(value)
            i = max(after, i + 1)
        raw = "".join(token.text for token in found[first : i + 1])
        return Arguments(texts, items, raw)

    def _list(self, found: list[Token], i: int) -> tuple[list[str], int]:
        items: list[str] = []
        while i < len(found) and found[i].text != "]":
            value, after = self._expression(found, i)
            if value is not None:
                items.append(value)
            i = max(after, i + 1)
        return items, i + 1

    def _expression(self, found: list[Token], i: int) -> tuple[str | None, int]:
        """Terms joined by `+`, `.` or `..`; None if none of them is known."""
        value, i = self._term(found, i)
        while self.joins_by_blank and value is not None and i < len(found) and found[i].kind in ("text", "name"):
            more, after = self._term(found, i)
            if more is None or after == i:
                break
            value, i = value + more, after
        while i < len(found) and found[i].kind == "sign" and found[i].text in "+.":
            is_access = found[i].text == "." and not self.joins_by_dot
            while i < len(found) and found[i].text in ("+", "."):
                i += 1
            more, after = self._term(found, i)
            if after == i:
                break
            i = after
            if is_access:
                value = more if more is not None else value
                continue
            value = (value if value is not None else UNKNOWN) + (more if more is not None else UNKNOWN)
        return value, i

    def _term(self, found: list[Token], i: int) -> tuple[str | None, int]:
        if i >= len(found):
            return None, i
        token = found[i]
        if token.kind in ("text", "command"):
            return self._after_text(token.text, found, i + 1)
        if token.kind == "number":
            return token.text, i + 1
        if token.kind == "sign":
            if token.text == "(":
                value, after = self._expression(found, i + 1)
                return value, after + 1 if after < len(found) and found[after].text == ")" else after
            if token.text == "-" and i + 1 < len(found) and found[i + 1].kind == "number":
                return "-" + found[i + 1].text, i + 2
            return None, i
        return self._named(token.text, found, i + 1)

    def _after_text(self, text: str, found: list[Token], i: int) -> tuple[str | None, int]:
        """String methods: `.split('').reverse().join('')`, `.reverse`."""
        plain = "".join(token.text for token in found[i : i + 12])
        if plain.startswith((".reverse", ".split().reverse().join()")) and is_known(text):
            while i < len(found) and found[i].text not in (";", ",", "\n") and "join" not in found[i].text:
                i += 1
            return text[::-1], i + 3 if i < len(found) and "join" in found[i].text else i
        if plain.startswith((".tr", ".gsub", ".sub", ".replace", ".unpack", ".map")):
            return OPAQUE, i
        return text, i

    def _named(self, name: str, found: list[Token], i: int) -> tuple[str | None, int]:
        short = name.rpartition(".")[2]
        home = self.call.shell.places.home
        if name.startswith("process.env.") and name not in _NAMES["homes"]:
            return UNKNOWN + secret_marks(name[12:]), i
        if name in _NAMES["homes"]:
            return home, self._past_call(found, i)
        if name in _NAMES["folders"]:
            return self.call.shell.cwd, self._past_call(found, i)
        if name in ("ENV", "$ENV", "process.env", "getenv", "os.getenv", "System.getenv"):
            given = [token.text for token in found[i : i + 3] if token.kind in ("text", "name")]
            return home if "HOME" in given else UNKNOWN + "".join(map(secret_marks, given)), i + 3
        if i < len(found) and found[i].text == "(":
            return self._called(name, short, found, i)
        if self.joins_by_blank and name[:1] == "$":  # a field of awk: anything may be in it
            return self.call.shell.names.mark(name), i
        known = self.names.get(name.lstrip("$@"))
        return (known if known is not None else UNKNOWN if name.startswith(("$", "@")) else None), i

    def _called(self, name: str, short: str, found: list[Token], i: int) -> tuple[str | None, int]:
        inside = self.arguments(found, i)
        after = self._past_call(found, i)
        if short in ("fromCharCode", "fromCodePoint"):
            return "".join(chr(int(text)) for text in inside.texts if text.isdigit() and int(text) < 0xD800), after
        if short in ("chr", "char") and inside.texts and inside.texts[0].isdigit():
            return chr(int(inside.texts[0]) % 0xD800), after
        is_path = short == "join" and inside.texts[:1] and inside.texts[0].startswith("/")
        if name in _NAMES["joins"] or short in ("joinpath",) or is_path:
            return "/".join(inside.texts), after
        if short in _NAMES["decodes"] or (name == "Buffer.from" and inside.texts[1:] in (["base64"], ["hex"])):
            return self._decoded(inside), self._past_methods(found, after)
        if short in _NAMES["hides"]:
            return OPAQUE, after
        if short in _NAMES["fetches"] and "://" in inside.raw:
            return NETWORK, after
        return None, after

    def _decoded(self, inside: Arguments) -> str:
        if not inside.texts or not is_known(inside.texts[0]):
            return OPAQUE
        if inside.texts[1:] == ["hex"]:
            try:
                return bytes.fromhex(inside.texts[0]).decode("utf-8", "replace")
            except ValueError:
                return OPAQUE
        return decoded(inside.texts[0])

    def _past_call(self, found: list[Token], i: int) -> int:
        if i >= len(found) or found[i].text not in _OPENERS:
            return i
        depth = 0
        while i < len(found):
            depth += (found[i].text in _OPENERS) - (found[i].text in (")", "]", "}"))
            i += 1
            if depth == 0:
                break
        return i

    def _past_methods(self, found: list[Token], i: int) -> int:
        while i + 1 < len(found) and found[i].text == "." and found[i + 1].kind == "name":
            i = self._past_call(found, i + 2)
        return i


_SHELLS = ("/bin/sh", "/bin/bash", "/bin/zsh", "cmd.exe", "powershell", "sh -i", "bash -i")
_QUOTED_SHELLS = ('"sh"', "'sh'", '"bash"', "'bash'")


def judge_code(call: Invocation, language: str, code: str) -> None:
    found = tokens(code, language)
    _judge_wholes(call, language, code, found)
    if language in ("tclsh", "expect"):
        _judge_tcl(call, code)
        return
    values = Values(call, language)
    for i, token in enumerate(found):
        call.shell.meter.step()
        if token.kind == "command":
            call.run_text(token.text, "")
        elif token.kind == "name":
            following = [each.text for each in found[i + 1 : i + 3]]
            if following[:1] == ["="] and not (following[1:] and following[1] in "=~>"):
                values.assign(token.text, found, i + 2)
            _judge_name(call, language, values, found, i)
        elif token.kind == "text" and language == "awk":
            _judge_pipe(call, found, i)
        elif token.kind == "text" and language in ("groovy", "scala") and ("execute" in code or "!" in code):
            call.run_text(token.text)


def _judge_wholes(call: Invocation, language: str, code: str, found: list[Token]) -> None:
    """What only the code as a whole shows."""
    names = {token.text for token in found if token.kind == "name"}
    whole, code = code, "".join(token.text for token in found if token.kind != "text" or " " not in token.text)
    if any(mark in code for mark in _PARTS["sockets"]) and any(shell in whole for shell in (*_SHELLS, *_QUOTED_SHELLS)):
        call.deny("remote-shell", "This gives the other end of a connection a shell")
    if names & set(_NAMES["forks"]) and names & one_of("while loop until for"):
        call.deny("fork-bomb")
    if language == "awk" and "/inet/" in code and "localhost" not in code:
        call.deny("remote-shell")
    if _sends(code) and {token.text.rpartition(".")[2] for token in found} & {"eval", "Function", "instance_eval"}:
        call.deny("remote-code", "This runs downloaded code")
    if language == "osascript":
        _judge_apple(call, whole)
    _judge_listings(call, language, found)
    _judge_texts(call, language, code, found)
    if names & set(_NAMES["privileges"]):
        call.deny("privilege")
    if any(part in code for part in _PARTS["empties"]):
        call.deny("databases", "This deletes every row of a table")
    if _sends(code) and any(token.kind == "text" and token.text == "DELETE" for token in found):
        call.deny("cloud", "This deletes something on another machine")
    if _sends(code) and any(secret in code for secret in _PARTS["secrets"]):
        call.deny("exfiltration", "This sends secrets to another machine")
    if _sends(code) and any(effects.is_secret(call.shell, token.text) for token in found if token.kind == "text"):
        call.deny("exfiltration", "This sends secrets to another machine")


def _sends(code: str) -> bool:
    goes_out = any(part in code for part in ("://", "connect", "hostname", "host:"))
    is_local = "localhost" in code or "127.0.0.1" in code
    return goes_out and not is_local and any(name in code for name in _PARTS["network"])


def _judge_texts(call: Invocation, language: str, code: str, found: list[Token]) -> None:
    """In code that can start programs, a string that is a harmful command counts as one, however it is used."""
    if any(word in code for word in _PARTS["starts"]) or (language == "awk" and "|" in code):
        for token in found:
            if token.kind == "text" and " " in token.text.strip() and "\n" not in token.text.strip():
                call.run_text(token.text, "")


_EVERYTHING = (".", "*", "./*", "**", "**/*", "./**/*")


def _judge_listings(call: Invocation, language: str, found: list[Token]) -> None:
    """Everything in a folder, one by one: what is deleted is a variable, what is listed is known."""
    if not any(token.text.rpartition(".")[2] in _NAMES["deletes"] for token in found):
        return
    values = Values(call, language)
    listed = "".join(token.text for token in found)
    for piece in listed.split("<")[1:] if language == "perl" else []:  # `unlink <~/*>`
        if "*" in piece.partition(">")[0]:
            call.delete(piece.partition(">")[0])
    call.delete(*[token.text for token in found if token.kind == "text" and "File.Find" in listed])
    for i, token in enumerate(found):
        if token.kind == "name" and token.text in _NAMES["lists"]:
            for text in values.arguments(found, i + 1).texts[:2]:
                if text.startswith(("/", "~")):
                    call.delete(text if "*" in text else f"{text}/*")
                elif text in _EVERYTHING and not any(part in listed for part in _PARTS["narrows"]):
                    call.delete("*")


def _judge_tcl(call: Invocation, code: str) -> None:
    for line in code.replace(";", "\n").split("\n"):
        words = line.strip().strip("[]").split()
        if words[:1] and words[0] in ("exec", "spawn", "system"):
            call.run_text(" ".join(words[1:]))
        elif words[:2] == ["file", "delete"]:
            call.delete(*words[2:])


def _judge_apple(call: Invocation, code: str) -> None:
    rest = code
    while "do shell script" in rest:
        rest = rest.partition("do shell script")[2].lstrip()
        if rest.startswith('"'):
            call.run_text(rest[1:].partition('"')[0])
        if "with administrator privileges" in rest:
            call.deny("privilege")
    lower = " ".join(code.lower().split())
    if any(f"to {word}" in lower for word in ("shut down", "restart", "log out", "sleep")):
        call.deny("shutdown")
    if "empty trash" in lower or "empty the trash" in lower:
        call.deny("destruction")


def _judge_pipe(call: Invocation, found: list[Token], i: int) -> None:
    """awk: `print | "cmd"` and `"cmd" | getline`."""
    before = found[i - 1].text if i else ""
    after = found[i + 1].text if i + 1 < len(found) else ""
    if before == "|" or before == "&" or (after == "|" and i + 2 < len(found) and found[i + 2].text == "getline"):
        call.run_text(found[i].text)
    if before == ">" and "/" in found[i].text:
        call.write(found[i].text)


def _judge_name(call: Invocation, language: str, values: Values, found: list[Token], i: int) -> None:
    full = values.names.get(found[i].text[1:], found[i].text) if found[i].text[0] == "$" else found[i].text
    name = full.rpartition(".")[2]
    if name in _NAMES["runs"] and _is_run(full, name, language, found, i):
        _run(call, values.arguments(found, i + 1))
    elif name in _NAMES["deletes"]:
        _delete(call, full, name, values.arguments(found, i + 1))
    elif name == "sync" and {"rimraf", "del"} & {token.text for token in found}:
        given = values.arguments(found, i + 1)
        call.delete(*given.texts, *given.items)
    elif name in _NAMES["evaluates"]:
        _evaluate(call, language, values.arguments(found, i + 1))
    elif name in _NAMES["writes"] or full in _NAMES["opens"] or name in ("open", "fopen"):
        _write(call, name, values.arguments(found, i + 1))
    elif name in _NAMES["writes-second"]:
        given = values.arguments(found, i + 1)
        if len(given.texts) > 1 and ("/" in given.texts[1] or full.startswith(_NAMES["file-owners"])):
            call.write(given.texts[1])
            if name in ("renameSync", "rename", "mv", "move"):
                effects.move(call.shell, given.texts[0], given.texts[1], call.argv)
    elif name in _NAMES["requests"] and _leaks_in_address(values.arguments(found, i + 1)):
        call.deny("exfiltration", "This sends a secret as part of a URL")
    elif name in _NAMES["prints"] and any(KEY in text for text in values.arguments(found, i + 1).texts):
        call.deny("exfiltration", "This shows a password or a token")
    elif name in _NAMES["reads"]:
        call.look(*[_at_home(call, text) for text in values.arguments(found, i + 1).texts])
    elif name in ("kill", "killpg"):
        given = values.arguments(found, i + 1)
        if any(text in ("-1", "1") for text in given.texts[:3]) or "-1" in given.raw:
            call.deny("kill")
    elif name in _NAMES["queries"]:
        given = values.arguments(found, i + 1)
        if any(harm_in(text) for text in given.texts) or (name == "dropDatabase" and mongo_harm("dropDatabase(")):
            call.deny("databases")
    elif name in ("chmodSync", "chownSync") or full in ("File.chmod", "FileUtils.chmod_R", "FileUtils.chown_R"):
        for text in values.arguments(found, i + 1).texts:
            if "/" in text:
                effects.change(call.shell, text, call.argv, "the permissions", True)


def _at_home(call: Invocation, path: str) -> str:
    return call.shell.places.home + path[1:] if path.startswith("~") else path


def _leaks_in_address(given: Arguments) -> bool:
    address = given.texts[0] if given.texts else ""
    return "://" in address and SECRET in address and "key=" not in address and "token=" not in address


def _is_run(full: str, name: str, language: str, found: list[Token], i: int) -> bool:
    """`re.exec(…)` and `app.run(…)` start nothing."""
    owner = full.rpartition(".")[0]
    if name in _NAMES["runs-if-owned"]:
        return f"{owner}." in _NAMES["run-owners"] or (full == "run" and language == "julia")
    if name == "exec" and (owner or (i and found[i - 1].text == ".")):
        texts = [token.text for token in found]
        return f"{owner}." in _NAMES["run-owners"] or "child_process" in texts or language in ("ruby", "perl", "php")
    return True


def _run(call: Invocation, given: Arguments) -> None:
    if NETWORK in given.raw:
        call.deny("remote-code")
    if given.items:
        call.run([*given.texts[:1], *given.items] if given.texts else given.items, "")
    elif len(given.texts) > 1 and not given.texts[0].count(" ") and is_known("".join(given.texts)):
        call.run(given.texts, "")
    else:
        for text in given.texts[:1] if given.texts[:1] != [" "] else given.texts:
            call.run_text(text, "")


def _delete(call: Invocation, full: str, name: str, given: Arguments) -> None:
    sure = full == name or full.startswith(_NAMES["file-owners"]) or "_" in name or name.endswith("Sync")
    sure = sure or name in ("unlink", "rimraf", "rmtree")
    if sure or (name in ("delete", "remove", "rm", "rmdir") and "/" in "".join(given.texts)):
        call.delete(*[text for text in given.texts[:4] if text == "*" or "/" in text or text.startswith(("~", "."))])


def _evaluate(call: Invocation, language: str, given: Arguments) -> None:
    for text in given.texts[:1]:
        call.shell.deny_hidden(text, call.argv)
        if is_known(text) and text.strip():
            call.shell.deeper()
            judge_code(call, language, text)
            call.shell.depth -= 1
    if not given.texts and any(word in given.raw for word in ("base64", "atob", "decode", "unpack", "gzinflate")):
        call.deny("opaque", "The guard cannot see what this runs")
    if any(word in given.raw for word in _PARTS["downloads"]):
        call.deny("remote-code")


def _write(call: Invocation, name: str, given: Arguments) -> None:
    texts = given.texts
    if not texts:
        return
    if name in ("open", "fopen", "openSync", "new"):
        mode = texts[1] if len(texts) > 1 else ""
        if mode.startswith((">", "+>")) or texts[0].startswith(">"):  # perl
            path = texts[2] if len(texts) > 2 else (texts[0] if texts[0].startswith(">") else mode).lstrip("+> ")
            effects.write(call.shell, path, call.argv, appends=">>" in mode)
        elif mode[:1] in ("w", "a", "x"):
            effects.write(call.shell, texts[0], call.argv, appends=mode[:1] == "a")
        elif mode.startswith(("|", "-|", "|-")) or texts[0].startswith("|") or texts[0].endswith("|"):
            call.run_text(" ".join(texts[2:]) or texts[0].strip("| "))
        else:
            effects.look(call.shell, texts[0], call.argv)
        return
    effects.write(call.shell, texts[0], call.argv, appends="append" in name)
