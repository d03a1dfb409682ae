"""Parses the body of a Python test: its assertions with their fate, and its skips."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from msgspec import Struct

from ralph.checks.tamper.python_claims import Claim, call_claims, claims
from ralph.checks.tamper.python_expression import (
    NO_NAMES,
    Names,
    dotted,
    is_self_contained,
    negated,
    tokens_of,
    truth,
)
from ralph.checks.tamper.python_failing import asserts, exceptions, fails, forgets, leaves, waits_broadly
from ralph.checks.tamper.python_file import Function, PythonFile, literal_rows, parameter_rows
from ralph.checks.tamper.python_scan import arguments, scan
from ralph.checks.tamper.suite import EXACT, NOTHING, TRUTHY, Assertion, Fate, Mark, Tokens, literals

_MOST_ROWS = 200
_MOST_ASSERTIONS = 800
_MOST_INLINED = 40
_WAITS = frozenset(
    ["raises", "assertRaises", "assertRaisesRegex", "warns", "assertWarns", "assertWarnsRegex", "deprecated_call"]
)
_SKIPS = {
    "pytest.skip": "skip",
    "pytest.xfail": "xfail",
    "pytest.importorskip": "skip",
    "pytest.exit": "skip",
    "unittest.SkipTest": "skip",
}


class Where(Struct, frozen=True):
    """The context of a statement: what names mean there, and the fate of an assertion made there."""

    names: Names
    fate: Fate = Fate.LIVE
    condition: str = ""

    def no_better_than(self, fate: Fate, condition: str = "") -> Where:
        return Where(self.names, max(self.fate, fate), self.condition or condition)

    def knowing(self, names: Names) -> Where:
        return Where({**self.names, **names}, self.fate, self.condition)


class BodyReader:
    """One pass over one function."""

    def __init__(self, file: PythonFile, function: Function) -> None:
        self.assertions: list[Assertion] = []
        self.marks: list[Mark] = []
        self.loose: list[str] = []
        self.scan = scan(function.node)
        self._file = file
        self._node = function.node
        self._inlined = 0
        names = {**file.names_for(function), **self.scan.names}
        rows, self.marks = parameter_rows(file, function.node)
        for row in rows[:_MOST_ROWS] or [NO_NAMES]:
            self._walk(function.node.body, Where({**names, **row}))

    def _walk(self, body: Sequence[ast.stmt], at: Where) -> None:
        for statement in body:
            if len(self.assertions) >= _MOST_ASSERTIONS:
                return
            self._statement(statement, at)
            if isinstance(statement, ast.Return | ast.Raise | ast.Continue | ast.Break):
                at = at.no_better_than(Fate.UNREACHABLE)
            elif isinstance(statement, ast.If) and leaves(statement.body) and not fails(statement.body):
                known = truth(statement.test)
                if known:
                    at = at.no_better_than(Fate.UNREACHABLE)
                elif known is None:
                    at = at.no_better_than(Fate.CONDITIONAL, "not " + " ".join(tokens_of(statement.test)))

    def _statement(self, node: ast.stmt, at: Where) -> None:
        match node:
            case ast.Assert(test=test):
                self._condition(node, test, claims(test, at.names), at)
            case ast.Expr(value=value) | ast.Return(value=ast.expr() as value):
                self._expression(node, value, at)
            case ast.Assign(value=value):
                if not self._expression(node, value, at):
                    self.loose += literals(tokens_of(value))
            case ast.Raise(exc=exc):
                self._raise(node, exc, at)
            case ast.If():
                self._if(node, at)
            case ast.For() | ast.AsyncFor():
                self._for(node, at)
            case ast.While(test=test, body=body):
                self._walk(body, at.no_better_than(Fate.UNREACHABLE) if truth(test) is False else at)
            case ast.With() | ast.AsyncWith():
                self._with(node, at)
            case ast.Try() | ast.TryStar():
                self._try(node, at)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                used = node.name in self.scan.mentioned or node.decorator_list
                self._walk(node.body, at if used else at.no_better_than(Fate.UNREACHABLE))
            case ast.Match(subject=subject, cases=cases):
                for case in cases:
                    told = f"match {' '.join(tokens_of(subject))} case {' '.join(tokens_of(case.pattern))}"
                    self._walk(case.body, at.no_better_than(Fate.CONDITIONAL, told))

    def _if(self, node: ast.If, at: Where) -> None:
        known = truth(node.test)
        if known is None and fails(node.body):
            test = negated(node.test)
            self._condition(node, test, claims(test, at.names), at)
            self._walk(node.orelse, at)
            return
        told = " ".join(tokens_of(node.test))
        never = at.no_better_than(Fate.UNREACHABLE)
        then = at.no_better_than(Fate.CONDITIONAL, told) if known is None else at
        other = at.no_better_than(Fate.CONDITIONAL, f"not {told}") if known is None else at
        self._walk(node.body, never if known is False else then)
        self._walk(node.orelse, never if known else other)

    def _for(self, node: ast.For | ast.AsyncFor, at: Where) -> None:
        rows = literal_rows(node.target, node.iter, at.names)
        if rows is None:
            self._walk(node.body, at)
        elif not rows:
            self._walk(node.body, at.no_better_than(Fate.UNREACHABLE))
        for row in (rows or ())[:_MOST_ROWS]:
            self._walk(node.body, at.knowing(row))

    def _with(self, node: ast.With | ast.AsyncWith, at: Where) -> None:
        inner = at
        for item in node.items:
            call = item.context_expr
            if not isinstance(call, ast.Call):
                continue
            name = self._file.resolve(dotted(call)).rpartition(".")[2]
            if name in _WAITS:
                waited = self._waits(node, call, node.body, at)
                if waits_broadly(waited) and asserts(node.body):
                    inner = inner.no_better_than(Fate.SWALLOWED)
            elif name == "suppress" and any(waits_broadly(exceptions(arg)) for arg in call.args):
                inner = inner.no_better_than(Fate.SWALLOWED)
            else:
                self.loose += literals(tokens_of(call))
        self._walk(node.body, inner)

    def _try(self, node: ast.Try | ast.TryStar, at: Where) -> None:
        inner = at
        if node.body and fails(node.body[-1:]) and node.handlers:
            caught = tuple(name for handler in node.handlers for name in exceptions(handler.type))
            self._raises(node, caught, (), node.body[:-1], at)
            self._walk(node.body[:-1], at)
        else:
            if any(map(forgets, node.handlers)) or any(isinstance(stmt, ast.Return) for stmt in node.finalbody):
                inner = at.no_better_than(Fate.SWALLOWED)
            self._walk(node.body, inner)
        for handler in node.handlers:
            self._walk(handler.body, at.no_better_than(Fate.CONDITIONAL, "except"))
        self._walk(node.orelse, inner)
        self._walk(node.finalbody, at)

    def _raise(self, node: ast.Raise, exc: ast.expr | None, at: Where) -> None:
        name = self._file.resolve(dotted(exc)) if exc is not None else ""
        if name.endswith("SkipTest"):
            self._skip("skip", node, "raise SkipTest", at)
        elif name.endswith(("AssertionError", "Failed")):
            self._failure(node, at)

    def _skip(self, kind: str, node: ast.stmt, what: str, at: Where) -> None:
        self.marks.append(Mark(kind, node.lineno, f"{what} if {at.condition}" if at.condition else what))

    def _expression(self, node: ast.stmt, value: ast.expr, at: Where) -> bool:
        """True: it was an assertion or a skip."""
        while isinstance(value, ast.Await | ast.Yield | ast.NamedExpr) and value.value is not None:
            value = value.value
        if not isinstance(value, ast.Call):
            return False
        name = self._file.resolve(dotted(value.func))
        last = name.rpartition(".")[2]
        if kind := _SKIPS.get(name) or ("skip" if last == "skipTest" else None):
            self._skip(kind, node, f"{last}()", at)
        elif name in ("pytest.fail", "self.fail", "unittest.fail"):
            self._failure(node, at)
        elif last in _WAITS and len(value.args) > 1:
            self._waits(node, value, value.args[1:], at)
        elif (helper := self._helper(name)) is not None:
            return self._inline(helper, value, at)
        else:
            test, found = call_claims(value, at.names)
            if not found:
                self.loose += literals(tokens_of(value))
                return False
            self._condition(node, test, found, at, value)
        return True

    def _helper(self, name: str) -> Function | None:
        helper = self._file.helper(name)
        can_be_read = helper is not None and helper.node is not self._node and self._inlined < _MOST_INLINED
        return helper if can_be_read else None

    def _inline(self, helper: Function, call: ast.Call, at: Where) -> bool:
        """The assertions of a helper in the same file, with the arguments of the call."""
        self._inlined += 1
        parameters = [argument.arg for argument in arguments(helper.node)]
        given = {name: _bound(value, at.names) for name, value in zip(parameters, call.args, strict=False)}
        given |= {key.arg: _bound(key.value, at.names) for key in call.keywords if key.arg}
        before, marks = len(self.assertions), len(self.marks)
        self._walk(helper.node.body, Where({**self._file.constants, **given}, at.fate, at.condition))
        del self.marks[marks:]
        return len(self.assertions) > before

    def _condition(
        self, node: ast.stmt, test: ast.expr | None, found: Iterable[Claim], at: Where, call: ast.Call | None = None
    ) -> None:
        known = None if test is None else truth(test, _fixed(at.names))
        if known is False:
            self._failure(node, at)
            return
        shown = test if test is not None else call
        plain = tokens_of(shown) if shown is not None else ()
        for claim in found:
            same = claim.op in ("==", "is") and claim.subject == claim.expected and not self._acts_before(node, test)
            alone = known is None and test is not None and is_self_contained(test)
            doubtful = (same or alone) and not known
            place = at.no_better_than(Fate.CONSTANT) if known or doubtful else at
            self._add(node, claim, plain, place, doubtful=doubtful)

    def _acts_before(self, node: ast.stmt, test: ast.expr | None) -> bool:
        """Something happened between reading a value and comparing it with the same value again."""
        mentioned = {inner.id for inner in ast.walk(test) if isinstance(inner, ast.Name)} if test is not None else set()
        taken = [line for name, line in self.scan.assigned.items() if name in mentioned]
        first = min(taken, default=node.lineno)
        return any(first < line < node.lineno and line not in taken for line in self.scan.acts)

    def _add(
        self,
        node: ast.stmt,
        claim: Claim,
        plain: Tokens,
        at: Where,
        raises: tuple[str, ...] = (),
        doubtful: bool = False,
    ) -> None:
        tolerance = (f"±{claim.tolerance:g}",) if claim.tolerance else ()
        self.assertions.append(
            Assertion(
                line=node.lineno,
                said=self._quoted(node),
                tokens=(*claim.subject, claim.op, *claim.expected, *tolerance),
                plain=plain,
                subject=claim.subject,
                expected=claim.expected,
                strength=NOTHING if at.fate is Fate.CONSTANT and not doubtful else claim.strength,
                fate=at.fate,
                condition=at.condition if at.fate is Fate.CONDITIONAL else "",
                tolerance=claim.tolerance,
                raises=raises,
                doubtful=doubtful,
            )
        )

    def _quoted(self, node: ast.stmt) -> str:
        text = self._file.lines[node.lineno - 1].strip()
        return text if len(text) <= 90 else text[:89] + "…"

    def _failure(self, node: ast.stmt, at: Where) -> None:
        said = self._quoted(node)
        failure = Assertion(node.lineno, said, ("fail",), (), (), (), EXACT, at.fate, at.condition, is_failure=True)
        self.assertions.append(failure)

    def _waits(self, node: ast.stmt, call: ast.Call, body: Sequence[ast.AST], at: Where) -> tuple[str, ...]:
        waited = exceptions(call.args[0] if call.args else _keyword(call, "expected_exception"))
        match = _keyword(call, "match")
        if match is None and dotted(call).endswith("Regex") and len(call.args) > 1:
            match = call.args[1]
        self._raises(node, waited, tokens_of(match, at.names) if match is not None else (), body, at)
        return waited

    def _raises(
        self, node: ast.stmt, waited: tuple[str, ...], pattern: Tokens, body: Sequence[ast.AST], at: Where
    ) -> None:
        if body and isinstance(body[0], ast.Raise):
            at = at.no_better_than(Fate.CONSTANT)  # it raises what it waits for, all by itself
        subject = tuple(token for part in body for token in tokens_of(part, at.names))
        strength = TRUTHY if {"Exception", "BaseException"} & set(waited) and not pattern else EXACT
        expected = (*(f"'{name}" for name in waited), *pattern)
        self._add(node, Claim("raises", subject, expected, strength), expected, at, waited)


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((keyword.value for keyword in call.keywords if keyword.arg == name), None)


def _bound(value: ast.expr, names: Names) -> ast.expr:
    """Resolve a name of the caller in the caller's context."""
    return names.get(value.id, value) if isinstance(value, ast.Name) else value


def _fixed(names: Names) -> Names:
    """Names for plain constants. A list may have been changed since it was assigned."""
    return {name: value for name, value in names.items() if isinstance(value, ast.Constant)}
