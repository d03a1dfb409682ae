"""Empty functions of JavaScript, TypeScript, Go and Rust, by tree-sitter. The grammars are an extra: `proof`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tree_sitter import Node


class _Language(NamedTuple):
    module: str
    loader: str
    functions: frozenset[str]
    scopes: dict[str, tuple[str, ...]]
    """Node type → the fields whose text is part of the qualified name of a function in it."""
    body: Callable[[Node, Node], bytes | None]
    """What to write instead of a function's body. None: leave the function alone."""


def emptied(suffix: str, old: bytes | None, new: bytes) -> bytes | None:
    language = GRAMMARS[suffix]
    root = _parse(language, new)
    if root is None:
        return None
    known: dict[bytes, set[bytes]] = {}
    if old and (before := _parse(language, old)):
        for name, function in _functions(language, before):
            known.setdefault(name, set()).add(_tokens(function))
    edits = []
    is_changed = False
    for name, function in _functions(language, root):
        body = function.child_by_field_name("body")
        if body is None or _tokens(function) in known.get(name, ()):
            continue
        is_changed = True
        if _is_empty(body) or _is_stub(function, body):
            continue
        if (text := language.body(function, body)) is not None and text != body.text:
            edits.append((body.start_byte, body.end_byte, text))
    if not is_changed:
        return None
    result = new
    for start, end, text in reversed(edits):
        result = result[:start] + text + result[end:]
    after = _parse(language, result)
    if after is None:
        return None
    return _without_unused_imports(root, after, result) if suffix == ".go" else result


def why_not(suffix: str) -> str:
    module = GRAMMARS[suffix].module
    if find_spec(module) is None:
        return f"{module.replace('_', '-')} is not installed"
    return ""


def _parse(language: _Language, source: bytes) -> Node | None:
    """None: it has syntax errors, or the grammar is older than the code."""
    import tree_sitter

    grammar = tree_sitter.Language(getattr(import_module(language.module), language.loader)())
    root = tree_sitter.Parser(grammar).parse(source).root_node
    return None if root.has_error else root


def _functions(language: _Language, root: Node) -> Iterator[tuple[bytes, Node]]:
    """The outermost functions with their qualified names, in the order of the file."""
    stack = [(root, b"")]
    while stack:
        node, scope = stack.pop()
        if fields := language.scopes.get(node.type):
            scope = b".".join([scope, *(_short(node.child_by_field_name(field)) for field in fields)])
        if node.type in language.functions and not _is_called_at_once(node):
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
        if one.type in _COMMENTS:
            continue
        if one.child_count and one.type not in _LITERALS:
            stack.extend(reversed(one.children))
        else:
            tokens.append(one.text or b"")
    return b"\0".join(tokens)


_COMMENTS = frozenset({"comment", "line_comment", "block_comment"})
_REFUSAL = re.compile(
    rb"(?:throw|panic)\W.{0,200}?(?:not implemented|unimplemented|todo)|todo!|unimplemented!", re.IGNORECASE | re.DOTALL
)
"""A statement with which a function says that it does nothing yet."""
_LITERALS = frozenset(
    {"string", "interpreted_string_literal", "raw_string_literal", "string_literal", "regex", "char_literal"}
)


def _is_empty(body: Node) -> bool:
    is_block = body.type in ("statement_block", "block")
    rest = [child for child in body.named_children if child.type not in _COMMENTS]
    return is_block and (not rest or (len(rest) == 1 and _REFUSAL.match(rest[0].text or b"") is not None))


def _is_stub(function: Node, body: Node) -> bool:
    """`return cents, nil`: what was given. A constant alone is no stub: a story can ask for one."""
    given = function.child_by_field_name("parameters") or function.child_by_field_name("parameter")
    arguments = set(re.findall(rb"\w+", given.text or b"" if given is not None else b"")) - {b"self"}
    is_block = body.type in ("statement_block", "block")
    statements = [one for one in body.named_children if one.type not in _COMMENTS] if is_block else [body]
    if not arguments or len(statements) != 1:
        return False
    found = _RETURN.fullmatch((statements[0].text or b"").strip())
    if found is None:
        return False
    names = set(re.findall(rb"[A-Za-z_]\w*", found[1]))
    return bool(names & arguments) and names <= arguments | _CONSTANTS


_RETURN = re.compile(rb"(?:return\s+)?((?:(?:Some|Ok)\()?[\w.]+\)?(?:,\s*[\w.]+)*)\s*;?")
_CONSTANTS = frozenset({b"Some", b"Ok", b"None", b"nil", b"null", b"undefined", b"true", b"false"})


def _is_test(node: Node) -> bool:
    """Tests that are in the file with the code: Rust's attributes, and `if (import.meta.vitest)`."""
    if node.type == "if_statement":
        return b"import.meta.vitest" in _short(node.child_by_field_name("condition"))
    if node.type not in ("function_item", "mod_item", "impl_item"):
        return False
    before = node.prev_named_sibling
    while before is not None and before.type in ("attribute_item", *_COMMENTS):
        if before.type == "attribute_item" and re.search(rb"\btest\b|^#\[rstest", before.text or b""):
            return True
        before = before.prev_named_sibling
    return False


