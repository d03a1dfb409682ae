"""One Python file of tests: its functions, what its names stand for, and what keeps its tests from running."""

from __future__ import annotations

import ast
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from ralph.checks.tamper.python_expression import NO_NAMES, Names, dotted, tokens_of, truth
from ralph.checks.tamper.suite import Mark

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
_INNER_IMPORT = re.compile(r"^[ \t]+(?:from[ ]+(?P<module>[\w.]+)[ ]+)?import[ ]+(?P<names>[^#\n]+)", re.MULTILINE)
_MOST_PRODUCTS = 200
_SETS_UP = frozenset({"setUp", "setUpClass", "setup_method", "setup", "setup_class", "asyncSetUp"})


class Function(Struct, frozen=True):
    name: str
    node: FunctionNode
    owner: ast.ClassDef | None
    is_test: bool
    guard: str = ""
    """The condition under which it is defined."""


def parse(text: str) -> ast.Module | None:
    tree = _parsed(text)
    return tree if isinstance(tree, ast.Module) else None


def _parsed(text: str) -> ast.Module | str:
    """The tree, or what is wrong."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape in somebody's string is not our warning
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return str(error)


_NEWER = re.compile(
    r"^\s*type \w+.*=|^\s*(?:async )?(?:def|class) \w+\[|\bt[\"']|^\s*except \w[\w.]*, \w"
    r"|^\s*except\*|^\s*lazy (?:import|from)",
    re.MULTILINE,
)


def may_be_newer(text: str) -> bool:
    """It does not parse, but perhaps only because this Python is older than the project's."""
    problem = _parsed(text)
    return isinstance(problem, str) and ("f-string" in problem or _NEWER.search(text) is not None)


