"""Python code on the command line: parsed with `ast`, and followed as far as its values are constants."""

import ast
import binascii

from ralph.guard import effects
from ralph.guard.invocation import Invocation
from ralph.guard.paths import normal
from ralph.guard.patterns import one_of
from ralph.guard.programs.databases import harm_in, is_trial_name
from ralph.guard.programs.network import host_of
from ralph.guard.programs.text import decoded
from ralph.guard.state import TooMuch
from ralph.guard.tables import lists, load
from ralph.guard.taint import EVERYONE, KEY, LOCAL, NETWORK, OPAQUE, SECRET, UNKNOWN, is_known, secret_marks


class Path(str):
    """A `pathlib.Path`."""

    __slots__ = ()


class Reference:
    """Something by its dotted name: `os.system`, or the return value of a module's function."""

    def __init__(self, path: str) -> None:
        self.path = path


class Method:
    """A method of a known value."""

    def __init__(self, of: "Value", name: str) -> None:
        self.of, self.name = of, name


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


def binary(operator: ast.operator, left: Value, right: Value) -> Value:
    kind = type(operator)
    if isinstance(left, int) and isinstance(right, int):
        if kind is ast.Mult:
            return left * right if abs(left) < 10**9 and abs(right) < 10**9 else None
        return {ast.Add: left + right, ast.Sub: left - right, ast.BitXor: left ^ right}.get(kind)
    if kind is ast.Add and isinstance(left, list) and isinstance(right, list):
        return left + right
    if kind is ast.Add and (isinstance(left, str) or isinstance(right, str)):
        return as_text(left) + as_text(right)
    if kind is ast.Div and (isinstance(left, Path) or isinstance(right, Path)):
        return join_paths(as_text(left), as_text(right))
    if kind is ast.Mult and isinstance(left, str) and isinstance(right, int) and right < 100:
        return left * right
    if kind is not ast.Mod or not isinstance(left, str):
        return None
    for item in right if isinstance(right, list) else [right]:
        left = left.replace("%s", as_text(item), 1).replace("%d", as_text(item), 1) if "%" in left else left
    return left


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


def _os_path(call: Invocation, name: str, args: list[Value]) -> Value:
    text, home = as_text(args[0] if args else None), call.shell.places.home
    if name == "expanduser":
        return Path(home + text[1:]) if text.startswith("~") else text
    if name == "expandvars":
        return text.replace("$HOME", home).replace("${HOME}", home)
    if name == "join":
        return join_paths(*[as_text(arg) for arg in args])
    if name in ("abspath", "realpath", "normpath"):
        return Path(normal(text if text.startswith("/") else f"{call.shell.cwd}/{text}")) if is_known(text) else text
    if name in ("dirname", "basename"):
        return text.rpartition("/")[2] if name == "basename" else text.rpartition("/")[0] or "."
    return None


def _by_codec(text: str, codec: str) -> str:
    if codec.replace("_", "").replace("-", "") in ("rot13", "rot"):
        return "".join(_rotated(letter) for letter in text)
    if codec.startswith("hex"):
        try:
            return binascii.unhexlify("".join(text.split())).decode("utf-8", "replace")
        except (binascii.Error, ValueError):
            return OPAQUE
    return decoded(text) if codec.startswith("base64") else OPAQUE


def _rotated(letter: str) -> str:
    base = ord("a") if letter.islower() else ord("A")
    return chr((ord(letter) - base + 13) % 26 + base) if letter.isascii() and letter.isalpha() else letter


