"""Splits a command line into simple commands, with how each is joined to the one before.

The command guard really parses shell. Here a wrong split costs one record, so a small scanner is enough, and it
starts quickly.
"""

_OPERATORS = ("&&", "||", ";;", "|&", ";", "|", "&", "\n", "(", ")")
_BECOMES = {";;": ";", "|&": "|", "\n": ";", "(": "", ")": ""}
_RESERVED = {
    "if": "",
    "while": "",
    "until": "",
    "elif": ";",
    "then": "&&",
    "else": "||",
    "do": ";",
    "done": ";",
    "fi": ";",
    "{": "",
    "}": "",
    "!": "",
    "time": "",
}
"""Words that only hold other commands together. `if T; then A; else B; fi` reads as `T && A || B`."""
_DEEPEST = 6


class Part:
    """One simple command."""

    __slots__ = ("in_loop", "is_negated", "joint", "nested", "role", "saved", "text", "words")

    def __init__(self, joint: str, in_loop: bool = False) -> None:
        self.joint = joint
        """How it is joined to the part before: `&&`, `||`, `;`, `|`, `&`, or `$` inside a substitution."""
        self.words: list[str] = []
        self.nested: list[Part] = []
        self.in_loop = in_loop
        self.is_negated = False
        self.saved = False
        """Its output went to a file."""
        self.role = ""
        self.text = ""


def split(command: str, depth: int = 0) -> list[Part]:
    """The parts in order. Those of a substitution come before the part that contains it."""
    scanner = _Scanner(command, depth)
    scanner.run()
    return scanner.parts


