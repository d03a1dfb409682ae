"""Parses a shell command to statements: quotes, expansions, redirections, here-documents, compound commands.

It knows the syntax of bash and is less strict than a shell. What it cannot parse is Unreadable.
"""

from ralph.guard.syntax import (
    Assign,
    Background,
    Branch,
    Function,
    Group,
    Lit,
    Loop,
    Node,
    Part,
    Pipe,
    Proc,
    Quoted,
    Redirect,
    Redirected,
    Script,
    Simple,
    Sub,
    Sum,
    Unreadable,
    Var,
    Word,
)

_SIMPLE = {
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "?": "?",
}
_HEX = "0123456789abcdefABCDEF"
_OCTAL = "01234567"
_DIGITS = {"x": 2, "u": 4, "U": 8}


def unescape(text: str) -> str:
    """The result of backslashes in `$'…'`, printf and `echo -e`. Bytes above 127 are read as Latin-1, which
    suffices."""
    if "\\" not in text:
        return text
    out: list[str] = []
    i, end = 0, len(text)
    while i < end:
        letter = text[i]
        if letter != "\\" or i + 1 >= end:
            out.append(letter)
            i += 1
            continue
        letter = text[i + 1]
        i += 2
        if letter in _SIMPLE:
            out.append(_SIMPLE[letter])
        elif letter in _DIGITS:
            width = _run(text, i, _HEX, _DIGITS[letter])
            out.append(_character(text[i : i + width], 16) if width else "\\" + letter)
            i += width
        elif letter in _OCTAL:
            # `\0nnn` is the form of echo and of printf's %b, `\nnn` the one of $'…'.
            i = i if letter == "0" else i - 1
            width = _run(text, i, _OCTAL, 3)
            out.append(_character(text[i : i + width] or "0", 8))
            i += width
        elif letter == "c":
            i += 1
        else:
            out.append("\\" + letter)
    return "".join(out)


def _run(text: str, start: int, allowed: str, most: int) -> int:
    width = 0
    while width < most and start + width < len(text) and text[start + width] in allowed:
        width += 1
    return width


def _character(digits: str, base: int) -> str:
    number = int(digits, base)
    return chr(number) if number < 0x110000 and not 0xD800 <= number < 0xE000 else "?"


DECLARES = frozenset(("declare", "typeset", "export", "local", "readonly"))
_LONGEST = 100_000
_DEEPEST = 40
_KEPT = 256
_CLOSERS = frozenset(("then", "else", "elif", "fi", "do", "done", "esac", "}"))
_ENDS_WORD = " \t\n;&|<>()"
_NAME_START = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
_NAME = _NAME_START + "0123456789"
_SPECIAL = "@*#?-$!0123456789"
_OPERATORS = ("##", "#", "%%", "%", "//", "/#", "/%", "/", "^^", "^", ",,", ",", "@")
_DEFAULTS = (":-", ":=", ":?", ":+", "-", "=", "?", "+", ":")
_REDIRECTS = ("<<<", "<<-", "<<", "&>>", "&>", ">>", ">&", "<&", ">|", "<>", ">", "<")
_parsed: dict[str, Script] = {}


def parse(text: str) -> Script:
    """Raises Unreadable."""
    if (known := _parsed.get(text)) is not None:
        return known
    if len(text) > _LONGEST:
        raise Unreadable("too long")
    try:
        script = _Parser(text.replace("\r\n", "\n")).whole()
    except RecursionError as error:
        raise Unreadable(str(error)) from None
    if len(_parsed) >= _KEPT:
        _parsed.clear()
    _parsed[text] = script
    return script


