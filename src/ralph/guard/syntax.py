"""A shell command as values: words made of parts, and statements made of words. The parser returns these.

For the guard `a && b`, `a || b` and `a; b` are the same, because it takes every branch. So they are all plain lists
here.
"""


class Part:
    """A piece of a word."""

    __slots__ = ()


class Lit(Part):
    """Literal text. Unquoted text may still contain globs, braces and a tilde."""

    __slots__ = ("quoted", "text")

    def __init__(self, text: str, quoted: bool = False) -> None:
        self.text = text
        self.quoted = quoted


class Quoted(Part):
    """Double-quoted: its parts make one word, whatever they expand to."""

    __slots__ = ("parts",)

    def __init__(self, parts: "Word") -> None:
        self.parts = parts


class Var(Part):
    """`$name`, `${name[index]op arg}`; `!name` for indirection is the op "!", `#name` is the op "length"."""

    __slots__ = ("arg", "index", "name", "op")

    def __init__(self, name: str, op: str = "", arg: "Word | None" = None, index: str = "") -> None:
        self.name = name
        self.op = op
        self.arg = arg
        self.index = index


class Sub(Part):
    """The output of a command: `$(…)` and backticks."""

    __slots__ = ("script",)

    def __init__(self, script: "Script") -> None:
        self.script = script


class Proc(Part):
    """A command as a file: `<(…)`, and `>(…)` which reads what is written."""

    __slots__ = ("is_input", "script")

    def __init__(self, script: "Script", is_input: bool) -> None:
        self.script = script
        self.is_input = is_input


class Sum(Part):
    """Arithmetic: a number, and the commands run to compute it."""

    __slots__ = ("scripts",)

    def __init__(self, scripts: "list[Script]") -> None:
        self.scripts = scripts


Word = list[Part]


class Node:
    """A statement."""

    __slots__ = ()


Script = list[Node]


class Assign:
    __slots__ = ("adds", "index", "items", "name", "value")

    def __init__(
        self, name: str, value: Word, items: "list[Word] | None" = None, index: str = "", adds: bool = False
    ) -> None:
        self.name = name
        self.value = value
        self.items = items
        """The elements, if it is an array."""
        self.index = index
        self.adds = adds


class Redirect:
    """`op` is one of < > >> >| <> &> &>> >& <& <<< and << for here-documents, whose text is the word."""

    __slots__ = ("fd", "op", "word")

    def __init__(self, op: str, word: Word, fd: str = "") -> None:
        self.op = op
        self.word = word
        self.fd = fd


class Simple(Node):
    __slots__ = ("assigns", "redirects", "words")

    def __init__(self, words: list[Word], assigns: list[Assign], redirects: list[Redirect]) -> None:
        self.words = words
        self.assigns = assigns
        self.redirects = redirects


class Pipe(Node):
    __slots__ = ("items",)

    def __init__(self, items: list[Node]) -> None:
        self.items = items


class Group(Node):
    """Braces, or parentheses: what is set inside parentheses does not last."""

    __slots__ = ("body", "is_subshell")

    def __init__(self, body: Script, is_subshell: bool = False) -> None:
        self.body = body
        self.is_subshell = is_subshell


class Background(Node):
    __slots__ = ("node",)

    def __init__(self, node: Node) -> None:
        self.node = node


class Branch(Node):
    """`if` and `case`: what always runs, and the branches of which one runs."""

    __slots__ = ("always", "arms")

    def __init__(self, always: Script, arms: list[Script]) -> None:
        self.always = always
        self.arms = arms


class Loop(Node):
    """`for` and `select` have a variable and words; `while` and `until` have a condition."""

    __slots__ = ("body", "condition", "name", "words")

    def __init__(self, name: str, words: list[Word], condition: Script, body: Script) -> None:
        self.name = name
        self.words = words
        self.condition = condition
        self.body = body


class Function(Node):
    __slots__ = ("body", "name")

    def __init__(self, name: str, body: Script) -> None:
        self.name = name
        self.body = body


class Redirected(Node):
    """A whole group, loop or branch with redirections."""

    __slots__ = ("node", "redirects")

    def __init__(self, node: Node, redirects: list[Redirect]) -> None:
        self.node = node
        self.redirects = redirects


class Unreadable(Exception):
    """The parser cannot make sense of the text."""