def _text_method(text: str, name: str, args: list[Value]) -> Value:
    """A method of a string."""
    first = as_text(args[0]) if args else ""
    if name == "join" and args and isinstance(args[0], list):
        return text.join(as_text(item) for item in args[0])
    if name == "replace" and len(args) > 1 and is_known(text):
        return text.replace(first, as_text(args[1]))
    if name == "format":
        for arg in args:
            text = text.replace("{}", as_text(arg), 1)
        for number, arg in enumerate(args):
            text = text.replace(f"{{{number}}}", as_text(arg))
        return text
    if name == "decode" and args and first in ("hex", "base64", "rot13"):
        return _by_codec(text, first)
    if name in ("split", "splitlines") and is_known(text):
        pieces = text.split(first) if first else text.split()
        return list(pieces)
    if name in ("lower", "upper", "strip", "lstrip", "rstrip", "title") and is_known(text) and not args:
        return str(getattr(text, name)())
    if name in ("copy", "items", "keys", "values", "read", "decode", "encode", "json", "strip", "hex", "readlines"):
        return text
    return Method(text, name) if not is_known(text) else UNKNOWN


_FUNCTIONS = load("functions")
_KINDS = {name: kind for kind, names in lists(_FUNCTIONS["python"]).items() for name in names}
_EMPTIES = lists(_FUNCTIONS["parts"])["empties"]
_CODECS = ("base64.", "binascii.", "codecs.", "bytes.", "zlib.", "gzip.", "marshal.", "pickle.", "bz2.", "lzma.")
_SENDING = one_of("send sendall sendto sendmail send_message post put patch request upload_file put_object storbinary")
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
        from ralph.guard.programs.script_code import judge_code

        judge_code(call, "python", code)
        return
    if any(part in code for part in _EMPTIES):
        call.deny("databases", "This deletes every row of a table")
    _Program(call).block(tree.body)