class PythonFile:
    def __init__(self, path: str, text: str, tree: ast.Module) -> None:
        self.path = path
        self.text = text
        self.lines = text.split("\n")
        self.tree = tree
        self.aliases: dict[str, str] = {}
        self.constants = single_assignments(tree.body)
        self.functions: list[Function] = []
        self.removed: dict[str, int] = {}
        """Tests that the module itself removes again, with the line."""
        self._read_imports()
        self._test_classes: set[str] = set(_mixins(tree))
        self._collect(tree.body, None, "", True, "")
        self._helpers = {
            f.name: f for f in self.functions if f.owner is None and not f.is_test and self._asserts(f.node)
        }
        self._fixtures = {f.name: f.node for f in self.functions if f.owner is None and _is_fixture(f.node)}

    def _asserts(self, node: FunctionNode) -> bool:
        return any("assert" in line for line in self.lines[node.lineno - 1 : node.end_lineno])

    def _read_imports(self) -> None:
        for node in self.tree.body:
            if isinstance(node, ast.Import):
                self.aliases |= {alias.asname or alias.name: alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                self.aliases |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
        for match in _INNER_IMPORT.finditer(self.text):
            for part in match["names"].split(","):
                name, _, alias = (word.strip() for word in part.strip("() ").partition(" as "))
                if name.isidentifier() and match["module"]:
                    self.aliases[alias or name] = f"{match['module']}.{name}"
                elif name:
                    self.aliases[alias or name] = name

    def resolve(self, name: str) -> str:
        """The full name behind an import: `skip` → `pytest.skip`."""
        first, dot, rest = name.partition(".")
        full = self.aliases.get(first)
        return f"{full}{dot}{rest}" if full else name

    def helper(self, name: str) -> Function | None:
        return self._helpers.get(name.removeprefix("self."))

    def names_for(self, function: Function) -> Mapping[str, ast.expr]:
        """What a name in this function stands for, where a reader can tell."""
        names = dict(self.constants)
        for argument in (*function.node.args.args, *function.node.args.kwonlyargs):
            names.pop(argument.arg, None)
            if (fixture := self._fixtures.get(argument.arg)) is not None and (
                value := _plain_result(fixture)
            ) is not None:
                names[argument.arg] = value
        return names

    def _collect(
        self, body: Sequence[ast.stmt], owner: ast.ClassDef | None, prefix: str, collected: bool, guard: str
    ) -> None:
        for node in body:
            match node:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    is_test = collected and name.startswith("test") and not _is_fixture(node)
                    self.functions.append(Function(prefix + name, node, owner, is_test, guard))
                    self.removed.pop(prefix + name, None)
                case ast.ClassDef(name=name):
                    inside = collected and self._is_collected(node)
                    if inside:
                        self._test_classes.add(name)
                    self._collect(node.body, node, f"{prefix}{name}.", inside, guard)
                case ast.If(test=test, body=then, orelse=other):
                    known = truth(test)
                    said = " ".join(tokens_of(test)) if known is None else ""
                    self._collect(then, owner, prefix, collected and known is not False, guard or said)
                    self._collect(
                        other, owner, prefix, collected and known is not True, guard or (said and f"not {said}")
                    )
                case ast.Try(body=inner, handlers=handlers, orelse=other, finalbody=last):
                    for part in (inner, *(handler.body for handler in handlers), other, last):
                        self._collect(part, owner, prefix, collected, guard)
                case ast.With(body=inner) | ast.For(body=inner) | ast.While(body=inner):
                    self._collect(inner, owner, prefix, collected, guard)
                case ast.Delete(targets=targets):
                    self.removed |= {prefix + t.id: node.lineno for t in targets if isinstance(t, ast.Name)}
                case ast.Assign(targets=[ast.Name(id=name)]) if name.startswith(("test", "Test")):
                    self.removed[prefix + name] = node.lineno
                case ast.Assign(targets=[ast.Attribute(value=ast.Name(id=name), attr="__test__")]):
                    self.removed[prefix + name] = node.lineno

    def _is_collected(self, node: ast.ClassDef) -> bool:
        bases = [dotted(base).rpartition(".")[2] for base in node.bases]
        is_unittest = any("Test" in base for base in bases)
        methods = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
        for item in node.body:
            if (
                isinstance(item, ast.Assign)
                and tokens_of(item.targets[0]) == ("__test__",)
                and truth(item.value) is False
            ):
                return False
        if is_unittest or node.name in self._test_classes or any(base in self._test_classes for base in bases):
            return True
        return node.name.startswith("Test") and "__init__" not in methods

    def marks(self) -> list[Mark]:
        """What keeps the whole file from running."""
        found: list[Mark] = []
        for node in self.tree.body:
            match node:
                case ast.Assign(targets=[ast.Name(id="pytestmark")], value=value):
                    parts = value.elts if isinstance(value, ast.List | ast.Tuple) else [value]
                    found += [mark for part in parts if (mark := self.decorator_mark(part))]
                case ast.Assign(targets=[ast.Name(id="__test__")], value=value) if truth(value) is False:
                    found.append(Mark("skip", node.lineno, "__test__ = False"))
                case ast.Assign(
                    targets=[ast.Name(id="collect_ignore" | "collect_ignore_glob" as ignored)], value=value
                ):
                    found.append(Mark("ignore", node.lineno, f"{ignored} = {' '.join(tokens_of(value))}"))
                case ast.AugAssign(target=ast.Name(id="collect_ignore" | "collect_ignore_glob" as ignored)):
                    found.append(Mark("ignore", node.lineno, ignored))
                case ast.Expr(value=ast.Call(func=func)) | ast.Assign(value=ast.Call(func=func)):
                    name = self.resolve(dotted(func))
                    if name in ("pytest.skip", "pytest.importorskip", "pytest.exit", "pytest.xfail"):
                        found.append(Mark("skip", node.lineno, f"{name}()"))
                    elif name in ("collect_ignore.append", "collect_ignore.extend", "collect_ignore_glob.append"):
                        found.append(Mark("ignore", node.lineno, name))
                case ast.Raise(exc=ast.expr() as exc) if dotted(exc).endswith(("SkipTest", "SystemExit")):
                    found.append(Mark("skip", node.lineno, f"raise {dotted(exc)}"))
                case ast.If(body=body) if line := self._skips_in(body):
                    found.append(Mark("skip", line, "skip if " + " ".join(tokens_of(node.test))))
        return found

    def _skips_in(self, body: Sequence[ast.stmt]) -> int:
        for node in body:
            if isinstance(node, ast.Expr) and self.resolve(dotted(node.value)) in ("pytest.skip", "pytest.exit"):
                return node.lineno
            if isinstance(node, ast.Raise) and node.exc is not None and dotted(node.exc).endswith("SkipTest"):
                return node.lineno
        return 0

    def decorator_mark(self, node: ast.expr) -> Mark | None:
        if isinstance(node, ast.Name) and node.id in self.constants:
            return (
                self.decorator_mark(self.constants[node.id])
                if not isinstance(self.constants[node.id], ast.Name)
                else None
            )
        name = self.resolve(dotted(node))
        last = name.rpartition(".")[2]
        known = (
            name.startswith(("unittest.", "pytest."))
            or ".mark." in f".{name}"
            or last in ("skipIf", "skipUnless", "expectedFailure")
        )
        if known and last in ("xfail", "expectedFailure"):
            return Mark("xfail", node.lineno, f"@{name}")
        if known and last == "skip":
            return Mark("skip", node.lineno, f"@{name}")
        if known and last in ("skipif", "skipIf", "skipUnless"):
            condition = node.args[0] if isinstance(node, ast.Call) and node.args else None
            if condition is not None and truth(condition) is (last == "skipUnless"):
                return None
            said = " ".join(tokens_of(condition)) if condition is not None else ""
            return Mark("skipif", node.lineno, f"@{name}({said})")
        local = next((f.node for f in self.functions if f.name == name), None)
        if local is not None and not _calls_argument(local):
            return Mark("skip", node.lineno, f"@{name} never calls the test")
        return None


def _mixins(tree: ast.Module) -> Iterator[str]:
    """Classes that lend their tests to a test class of the same file."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and len(node.bases) > 1:
            bases = [dotted(base).rpartition(".")[2] for base in node.bases]
            if any("Test" in base for base in bases):
                yield from bases


def single_assignments(body: Sequence[ast.stmt]) -> dict[str, ast.expr]:
    """Names that a block assigns exactly once, at its own level."""
    counts: Counter[str] = Counter()
    values: dict[str, ast.expr] = {}
    for node in body:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                counts[name] += 1
                values[name] = value
            case ast.AugAssign(target=ast.Name(id=name)):
                counts[name] += 2
    return {name: value for name, value in values.items() if counts[name] == 1}


def literal_rows(target: ast.expr, source: ast.expr, names: Names) -> list[Names] | None:
    """The values of the target of a loop over a literal, one per iteration. None: the loop is over something else."""
    if isinstance(source, ast.Name):
        source = names.get(source.id, source)
    match source:
        case ast.Call(func=ast.Attribute(value=value, attr="items"), args=[]):
            table = names.get(value.id, value) if isinstance(value, ast.Name) else value
            if not isinstance(table, ast.Dict) or None in table.keys:
                return None
            pairs = zip(table.keys, table.values, strict=True)
            items: list[ast.expr] = [ast.Tuple([key, item], ast.Load()) for key, item in pairs if key is not None]
        case ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Set(elts=elements):
            items = list(elements)
        case _:
            return None
    rows = [_row(target, item) for item in items]
    return None if any(row is None for row in rows) else [row for row in rows if row is not None]


def _row(target: ast.expr, item: ast.expr) -> Names | None:
    if isinstance(item, ast.Starred):
        return None
    if isinstance(target, ast.Name):
        return {target.id: item}
    if (
        isinstance(target, ast.Tuple | ast.List)
        and isinstance(item, ast.Tuple | ast.List)
        and len(target.elts) == len(item.elts)
    ):
        merged: dict[str, ast.expr] = {}
        for inner, value in zip(target.elts, item.elts, strict=True):
            if (row := _row(inner, value)) is None:
                return None
            merged |= row
        return merged
    return None


def parameter_rows(file: PythonFile, node: FunctionNode) -> tuple[list[Names], list[Mark]]:
    """The rows of `parametrize`, and the marks on single rows."""
    products: list[Names] = []
    marks: list[Mark] = []
    for decorator in node.decorator_list:
        if not (isinstance(decorator, ast.Call) and decorator.args):
            continue
        last = dotted(decorator).rpartition(".")[2]
        if last == "parametrize" and len(decorator.args) > 1:
            names, values = _argument_names(decorator.args[0]), decorator.args[1]
        elif last == "expand":
            names, values = [a.arg for a in node.args.args if a.arg != "self"], decorator.args[0]
        else:
            continue
        rows = _table(file, names, values, marks)
        if rows is not None:
            if not rows:
                marks.append(Mark("skip", decorator.lineno, "no rows to run with"))
            merged: list[Names] = [{**one, **two} for one in (products or [NO_NAMES]) for two in rows]
            products = merged[:_MOST_PRODUCTS]
    return products, marks


def _table(file: PythonFile, names: list[str], values: ast.expr, marks: list[Mark]) -> list[Names] | None:
    if isinstance(values, ast.Name):
        values = file.constants.get(values.id, values)
    if not isinstance(values, ast.List | ast.Tuple | ast.Set):
        return None
    rows: list[Names] = []
    for item in values.elts:
        given: list[ast.expr] = (
            [item] if len(names) == 1 else list(item.elts) if isinstance(item, ast.Tuple | ast.List) else []
        )
        if isinstance(item, ast.Call) and dotted(item).rpartition(".")[2] == "param":
            given = item.args
            for keyword in item.keywords:
                if keyword.arg == "marks":
                    parts = keyword.value.elts if isinstance(keyword.value, ast.List | ast.Tuple) else [keyword.value]
                    marks += [mark for part in parts if (mark := file.decorator_mark(part))]
        rows.append(dict(zip(names, given, strict=False)))
    return rows


def _argument_names(node: ast.expr) -> list[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [name.strip() for name in node.value.split(",") if name.strip()]
    if isinstance(node, ast.List | ast.Tuple):
        return [item.value for item in node.elts if isinstance(item, ast.Constant) and isinstance(item.value, str)]
    return []


def _is_fixture(node: FunctionNode) -> bool:
    return any(dotted(decorator).rpartition(".")[2] == "fixture" for decorator in node.decorator_list)


def _plain_result(node: FunctionNode) -> ast.expr | None:
    """The value of a fixture that does nothing but return it."""
    body = [item for item in node.body if not (isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant))]
    if len(body) == 1 and isinstance(body[0], ast.Return) and body[0].value is not None:
        return body[0].value
    return None


def _calls_argument(node: FunctionNode) -> bool:
    """A decorator that uses what it decorates: calls it, or passes it on."""
    arguments = {argument.arg for argument in node.args.args}
    return not arguments or any(isinstance(item, ast.Name) and item.id in arguments for item in ast.walk(node))
