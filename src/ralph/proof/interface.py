"""The public interface of a project: exported names and signatures, without the code behind them. Pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from ralph.core.text import one_line

_LINES = re.MULTILINE
_SCRIPT = re.compile(r"^(?:export\s+(?!\*).+|module\.exports\b.*|exports\.\w+\s*=.*)", _LINES)
_JVM = re.compile(r"^\s*public\s+[^=;]+", _LINES)
_EXPORTS = {
    **dict.fromkeys(("js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx"), _SCRIPT),
    "go": re.compile(r"^(?:func\s+(?:\([^)]*\)\s*)?[A-Z]|type\s+[A-Z]).*", _LINES),
    "rs": re.compile(r"^\s*pub\s+(?:async\s+|const\s+|unsafe\s+)*(?:fn|struct|enum|trait|const|type)\s.*", _LINES),
    **dict.fromkeys(("java", "cs"), _JVM),
    "kt": re.compile(r"^\s*(?:fun|class|object|interface)\s.*", _LINES),
    "rb": re.compile(r"^\s*(?:def|class|module)\s.*", _LINES),
    "php": re.compile(r"^\s*(?:(?:abstract|final|public|static)\s+)*(?:class|interface|function)\s.*", _LINES),
}
"""Ending of a file → its lines that declare something public."""
_MOST_LINES = 60
_LONGEST = 160


def interface(files: Mapping[str, bytes], most: int) -> str:
    """One section per file, at most so many characters."""
    parts: list[str] = []
    left = 0
    for path, data in sorted(files.items(), key=lambda item: (item[0].count("/"), item[0])):
        lines = list(_declared(path, data.decode("utf-8", "replace")))
        if not lines:
            continue
        part = "\n".join([f"{path}:", *(f"    {line}" for line in lines[:_MOST_LINES])])
        if sum(map(len, parts)) + len(part) > most:
            left += 1
            continue
        parts.append(part)
    return "\n".join([*parts, *([f"({left} more files are left out)"] if left else [])])


def _declared(path: str, text: str) -> Iterator[str]:
    ending = path.rpartition(".")[2]
    if ending == "py":
        try:
            yield from _python(ast.parse(text).body)
        except (SyntaxError, ValueError, RecursionError):
            return
    elif ending in _EXPORTS:
        for match in _EXPORTS[ending].finditer(text):
            head = match[0].split("{")[0] if not match[0].startswith("export {") else match[0]
            yield one_line(head.strip(), _LONGEST)


def _python(body: list[ast.stmt], indent: str = "") -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _is_public(node.name):
            returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
            signature = f"def {node.name}({ast.unparse(node.args)}){returns}{_summary(node)}"
            yield indent + one_line(signature, _LONGEST)
        elif isinstance(node, ast.ClassDef) and _is_public(node.name):
            bases = ", ".join(map(ast.unparse, node.bases))
            head = f"class {node.name}({bases})" if bases else f"class {node.name}"
            yield indent + one_line(head + _summary(node), _LONGEST)
            yield from _python(node.body, indent + "    ")
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and _is_public(node.target.id):
            yield f"{indent}{node.target.id}: {ast.unparse(node.annotation)}"


def _is_public(name: str) -> bool:
    return not name.startswith("_") or name in ("__init__", "__call__")


def _summary(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> str:
    text = ast.get_docstring(node)
    return f" # {text.splitlines()[0]}" if text and text.strip() else ""