class _Program:
    """Follows the statements. Each call of a function is judged when it is reached."""

    def __init__(self, call: Invocation) -> None:
        self.call = call
        self.names: dict[str, Value] = {}
        self.functions: dict[str, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda] = {}
        self.stars: list[str] = []
        """Modules imported with `*`."""
        self.argv = ["-c", *call.args[call.args.index("-c") + 2 :]] if "-c" in call.args else []
        self.depth = self.endless = self.narrowed = 0
        """`narrowed`: under a condition, so not for everything that a loop iterates over."""
        self.database = ""
        self.has_cloud = self.is_connected = self.gives_streams = False

    def block(self, statements: "list[ast.stmt]") -> None:
        for statement in statements:
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        self.call.shell.meter.step()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            self.has_cloud |= any(module.split(".")[0] in _CLOUD for module in modules)
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
            self.narrowed += 1
            self.block(node.body + node.orelse)
            self.narrowed -= 1
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
        self.endless += is_endless
        self.block(node.body)
        self.endless -= is_endless

    def bind(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            self.names[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            for number, each in enumerate(target.elts):
                self.bind(each, value[number] if isinstance(value, list) and number < len(value) else None)
        elif isinstance(target, ast.Subscript):
            self.assigned(as_text(self.value(target.value)), self.value(target.slice), value)

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
                star = next((star for star in self.stars if f"{star}.{node.id}" in _KINDS), "")
                return Reference(f"{star}.{node.id}" if star else node.id)
            return self.names.get(node.id, Reference(node.id))
        if isinstance(node, ast.Attribute):
            return self.attribute(self.value(node.value), node.attr)
        if isinstance(node, ast.Call):
            return self.called(node)
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            return self.items(node.elts)
        if isinstance(node, ast.JoinedStr):
            return "".join(as_text(self.value(part)) for part in node.values)
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
            return "".join(as_text(value) for value in values if value is not None)
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
        return self.item(base, self.value(node.slice))

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
            return self.run(function, args, named)
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

    def attribute(self, base: Value, name: str) -> Value:
        if isinstance(base, Reference):
            if base.path in ("os", "posix") and name in ("environ", "environb"):
                return UNKNOWN + SECRET
            return Reference(f"{base.path}.{name}")
        if isinstance(base, Path) and name in ("parent", "name", "stem"):
            head, _, tail = str(base).rstrip("/").rpartition("/")
            return Path(head or "/") if name == "parent" else tail
        if isinstance(base, str) and name in ("text", "content", "stdout") and not is_known(base):
            return base
        return Method(base, name)

    def item(self, base: Value, index: Value) -> Value:
        if isinstance(base, Reference) and base.path == "sys.argv" and isinstance(index, int):
            return self.argv[index] if 0 <= index < len(self.argv) else None
        if isinstance(index, int):
            return indexed(base, index)
        if isinstance(base, str) and SECRET in base and isinstance(index, str):
            return self._variable(index)
        if isinstance(base, Reference) and isinstance(index, str):  # globals()["x"], sys.modules["os"]
            return Reference(index)
        return base if isinstance(base, str) else None

    def _variable(self, name: str) -> str:
        known = self.call.shell.value(name)
        if known is not None:
            return known[0]
        return self.call.shell.names.mark(name) + secret_marks(name)

    def assigned(self, base: str, index: Value, value: Value) -> None:
        if SECRET in base and isinstance(index, str):
            from ralph.guard.evaluator import judge_variable

            judge_variable(self.call.shell, index, as_text(value))

    def run(self, function: Reference | Method, args: list[Value], named: dict[str, Value]) -> Value:
        if isinstance(function, Method):
            return self._method(function, args, named)
        path = function.path.removeprefix("builtins.")
        first = args[0] if args else next(iter(named.values()), None)
        kind = _KINDS.get(path) or ("spawn" if path.startswith(("os.exec", "os.spawn", "os.posix_spawn")) else "")
        text, second = as_text(first), args[1] if len(args) > 1 else None
        if kind == "shell":
            return self.call.run_text(text, "")
        if kind == "spawn":
            return self._spawn(path, args, named)
        if path.endswith(".delete") and kind == "send" and not effects.is_local_host(host_of(text)):
            self.call.deny("cloud", f"This deletes something on {host_of(text)}")
        if kind == "send":
            return self._send(args, named)
        if kind == "evaluate":
            return self._evaluate(text)
        if kind == "open":
            return self._open(text, as_text(second if len(args) > 1 else named.get("mode", "r")))
        if kind == "map" and isinstance(first, Reference) and isinstance(second, list):
            return [self.run(first, [item], {}) for item in second[:_MOST_ITEMS]]
        if path == "getattr" and isinstance(second, str):
            return self.attribute(first, second)
        if kind == "delete":
            self._delete(first, path.endswith(("rmtree", "remove_tree")))
        elif kind == "move":
            effects.move(self.call.shell, text, as_text(second), self.call.argv)
        elif kind == "change" and first is not None:
            effects.change(self.call.shell, text, self.call.argv, "the permissions", True)
        elif kind == "kill" and first != "0":
            self.call.run(["kill", "-9", text])
        elif kind == "privilege":
            self.call.deny("privilege")
        elif path == "os.fork" and self.endless:
            self.call.deny("fork-bomb")
        elif kind == "chdir" and isinstance(first, str):
            self.call.shell.cwd = self.call.shell.full(first)
        elif path == "os.dup2":
            self._stream()
        elif path in ("print", "sys.stdout.write", "pprint.pprint") and KEY in as_text(args):
            self.call.deny("exfiltration", "This shows a password or a token")
        elif path in ("psutil.process_iter", "psutil.pids"):
            return [EVERYONE]
        if kind in ("write", "write-second", "move"):
            self._write(first if kind == "write" else second)
        return self._result(path, kind, args, first)

    def _result(self, path: str, kind: str, args: list[Value], first: Value) -> Value:
        """The return value of a function; None: unknown."""
        text, shell = as_text(first), self.call.shell
        if kind == "database":
            self.database = text if first is not None else ""
            return Method(None, "connection")
        if path.startswith("socket."):
            return Method(None, "socket")
        if kind == "import" and isinstance(first, str):
            return Reference(first)
        if kind == "variable" and isinstance(first, str):
            return self._variable(first)
        if kind == "path":
            return join_paths(*[as_text(arg) for arg in args]) if args else Path(".")
        if kind in ("home", "cwd"):
            return Path(shell.places.home if kind == "home" else shell.cwd)
        if path.startswith("os.path."):
            return _os_path(self.call, path[8:], args)
        if kind == "encode":
            return UNKNOWN + "".join(letter for letter in text if not is_known(letter))
        if path == "codecs.encode":
            return text
        if path.startswith(_CODECS):
            codec = {"decode": "base64", "unhex": "hex"}.get(kind) or (as_text(args[1]) if len(args) > 1 else "")
            return _by_codec(text, codec) if is_known(text) else OPAQUE + text
        if kind == "character" and isinstance(first, int):
            return chr(first) if 0 <= first < 0xD800 else UNKNOWN
        if path in ("bytes", "bytearray") and isinstance(first, list):
            return "".join(chr(number) for number in first if isinstance(number, int) and 0 <= number < 256)
        if kind in ("text", "same"):
            return first if kind == "same" else text
        numbers = [arg for arg in args if isinstance(arg, int)]
        if path == "range" and numbers and len(numbers) == len(args):
            return [*range(*numbers[:3])][:50]
        if path == "reversed" and isinstance(first, (str, list)):
            return list(first)[::-1]
        if path.startswith("tempfile."):
            return Path("/tmp/tmp.0123456789")
        if kind == "listing":
            return [text if "glob" in path else f"{text}/*" if first is not None else "*"]
        if path == "os.walk":
            return [[text, [LOCAL], ["*"]]]
        if kind == "stdin":
            return self.call.stdin
        if kind == "scope":
            return Reference("")
        if path.endswith((".urlopen", ".get", ".urlretrieve")) and path.startswith(("urllib", "requests", "httpx")):
            return NETWORK
        return list(text.split()) if path == "shlex.split" and is_known(text) else None

    def _stream(self) -> None:
        self.gives_streams = True
        if self.is_connected:
            self.call.deny("remote-shell", "This gives the other end of a connection a shell")

    def _spawn(self, path: str, args: list[Value], named: dict[str, Value]) -> Value:
        first = args[0] if args else named.get("args")
        if path.startswith("os.spawn"):
            args = args[1:]
        if path.startswith("os."):
            words = args[1] if len(args) > 1 and isinstance(args[1], list) else args[1:]
            program = as_text(args[0]) if args else ""
            first = [program, *[word for word in words[1:] if not isinstance(word, Reference)]]
        elif path == "asyncio.create_subprocess_exec":
            first = list(args)
        if self.is_connected and path in ("pty.spawn", "subprocess.call", "subprocess.Popen", "subprocess.run"):
            self._stream()
        if isinstance(first, list):
            argv = [as_text(word) for word in first]
            if named.get("shell") is not None and argv:
                return self.call.run_text(argv[0], "")
            return self.call.run(argv, as_text(named["input"]) if "input" in named else "")
        return self.call.run_text(as_text(first), "") if isinstance(first, str) else None

    def _delete(self, path: Value, recursive: bool) -> None:
        if isinstance(path, str):
            text = path.replace("*", LOCAL) if self.narrowed else str(path)
            effects.delete(self.call.shell, text, self.call.argv, recursive)

    def _write(self, path: Value, appends: bool = False) -> None:
        if isinstance(path, str):
            effects.write(self.call.shell, str(path), self.call.argv, appends)

    def _open(self, path: str, mode: str) -> Value:
        if any(letter in mode for letter in "wax+"):
            effects.write(self.call.shell, path, self.call.argv, appends="a" in mode)
            return Method(Path(path), "writer")
        self.call.look(path)
        return Method(effects.contents(self.call.shell, path), "reader")

    def _evaluate(self, text: str) -> Value:
        self.call.shell.deny_hidden(text, self.call.argv)
        if is_known(text):
            if self.depth > _DEEPEST:
                raise TooMuch
            self.depth += 1
            judge_python(self.call, text)
            self.depth -= 1
        return None

    def _send(self, args: list[Value], named: dict[str, Value]) -> Value:
        url = as_text(args[0]) if args else as_text(named.get("url"))
        if not effects.is_local_host(host_of(url)):
            sent = [*args, *[value for name, value in named.items() if name not in ("headers", "auth")]]
            if SECRET in as_text(sent):
                self.call.deny("exfiltration", f"This sends secrets to {host_of(url)}")
        return NETWORK

    def _method(self, method: Method, args: list[Value], named: dict[str, Value]) -> Value:
        of, name = method.of, method.name
        first = args[0] if args else None
        if isinstance(of, Method):
            return self._chained(of, name, args, named)
        if isinstance(of, Path):
            return self._path_method(of, name, first)
        if of == EVERYONE and name in ("kill", "terminate", "send_signal"):
            self.call.deny("kill")
        if isinstance(of, str):
            if name in ("get", "pop") and SECRET in of and isinstance(first, str):
                return self._variable(first)
            return _text_method(of, name, args)
        if name in ("read", "load", "parse") and isinstance(first, str):
            self.call.look(str(first))
        if name in ("execute", "executescript", "executemany", "query", "raw") and isinstance(first, str):
            self._statement(first)
        if name in ("system", "popen") and isinstance(first, str):  # of a C library or a wrapper
            return self.call.run_text(first, "")
        if name in ("connect", "connect_ex") and isinstance(first, list):
            self.is_connected = not effects.is_local_host(as_text(first[0]))
            if self.gives_streams and self.is_connected:
                self._stream()
        if name in _SENDING and SECRET in as_text(args):
            self.call.deny("exfiltration", "This sends secrets to another machine")
        if self.has_cloud and name.startswith(("delete_", "terminate", "remove_", "destroy", "purge_")):
            self.call.deny("cloud")
        if name in ("drop_database", "drop_all", "drop_collection", "flushall", "flushdb"):
            self.call.deny("databases")
        if name in ("extractall", "extract"):
            self._write(first if name == "extractall" else (args[1] if len(args) > 1 else None))
        return Method(None, name)

    def _chained(self, of: Method, name: str, args: list[Value], named: dict[str, Value]) -> Value:
        """Calls on the result of a call: an open file, a connection, a socket."""
        if of.name == "reader" and isinstance(of.of, str):
            return of.of if name in ("read", "readlines", "readline") else Method(of.of, "reader")
        if of.name == "writer" and name in ("write", "writelines") and isinstance(of.of, str):
            effects.keep(self.call.shell, str(of.of), as_text(args[0] if args else None), True)
            return None
        if name in ("cursor", "makefile") and (of.name in ("connection", "cursor", "socket") or of.of is None):
            return of
        return self._method(Method(None, name), args, named)

    def _path_method(self, path: Path, name: str, first: Value) -> Value:
        if name in ("unlink", "rmdir"):
            self._delete(path, False)
        elif name in ("write_text", "write_bytes", "touch", "symlink_to", "hardlink_to"):
            self._write(path, name == "touch")
            effects.keep(self.call.shell, str(path), as_text(first))
        elif name in ("rename", "replace"):
            effects.move(self.call.shell, str(path), as_text(first), self.call.argv)
            self._write(first)
        elif name in ("read_text", "read_bytes"):
            self.call.look(str(path))
            return effects.contents(self.call.shell, str(path))
        elif name == "open":
            return self._open(str(path), as_text(first) if first is not None else "r")
        elif name == "chmod":
            effects.change(self.call.shell, str(path), self.call.argv, "the permissions", False)
        elif name in ("glob", "rglob", "iterdir"):
            return [join_paths(str(path), as_text(first) if first is not None else "*")]
        elif name in ("expanduser", "resolve", "absolute", "joinpath", "with_suffix", "with_name"):
            if name == "expanduser" and path.startswith("~"):
                return Path(self.call.shell.places.home + path[1:])
            return join_paths(str(path), as_text(first)) if name == "joinpath" else path
        return None

    def _statement(self, text: str) -> None:
        trial = not self.database or self.database == ":memory:" or is_trial_name(self.database)
        if (harm := harm_in(text)) and not (trial and self.database):
            self.call.deny("databases", f"This runs {' '.join(harm.split()[:4])}")
