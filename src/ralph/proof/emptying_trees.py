"""Empty functions of JavaScript and TypeScript, by tree-sitter. The grammar of TypeScript reads both."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ralph.core.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from tree_sitter import Node


Body = Callable[["Node", "Node"], bytes | None]
"""What to write instead of a function's body. None: leave the function alone."""


def emptied(suffix: str, old: bytes | None, new: bytes) -> bytes | None:
    grammar, empty_body = SUFFIXES[suffix]
    root = _parse(grammar, new)
    if root is None:
        return None
    known: dict[bytes, set[bytes]] = {}
    if old and (before := _parse(grammar, old)):
        for name, function in _functions(before):
            known.setdefault(name, set()).add(_tokens(function))
    edits = []
    is_changed = False
    for name, function in _functions(root):
        body = function.child_by_field_name("body")
        if body is None or _tokens(function) in known.get(name, ()):
            continue
        is_changed = True
        if _is_empty(body) or _is_stub(function, body):
            continue
        if (text := empty_body(function, body)) is not None and text != body.text:
            edits.append((body.start_byte, body.end_byte, text))
    if not is_changed:
        return None
    result = new
    for start, end, text in reversed(edits):
        result = result[:start] + text + result[end:]
    return None if _parse(grammar, result) is None else result


def _parse(grammar: str, source: bytes) -> Node | None:
    """None: it has syntax errors, or the grammar is older than the code."""
    import tree_sitter
    import tree_sitter_typescript

    language = tree_sitter.Language(getattr(tree_sitter_typescript, grammar)())
    root = tree_sitter.Parser(language).parse(source).root_node
    return None if root.has_error else root


def _functions(root: Node) -> Iterator[tuple[bytes, Node]]:
    """The outermost functions with their qualified names, in the order of the file."""
    stack = [(root, b"")]
    while stack:
        node, scope = stack.pop()
        if fields := _SCOPES.get(node.type):
            scope = b".".join([scope, *(_short(node.child_by_field_name(field)) for field in fields)])
        if node.type in _FUNCTIONS and not _is_called_at_once(node):
            yield scope + b"." + _short(node.child_by_field_name("name")), node
            continue
        stack.extend((child, scope) for child in reversed(node.named_children) if not _is_test(child))


def _short(node: Node | None) -> bytes:
    """The text of a name; of a call's arguments only a first string, which tells routes and events apart."""
    if node is not None and node.type == "arguments":
        node = next((one for one in node.named_children[:1] if one.type in ("string", "template_string")), None)
    return (node.text or b"")[:200] if node is not None else b""


def _tokens(node: Node) -> bytes:
    """What a function says, without whitespace and comments."""
    tokens, stack = [], [node]
    while stack:
        one = stack.pop()
        if one.type == "comment":
            continue
        if one.child_count and one.type not in _LITERALS:
            stack.extend(reversed(one.children))
        else:
            tokens.append(one.text or b"")
    return b"\0".join(tokens)


_REFUSAL = lazy_pattern(rb"throw\W.{0,200}?(?:not implemented|unimplemented|todo)", re.IGNORECASE | re.DOTALL)
"""A statement with which a function says that it does nothing yet."""
_LITERALS = frozenset({"string", "regex"})


def _is_empty(body: Node) -> bool:
    is_block = body.type == "statement_block"
    rest = [child for child in body.named_children if child.type != "comment"]
    return is_block and (not rest or (len(rest) == 1 and _REFUSAL.match(rest[0].text or b"") is not None))


def _is_stub(function: Node, body: Node) -> bool:
    """`return cents`: what was given. A constant alone is no stub: a story can ask for one."""
    given = function.child_by_field_name("parameters") or function.child_by_field_name("parameter")
    arguments = set(re.findall(rb"\w+", given.text or b"" if given is not None else b""))
    is_block = body.type == "statement_block"
    statements = [one for one in body.named_children if one.type != "comment"] if is_block else [body]
    if not arguments or len(statements) != 1:
        return False
    found = _RETURN.fullmatch((statements[0].text or b"").strip())
    if found is None:
        return False
    names = set(re.findall(rb"[A-Za-z_]\w*", found[1]))
    return bool(names & arguments) and names <= arguments | _CONSTANTS


_RETURN = lazy_pattern(rb"(?:return\s+)?([\w.]+)\s*;?")
_CONSTANTS = frozenset({b"null", b"undefined", b"true", b"false"})


def _is_test(node: Node) -> bool:
    """Tests that are in the file with the code: `if (import.meta.vitest)`."""
    return node.type == "if_statement" and b"import.meta.vitest" in _short(node.child_by_field_name("condition"))


def _is_called_at_once(node: Node) -> bool:
    """`(function () { … })()`: a module in a wrapper, not a function of it."""
    inner, outer = node, node.parent
    while outer is not None and outer.type == "parenthesized_expression":
        inner, outer = outer, outer.parent
    return outer is not None and outer.type == "call_expression" and outer.child_by_field_name("function") == inner


def _javascript(function: Node, body: Node, nothing: bytes = b"undefined", block: bytes = b"{}") -> bytes | None:
    if body.type != "statement_block":
        return nothing
    if _short(function.child_by_field_name("name")) == b"constructor" and function.type == "method_definition":
        return _constructor(function, body)
    if any(child.type == "set" for child in function.children):
        return b"{}"
    return block


def _typescript(function: Node, body: Node) -> bytes | None:
    is_never = _short(function.child_by_field_name("return_type")).split() == [b":", b"never"]
    nothing = b"undefined as never" if is_never else b"undefined as any"
    return _javascript(function, body, nothing, b"{ return %b; }" % nothing)


def _constructor(function: Node, body: Node) -> bytes | None:
    """In a derived class, up to `super()`: without it, the class could not even be instantiated."""
    owner = function.parent.parent if function.parent is not None else None
    if owner is None or all(child.type != "class_heritage" for child in owner.children):
        return b"{}"
    for statement in body.named_children:
        call = statement.named_children[0] if statement.named_children else None
        callee = call.child_by_field_name("function") if call is not None else None
        if callee is not None and callee.type == "super":
            if statement == body.named_children[-1]:
                return None
            return (body.text or b"")[: statement.end_byte - body.start_byte] + b" }"
    return None


_FUNCTIONS = (
    *("arrow_function", "function_declaration", "function_expression"),
    *("generator_function", "generator_function_declaration", "method_definition"),
)
_SCOPES = {
    **dict.fromkeys(("abstract_class_declaration", "class", "class_declaration", "internal_module"), ("name",)),
    **dict.fromkeys(("public_field_definition", "variable_declarator"), ("name",)),
    "assignment_expression": ("left",),
    "call_expression": ("function", "arguments"),
    "pair": ("key",),
}
"""Node type → the fields whose text is part of the qualified name of a function in it."""
SUFFIXES: dict[str, tuple[str, Body]] = {
    **dict.fromkeys((".js", ".jsx", ".mjs", ".cjs"), ("language_tsx", _javascript)),
    **dict.fromkeys((".ts", ".mts", ".cts"), ("language_typescript", _typescript)),
    ".tsx": ("language_tsx", _typescript),
}
