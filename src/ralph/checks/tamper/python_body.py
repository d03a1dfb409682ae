"""Read the body of a Python test: its assertions with what becomes of them, its skips, what it replaces by mocks."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from ralph.checks.tamper.python_claims import Claim, call_claims, claims
from ralph.checks.tamper.python_expression import NO_NAMES, Names, dotted, is_self_contained, negated, tokens_of, truth
from ralph.checks.tamper.python_file import Function, PythonFile, literal_rows, parameter_rows
from ralph.checks.tamper.suite import EXACT, NOTHING, TRUTHY, Assertion, Fate, Mark, Tokens, literals

_MOST_ROWS = 200
_MOST_ASSERTIONS = 800
_BROAD = frozenset({"Exception", "BaseException", "AssertionError"})
_WAITS = frozenset(
    {"raises", "assertRaises", "assertRaisesRegex", "warns", "assertWarns", "assertWarnsRegex", "deprecated_call"}
)
_SKIPS = {
    "pytest.skip": "skip", "pytest.xfail": "xfail", "pytest.importorskip": "skip", "self.skipTest": "skip",
    "pytest.exit": "skip", "unittest.SkipTest": "skip",
}  # fmt: skip
_PATCHES = ("patch", "patch.object", "setattr", "patch.dict", "patch.multiple")


class BodyReader:
    """One pass over one function."""

    def __init__(self, file: PythonFile, function: Function) -> None:
        self.file = file
        self.node = function.node
        self.assertions: list[Assertion] = []
        self.marks: list[Mark] = []
        self.replaced: set[str] = set()
        self.loose: list[str] = []
        self.calls = 0
        self._mentioned: set[str] = set()
        self._inlined = 0
        self._acts: set[int] = set()
        self._assigned: dict[str, int] = {}
        names = dict(file.names_for(function))
        names |= self._scan()
        for row in self._rows():
            self._walk(self.node.body, {**names, **row}, Fate.LIVE, "")

    def _rows(self) -> list[Names]:
        rows, marks = parameter_rows(self.file, self.node)
        self.marks += marks
        return rows[:_MOST_ROWS] or [NO_NAMES]

    def _scan(self) -> Names:
        """Locals that are assigned once, and what the function mentions at all."""
        stored: Counter[str] = Counter(argument.arg for argument in _arguments(self.node))
        values: dict[str, ast.expr] = {}
        handed_on: set[str] = set()
        for node in ast.walk(self.node):
            match node:
                case ast.Name(id=name, ctx=ast.Load()):
                    self._mentioned.add(name)
                case ast.Name(id=name):
                    stored[name] += 1
                case ast.Call():
                    self.calls += 1
                    self._note_patch(node)
                case ast.Expr(value=ast.Call() as call) if "assert" not in dotted(call).lower():
                    self._acts.add(node.lineno)
                    handed_on |= {inner.id for inner in ast.walk(call) if isinstance(inner, ast.Name)}
                case (
                    ast.Assign(targets=[ast.Name(id=name)], value=value)
                    | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
                ):
                    values[name] = value
                case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=items)) if len(names) == len(
                    items
                ):
                    values |= {n.id: v for n, v in zip(names, items, strict=True) if isinstance(n, ast.Name)}
                case ast.Assign(targets=[ast.Attribute(attr=attr)], value=value) if _is_mock(value):
                    self.replaced.add(attr)
                case ast.AugAssign(target=ast.Name(id=name)):
                    stored[name] += 1
        self._acts |= {value.lineno for value in values.values() if not isinstance(value, ast.Constant)}
        self._assigned = {name: value.lineno for name, value in values.items()}
        return {
            name: value
            for name, value in values.items()
            if stored[name] == 1 and not (name in handed_on and isinstance(value, ast.List | ast.Dict | ast.Set))
        }

    def _note_patch(self, call: ast.Call) -> None:
        name = dotted(call.func)
        if not name.endswith(_PATCHES):
            return
        texts = [arg.value for arg in call.args[:2] if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
        self.replaced |= {text.rpartition(".")[2] for text in texts}

    def _walk(self, body: Sequence[ast.stmt], names: Names, fate: Fate, condition: str) -> None:
        for statement in body:
            if len(self.assertions) >= _MOST_ASSERTIONS:
                return
            self._statement(statement, names, fate, condition)
            if isinstance(statement, ast.Return | ast.Raise | ast.Continue | ast.Break):
                fate = max(fate, Fate.UNREACHABLE)
            elif isinstance(statement, ast.If) and _leaves(statement.body) and not _fails(statement.body):
                if truth(statement.test):
                    fate = max(fate, Fate.UNREACHABLE)
                elif fate < Fate.CONDITIONAL and truth(statement.test) is None:
                    fate, condition = Fate.CONDITIONAL, "not " + " ".join(tokens_of(statement.test))

    def _statement(self, node: ast.stmt, names: Names, fate: Fate, condition: str) -> None:
        match node:
            case ast.Assert(test=test):
                self._condition(node, test, claims(test, names), names, fate, condition)
            case ast.Expr(value=value) | ast.Return(value=ast.expr() as value):
                self._expression(node, value, names, fate, condition)
            case ast.Assign(value=value):
                if not self._expression(node, value, names, fate, condition):
                    self.loose += literals(tokens_of(value))
            case ast.Raise(exc=exc):
                self._raise(node, exc, fate, condition)
            case ast.If():
                self._if(node, names, fate, condition)
            case ast.For() | ast.AsyncFor():
                self._for(node, names, fate, condition)
            case ast.While(test=test, body=body):
                self._walk(body, names, Fate.UNREACHABLE if truth(test) is False else fate, condition)
            case ast.With() | ast.AsyncWith():
                self._with(node, names, fate, condition)
            case ast.Try() | ast.TryStar():
                self._try(node, names, fate, condition)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                used = node.name in self._mentioned or node.decorator_list
                self._walk(node.body, names, fate if used else Fate.UNREACHABLE, condition)
            case ast.Match(subject=subject, cases=cases):
                for case in cases:
                    told = f"match {' '.join(tokens_of(subject))} case {ast.unparse(case.pattern)}"
                    self._walk(case.body, names, max(fate, Fate.CONDITIONAL), told)

    def _if(self, node: ast.If, names: Names, fate: Fate, condition: str) -> None:
        known = truth(node.test)
        if known is None and _fails(node.body):
            test = negated(node.test)
            self._condition(node, test, claims(test, names), names, fate, condition)
            self._walk(node.orelse, names, fate, condition)
            return
        told = " ".join(tokens_of(node.test))
        maybe = max(fate, Fate.CONDITIONAL) if known is None else fate
        self._walk(node.body, names, Fate.UNREACHABLE if known is False else maybe, condition or told)
        self._walk(node.orelse, names, Fate.UNREACHABLE if known else maybe, condition or f"not {told}")

    def _for(self, node: ast.For | ast.AsyncFor, names: Names, fate: Fate, condition: str) -> None:
        rows = literal_rows(node.target, node.iter, names)
        if rows is None:
            self._walk(node.body, names, fate, condition)
        elif not rows:
            self._walk(node.body, names, Fate.UNREACHABLE, condition)
        for row in (rows or ())[:_MOST_ROWS]:
            self._walk(node.body, {**names, **row}, fate, condition)

    def _with(self, node: ast.With | ast.AsyncWith, names: Names, fate: Fate, condition: str) -> None:
        inner = fate
        for item in node.items:
            call = item.context_expr
            name = self.file.resolve(dotted(call)).rpartition(".")[2]
            if isinstance(call, ast.Call) and name in _WAITS:
                waited = self._waits(node, call, call.args[:1], names, node.body, fate, condition)
                if _BROAD & set(waited) and _asserts(node.body):
                    inner = max(inner, Fate.SWALLOWED)
            elif (
                isinstance(call, ast.Call)
                and name == "suppress"
                and any(_BROAD & set(exceptions(a)) for a in call.args)
            ):
                inner = max(inner, Fate.SWALLOWED)
            elif isinstance(call, ast.Call):
                self.loose += literals(tokens_of(call))
        self._walk(node.body, names, inner, condition)

    def _try(self, node: ast.Try | ast.TryStar, names: Names, fate: Fate, condition: str) -> None:
        inner = fate
        if node.body and _fails(node.body[-1:]) and node.handlers:
            caught = tuple(name for handler in node.handlers for name in exceptions(handler.type))
            self._raises(node, caught, (), names, node.body[:-1], fate, condition)
            self._walk(node.body[:-1], names, fate, condition)
        else:
            forgets = any(_forgets(handler) for handler in node.handlers)
            if forgets or any(isinstance(stmt, ast.Return) for stmt in node.finalbody):
                inner = max(inner, Fate.SWALLOWED)
            self._walk(node.body, names, inner, condition)
        for handler in node.handlers:
            self._walk(handler.body, names, max(fate, Fate.CONDITIONAL), condition or "except")
        self._walk(node.orelse, names, inner, condition)
        self._walk(node.finalbody, names, fate, condition)

    def _raise(self, node: ast.Raise, exc: ast.expr | None, fate: Fate, condition: str) -> None:
        name = self.file.resolve(dotted(exc)) if exc is not None else ""
        if name.endswith("SkipTest"):
            self.marks.append(Mark("skip", node.lineno, _told("raise SkipTest", condition)))
        elif name.endswith(("AssertionError", "Failed")):
            self._failure(node, fate, condition)

    def _expression(self, node: ast.stmt, value: ast.expr, names: Names, fate: Fate, condition: str) -> bool:
        """True: it was an assertion or a skip."""
        while isinstance(value, ast.Await | ast.Yield | ast.NamedExpr) and value.value is not None:
            value = value.value
        if not isinstance(value, ast.Call):
            return False
        name = self.file.resolve(dotted(value.func))
        last = name.rpartition(".")[2]
        if kind := _SKIPS.get(name) or ("skip" if last == "skipTest" else None):
            self.marks.append(Mark(kind, node.lineno, _told(f"{last}()", condition)))
        elif name in ("pytest.fail", "self.fail", "unittest.fail"):
            self._failure(node, fate, condition)
        elif last in _WAITS and len(value.args) > 1:
            self._waits(node, value, value.args[:1], names, value.args[1:], fate, condition)
        else:
            test, found = call_claims(value, names)
            if (helper := self.file.helper(name)) is not None and self._inlined < 40 and helper.node is not self.node:
                return self._inline(helper, value, names, fate, condition)
            if not found:
                self.loose += literals(tokens_of(value))
                return False
            self._condition(node, test, found, names, fate, condition, value)
        return True

    def _inline(self, helper: Function, call: ast.Call, names: Names, fate: Fate, condition: str) -> bool:
        """The assertions of a helper of the same file, made with what the call hands it."""
        self._inlined += 1
        parameters = [argument.arg for argument in _arguments(helper.node)]
        given = {name: _bound(value, names) for name, value in zip(parameters, call.args, strict=False)}
        given |= {key.arg: _bound(key.value, names) for key in call.keywords if key.arg}
        before = len(self.assertions)
        kept_marks = len(self.marks)
        self._walk(helper.node.body, {**self.file.constants, **given}, fate, condition)
        del self.marks[kept_marks:]
        return len(self.assertions) > before

    def _condition(
        self, node: ast.stmt, test: ast.expr | None, found: Iterable[Claim], names: Names, fate: Fate, condition: str,
        call: ast.Call | None = None,
    ) -> None:  # fmt: skip
        known = None if test is None else truth(test, _fixed(names))
        if known is False:
            self._failure(node, fate, condition)
            return
        shown = test if test is not None else call
        plain = tokens_of(shown) if shown is not None else ()
        for claim in found:
            same = claim.op in ("==", "is") and claim.subject == claim.expected and not self._acts_before(node, test)
            alone = known is None and test is not None and is_self_contained(test)
            doubtful = (same or alone) and not known
            self._add(node, claim, plain, Fate.CONSTANT if known or doubtful else fate, condition, doubtful=doubtful)

    def _acts_before(self, node: ast.stmt, test: ast.expr | None) -> bool:
        """Something happened between a value was taken and it is compared with the same again."""
        mentioned = {inner.id for inner in ast.walk(test) if isinstance(inner, ast.Name)} if test is not None else set()
        taken = [line for name, line in self._assigned.items() if name in mentioned]
        first = min(taken, default=node.lineno)
        return any(first < line < node.lineno and line not in taken for line in self._acts)

    def _add(
        self, node: ast.stmt, claim: Claim, plain: Tokens, fate: Fate, condition: str, raises: tuple[str, ...] = (), doubtful: bool = False
    ) -> None:  # fmt: skip
        self.assertions.append(
            Assertion(
                line=node.lineno,
                said=self._quoted(node),
                tokens=(
                    *claim.subject,
                    claim.op,
                    *claim.expected,
                    *((f"±{claim.tolerance:g}",) if claim.tolerance else ()),
                ),
                plain=plain,
                subject=claim.subject,
                expected=claim.expected,
                strength=NOTHING if fate is Fate.CONSTANT and not doubtful else claim.strength,
                fate=fate,
                condition=condition if fate is Fate.CONDITIONAL else "",
                tolerance=claim.tolerance,
                raises=raises,
                doubtful=doubtful,
            )
        )

    def _quoted(self, node: ast.stmt) -> str:
        text = self.file.lines[node.lineno - 1].strip()
        return text if len(text) <= 90 else text[:89] + "…"

    def _failure(self, node: ast.stmt, fate: Fate, condition: str) -> None:
        self.assertions.append(
            Assertion(node.lineno, self._quoted(node), ("fail",), (), (), (), EXACT, fate, condition, is_failure=True)
        )

    def _waits(
        self, node: ast.stmt, call: ast.Call, given: Sequence[ast.expr], names: Names, body: Sequence[ast.AST], fate: Fate, condition: str
    ) -> tuple[str, ...]:  # fmt: skip
        waited = exceptions(given[0] if given else _keyword(call, "expected_exception"))
        match = _keyword(call, "match")
        if match is None and dotted(call).endswith("Regex") and len(call.args) > 1:
            match = call.args[1]
        pattern = tokens_of(match, names) if match is not None else ()
        self._raises(node, waited, pattern, names, body, fate, condition)
        return waited

    def _raises(
        self, node: ast.stmt, waited: tuple[str, ...], pattern: Tokens, names: Names, body: Sequence[ast.AST], fate: Fate, condition: str
    ) -> None:  # fmt: skip
        if body and isinstance(body[0], ast.Raise):
            fate = Fate.CONSTANT  # it raises what it waits for, all by itself
        subject = tuple(token for part in body for token in tokens_of(part, names))
        strength = TRUTHY if {"Exception", "BaseException"} & set(waited) and not pattern else EXACT
        expected = (*(f"'{name}" for name in waited), *pattern)
        self._add(node, Claim("raises", subject, expected, strength), expected, fate, condition, waited)


def exceptions(node: ast.expr | None) -> tuple[str, ...]:
    """The names of the errors that a handler or a `raises` is for. Nothing named: all of them."""
    if node is None:
        return ("BaseException",)
    if isinstance(node, ast.Tuple):
        return tuple(name for item in node.elts for name in exceptions(item))
    return (dotted(node).rpartition(".")[2],)


def _forgets(handler: ast.ExceptHandler) -> bool:
    """It catches what an assertion raises and does not let the test fail."""
    if not _BROAD & set(exceptions(handler.type)):
        return False
    return not any(isinstance(node, ast.Raise) or _is_failing(node) for stmt in handler.body for node in ast.walk(stmt))


def _is_failing(node: ast.AST) -> bool:
    match node:
        case ast.Assert(test=test):
            return truth(test) is False
        case ast.Call(func=ast.Attribute(attr="fail")):
            return True
        case ast.Raise(exc=ast.expr() as exc):
            return dotted(exc).endswith(("AssertionError", "Failed"))
    return False


def _fails(body: Sequence[ast.stmt]) -> bool:
    """All it does is to fail the test."""
    last = body[-1] if body else None
    return isinstance(last, ast.stmt) and _is_failing(last.value if isinstance(last, ast.Expr) else last)


def _leaves(body: Sequence[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], ast.Return | ast.Continue | ast.Break)


def _asserts(body: Sequence[ast.stmt]) -> bool:
    return any(isinstance(node, ast.Assert) for stmt in body for node in ast.walk(stmt))


def _arguments(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.arg]:
    yield from (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)


def _is_mock(value: ast.expr) -> bool:
    return isinstance(value, ast.Lambda) or (isinstance(value, ast.Call) and "Mock" in dotted(value))


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((keyword.value for keyword in call.keywords if keyword.arg == name), None)


def _bound(value: ast.expr, names: Names) -> ast.expr:
    """A name of the caller means what it means there."""
    return names.get(value.id, value) if isinstance(value, ast.Name) else value


def _fixed(names: Names) -> Names:
    """Names for plain constants. A list may have been changed since it was assigned."""
    return {name: value for name, value in names.items() if isinstance(value, ast.Constant)}


def _told(what: str, condition: str) -> str:
    return f"{what} if {condition}" if condition else what
