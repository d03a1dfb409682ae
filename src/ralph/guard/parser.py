"""Parses a shell command to statements: quotes, expansions, redirections, here-documents, compound commands.

It knows the syntax of bash and is less strict than a shell. What it cannot parse is Unreadable.
"""

from ralph.guard import syntax as sh
from ralph.guard.patterns import wordlist

DECLARES = frozenset(("declare", "typeset", "export", "local", "readonly"))
_LONGEST = 100_000
_DEEPEST = 40
_KEPT = 256
_CLOSERS = frozenset(("then", "else", "elif", "fi", "do", "done", "esac", "}"))
_ENDS_WORD = " \t\n;&|<>()"
_ENDS_PLAIN = _ENDS_WORD + "'\"$`\\"
_NAME_START = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
_NAME = _NAME_START + "0123456789"
_SPECIAL = "@*#?-$!0123456789"
_OPERATORS = wordlist(":- := :? :+ - = ? + : ## # %% % // /# /% / ^^ ^ ,, , @")
_REDIRECTS = ("<<<", "<<-", "<<", "&>>", "&>", ">>", ">&", "<&", ">|", "<>", ">", "<")
_ESCAPES = dict(zip("abeEfnrtv\\'\"?", "\a\b\x1b\x1b\f\n\r\t\v\\'\"?", strict=True))
_DIGITS = {"x": 2, "u": 4, "U": 8}
_parsed: dict[str, sh.Script] = {}


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
        if letter in _ESCAPES:
            out.append(_ESCAPES[letter])
        elif letter in _DIGITS:
            width = _width(text, i, "0123456789abcdefABCDEF", _DIGITS[letter])
            out.append(_character(text[i : i + width], 16) if width else "\\" + letter)
            i += width
        elif letter in "01234567":
            # `\0nnn` is the form of echo and of printf's %b, `\nnn` the one of $'…'.
            i = i if letter == "0" else i - 1
            width = _width(text, i, "01234567", 3)
            out.append(_character(text[i : i + width] or "0", 8))
            i += width
        elif letter == "c":
            i += 1
        else:
            out.append("\\" + letter)
    return "".join(out)


def _width(text: str, start: int, allowed: str, most: int) -> int:
    width = 0
    while width < most and start + width < len(text) and text[start + width] in allowed:
        width += 1
    return width


def _character(digits: str, base: int) -> str:
    number = int(digits, base)
    return chr(number) if number < 0x110000 and not 0xD800 <= number < 0xE000 else "?"


def parse(text: str) -> sh.Script:
    """Raises Unreadable."""
    if (known := _parsed.get(text)) is not None:
        return known
    if len(text) > _LONGEST:
        raise sh.Unreadable("too long")
    try:
        script = _Parser(text.replace("\r\n", "\n")).whole()
    except RecursionError as error:
        raise sh.Unreadable(str(error)) from None
    if len(_parsed) >= _KEPT:
        _parsed.clear()
    _parsed[text] = script
    return script