class _Parser:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.end = len(text)
        self.depth = 0
        self.waiting: list[tuple[Redirect, str, bool, bool]] = []
        """Here-documents whose text starts after this line: target, delimiter, quoted, tabs stripped."""

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
        reader = _Parser(text)
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

    def skip(self, lines: bool) -> None:
        """Skip blanks, comments and continued lines; also line ends where a statement may start."""
        while self.at < self.end:
            letter = self.text[self.at]
            if letter in " \t\r":
                self.at += 1
            elif letter == "\\" and self.text.startswith("\n", self.at + 1):
                self.at += 2
            elif letter == "#":
                stop = self.text.find("\n", self.at)
                self.at = self.end if stop < 0 else stop
            elif letter == "\n" and lines:
                self.at += 1
                self._take_documents()
            else:
                break

    def _take_documents(self) -> None:
        for redirect, mark, is_quoted, strips in self.waiting:
            lines: list[str] = []
            while self.at < self.end:
                stop = self.text.find("\n", self.at)
                stop = self.end if stop < 0 else stop
                line = self.text[self.at : stop]
                line = line.lstrip("\t") if strips else line
                self.at = min(stop + 1, self.end)
                if line == mark:
                    break
                if self.depth > 1 and line.rstrip(") ") == mark:  # `EOF)`: shells warn, and take it
                    self.at = stop - (len(line) - len(mark))
                    break
                lines.append(line + "\n")
            body = "".join(lines)
            redirect.word = [Lit(body, True)] if is_quoted else self.inner_words(body)
        self.waiting = []

    def peek(self) -> str:
        """The unquoted word that starts here."""
        stop = self.at
        while stop < self.end and self.text[stop] not in " \t\n;&|<>()'\"$`\\":
            stop += 1
        return self.text[self.at : stop]

    def assign(self) -> Assign | None:
        stop = self.at
        while stop < self.end and (self.text[stop].isalnum() or self.text[stop] == "_"):
            stop += 1
        name, index = self.text[self.at : stop], ""
        if not name.isidentifier():
            return None
        if self.text.startswith("[", stop):
            quote = self.text[stop + 1 : stop + 2]
            close = self.text.find(f"{quote}]" if quote in ("'", '"') else "]", stop + 1)
            if close < 0:
                return None
            close += 1 if quote in ("'", '"') else 0
            index, stop = self.text[stop + 1 : close].strip("\"'"), close + 1
        adds = self.text.startswith("+=", stop)
        if not adds and not self.text.startswith("=", stop):
            return None
        self.at = stop + (2 if adds else 1)
        if self.text.startswith("(", self.at):
            self.at += 1
            return Assign(name, [], self._items(), index, adds)
        return Assign(name, self.word(), None, index, adds)

    def _items(self) -> list[Word]:
        items: list[Word] = []
        while True:
            self.skip(True)
            if self.text.startswith(")", self.at):
                self.at += 1
                return items
            if not (word := self.word()):
                raise Unreadable("an array is not closed")
            items.append(word)

    def redirects(self) -> list[Redirect]:
        found: list[Redirect] = []
        while True:
            self.skip(False)
            if (redirect := self.redirect()) is None:
                return found
            found.append(redirect)

    def redirect(self) -> Redirect | None:
        if self.at >= self.end or self.text[self.at] not in "<>&{0123456789":
            return None
        stop = self.at
        while stop < self.end and self.text[stop].isdigit():
            stop += 1
        if self.text.startswith("{", stop) and (close := self.text.find("}", stop)) > 0:
            stop = close + 1 if self.text.startswith(("<", ">"), close + 1) else stop
        op = next((each for each in _REDIRECTS if self.text.startswith(each, stop)), "")
        if not op or (op in "<>" and self.text.startswith("(", stop + 1)):
            return None
        fd = self.text[self.at : stop]
        self.at = stop + len(op)
        self.skip(False)
        if op not in ("<<", "<<-"):
            return Redirect(op, self.word(), fd)
        start = self.at
        mark = plain_text(self.word())
        redirect = Redirect("<<", [], fd)
        is_quoted = any(letter in self.text[start : self.at] for letter in "'\"\\")
        self.waiting.append((redirect, mark, is_quoted, op == "<<-"))
        return redirect

    def whole(self) -> Script:
        found = self.script_until("")
        if self.at < self.end:
            raise Unreadable(f"unexpected {self.text[self.at]!r}")
        return found

    def inner(self, text: str) -> Script:
        reader = _Parser(text)
        reader.depth = self.depth + 1
        return reader.whole()

    def script_until(self, closer: str) -> Script:
        """Statements up to a closing parenthesis, which is consumed, or a reserved word, which is not."""
        self.depth += 1
        if self.depth > _DEEPEST:
            raise Unreadable("nested too deeply")
        found: Script = []
        while True:
            self.skip(True)
            if self.at >= self.end:
                if closer:
                    raise Unreadable(f"{closer} is missing")
                break
            if self.text[self.at] == closer:
                self.at += 1
                break
            if self.text.startswith((";;", ";&"), self.at):
                break
            if self.text[self.at] in ";&|":
                self.at += 1
                continue
            if self.text[self.at] == ")" or self.peek() in _CLOSERS:
                break
            found.append(self._statement())
        self.depth -= 1
        return found

    def _statement(self) -> Node:
        before = self.at
        node = self._pipeline()
        if self.at == before:
            raise Unreadable(f"unexpected {self.text[self.at]!r}")
        self.skip(False)
        is_background = self.text.startswith("&", self.at) and not self.text.startswith("&&", self.at)
        return Background(node) if is_background else node

    def _pipeline(self) -> Node:
        items: list[Node] = []
        while True:
            self.skip(bool(items))
            items.append(self._command())
            self.skip(False)
            if self.text.startswith("|", self.at) and not self.text.startswith("||", self.at):
                self.at += 2 if self.text.startswith("|&", self.at) else 1
                continue
            return items[0] if len(items) == 1 else Pipe(items)

    def _command(self) -> Node:
        if self.at >= self.end:
            raise Unreadable("a command is missing")
        word = self.peek()
        if word in ("!", "time", "coproc"):
            return self._prefixed(word)
        node = self._compound(word)
        if node is None:
            return self._simple()
        return self._redirected(node)

    def _redirected(self, node: Node) -> Node:
        redirects = self.redirects()
        return Redirected(node, redirects) if redirects else node

    def _prefixed(self, word: str) -> Node:
        self.at += len(word)
        self.skip(False)
        if word == "coproc" and self._named_coprocess():
            self.skip(False)
        while word == "time" and self.peek().startswith("-"):
            self.word()
            self.skip(False)
        if self.at < self.end and self.text[self.at] not in ";&|\n)":
            return self._command()
        return Simple([], [], [])

    def _named_coprocess(self) -> bool:
        start = self.at
        name = self.peek()
        if name.isidentifier():
            self.at += len(name)
            self.skip(False)
            if self.text.startswith(("{", "("), self.at):
                return True
        self.at = start
        return False

    def _compound(self, word: str) -> Node | None:
        if self.text.startswith("((", self.at) and (found := self._arithmetic(self.at + 2, "))")) is not None:
            return Group([Group(script, True) for script in found.scripts])
        if self.text.startswith("(", self.at):
            self.at += 1
            return Group(self.script_until(")"), True)
        reads = {
            "{": self._braces,
            "if": self._if,
            "while": self._while,
            "until": self._while,
            "for": self._for,
            "select": self._for,
            "case": self._case,
            "function": self._function,
            "[[": self._test,
        }.get(word)
        if reads is not None:
            self.at += len(word)
            return reads()
        return self._maybe_function(word)

    def _braces(self) -> Node:
        return Group(self._block("}"))

    def _block(self, *closers: str) -> Script:
        """Statements up to one of the reserved words. A single one is consumed; with several, the caller decides."""
        found = self.script_until("")
        if self.peek() not in closers:
            raise Unreadable(f"{closers[0]} is missing")
        if len(closers) == 1:
            self.at += len(closers[0])
        return found

    def _if(self) -> Node:
        always = self._block("then")
        arms: list[Script] = []
        while True:
            arms.append(self._block("elif", "else", "fi"))
            word = self.peek()
            self.at += len(word)
            if word == "fi":
                return Branch(always, arms)
            if word == "elif":
                always = [*always, *self._block("then")]

    def _while(self) -> Node:
        condition = self._block("do")
        return Loop("", [], condition, self._block("done"))

    def _for(self) -> Node:
        self.skip(False)
        if self.text.startswith("((", self.at):
            found = self._arithmetic(self.at + 2, "))")
            scripts = found.scripts if found else []
            return Loop("", [], [Group(script, True) for script in scripts], self._loop_body())
        name = self.peek()
        self.at += len(name)
        self.skip(True)
        words: list[Word] = [[Quoted([Var("@")])]]
        if self.peek() == "in":
            self.at += 2
            words = self._words()
        return Loop(name, words, [], self._loop_body())

    def _loop_body(self) -> Script:
        self.skip(True)
        if self.text.startswith(";", self.at):
            self.at += 1
            self.skip(True)
        if self.peek() == "{":
            self.at += 1
            return self._block("}")
        self._block("do")
        return self._block("done")

    def _case(self) -> Node:
        self.skip(True)
        subject = self.word()
        self.skip(True)
        if self.peek() != "in":
            raise Unreadable("in is missing")
        self.at += 2
        arms: list[Script] = []
        while True:
            self.skip(True)
            if self.peek() == "esac":
                self.at += 4
                return Branch(_as_groups(subject), arms)
            self._pattern()
            arms.append(self.script_until(""))
            while self.at < self.end and self.text[self.at] in ";&":
                self.at += 1

    def _pattern(self) -> None:
        if self.text.startswith("(", self.at):
            self.at += 1
        while self.at < self.end and self.text[self.at] != ")":
            if not self.word():
                self.at += 1
        if self.at >= self.end:
            raise Unreadable("esac is missing")
        self.at += 1

    def _function(self) -> Node:
        self.skip(False)
        name = self.peek()
        self.at += len(name)
        self.skip(False)
        if self.text.startswith("(", self.at):
            self.at = self.text.find(")", self.at) + 1 or self.end
        return self._body_of(name)

    def _maybe_function(self, word: str) -> Node | None:
        after = self.at + len(word)
        rest = self.text[after:].lstrip(" \t") if word and "=" not in word else ""
        if not rest.startswith("(") or not (rest := rest[1:].lstrip(" \t")).startswith(")"):
            return None
        self.at = self.end - len(rest) + 1
        return self._body_of(word)

    def _body_of(self, name: str) -> Function:
        self.skip(True)
        if self.text.startswith("{", self.at):  # zsh needs no blank after it: `:(){:|:&};:`
            self.at += 1
            return Function(name, [self._redirected(self._braces())])
        return Function(name, [self._command()])

    def _test(self) -> Node:
        """`[[ … ]]`: only what is run inside it matters."""
        words: list[Word] = []
        while self.at < self.end:
            self.skip(True)
            if self.text.startswith("]]", self.at):
                self.at += 2
                return Group([node for word in words for node in _as_groups(word)])
            if not (word := self.word()):
                self.at += 1
            words.append(word)
        raise Unreadable("]] is missing")

    def _words(self) -> list[Word]:
        found: list[Word] = []
        while True:
            self.skip(False)
            if not (word := self.word()):
                return found
            found.append(word)

    def _simple(self) -> Node:
        words: list[Word] = []
        assigns: list[Assign] = []
        redirects: list[Redirect] = []
        while True:
            self.skip(False)
            if redirect := self.redirect():
                redirects.append(redirect)
                continue
            declares = bool(words) and _literal(words[0]) in DECLARES
            if (not words or declares) and (assign := self.assign()):
                assigns.append(assign)
                continue
            if not (word := self.word()):
                break
            words.append(word)
        if words and _literal(words[0]) == "[" and not redirects:
            return Group([node for word in words for node in _as_groups(word)])
        return Simple(words, assigns, redirects)


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


def plain_text(word: Word) -> str:
    """A word's literal text, without its expansions."""
    out = ""
    for part in word:
        if isinstance(part, Lit):
            out += part.text
        elif isinstance(part, Quoted):
            out += plain_text(part.parts)
    return out


def _as_groups(word: Word) -> Script:
    return [Group(script, True) for script in commands_in(word)]


def _literal(word: Word) -> str:
    return word[0].text if len(word) == 1 and isinstance(word[0], Lit) else ""
