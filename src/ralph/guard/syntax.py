"""A shell command as values: words made of parts, and statements made of words. The parser returns these.

For the guard `a && b`, `a || b` and `a; b` are the same, because it takes every branch. So they are all plain lists
here, and only `joint` tells them apart.
"""


class Part:
    """A piece of a word."""


class Lit(Part):
    """Literal text. Unquoted text may still contain globs, braces and a tilde."""

    def __init__(self, text: str, quoted: bool = False) -> None:
        self.text, self.quoted = text, quoted


class Quoted(Part):
    """Double-quoted: its parts make one word, whatever they expand to."""

    def __init__(self, parts: "Word") -> None:
        self.parts = parts


class Var(Part):
    """`$name`, `${name[index]op arg}`; `!name` for indirection is the op "!", `#name` is the op "length"."""

    def __init__(self, name: str, op: str = "", arg: "Word | None" = None, index: str = "") -> None:
        self.name, self.op, self.arg, self.index = name, op, arg, index


class Sub(Part):
    """The output of a command: `$(…)` and backticks."""

    def __init__(self, script: "Script") -> None:
        self.script = script


class Proc(Part):
    """A command as a file: `<(…)`, and `>(…)` which reads what is written."""

    def __init__(self, script: "Script", is_input: bool) -> None:
        self.script, self.is_input = script, is_input


class Sum(Part):
    """Arithmetic: a number, and the commands run to compute it."""

    def __init__(self, scripts: "list[Script]") -> None:
        self.scripts = scripts


Word = list[Part]


class Node:
    """A statement."""

    joint = ";"
    """The operator between it and the statement before: `;`, `&`, `&&` or `||`."""
    is_negated = False


Script = list[Node]


class Assign:
    """`items` are the elements, if it is an array."""

    def __init__(self, name: str, value: Word, items: list[Word] | None, index: str, adds: bool) -> None:
        self.name, self.value, self.items, self.index, self.adds = name, value, items, index, adds


class Redirect:
    """`op` is one of < > >> >| <> &> &>> >& <& <<< and << for here-documents, whose text is the word."""

    def __init__(self, op: str, word: Word, fd: str = "") -> None:
        self.op, self.word, self.fd = op, word, fd


class Simple(Node):
    def __init__(self, words: list[Word], assigns: list[Assign], redirects: list[Redirect]) -> None:
        self.words, self.assigns, self.redirects = words, assigns, redirects


class Pipe(Node):
    def __init__(self, items: list[Node]) -> None:
        self.items = items


class Group(Node):
    """Braces, or parentheses: what is set inside parentheses does not last."""

    def __init__(self, body: Script, is_subshell: bool = False) -> None:
        self.body, self.is_subshell = body, is_subshell


class Test(Group):
    """`[ … ]`, `[[ … ]]` and the word after `case`: the body is what is run to make the words."""


class Background(Node):
    def __init__(self, node: Node) -> None:
        self.node = node


class Branch(Node):
    """`if` and `case`: what always runs, and the branches of which one runs."""

    def __init__(self, always: Script, arms: list[Script]) -> None:
        self.always, self.arms = always, arms


class Loop(Node):
    """`for` and `select` have a variable and words; `while` and `until` have a condition."""

    def __init__(self, name: str, words: list[Word], condition: Script, body: Script) -> None:
        self.name, self.words, self.condition, self.body = name, words, condition, body


class Function(Node):
    def __init__(self, name: str, body: Script) -> None:
        self.name, self.body = name, body


class Redirected(Node):
    """A whole group, loop or branch with redirections."""

    def __init__(self, node: Node, redirects: list[Redirect]) -> None:
        self.node, self.redirects = node, redirects


class Unreadable(Exception):
    """The parser cannot make sense of the text."""