class _Parser:
    def __init__(self, text: str, depth: int = 0) -> None:
        self.text, self.depth = text, depth
        self.at, self.end = 0, len(text)
        self.waiting: list[tuple[sh.Redirect, str, bool, bool]] = []
        """Here-documents whose text starts after this line: target, delimiter, quoted, tabs stripped."""

    def whole(self) -> sh.Script:
        found = self.script_until("")
        if self.at < self.end:
            raise sh.Unreadable(f"unexpected {self.text[self.at]!r}")
        return found

    # --- the cursor ---------------------------------------------------------------------------------------------------

    def sees(self, *starts: str) -> bool:
        return self.text.startswith(starts, self.at)

    def take(self, start: str) -> bool:
        """Consume this, if it comes next."""
        if is_next := self.text.startswith(start, self.at):
            self.at += len(start)
        return is_next

    def take_to(self, closer: str, missing: str) -> str:
        """Consume up to the closer and that, too."""
        stop = self.text.find(closer, self.at)
        if stop < 0:
            raise sh.Unreadable(missing)
        found, self.at = self.text[self.at : stop], stop + len(closer)
        return found

    def take_name(self) -> str:
        start = self.at
        while self.at < self.end and self.text[self.at] in _NAME:
            self.at += 1
        return self.text[start : self.at]

    def peek(self) -> str:
        """The unquoted word that starts here."""
        stop = self.at
        while stop < self.end and self.text[stop] not in _ENDS_PLAIN:
            stop += 1
        return self.text[self.at : stop]

    def skip(self, lines: bool) -> None:
        """Skip blanks, comments and continued lines; also line ends where a statement may start."""
        while self.at < self.end:
            letter = self.text[self.at]
            if letter in " \t\r":
                self.at += 1
            elif letter == "#":
                stop = self.text.find("\n", self.at)
                self.at = self.end if stop < 0 else stop
            elif letter == "\n" and lines:
                self.at += 1
                self._documents()
            elif not self.take("\\\n"):
                break

    # --- words --------------------------------------------------------------------------------------------------------

    def word(self) -> sh.Word:
        """One word, from here to a blank or an operator. Empty if there is none."""
        parts: sh.Word = []
        while self.at < self.end:
            letter = self.text[self.at]
            if letter not in _ENDS_WORD:
                parts.append(self._part(letter))
            elif self.sees("<(", ">("):
                self.at += 2
                parts.append(sh.Proc(self.script_until(")"), letter == "<"))
            elif letter != "(" or not self._extended_glob(parts):
                break
        return parts

    def words(self) -> list[sh.Word]:
        found: list[sh.Word] = []
        self.skip(False)
        while word := self.word():
            found.append(word)
            self.skip(False)
        return found

    def _part(self, letter: str) -> sh.Part:
        if letter == "'":
            self.at += 1
            return sh.Lit(self.take_to("'", "a quote is not closed: '"), True)
        if letter == '"':
            self.at += 1
            return sh.Quoted(self.double_quoted('"'))
        if letter == "$":
            return self._dollar(False)
        return self._backticks(False) if letter == "`" else self._bare()

    def _bare(self) -> sh.Lit:
        out: list[str] = []
        escaped = False
        while self.at < self.end:
            if self.take("\\"):
                if self.at < self.end and not self.take("\n"):
                    out.append(self.text[self.at])
                    escaped = True
                    self.at += 1
                continue
            if self.text[self.at] in _ENDS_PLAIN:
                break
            out.append(self.text[self.at])
            self.at += 1
        text = "".join(out)
        # An escaped brace or tilde is text, and nothing else in the piece is lost by taking all of it for quoted.
        return sh.Lit(text, escaped and ("{" in text or text.startswith("~")))

    def double_quoted(self, closer: str) -> sh.Word:
        """Up to the closing quote; without a closer, all of the text, as in a here-document."""
        parts: sh.Word = []
        out: list[str] = []
        while self.at < self.end:
            letter = self.text[self.at]
            if closer and self.take(closer):
                break
            if letter == "\\" and self.at + 1 < self.end:
                following = self.text[self.at + 1]
                is_escaped = following in "$`\\\n" or following == closer
                out.append("" if following == "\n" else following if is_escaped else "\\" + following)
                self.at += 2
            elif letter in "$`":
                if out:
                    parts.append(sh.Lit("".join(out), True))
                    out = []
                parts.append(self._dollar(True) if letter == "$" else self._backticks(True))
            else:
                out.append(letter)
                self.at += 1
        else:
            if closer:
                raise sh.Unreadable("a double quote is not closed")
        return [*parts, sh.Lit("".join(out), True)]

    def _backticks(self, quoted: bool) -> sh.Sub:
        self.at += 1
        out: list[str] = []
        while self.at < self.end:
            if self.take("`"):
                return sh.Sub(_Parser("".join(out), self.depth + 1).whole())
            if self.sees("\\$", "\\`", "\\\\", '\\"'):
                out.append("\\" if self.sees('\\"') and not quoted else "")
                self.at += 1
            out.append(self.text[self.at])
            self.at += 1
        raise sh.Unreadable("a backtick is not closed")

    def _dollar(self, quoted: bool) -> sh.Part:
        self.at += 1
        following = self.text[self.at] if self.at < self.end else ""
        if self.sees("((") and (found := self._arithmetic(2, "))")) is not None:
            return found
        if self.take("("):
            return sh.Sub(_reading(self.script_until(")")))
        if following == "[" and (found := self._arithmetic(1, "]")) is not None:
            return found
        if self.take("{"):
            return self._braced(quoted)
        if not quoted and self.take("'"):
            return self._ansi()
        if not quoted and self.take('"'):
            return sh.Quoted(self.double_quoted('"'))
        if following and following in _NAME_START:
            return sh.Var(self.take_name())
        if following and following in _SPECIAL:
            self.at += 1
            return sh.Var(following)
        return sh.Lit("$", quoted)

    def _ansi(self) -> sh.Lit:
        stop = self.at
        while stop < self.end and self.text[stop] != "'":
            stop += 2 if self.text[stop] == "\\" else 1
        if stop >= self.end:
            raise sh.Unreadable("$' is not closed")
        text, self.at = self.text[self.at : stop], stop + 1
        return sh.Lit(unescape(text), True)

    def _arithmetic(self, skipped: int, closer: str) -> sh.Sum | None:
        """None: not arithmetic after all, but a subshell in a substitution."""
        start = at = self.at + skipped
        depth, opener = 0, "(" if closer == "))" else "["
        while depth or not self.text.startswith(closer, at):
            if at >= self.end or depth < 0:
                return None
            depth += (self.text[at] == opener) - (self.text[at] == closer[0])
            at += 1
        self.at = at + len(closer)
        return sh.Sum(commands_in(_Parser(self.text[start:at], self.depth + 1).double_quoted("")))

    def _braced(self, quoted: bool) -> sh.Var:
        """After `${`."""
        op = ""
        if not self.sees("#}", "!}"):
            op = "length" if self.take("#") else "!" if self.take("!") else ""
        name = self.take_name()
        if not name and self.at < self.end and self.text[self.at] in _SPECIAL:
            name = self.text[self.at]
            self.at += 1
        index = self.take_to("]", "an index is not closed").strip("\"'") if self.take("[") else ""
        if not op:
            op = next((each for each in _OPERATORS if self.take(each)), "")
        return sh.Var(name, op, self._argument(quoted), index)

    def _argument(self, quoted: bool) -> sh.Word:
        """What follows the operator, up to the closing brace."""
        parts: sh.Word = []
        while self.at < self.end:
            letter = self.text[self.at]
            if self.take("}"):
                return parts
            if letter in "'\"$`" and not (letter == "'" and quoted):
                parts.append(self._part(letter))
                continue
            is_escaped = letter == "\\" and self.at + 1 < self.end
            parts.append(sh.Lit(self.text[self.at + is_escaped], quoted or is_escaped))
            self.at += 1 + is_escaped
        raise sh.Unreadable("${ is not closed")

    def _extended_glob(self, parts: sh.Word) -> bool:
        """`!(…)` and similar match some names: for the guard, any."""
        last = parts[-1] if parts else None
        if not isinstance(last, sh.Lit) or last.quoted or last.text[-1:] not in ("!", "@", "+", "?", "*"):
            return False
        depth = 1
        self.at += 1
        while depth and self.at < self.end:
            depth += self.sees("(") - self.sees(")")
            self.at += 1
        parts[-1] = sh.Lit(last.text[:-1] + "*", False)
        return True

    # --- assignments and redirections ---------------------------------------------------------------------------------

    def assign(self) -> sh.Assign | None:
        start, index = self.at, ""
        while self.at < self.end and (self.text[self.at].isalnum() or self.text[self.at] == "_"):
            self.at += 1
        name = self.text[start : self.at]
        if name.isidentifier() and self.take("["):
            quote = self.text[self.at : self.at + 1] if self.sees("'", '"') else ""
            stop = self.text.find(f"{quote}]", self.at)
            index = self.text[self.at : stop].strip("\"'")
            self.at = stop + len(quote) + 1 if stop >= 0 else self.end
        adds = self.sees("+=")
        if not name.isidentifier() or not (self.take("+=") or self.take("=")):
            self.at = start
            return None
        if self.take("("):
            return sh.Assign(name, [], self._items(), index, adds)
        return sh.Assign(name, self.word(), None, index, adds)

    def _items(self) -> list[sh.Word]:
        items: list[sh.Word] = []
        while True:
            self.skip(True)
            if self.take(")"):
                return items
            if not (word := self.word()):
                raise sh.Unreadable("an array is not closed")
            items.append(word)

    def redirects(self) -> list[sh.Redirect]:
        found: list[sh.Redirect] = []
        self.skip(False)
        while redirect := self.redirect():
            found.append(redirect)
            self.skip(False)
        return found

    def redirect(self) -> sh.Redirect | None:
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
        fd, self.at = self.text[self.at : stop], stop + len(op)
        self.skip(False)
        if op not in ("<<", "<<-"):
            return sh.Redirect(op, self.word(), fd)
        start = self.at
        mark = plain_text(self.word())
        redirect = sh.Redirect("<<", [], fd)
        is_quoted = any(letter in self.text[start : self.at] for letter in "'\"\\")
        self.waiting.append((redirect, mark, is_quoted, op == "<<-"))
        return redirect

    def _documents(self) -> None:
        for redirect, mark, is_quoted, strips in self.waiting:
            body = ""
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
                body += line + "\n"
            redirect.word = [sh.Lit(body, True)] if is_quoted else _Parser(body, self.depth + 1).double_quoted("")
        self.waiting = []

    # --- statements ---------------------------------------------------------------------------------------------------

    def script_until(self, closer: str) -> sh.Script:
        """Statements up to a closing parenthesis, which is consumed, or a reserved word, which is not."""
        self.depth += 1
        if self.depth > _DEEPEST:
            raise sh.Unreadable("nested too deeply")
        found: sh.Script = []
        joint = ";"
        while True:
            self.skip(True)
            if self.at >= self.end:
                if closer:
                    raise sh.Unreadable(f"{closer} is missing")
                break
            if (closer and self.take(closer)) or self.sees(";;", ";&"):
                break
            if self.text[self.at] in ";&|":
                joint = self.text[self.at] * (2 if self.sees("&&", "||") else 1)
                self.at += len(joint)
                continue
            if self.sees(")") or self.peek() in _CLOSERS:
                break
            found.append(self._statement())
            found[-1].joint, joint = joint, ";"
        self.depth -= 1
        return found

    def _block(self, *closers: str) -> sh.Script:
        """Statements up to one of the reserved words. A single one is consumed; with several, the caller decides."""
        found = self.script_until("")
        if self.peek() not in closers:
            raise sh.Unreadable(f"{closers[0]} is missing")
        if len(closers) == 1:
            self.at += len(closers[0])
        return found

    def _statement(self) -> sh.Node:
        before = self.at
        node = self._pipeline()
        if self.at == before:
            raise sh.Unreadable(f"unexpected {self.text[self.at]!r}")
        self.skip(False)
        return sh.Background(node) if self.sees("&") and not self.sees("&&") else node

    def _pipeline(self) -> sh.Node:
        items: list[sh.Node] = []
        while True:
            self.skip(bool(items))
            items.append(self._command())
            self.skip(False)
            if not self.sees("|") or self.sees("||"):
                return items[0] if len(items) == 1 else sh.Pipe(items)
            self.at += 2 if self.sees("|&") else 1

    def _command(self) -> sh.Node:
        if self.at >= self.end:
            raise sh.Unreadable("a command is missing")
        word = self.peek()
        if word in ("!", "time", "coproc"):
            return self._prefixed(word)
        node = self._compound(word)
        return self._simple() if node is None else self._redirected(node)

    def _redirected(self, node: sh.Node) -> sh.Node:
        redirects = self.redirects()
        return sh.Redirected(node, redirects) if redirects else node

    def _prefixed(self, word: str) -> sh.Node:
        self.at += len(word)
        self.skip(False)
        start, name, process = self.at, self.peek(), "COPROC"
        if word == "coproc" and name.isidentifier():
            self.at += len(name)
            self.skip(False)
            if self.sees("{", "("):
                process = name
            else:
                self.at = start  # a command without a name
        while word == "time" and self.peek().startswith("-"):
            self.word()
            self.skip(False)
        if self.at < self.end and self.text[self.at] not in ";&|\n)":
            node = self._command()
            node.is_negated = word == "!"
            return sh.Group([node, sh.Function(f"coproc {process}", [node])]) if word == "coproc" else node
        return sh.Simple([], [], [])

    def _compound(self, word: str) -> sh.Node | None:
        if self.sees("((") and (found := self._arithmetic(2, "))")) is not None:
            return sh.Group([sh.Group(script, True) for script in found.scripts])
        if self.take("("):
            return sh.Group(self.script_until(")"), True)
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

    def _braces(self) -> sh.Node:
        return sh.Group(self._block("}"))

    def _if(self) -> sh.Node:
        always = self._block("then")
        arms: list[sh.Script] = []
        while True:
            arms.append(self._block("elif", "else", "fi"))
            word = self.peek()
            self.at += len(word)
            if word == "fi":
                return sh.Branch(always, arms)
            if word == "elif":
                always = [*always, *self._block("then")]

    def _while(self) -> sh.Node:
        condition = self._block("do")
        return sh.Loop("", [], condition, self._block("done"))

    def _for(self) -> sh.Node:
        self.skip(False)
        if self.sees("(("):
            found = self._arithmetic(2, "))")
            scripts = found.scripts if found else []
            return sh.Loop("", [], [sh.Group(script, True) for script in scripts], self._loop_body())
        name = self.peek()
        self.at += len(name)
        self.skip(True)
        words: list[sh.Word] = [[sh.Quoted([sh.Var("@")])]]
        if self.peek() == "in":
            self.at += 2
            words = self.words()
        return sh.Loop(name, words, [], self._loop_body())

    def _loop_body(self) -> sh.Script:
        self.skip(True)
        if self.take(";"):
            self.skip(True)
        if self.peek() == "{":
            self.at += 1
            return self._block("}")
        self._block("do")
        return self._block("done")

    def _case(self) -> sh.Node:
        self.skip(True)
        subject = self.word()
        self.skip(True)
        if self.peek() != "in":
            raise sh.Unreadable("in is missing")
        self.at += 2
        arms: list[sh.Script] = []
        while True:
            self.skip(True)
            if self.peek() == "esac":
                self.at += 4
                return sh.Branch([sh.Test(_as_groups(subject))], arms)
            self.take("(")
            while self.at < self.end and not self.sees(")"):
                if not self.word():
                    self.at += 1
            if not self.take(")"):
                raise sh.Unreadable("esac is missing")
            arms.append(self.script_until(""))
            while self.at < self.end and self.text[self.at] in ";&":
                self.at += 1

    def _function(self) -> sh.Node:
        self.skip(False)
        name = self.peek()
        self.at += len(name)
        self.skip(False)
        if self.sees("("):
            self.at = self.text.find(")", self.at) + 1 or self.end
        return self._body_of(name)

    def _maybe_function(self, word: str) -> sh.Node | None:
        rest = self.text[self.at + len(word) :].lstrip(" \t") if word and "=" not in word else ""
        if not rest.startswith("(") or not (rest := rest[1:].lstrip(" \t")).startswith(")"):
            return None
        self.at = self.end - len(rest) + 1
        return self._body_of(word)

    def _body_of(self, name: str) -> sh.Function:
        self.skip(True)
        if self.take("{"):  # zsh needs no blank after it: `:(){:|:&};:`
            return sh.Function(name, [self._redirected(self._braces())])
        return sh.Function(name, [self._command()])

    def _test(self) -> sh.Node:
        """`[[ … ]]`: only what is run inside it matters."""
        words: list[sh.Word] = []
        while self.at < self.end:
            self.skip(True)
            if self.take("]]"):
                return sh.Test([node for word in words for node in _as_groups(word)])
            if not (word := self.word()):
                self.at += 1
            words.append(word)
        raise sh.Unreadable("]] is missing")

    def _simple(self) -> sh.Node:
        words: list[sh.Word] = []
        assigns: list[sh.Assign] = []
        redirects: list[sh.Redirect] = []
        while True:
            self.skip(False)
            if redirect := self.redirect():
                redirects.append(redirect)
            elif (not words or literal(words[0]) in DECLARES) and (assign := self.assign()):
                assigns.append(assign)
            elif word := self.word():
                words.append(word)
            else:
                break
        if words and literal(words[0]) == "[" and not redirects:
            return sh.Test([node for word in words for node in _as_groups(word)])
        return sh.Simple(words, assigns, redirects)


