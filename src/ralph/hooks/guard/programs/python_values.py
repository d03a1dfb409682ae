"""Values of a Python program that is read, not run: text, numbers, lists, and names from modules."""

import ast

from ralph.hooks.guard.marks import UNKNOWN, is_known


class Path(str):
    """A `pathlib.Path`."""

    __slots__ = ()


class Reference:
    """Something by its dotted name: `os.system`, or the return value of a module's function."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = path


class Method:
    """A method of a known value."""

    __slots__ = ("name", "of")

    def __init__(self, of: "Value", name: str) -> None:
        self.of = of
        self.name = name


Value = str | int | list["Value"] | Reference | Method | None


def as_text(value: Value) -> str:
    """Unknown values are marks; lists are joined, because only the marks in them matter."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool) or value is None:
        return UNKNOWN
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list):
        return " ".join(as_text(each) for each in value)
    if isinstance(value, Method) and isinstance(value.of, str):
        return str(value.of)
    return UNKNOWN


def joined(values: list[Value]) -> str:
    return "".join(as_text(value) for value in values)


def binary(operator: ast.operator, left: Value, right: Value) -> Value:
    if isinstance(operator, ast.Add):
        if isinstance(left, list) and isinstance(right, list):
            return left + right
        if isinstance(left, int) and isinstance(right, int):
            return left + right
        if isinstance(left, str) or isinstance(right, str):
            return as_text(left) + as_text(right)
        return None
    if isinstance(operator, ast.Div) and (isinstance(left, Path) or isinstance(right, Path)):
        return join_paths(as_text(left), as_text(right))
    if isinstance(operator, ast.Mult) and isinstance(left, str) and isinstance(right, int) and right < 100:
        return left * right
    if isinstance(operator, ast.Mod) and isinstance(left, str):
        return _formatted(left, right)
    if isinstance(left, int) and isinstance(right, int):
        return _calculated(operator, left, right)
    return None


def _calculated(operator: ast.operator, left: int, right: int) -> Value:
    if isinstance(operator, ast.Sub):
        return left - right
    if isinstance(operator, ast.BitXor):
        return left ^ right
    if isinstance(operator, ast.Mult) and abs(left) < 10**9 and abs(right) < 10**9:
        return left * right
    return None


def _formatted(form: str, values: Value) -> str:
    items = values if isinstance(values, list) else [values]
    out = form
    for item in items:
        out = out.replace("%s", as_text(item), 1).replace("%d", as_text(item), 1) if "%" in out else out
    return out


def join_paths(*parts: str) -> Path:
    path = ""
    for part in parts:
        path = part if part.startswith("/") or not path else f"{path.rstrip('/')}/{part}"
    return Path(path)


def indexed(base: Value, index: "int | slice") -> Value:
    if not isinstance(base, (str, list)):
        return None
    if isinstance(base, str) and not is_known(base):
        return base
    try:
        return base[index]
    except (IndexError, ValueError):
        return None
