"""Reads a shell command with the tree-sitter grammar for bash. What the grammar is known to misparse is refused here
and left to the second parser."""

from ralph.hooks.guard.escapes import unescape, unquote_bare, unquote_double
from ralph.hooks.guard.grammar import parse
from ralph.hooks.guard.second_reader import DECLARES, read_expansion, read_template
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
from ralph.hooks.guard.wordlist import one_of

TYPE_CHECKING = False  # `typing` is not imported for it
if TYPE_CHECKING:
    from tree_sitter import Node as Tree

_RESERVED = one_of("} then do done fi esac else elif in { coproc !")
_ARM_ENDS = (";;", ";&", ";;&")
_OPERATORS = frozenset(("&&", "||", ";", ";;", "|", "|&", "\n"))
_WORDS = one_of(
    """
    word number string raw_string ansi_c_string translated_string concatenation simple_expansion expansion
    command_substitution process_substitution arithmetic_expansion brace_expression extglob_pattern regex
    variable_name special_variable_name test_operator $ == =~ =
    """
)


def read(text: str) -> Script:
    """Raises Unreadable for a syntax error, and for what the grammar gets wrong."""
    source = text.encode("utf-8", "replace")
    root = parse(source)
    if root.has_error:
        raise Unreadable("syntax error")
    return _TreeReader(source).body(root.children)


def bare(words: list[Word]) -> str:
    """The first word, if it is entirely literal."""
    first = words[0][0] if words and len(words[0]) == 1 else None
    return first.text if isinstance(first, Lit) and not first.quoted else ""