def _reading(script: sh.Script) -> sh.Script:
    """`$(<file)` is the content of the file."""
    only = script[0] if len(script) == 1 else None
    if not isinstance(only, sh.Simple) or only.words or only.assigns or [each.op for each in only.redirects] != ["<"]:
        return script
    return [sh.Simple([[sh.Lit("cat")]], [], only.redirects)]


def commands_in(word: sh.Word) -> list[sh.Script]:
    """The commands that are run to make a word."""
    found: list[sh.Script] = []
    for part in word:
        if isinstance(part, (sh.Sub, sh.Proc)):
            found.append(part.script)
        elif isinstance(part, sh.Sum):
            found += part.scripts
        elif isinstance(part, sh.Quoted):
            found += commands_in(part.parts)
        elif isinstance(part, sh.Var) and part.arg:
            found += commands_in(part.arg)
    return found


def plain_text(word: sh.Word) -> str:
    """A word's literal text, without its expansions."""
    texts = [
        part.text if isinstance(part, sh.Lit) else plain_text(part.parts) if isinstance(part, sh.Quoted) else ""
        for part in word
    ]
    return "".join(texts)


def _as_groups(word: sh.Word) -> sh.Script:
    return [sh.Group(script, True) for script in commands_in(word)]


def literal(word: sh.Word) -> str:
    return word[0].text if len(word) == 1 and isinstance(word[0], sh.Lit) else ""