# JavaScript and TypeScript


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


# Go


def _go(function: Node, body: Node) -> bytes | None:
    """Zero values: named results have them without being set. `*new(T)` is shorter, but `new` can be shadowed."""
    result = function.child_by_field_name("result")
    if result is None:
        return b"{}"
    types: list[Node | None] = [result]
    if result.type == "parameter_list":
        declared = [one for one in result.named_children if one.type == "parameter_declaration"]
        if any(one.child_by_field_name("name") for one in declared):
            return b"{ return }"
        types = [one.child_by_field_name("type") for one in declared]
    return b"{ return func() (%b) { return }() }" % b", ".join(b"_ %b" % (one.text or b"") for one in types if one)


def _without_unused_imports(before: Node, after: Node, source: bytes) -> bytes:
    """Rename imports that only emptied bodies used to `_`: Go does not compile unused ones."""
    unused = _packages(before) - _packages(after)
    for spec in reversed(list(_descendants(after, "import_spec"))):
        name, path = spec.child_by_field_name("name"), spec.child_by_field_name("path")
        if path is None or not unused & _import_names(name, path):
            continue
        start = (name or path).start_byte
        source = source[:start] + b"_ " + source[path.start_byte :]
    return source


def _packages(root: Node) -> set[bytes]:
    used = [node.child_by_field_name("operand") for node in _descendants(root, "selector_expression")]
    used += [node.child_by_field_name("package") for node in _descendants(root, "qualified_type")]
    return {node.text for node in used if node is not None and node.text}


def _import_names(name: Node | None, path: Node) -> set[bytes]:
    """What an imported package may be called: its name is not always the last part of its path."""
    if name is not None:
        return {name.text or b""}
    parts = (path.text or b"").strip(b'"`').split(b"/")
    if len(parts) > 1 and re.fullmatch(rb"v\d+", parts[-1]):
        parts.pop()
    last = re.sub(rb"\.v\d+$", b"", parts[-1])
    return {
        last,
        last.removeprefix(b"go-"),
        last.removesuffix(b"-go"),
        last.rpartition(b"-")[2],
        last.removesuffix(b".go"),
    }


def _descendants(root: Node, kind: str) -> Iterator[Node]:
    stack = [root]
    while stack:
        node = stack.pop()
        if node.type == kind:
            yield node
        stack.extend(reversed(node.named_children))


# Rust

_HAS_DEFAULT = re.compile(
    rb"(bool|[iu](8|16|32|64|128|size)|f32|f64|char|String|&('\w+\s+)?str|(Option|Vec)<.*>)", re.DOTALL
)


def _rust(function: Node, body: Node) -> bytes | None:
    """Only iterators can be emptied among functions that return `impl Trait`: nothing else is sure to compile."""
    result = function.child_by_field_name("return_type")
    if result is None:
        return b"{}"
    text = result.text or b""
    if re.search(rb"\bimpl\b", text):
        return b"{ std::iter::empty() }" if text.startswith(b"impl Iterator") else None
    is_const = any(
        child.type == "function_modifiers" and b"const" in (child.text or b"") for child in function.children
    )
    if _HAS_DEFAULT.fullmatch(text) and not is_const:
        return b"{ Default::default() }"
    return b"{ unimplemented!() }"


_JAVASCRIPT_FUNCTIONS = frozenset(
    {
        "arrow_function",
        "function_declaration",
        "function_expression",
        "generator_function",
        "generator_function_declaration",
        "method_definition",
    }
)
_JAVASCRIPT_SCOPES = {
    "abstract_class_declaration": ("name",),
    "assignment_expression": ("left",),
    "call_expression": ("function", "arguments"),
    "class": ("name",),
    "class_declaration": ("name",),
    "field_definition": ("property",),
    "internal_module": ("name",),
    "pair": ("key",),
    "public_field_definition": ("name",),
    "variable_declarator": ("name",),
}
_JAVASCRIPT = _Language("tree_sitter_javascript", "language", _JAVASCRIPT_FUNCTIONS, _JAVASCRIPT_SCOPES, _javascript)
_TYPESCRIPT = _Language(
    "tree_sitter_typescript", "language_typescript", _JAVASCRIPT_FUNCTIONS, _JAVASCRIPT_SCOPES, _typescript
)
_GO = _Language(
    "tree_sitter_go",
    "language",
    frozenset({"function_declaration", "method_declaration", "func_literal"}),
    {"method_declaration": ("receiver",), "var_spec": ("name",), "keyed_element": ("key",)},
    _go,
)
_RUST = _Language(
    "tree_sitter_rust",
    "language",
    frozenset({"function_item"}),
    {"impl_item": ("trait", "type"), "trait_item": ("name",), "mod_item": ("name",)},
    _rust,
)
GRAMMARS = {
    **dict.fromkeys((".js", ".jsx", ".mjs", ".cjs"), _JAVASCRIPT),
    **dict.fromkeys((".ts", ".mts", ".cts"), _TYPESCRIPT),
    ".tsx": _TYPESCRIPT._replace(loader="language_tsx"),
    ".go": _GO,
    ".rs": _RUST,
}
