"""Python's functions and methods that make text from text: decoding, joining, paths."""

import binascii

from ralph.hooks.guard.invoke import Invocation
from ralph.hooks.guard.marks import LOCAL, NETWORK, OPAQUE, UNKNOWN, is_known
from ralph.hooks.guard.places import normal
from ralph.hooks.guard.programs.python_values import Method, Path, Reference, Value, as_text, join_paths
from ralph.hooks.guard.programs.text import decoded


def value(call: Invocation, path: str, args: list[Value], named: dict[str, Value]) -> Value:
    """The return value of a function; None: unknown."""
    first = args[0] if args else None
    text = as_text(first)
    shell = call.shell
    if path in ("pathlib.Path", "pathlib.PosixPath", "Path", "pathlib.PurePath"):
        return join_paths(*[as_text(arg) for arg in args]) if args else Path(".")
    if path in ("pathlib.Path.home", "Path.home"):
        return Path(shell.places.home)
    if path in ("pathlib.Path.cwd", "Path.cwd", "os.getcwd", "os.getcwdb"):
        return Path(shell.cwd)
    if path.startswith("os.path."):
        return _path(call, path[8:], args)
    if path.startswith(
        ("base64.", "binascii.", "codecs.", "bytes.", "zlib.", "gzip.", "marshal.", "pickle.", "bz2.", "lzma.")
    ):
        return _decoded(path, text, args)
    if path in ("chr", "unichr") and isinstance(first, int):
        return chr(first) if 0 <= first < 0xD800 else UNKNOWN
    if path in (
        "str",
        "bytes",
        "bytearray",
        "repr",
        "dict",
        "json.dumps",
        "bytes.decode",
        "urllib.parse.urlencode",
        "list",
    ):
        if path in ("bytes", "bytearray") and isinstance(first, list):
            return "".join(chr(number) for number in first if isinstance(number, int) and 0 <= number < 256)
        return first if path == "list" else text
    if path == "range" and all(isinstance(arg, int) for arg in args) and args:
        return [*range(*[arg for arg in args if isinstance(arg, int)][:3])][:50]
    if path == "reversed" and isinstance(first, (str, list)):
        return list(first)[::-1]
    if path.startswith("tempfile."):
        return Path("/tmp/tmp.0123456789")
    if path in ("glob.glob", "glob.iglob", "os.listdir", "os.scandir"):
        return [text if "glob" in path else f"{text}/*" if first is not None else "*"]
    if path == "os.walk":
        return [[f"{text}", [LOCAL], ["*"]]]
    if path in ("sys.stdin.read", "sys.stdin.readline", "input"):
        return call.stdin
    if path in ("globals", "locals", "vars", "sys.modules"):
        return Reference("")
    if path.endswith((".urlopen", ".get", ".urlretrieve")) and path.startswith(("urllib", "requests", "httpx")):
        return NETWORK
    if path == "shlex.split" and is_known(text):
        return list(text.split())
    if path == "shlex.quote":
        return text
    return None


def _path(call: Invocation, name: str, args: list[Value]) -> Value:
    text = as_text(args[0] if args else None)
    if name == "expanduser":
        return Path(call.shell.places.home + text[1:]) if text.startswith("~") else text
    if name == "expandvars":
        return text.replace("$HOME", call.shell.places.home).replace("${HOME}", call.shell.places.home)
    if name == "join":
        return join_paths(*[as_text(arg) for arg in args])
    if name in ("abspath", "realpath", "normpath"):
        return Path(normal(text if text.startswith("/") else f"{call.shell.cwd}/{text}")) if is_known(text) else text
    if name == "dirname":
        return text.rpartition("/")[0] or "."
    if name == "basename":
        return text.rpartition("/")[2]
    return None


def _decoded(path: str, text: str, args: list[Value]) -> Value:
    name = path.rpartition(".")[2]
    if name in ("b64encode", "hexlify", "encode", "compress", "dumps", "b2a_base64", "open"):
        return text if name in ("encode",) else UNKNOWN + "".join(letter for letter in text if not is_known(letter))
    if not is_known(text):
        return OPAQUE + text
    if name in ("b64decode", "urlsafe_b64decode", "standard_b64decode", "a2b_base64", "decodebytes", "decodestring"):
        return decoded(text)
    if name in ("unhexlify", "fromhex", "a2b_hex", "b16decode"):
        return from_hex(text)
    if path == "codecs.decode" and len(args) > 1:
        return _by_codec(text, as_text(args[1]))
    return OPAQUE


def from_hex(text: str) -> str:
    try:
        return binascii.unhexlify("".join(text.split())).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return OPAQUE


def _by_codec(text: str, codec: str) -> str:
    if codec.replace("_", "").replace("-", "") in ("rot13", "rot"):
        return "".join(_rotated(letter) for letter in text)
    if codec.startswith("hex"):
        return from_hex(text)
    return decoded(text) if codec.startswith("base64") else OPAQUE


def _rotated(letter: str) -> str:
    if not letter.isascii() or not letter.isalpha():
        return letter
    base = ord("a") if letter.islower() else ord("A")
    return chr((ord(letter) - base + 13) % 26 + base)


def method(text: str, name: str, args: list[Value]) -> Value:
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
