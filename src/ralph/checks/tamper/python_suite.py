"""Python tests by `ast`."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ralph.checks.tamper.python_body import BodyReader
from ralph.checks.tamper.python_file import Function, PythonFile, parse
from ralph.checks.tamper.suite import Case, Mark, Outline


class PythonSuite:
    """A file that could be parsed, with its tests in outline."""

    def __init__(self, path: str, text: str, tree: ast.Module) -> None:
        self._file = PythonFile(path, text, tree)
        self._functions: dict[tuple[str, int], Function] = {}
        self.marks: Sequence[Mark] = self._file.marks()
        self.outlines: Sequence[Outline] = self._outlines()

    @classmethod
    def read(cls, path: str, text: str) -> PythonSuite | None:
        tree = parse(text)
        return None if tree is None else cls(path, text, tree)

    @property
    def file(self) -> PythonFile:
        return self._file

    def _outlines(self) -> list[Outline]:
        last = {function.name: function.node.lineno for function in self._file.functions}
        context = str(hash(self._context()))
        found = []
        for function in self._file.functions:
            node = function.node
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            text = "\n".join(self._file.lines[first - 1 : node.end_lineno])
            is_shadowed = last[function.name] != node.lineno or function.name in self._file.removed
            self._functions[(function.name, node.lineno)] = function
            found.append(
                Outline(
                    path=self._file.path,
                    name=function.name,
                    line=node.lineno,
                    is_test=function.is_test and not is_shadowed,
                    source=f"{context}\n{function.guard}\n{text}",
                    body=self._body(function),
                    marks=self._marks(function),
                )
            )
        return found

    def _body(self, function: Function) -> str:
        node = function.node
        lines = self._file.lines[node.body[0].lineno - 1 : node.end_lineno]
        for decorator in node.decorator_list:
            lines += self._file.lines[decorator.lineno - 1 : decorator.end_lineno]
        return "\n".join(stripped for line in lines if (stripped := line.strip()))

    def _context(self) -> str:
        """All of the file that a test of it may depend on: everything but tests and imports."""
        skipped: set[int] = set()
        for function in self._file.functions:
            if function.is_test:
                skipped.update(range(function.node.lineno, (function.node.end_lineno or 0) + 1))
        for node in self._file.tree.body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                skipped.update(range(node.lineno, (node.end_lineno or 0) + 1))
        lines = (line.strip() for number, line in enumerate(self._file.lines, 1) if number not in skipped)
        return "\n".join(line for line in lines if line and not line.startswith(("#", "@")))

    def _marks(self, function: Function) -> tuple[Mark, ...]:
        decorators = [*function.node.decorator_list, *(function.owner.decorator_list if function.owner else ())]
        marks = [mark for decorator in decorators if (mark := self._file.decorator_mark(decorator))]
        if function.guard:
            marks.append(Mark("guard", function.node.lineno, f"if {function.guard}"))
        return tuple(marks)

    def case(self, outline: Outline) -> Case:
        function = self._functions[(outline.name, outline.line)]
        read = BodyReader(self._file, function)
        marks = list(dict.fromkeys([*outline.marks, *read.marks]))
        if outline.is_test and "yield" in outline.body and _yields(function.node):
            marks.append(Mark("skip", outline.line, "a test with `yield` is not run"))
        return Case(
            outline,
            tuple(read.assertions),
            tuple(marks),
            read.scan.calls,
            loose=tuple(read.loose),
            replaced=read.scan.replaced,
        )


def _yields(node: ast.AST) -> bool:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef) and _yields(child):
            return True
    return False
