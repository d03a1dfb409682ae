"""Reads what is between words: blanks, comments, redirections, here-documents, assignments."""

from ralph.hooks.guard.shell import Assign, Lit, Quoted, Redirect, Unreadable, Word
from ralph.hooks.guard.word_reader import WordReader

_REDIRECTS = ("<<<", "<<-", "<<", "&>>", "&>", ">>", ">&", "<&", ">|", "<>", ">", "<")


class LineReader(WordReader):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.waiting: list[tuple[Redirect, str, bool, bool]] = []
        """Here-documents whose text starts after this line: target, delimiter, quoted, tabs stripped."""

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


def plain_text(word: Word) -> str:
    """A word's literal text, without its expansions."""
    out = ""
    for part in word:
        if isinstance(part, Lit):
            out += part.text
        elif isinstance(part, Quoted):
            out += plain_text(part.parts)
    return out
