"""The constant arguments of a call in some scripting language, joined from pieces if necessary."""

from ralph.hooks.guard.invoke import Invocation
from ralph.hooks.guard.marks import NETWORK, OPAQUE, SECRET, UNKNOWN, is_known, is_secret_name
from ralph.hooks.guard.programs.script_tokens import Token
from ralph.hooks.guard.programs.text import decoded

_HOMES = ("process.env.HOME", "os.homedir", "Dir.home", "homedir")
_FOLDERS = ("process.cwd", "__dirname", "Dir.pwd", "getcwd", "Deno.cwd")
_JOINS = ("path.join", "path.resolve", "File.join", "join")
_DECODES = ("atob", "base64_decode", "decode64", "decode_base64", "strict_decode64", "urlsafe_decode64", "b64decode")
_HIDES = (
    "gzinflate",
    "gzuncompress",
    "inflateSync",
    "gunzipSync",
    "unpack",
    "pack",
    "str_rot13",
    "decompress",
    "uudecode",
)
_FETCHES = ("fetch", "file_get_contents", "get", "getSync", "urlopen", "readText")
_OPENERS = {"(": ")", "[": "]", "{": "}"}


class Arguments:
    def __init__(self, texts: list[str], items: list[str], raw: str) -> None:
        self.texts = texts
        self.items = items
        """Members of a list among the arguments: a program's own arguments."""
        self.raw = raw


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
        if name.startswith("process.env.") and name not in _HOMES:
            return UNKNOWN + (SECRET if is_secret_name(name[12:]) else ""), i
        if name in _HOMES:
            return home, self._past_call(found, i)
        if name in _FOLDERS:
            return self.call.shell.cwd, self._past_call(found, i)
        if name in ("ENV", "$ENV", "process.env", "getenv", "os.getenv", "System.getenv"):
            given = [token.text for token in found[i : i + 3] if token.kind in ("text", "name")]
            value = home if "HOME" in given else UNKNOWN
            return value, i + 3
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
        if name in _JOINS or short in ("joinpath",):
            return "/".join(inside.texts), after
        if short in _DECODES or (name == "Buffer.from" and inside.texts[1:] in (["base64"], ["hex"])):
            return self._decoded(inside), self._past_methods(found, after)
        if short in _HIDES:
            return OPAQUE, after
        if short in _FETCHES and "://" in inside.raw:
            return NETWORK, after
        if short in ("require", "import"):
            return None, after
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