class _TreeReader:
    def __init__(self, source: bytes) -> None:
        self.source = source

    def text(self, tree: "Tree") -> str:
        return self.source[tree.start_byte : tree.end_byte].decode("utf-8", "replace")

    def body(self, trees: "list[Tree]") -> Script:
        found: Script = []
        for tree in trees:
            kind = tree.type
            if kind == "&" and found:
                found[-1] = Background(found[-1])
            elif kind == "command":
                found.append(self.command(tree))
            elif kind == "list":
                found += self.body(tree.children)
            elif tree.is_named and kind != "comment":
                node = self.statement(tree)
                # A list with a redirection, or in front of a pipe: the grammar makes a unit of it, a shell does not.
                is_list = isinstance(node, Group) and kind in ("redirected_statement", "pipeline")
                found += node.body if isinstance(node, Group) and is_list else [node]
        return found

    def statement(self, tree: "Tree") -> Node:
        kind = tree.type
        if kind in ("command", "declaration_command", "unset_command"):
            return self.command(tree)
        if kind == "variable_assignment":
            return Simple([], [self.assign(tree)], [])
        if kind == "variable_assignments":
            return Simple([], [self.assign(each) for each in tree.children], [])
        if kind == "pipeline":
            return self.pipeline([each for each in tree.children if each.type not in ("|", "|&")])
        if kind == "redirected_statement":
            return self.redirected(tree)
        if kind in ("compound_statement", "subshell", "list", "do_group", "program"):
            return self.group(tree)
        if kind == "negated_command":
            return self.statement(tree.children[-1])
        if kind == "test_command":
            return self.commands_within(tree)
        return self.compound(tree, kind)

    def pipeline(self, trees: "list[Tree]") -> Node:
        before = self.body(trees[:1])
        items = [*before[-1:], *self.body(trees[1:])]
        pipe = Pipe([inner for item in items for inner in (item.items if isinstance(item, Pipe) else [item])])
        return Group([*before[:-1], pipe]) if len(before) > 1 else pipe

    def compound(self, tree: "Tree", kind: str) -> Node:
        if kind == "if_statement":
            return self.branch(tree)
        if kind == "while_statement":
            condition = [each for i, each in enumerate(tree.children) if tree.field_name_for_child(i) == "condition"]
            return Loop("", [], self.body(condition), self.body(tree.children[-1].children))
        if kind == "for_statement":
            return self.loop(tree)
        if kind == "c_style_for_statement":
            head = [node for each in tree.children[:-1] if each.is_named for node in self.commands_within(each).body]
            return Loop("", [], head, self.body(tree.children[-1].children))
        if kind == "case_statement":
            return self.case(tree)
        if kind == "function_definition":
            return self.function(tree)
        raise Unreadable(f"a statement of type {kind}")

    def group(self, tree: "Tree") -> Node:
        if tree.children and tree.children[0].type == "((":
            return self.commands_within(tree)
        return Group(self.body(tree.children), tree.type == "subshell")

    def commands_within(self, tree: "Tree") -> Group:
        """Tests and arithmetic have no effects themselves; substitutions in them may."""
        found: Script = []
        waiting = [tree]
        while waiting:
            each = waiting.pop()
            if each.type in ("command_substitution", "process_substitution"):
                found.append(Group(self.body(each.children), True))
            else:
                waiting += each.children
        return Group(found)

    def branch(self, tree: "Tree") -> Branch:
        always: Script = []
        arms: list[Script] = []
        waiting: list[Tree] = []
        for each in tree.children:
            if each.type == "then":
                always += self.body(waiting)
                waiting = []
            elif each.type == "elif_clause":
                inner = self.branch(each)
                arms += [self.body(waiting)] if waiting else []
                waiting = []
                always += inner.always
                arms += inner.arms
            elif each.type == "else_clause":
                arms += [self.body(waiting)] if waiting else []
                waiting = []
                arms.append(self.body(each.children[1:]))
            elif each.type not in ("if", "elif", "fi"):
                waiting.append(each)
        return Branch(always, [*arms, self.body(waiting)] if waiting else arms)

    def loop(self, tree: "Tree") -> Node:
        name, words = "", []
        is_given = False
        for i, each in enumerate(tree.children):
            field = tree.field_name_for_child(i)
            if field == "variable":
                name = self.text(each)
            elif field == "value":
                words.append(self.word(each))
            is_given = is_given or each.type == "in"
        if not is_given:
            words = [[Quoted([Var("@")])]]
        return Loop(name, words, [], self.body(tree.children[-1].children))

    def case(self, tree: "Tree") -> Node:
        always: Script = []
        arms: list[Script] = []
        for each in tree.children:
            if each.type == "case_item":
                start = next((i for i, part in enumerate(each.children) if part.type == ")"), 0)
                arms.append(self.body([part for part in each.children[start + 1 :] if part.type not in _ARM_ENDS]))
            elif each.is_named:
                always += self.commands_within(each).body
        return Branch(always, arms)

    def function(self, tree: "Tree") -> Node:
        name = tree.child_by_field_name("name")
        body = tree.child_by_field_name("body")
        if name is None or body is None:
            raise Unreadable("a function without a name or a body")
        redirects = [self.redirect(each, []) for each in tree.children if each.type == "file_redirect"]
        node: Node = Redirected(self.statement(body), redirects) if redirects else self.statement(body)
        return Function(self.text(name), [node])

    def redirected(self, tree: "Tree") -> Node:
        extra: list[Word] = []
        body: Node | None = None
        is_list = False
        redirects: list[Redirect] = []
        for each in tree.children:
            if each.type in ("file_redirect", "herestring_redirect", "heredoc_redirect"):
                redirects.append(self.redirect(each, extra))
            else:
                body = self.statement(each)
                is_list = each.type == "list"
        if body is None:
            return Simple([], [], redirects)
        if isinstance(body, Simple):
            body.words += extra
            body.redirects += redirects
            return body
        if extra:
            raise Unreadable("words after a redirection of a group")
        return self.with_redirects(body, redirects, is_list)

    def with_redirects(self, node: Node, redirects: list[Redirect], is_list: bool = False) -> Node:
        """For a pipeline or a list, the grammar redirects the whole, but a shell only the last command."""
        if isinstance(node, Simple):
            node.redirects += redirects
            return node
        last = node.items if isinstance(node, Pipe) else node.body if isinstance(node, Group) and is_list else None
        if last:
            last[-1] = self.with_redirects(last[-1], redirects)
            return node
        return Redirected(node, redirects)

    def redirect(self, tree: "Tree", extra: list[Word]) -> Redirect:
        """The grammar treats words after a redirection as further targets: they go to `extra`."""
        if tree.type == "heredoc_redirect":
            return self.document(tree)
        fd, op = "", ""
        words: list[Word] = []
        for each in tree.children:
            if each.type == "file_descriptor":
                fd = self.text(each)
            elif each.type in _WORDS and op:
                words.append(self.word(each))
            elif not op:
                op = each.type
        if not words and op not in (">&-", "<&-"):
            raise Unreadable("a redirection without a target")
        extra += words[1:]
        if not words:
            return Redirect(op[:-1], [Lit("-")], fd)
        return Redirect(op, words[0], fd)

    def document(self, tree: "Tree") -> Redirect:
        body = mark = ""
        strips = False
        for each in tree.children:
            if each.type == "heredoc_start":
                mark = self.text(each)
            elif each.type == "heredoc_body":
                start = each.start_byte
                while self.source[start - 2 : start] == b"\n\n":  # the grammar loses empty lines at the beginning
                    start -= 1
                body = self.source[start : each.end_byte].decode("utf-8", "replace")
            elif each.type == "<<-":
                strips = True
            elif each.type not in ("<<", "heredoc_end"):
                raise Unreadable("something follows on the line of a here-document")
        if strips:
            body = "\n".join(line.lstrip("\t") for line in body.split("\n"))
        is_quoted = any(letter in mark for letter in "'\"\\")
        return Redirect("<<", [Lit(body, True)] if is_quoted else read_template(body))

    def command(self, tree: "Tree") -> Simple:
        words: list[Word] = []
        assigns: list[Assign] = []
        redirects: list[Redirect] = []
        for each in tree.children:
            kind = each.type
            if kind == "command_name":
                words.append(self.word(each.children[0]))
            elif kind in _WORDS:
                words.append(self.word(each))
            elif kind == "variable_assignment":
                assigns.append(self.assign(each))
            elif kind in ("file_redirect", "herestring_redirect"):
                redirects.append(self.redirect(each, words))
            elif kind in DECLARES or kind in ("unset", "unsetenv"):
                words.append([Lit(kind)])
            else:
                raise Unreadable(f"{kind} in a command")
        if bare(words) == "time":
            words = words[1:]
            while bare(words).startswith("-"):
                words = words[1:]
        if bare(words) in _RESERVED:
            raise Unreadable(f"{bare(words)} where a command should be")
        return Simple(words, assigns, redirects)

    def assign(self, tree: "Tree") -> Assign:
        name = tree.children[0]
        index = ""
        if name.type == "subscript":
            parts = name.children
            index = self.text(parts[2]).strip("\"'") if len(parts) > 2 else ""
            name = parts[0]
        adds = tree.children[1].type == "+="
        value = tree.children[2] if len(tree.children) > 2 else None
        if value is not None and value.type == "array":
            items = [self.word(each) for each in value.children if each.is_named and each.type != "comment"]
            return Assign(self.text(name), [], items, index, adds)
        return Assign(self.text(name), self.word(value) if value is not None else [], None, index, adds)

    def word(self, tree: "Tree") -> Word:
        if tree.type == "concatenation":
            # Blanks in between: the grammar took two words for one.
            return self.joined(tree.children)
        return [self.part(tree)]

    def joined(self, trees: "list[Tree]") -> Word:
        word: Word = []
        for each in trees:
            if each.type == "concatenation":
                word += self.joined(each.children)
            else:
                word.append(self.part(each))
        return word

    def part(self, tree: "Tree") -> Part:
        kind = tree.type
        if kind == "word" or kind == "number":
            text = self.text(tree)
            return Lit(unquote_bare(text), "\\" in text and ("\\{" in text or "\\~" in text))
        if kind == "string":
            return Quoted(self.string(tree))
        if kind == "raw_string":
            return Lit(self.text(tree)[1:-1], True)
        if kind == "ansi_c_string":
            return Lit(unescape(self.text(tree)[2:-1]), True)
        if kind == "translated_string":
            return self.part(tree.children[-1])
        if kind == "simple_expansion":
            return Var(self.text(tree).strip()[1:])
        if kind == "expansion":
            return read_expansion(self.text(tree).strip(), False)
        if kind == "command_substitution":
            return Sub(self.substituted(tree))
        if kind == "process_substitution":
            return Proc(self.body(tree.children), tree.children[0].type == "<(")
        if kind == "arithmetic_expansion":
            groups = self.commands_within(tree).body
            return Sum([group.body for group in groups if isinstance(group, Group)])
        if kind in _WORDS:
            return Lit(unquote_bare(self.text(tree)))
        raise Unreadable(f"{kind} in a word")

    def substituted(self, tree: "Tree") -> Script:
        """In backticks, escapes belong to the outer level, which only the second parser handles."""
        if tree.children[0].type.endswith("`") and "\\" in self.text(tree):
            raise Unreadable("escapes in backticks")
        redirects = [each for each in tree.children if each.type == "file_redirect"]
        if redirects:  # `$(<file)`
            return [Simple([[Lit("cat")]], [], [self.redirect(each, []) for each in redirects])]
        return self.body(tree.children)

    def string(self, tree: "Tree") -> Word:
        """The grammar leaves gaps between parts, and puts blanks into the next one."""
        parts: Word = []
        at, end = tree.start_byte + 1, tree.end_byte - 1
        for each in tree.children[1:-1]:
            if each.type == "string_content":
                continue
            start = each.start_byte
            blank = self.source[start : each.end_byte]
            start += len(blank) - len(blank.lstrip())
            self.fill(parts, at, start)
            if each.type == "expansion":
                parts.append(read_expansion(self.text(each).strip(), True))
            else:
                part = self.part(each)
                parts.append(Lit(part.text, True) if isinstance(part, Lit) else part)
            at = each.end_byte
        self.fill(parts, at, end)
        return parts

    def fill(self, parts: Word, start: int, end: int) -> None:
        if end > start:
            parts.append(Lit(unquote_double(self.source[start:end].decode("utf-8", "replace")), True))