class _Scanner:
    def __init__(self, text: str, depth: int) -> None:
        self.text = text
        self.at = 0
        self.depth = depth
        self.parts: list[Part] = []
        self.part = Part(";")
        self.word: list[str] | None = None
        self.target = ""
        """Why the next word is not an argument: `>` or `<` for a file, `<<` for the end of a heredoc."""
        self.ends: list[tuple[str, bool]] = []
        self.loops = 0

    def run(self) -> None:
        text = self.text
        while self.at < len(text):
            char = text[self.at]
            if char in " \t":
                self.end_word()
                self.at += 1
            elif char == "\\":
                if text[self.at + 1 : self.at + 2] != "\n":
                    self.add(text[self.at + 1 : self.at + 2])
                self.at += 2
            elif char == "'":
                self.quoted()
            elif char == '"':
                self.double_quoted()
            elif char == "`" or text.startswith("$(", self.at):
                self.add(self.substitution())
            elif char == "#" and self.word is None:
                end = text.find("\n", self.at)
                self.at = len(text) if end < 0 else end
            elif char in "<>":
                self.redirection()
            elif char == "&" and text[self.at + 1 : self.at + 2] == ">":
                self.end_word()
                self.at += 1
            else:
                self.plain(char)
        self.end_part(";")

    def plain(self, char: str) -> None:
        operator = next((one for one in _OPERATORS if self.text.startswith(one, self.at)), "")
        if not operator:
            self.add(char)
            self.at += 1
            return
        self.at += len(operator)
        self.end_word()
        if operator == "(" and self.part.words and self.part.words[-1].endswith("="):
            return  # an array
        self.end_part(_BECOMES.get(operator, operator))
        if operator == "\n":
            self.skip_heredocs()

    def add(self, text: str) -> None:
        if self.word is None:
            self.word = []
        self.word.append(text)

    def quoted(self) -> None:
        end = self.text.find("'", self.at + 1)
        end = len(self.text) if end < 0 else end
        self.add(self.text[self.at + 1 : end])
        self.at = end + 1

    def double_quoted(self) -> None:
        text = self.text
        self.at += 1
        self.add("")
        while self.at < len(text) and text[self.at] != '"':
            char = text[self.at]
            if char == "\\" and text[self.at + 1 : self.at + 2] in ('"', "\\", "$", "`", "\n"):
                self.add(text[self.at + 1 : self.at + 2])
                self.at += 2
            elif char == "`" or text.startswith("$(", self.at):
                self.add(self.substitution())
            else:
                self.add(char)
                self.at += 1
        self.at += 1

    def substitution(self) -> str:
        """Its commands become separate parts; its result is unknown."""
        text, start = self.text, self.at
        if text[start] == "`":
            end = text.find("`", start + 1)
            inner, self.at = text[start + 1 : end if end >= 0 else len(text)], (end if end >= 0 else len(text)) + 1
        else:
            inner, self.at = self.inside(start + 2)
            if inner.startswith("("):
                return "$(())"
        if self.depth < _DEEPEST:
            for part in split(inner, self.depth + 1):
                part.joint = "$" if part.joint == ";" else part.joint
                self.part.nested.append(part)
        return "$()"

    def inside(self, start: int) -> tuple[str, int]:
        """The text up to the closing parenthesis, and the position after it."""
        text, level, at, quote = self.text, 1, start, ""
        while at < len(text):
            char = text[at]
            if quote:
                if char == "\\" and quote == '"':
                    at += 1
                elif char == quote:
                    quote = ""
            elif char in "'\"":
                quote = char
            elif char == "\\":
                at += 1
            elif char == "(":
                level += 1
            elif char == ")":
                level -= 1
                if not level:
                    return text[start:at], at + 1
            at += 1
        return text[start:], len(text)

    def redirection(self) -> None:
        text = self.text
        if self.word is not None and "".join(self.word).isdigit():
            number = "".join(self.word)
            self.word = None  # `2>`: the number is no argument
        else:
            number = ""
            self.end_word()
        char = text[self.at]
        if text[self.at + 1 : self.at + 2] == "(":
            inner, self.at = self.inside(self.at + 2)
            if self.depth < _DEEPEST:
                for part in split(inner, self.depth + 1):
                    part.joint = "$" if part.joint == ";" else part.joint
                    self.part.nested.append(part)
            return
        if text.startswith("<<<", self.at):
            self.at, self.target = self.at + 3, "<"
        elif text.startswith("<<", self.at):
            dashed = text[self.at + 2 : self.at + 3] == "-"
            self.at += 3 if dashed else 2
            self.target = "<<-" if dashed else "<<"
        else:
            self.at += 1
            while text[self.at : self.at + 1] in (">", "|") and char == ">":
                self.at += 1
            if text[self.at : self.at + 1] == "&":
                self.at += 1
                self.target = "&"
            else:
                self.target = "<" if char == "<" else ">" if number in ("", "1") else "2>"

    def end_word(self) -> None:
        if self.word is None:
            return
        word, self.word = "".join(self.word), None
        target, self.target = self.target, ""
        if target in ("<<", "<<-"):
            self.ends.append((word, target == "<<-"))
        elif target == ">":
            self.part.saved = self.part.saved or word not in ("/dev/stderr", "/dev/stdout", "/dev/tty")
        elif target:
            return
        elif not self.part.words and word in _RESERVED:
            joint = _RESERVED[word]
            if joint:
                self.part.joint = joint if self.parts else ";"
            self.part.is_negated = self.part.is_negated or word == "!"
            self.loops += {"do": 1, "done": -1}.get(word, 0)
            self.part.in_loop = self.loops > 0
        else:
            self.part.words.append(word)

    def skip_heredocs(self) -> None:
        """Their lines are data, whatever they look like."""
        for end, dashed in self.ends:
            while self.at < len(self.text):
                stop = self.text.find("\n", self.at)
                stop = len(self.text) if stop < 0 else stop
                line = self.text[self.at : stop]
                self.at = stop + 1
                if (line.lstrip("\t") if dashed else line) == end:
                    break
        self.ends = []

    def end_part(self, joint: str) -> None:
        self.end_word()
        part = self.part
        self.parts += part.nested
        if part.words:
            part.joint = part.joint or ";"
            self.parts.append(part)
            self.part = Part(joint, self.loops > 0)
        elif joint:
            # `if T; then`: what joins is on the word after the separator, or on the first of two.
            self.part = Part(joint if part.joint in ("", ";", "&") else part.joint, self.loops > 0)
        else:
            self.part = Part(part.joint, self.loops > 0)
