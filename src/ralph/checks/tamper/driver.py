"""Test files that run themselves (`python test_x.py`): what runs the tests was edited, and the tests were not. Pure."""

from __future__ import annotations

import ast

from ralph.checks.tamper.paths import is_test_file
from ralph.checks.tamper.values import FileChange

_KEPT = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)


def only_the_driver_changed(change: FileChange) -> bool:
    """Every test, class and import is unchanged: only how they are run can differ."""
    if change.old is None or change.new is None or not is_test_file(change.path):
        return False
    if not change.path.endswith(".py"):
        return False
    old, new = _definitions(change.old), _definitions(change.new)
    return bool(old) and old == new


def _definitions(source: bytes) -> list[str]:
    try:
        tree = ast.parse(source)
        return [ast.dump(node) for node in tree.body if isinstance(node, _KEPT)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
