"""Our own shell parser, for what the grammar misparses: words after a redirection, here-documents in the middle of
a line, extended globs, `{rm,-rf,/}`, coprocesses. It is slower than the grammar and less strict than a shell."""

from ralph.hooks.guard.line_reader import LineReader
from ralph.hooks.guard.shell import (
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
    Quoted,
    Redirect,
    Redirected,
    Script,
    Simple,
    Unreadable,
    Var,
    Word,
)
from ralph.hooks.guard.word_reader import commands_in

_DEEPEST = 40
_CLOSERS = frozenset(("then", "else", "elif", "fi", "do", "done", "esac", "}"))
DECLARES = frozenset(("declare", "typeset", "export", "local", "readonly"))


def read(text: str) -> Script:
    """Raises Unreadable."""
    return _Reader(text).whole()


def read_template(text: str) -> Word:
    """The text of a here-document, with its expansions."""
    return _Reader(text).double_quoted("")


def read_expansion(text: str, is_quoted: bool) -> Part:
    """`${…}`, which is all of the text."""
    reader = _Reader(text)
    part = reader.dollar(is_quoted)
    if reader.at != reader.end:
        raise Unreadable("an expansion")
    return part


class _Reader(LineReader):
    def whole(self) -> Script:
        found = self.script_until("")
        if self.at < self.end:
            raise Unreadable(f"unexpected {self.text[self.at]!r}")
        return found

    def inner(self, text: str) -> Script:
        reader = _Reader(text)
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
        self.skip(True)
        return Function(name, [self._command()])

    def _maybe_function(self, word: str) -> Node | None:
        after = self.at + len(word)
        rest = self.text[after:].lstrip(" \t") if word and "=" not in word else ""
        if not rest.startswith("(") or not (rest := rest[1:].lstrip(" \t")).startswith(")"):
            return None
        self.at = self.end - len(rest) + 1
        self.skip(True)
        return Function(word, [self._command()])

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


def _as_groups(word: Word) -> Script:
    return [Group(script, True) for script in commands_in(word)]


def _literal(word: Word) -> str:
    return word[0].text if len(word) == 1 and isinstance(word[0], Lit) else ""
