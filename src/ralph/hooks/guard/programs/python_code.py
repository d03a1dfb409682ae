"""Python code on the command line: parsed with `ast`, and followed as far as its values are constants."""

import ast

from ralph.hooks.guard.invoke import Invocation
from ralph.hooks.guard.marks import NETWORK, OPAQUE, is_known
from ralph.hooks.guard.programs import python_calls
from ralph.hooks.guard.programs.python_values import Method, Reference, Value, as_text, binary, indexed, joined
from ralph.hooks.guard.state import TooMuch

_MOST_TURNS = 8
_MOST_ITEMS = 300
_DEEPEST = 6
_CLOUD = ("boto3", "botocore", "azure", "kubernetes", "digitalocean", "hcloud", "libcloud")


def judge_python(call: Invocation, code: str) -> None:
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        from ralph.hooks.guard.programs.script_code import judge_code

        judge_code(call, "python", code)
        return
    from ralph.hooks.guard.programs.script_code import EMPTIES

    if any(part in code for part in EMPTIES):
        call.deny("databases", "This deletes every row of a table")
    _Reader(call).block(tree.body)


class _Reader:
    def __init__(self, call: Invocation) -> None:
        self.world = python_calls.World(call, self.code)
        self.names: dict[str, Value] = {}
        self.functions: dict[str, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda] = {}
        self.depth = 0
        self.stars: list[str] = []
        """Modules imported with `*`."""

    def code(self, text: str) -> None:
        """The argument of `exec` and `eval`."""
        if self.depth > _DEEPEST:
            raise TooMuch
        self.depth += 1
        judge_python(self.world.call, text)
        self.depth -= 1

    def block(self, statements: "list[ast.stmt]") -> None:
        for statement in statements:
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        self.world.call.shell.meter.step()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            self.world.has_cloud |= any(module.split(".")[0] in _CLOUD for module in modules)
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.asname or alias.name.partition(".")[0]
                self.names[name] = Reference(alias.name if alias.asname else name)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if alias.name == "*" and node.module:
                    self.stars.append(node.module)
                self.names[alias.asname or alias.name] = Reference(f"{node.module or ''}.{alias.name}")
        elif isinstance(node, ast.Assign):
            value = self.value(node.value)
            for target in node.targets:
                self.bind(target, value)
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
            self.bind(node.target, self.value(node.value))
        elif isinstance(node, ast.AugAssign):
            before = self.value(node.target)
            self.bind(node.target, binary(ast.Add(), before, self.value(node.value)))
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self.functions[node.name] = node
            self.call_function(node, [])
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            self.loop(node)
        elif isinstance(node, ast.While):
            self.repeated(node)
        elif isinstance(node, ast.If):
            self.value(node.test)
            self.world.narrowed += 1
            self.block(node.body + node.orelse)
            self.world.narrowed -= 1
        else:
            self.generic(node)

    def generic(self, node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                self.statement(child)
            elif isinstance(child, ast.expr):
                self.value(child)
            elif isinstance(child, ast.withitem):
                value = self.value(child.context_expr)
                if child.optional_vars is not None:
                    self.bind(child.optional_vars, value)
            else:
                self.generic(child)

    def loop(self, node: "ast.For | ast.AsyncFor") -> None:
        items = self.value(node.iter)
        turns: list[Value] = list(items[:_MOST_TURNS]) if isinstance(items, (list, str)) and items else [None]
        if isinstance(items, str) and not is_known(items):
            turns = [items]
        for item in turns:
            self.bind(node.target, item)
            self.block(node.body)
        self.block(node.orelse)

    def repeated(self, node: ast.While) -> None:
        self.value(node.test)
        is_endless = isinstance(node.test, ast.Constant) and bool(node.test.value)
        self.world.endless += is_endless
        self.block(node.body)
        self.world.endless -= is_endless

    def bind(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            self.names[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            for number, each in enumerate(target.elts):
                self.bind(each, value[number] if isinstance(value, list) and number < len(value) else None)
        elif isinstance(target, ast.Subscript):
            self.world.assigned(as_text(self.value(target.value)), self.value(target.slice), value)

    def value(self, node: ast.expr | None) -> Value:
        if node is None:
            return None
        if isinstance(node, ast.Constant):
            found = node.value
            if isinstance(found, bytes):
                return found.decode("utf-8", "replace")
            return found if isinstance(found, (str, int)) else None
        if isinstance(node, ast.Name):
            if node.id not in self.names and self.stars:
                return next(
                    (
                        Reference(f"{star}.{node.id}")
                        for star in self.stars
                        if f"{star}.{node.id}" in python_calls.KNOWN
                    ),
                    Reference(node.id),
                )
            return self.names.get(node.id, Reference(node.id))
        if isinstance(node, ast.Attribute):
            return self.world.attribute(self.value(node.value), node.attr)
        if isinstance(node, ast.Call):
            return self.called(node)
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            return self.items(node.elts)
        if isinstance(node, ast.JoinedStr):
            return joined([self.value(part) for part in node.values])
        if isinstance(node, ast.FormattedValue):
            return as_text(self.value(node.value))
        return self.composed(node)

    def composed(self, node: ast.expr) -> Value:
        if isinstance(node, ast.BinOp):
            return binary(node.op, self.value(node.left), self.value(node.right))
        if isinstance(node, ast.Subscript):
            return self.subscript(node)
        if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp)):
            return self.comprehension(node)
        if isinstance(node, ast.IfExp):
            self.value(node.test)
            other = self.value(node.orelse)
            return self.value(node.body) or other
        if isinstance(node, ast.BoolOp):
            return next((value for value in [self.value(each) for each in node.values] if value is not None), None)
        if isinstance(node, ast.NamedExpr):
            value = self.value(node.value)
            self.bind(node.target, value)
            return value
        if isinstance(node, (ast.Await, ast.Starred)):
            return self.value(node.value)
        if isinstance(node, ast.UnaryOp):
            value = self.value(node.operand)
            return -value if isinstance(node.op, ast.USub) and isinstance(value, int) else None
        if isinstance(node, ast.Dict):
            values = [self.value(each) for each in (*node.keys, *node.values) if each is not None]
            return joined([value for value in values if value is not None])
        self.generic(node)
        return None

    def items(self, nodes: "list[ast.expr]") -> list[Value]:
        found: list[Value] = []
        for node in nodes[:_MOST_ITEMS]:
            value = self.value(node)
            if isinstance(node, ast.Starred) and isinstance(value, list):
                found += value
            else:
                found.append(value)
        return found

    def subscript(self, node: ast.Subscript) -> Value:
        base = self.value(node.value)
        if isinstance(node.slice, ast.Slice):
            low, high, step = (self.value(each) for each in (node.slice.lower, node.slice.upper, node.slice.step))
            return indexed(base, slice(*(each if isinstance(each, int) else None for each in (low, high, step))))
        return self.world.item(base, self.value(node.slice))

    def comprehension(self, node: "ast.ListComp | ast.GeneratorExp | ast.SetComp") -> Value:
        first = node.generators[0]
        source = self.value(first.iter)
        found: list[Value] = []
        for item in list(source)[:_MOST_ITEMS] if isinstance(source, (list, str)) else [None]:
            self.bind(first.target, item)
            for other in node.generators[1:]:
                inner = self.value(other.iter)
                self.bind(other.target, inner[0] if isinstance(inner, list) and inner else None)
            found.append(self.value(node.elt))
        return found

    def called(self, node: ast.Call) -> Value:
        if isinstance(node.func, ast.Name) and node.func.id in self.functions and self.depth < _DEEPEST:
            return self.call_function(self.functions[node.func.id], self.items(node.args))
        if isinstance(node.func, ast.Lambda):
            return self.call_function(node.func, self.items(node.args))
        function = self.value(node.func)
        args = self.items(node.args)
        named = {each.arg: self.value(each.value) for each in node.keywords if each.arg}
        for each in node.keywords:
            if each.arg is None:
                self.value(each.value)
        if isinstance(function, (Reference, Method)):
            return self.world.run(function, args, named)
        if isinstance(function, str) and (NETWORK in function or OPAQUE in function):
            return function
        return None

    def call_function(self, node: "ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda", args: list[Value]) -> Value:
        self.depth += 1
        before = dict(self.names)
        for number, each in enumerate(node.args.args):
            self.names[each.arg] = args[number] if number < len(args) else None
        result: Value = None
        if isinstance(node, ast.Lambda):
            result = self.value(node.body)
        else:
            self.block(node.body)
            last = node.body[-1]
            result = self.value(last.value) if isinstance(last, ast.Return) and args != [] else None
        self.names = before
        self.depth -= 1
        return result
