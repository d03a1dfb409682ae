"""Parses the words of a shell command: quotes, expansions, substitutions. Half of the second parser."""

from ralph.hooks.guard.escapes import unescape
from ralph.hooks.guard.shell import Lit, Part, Proc, Quoted, Script, Simple, Sub, Sum, Unreadable, Var, Word

_ENDS_WORD = " \t\n;&|<>()"
_NAME_START = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
_NAME = _NAME_START + "0123456789"
_SPECIAL = "@*#?-$!0123456789"
_OPERATORS = ("##", "#", "%%", "%", "//", "/#", "/%", "/", "^^", "^", ",,", ",", "@")
_DEFAULTS = (":-", ":=", ":?", ":+", "-", "=", "?", "+", ":")


class WordReader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.end = len(text)
        self.depth = 0

    def script_until(self, closer: str) -> Script:
        raise NotImplementedError

    def inner(self, text: str) -> Script:
        raise NotImplementedError

    def word(self) -> Word:
        """One word, from here to a blank or an operator. Empty if there is none."""
        parts: Word = []
        while self.at < self.end:
            letter = self.text[self.at]
            if letter in _ENDS_WORD:
                if letter in "<>" and self.text.startswith("(", self.at + 1):
                    parts.append(self._process())
                    continue
                if letter == "(" and _ends_in_glob(parts):
                    self._extended_glob(parts)
                    continue
                break
            parts.append(self._part(letter))
        return parts

    def _part(self, letter: str) -> Part:
        if letter == "'":
            return Lit(self._until("'"), True)
        if letter == '"':
            self.at += 1
            return Quoted(self.double_quoted('"'))
        if letter == "$":
            return self.dollar(False)
        if letter == "`":
            return self._backticks(False)
        return self._bare()

    def _bare(self) -> Lit:
        out: list[str] = []
        escaped = False
        while self.at < self.end:
            letter = self.text[self.at]
            if letter in _ENDS_WORD or letter in "'\"$`":
                break
            self.at += 1
            if letter == "\\":
                if self.at < self.end:
                    if self.text[self.at] != "\n":
                        out.append(self.text[self.at])
                        escaped = True
                    self.at += 1
                continue
            out.append(letter)
        text = "".join(out)
        # An escaped brace or tilde is text, and nothing else in the piece is lost by taking all of it for quoted.
        return Lit(text, escaped and ("{" in text or text.startswith("~")))

    def _until(self, closer: str) -> str:
        """The text between single quotes; the cursor is on the opening one."""
        stop = self.text.find(closer, self.at + 1)
        if stop < 0:
            raise Unreadable(f"a quote is not closed: {closer}")
        found = self.text[self.at + 1 : stop]
        self.at = stop + 1
        return found

    def double_quoted(self, closer: str) -> Word:
        """Up to the closing quote; without a closer, all of the text, as in a here-document."""
        parts: Word = []
        out: list[str] = []
        while self.at < self.end:
            letter = self.text[self.at]
            if closer and letter == closer:
                self.at += 1
                break
            if letter == "\\" and self.at + 1 < self.end:
                following = self.text[self.at + 1]
                if following in "$`\\\n" or following == closer:
                    out.append("" if following == "\n" else following)
                else:
                    out.append("\\" + following)
                self.at += 2
            elif letter in "$`":
                if out:
                    parts.append(Lit("".join(out), True))
                    out = []
                parts.append(self.dollar(True) if letter == "$" else self._backticks(True))
            else:
                out.append(letter)
                self.at += 1
        else:
            if closer:
                raise Unreadable("a double quote is not closed")
        parts.append(Lit("".join(out), True))
        return parts

    def _backticks(self, quoted: bool) -> Sub:
        self.at += 1
        out: list[str] = []
        while self.at < self.end:
            letter = self.text[self.at]
            self.at += 1
            if letter == "`":
                return Sub(self.inner("".join(out)))
            if letter == "\\" and self.at < self.end and self.text[self.at] in '$`\\"':
                if self.text[self.at] == '"' and not quoted:
                    out.append("\\")
                letter = self.text[self.at]
                self.at += 1
            out.append(letter)
        raise Unreadable("a backtick is not closed")

    def dollar(self, quoted: bool) -> Part:
        text, at = self.text, self.at
        following = text[at + 1] if at + 1 < self.end else ""
        if following == "(":
            if text.startswith("((", at + 1) and (found := self._arithmetic(at + 3, "))")) is not None:
                return found
            self.at = at + 2
            return Sub(_reading(self.script_until(")")))
        if following == "[" and (found := self._arithmetic(at + 2, "]")) is not None:
            return found
        if following == "{":
            self.at = at + 2
            return self._braced(quoted)
        if following == "'" and not quoted:
            return self._ansi(at + 2)
        if following == '"' and not quoted:
            self.at = at + 2
            return Quoted(self.double_quoted('"'))
        if following and following in _NAME_START:
            stop = at + 2
            while stop < self.end and text[stop] in _NAME:
                stop += 1
            self.at = stop
            return Var(text[at + 1 : stop])
        if following and following in _SPECIAL:
            self.at = at + 2
            return Var(following)
        self.at = at + 1
        return Lit("$", quoted)

    def _ansi(self, start: int) -> Lit:
        stop = start
        while stop < self.end and self.text[stop] != "'":
            stop += 2 if self.text[stop] == "\\" else 1
        if stop >= self.end:
            raise Unreadable("$' is not closed")
        self.at = stop + 1
        return Lit(unescape(self.text[start:stop]), True)

    def _arithmetic(self, start: int, closer: str) -> Sum | None:
        """None: not arithmetic after all, but a subshell in a substitution."""
        depth, at = 0, start
        opener = "(" if closer == "))" else "["
        while at < self.end:
            if depth == 0 and self.text.startswith(closer, at):
                break
            letter = self.text[at]
            depth += (letter == opener) - (letter == closer[0])
            if depth < 0:
                return None
            at += 1
        else:
            return None
        inside = self.text[start:at]
        self.at = at + len(closer)
        return Sum(commands_in(self.inner_words(inside)))

    def inner_words(self, text: str) -> Word:
        reader = type(self)(text)
        reader.depth = self.depth + 1
        return reader.double_quoted("")

    def _braced(self, quoted: bool) -> Var:
        """After `${`."""
        text = self.text
        op = ""
        if text.startswith("#", self.at) and not text.startswith("#}", self.at):
            op, self.at = "length", self.at + 1
        elif text.startswith("!", self.at) and not text.startswith("!}", self.at):
            op, self.at = "!", self.at + 1
        start = self.at
        while self.at < self.end and text[self.at] in _NAME:
            self.at += 1
        if self.at == start and self.at < self.end and text[self.at] in _SPECIAL:
            self.at += 1
        name = text[start : self.at]
        index = ""
        if text.startswith("[", self.at):
            stop = text.find("]", self.at)
            if stop < 0:
                raise Unreadable("an index is not closed")
            index = text[self.at + 1 : stop].strip("\"'")
            self.at = stop + 1
        for operator in (*_DEFAULTS, *_OPERATORS):
            if not op and text.startswith(operator, self.at):
                op = operator
                self.at += len(operator)
                break
        arg = self._argument(quoted)
        return Var(name, op, arg, index)

    def _argument(self, quoted: bool) -> Word:
        """What follows the operator, up to the closing brace."""
        parts: Word = []
        while self.at < self.end:
            letter = self.text[self.at]
            if letter == "}":
                self.at += 1
                return parts
            if letter in "'\"$`" and not (letter == "'" and quoted):
                parts.append(self._part(letter))
            elif letter == "\\" and self.at + 1 < self.end:
                parts.append(Lit(self.text[self.at + 1], True))
                self.at += 2
            else:
                parts.append(Lit(letter, quoted))
                self.at += 1
        raise Unreadable("${ is not closed")

    def _process(self) -> Proc:
        is_input = self.text[self.at] == "<"
        self.at += 2
        return Proc(self.script_until(")"), is_input)

    def _extended_glob(self, parts: Word) -> None:
        """`!(…)` and similar match some names: for the guard, any."""
        depth = 0
        while self.at < self.end:
            depth += (self.text[self.at] == "(") - (self.text[self.at] == ")")
            self.at += 1
            if depth == 0:
                break
        last = parts.pop()
        assert isinstance(last, Lit)
        parts.append(Lit(last.text[:-1] + "*", False))


def _reading(script: Script) -> Script:
    """`$(<file)` is the content of the file."""
    only = script[0] if len(script) == 1 else None
    if (
        isinstance(only, Simple)
        and not only.words
        and not only.assigns
        and [each.op for each in only.redirects] == ["<"]
    ):
        return [Simple([[Lit("cat")]], [], only.redirects)]
    return script


def _ends_in_glob(parts: Word) -> bool:
    last = parts[-1] if parts else None
    return isinstance(last, Lit) and not last.quoted and last.text[-1:] in ("!", "@", "+", "?", "*")


def commands_in(word: Word) -> list[Script]:
    """The commands that are run to make a word."""
    found: list[Script] = []
    for part in word:
        if isinstance(part, (Sub, Proc)):
            found.append(part.script)
        elif isinstance(part, Sum):
            found += part.scripts
        elif isinstance(part, Quoted):
            found += commands_in(part.parts)
        elif isinstance(part, Var) and part.arg:
            found += commands_in(part.arg)
    return found
