"""Plant a test that must fail: a runner that was patched, silenced or ends early does not report it.

It is added to an existing test file and not to a new one. So it runs after the same imports, in the same style, and
also where a check names its files (`node --test test/a.test.js`).
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Mapping
from pathlib import PurePosixPath

from ralph.core.proof import Tests

_MAX_FILES = 3
_MAX_BYTES = 1 << 20
_SCRIPTS = {".js", ".cjs", ".mjs", ".jsx", ".ts", ".cts", ".mts", ".tsx"}
_CALLS = (
    re.compile(r"^((?:\w+\.)?(?:test|it))(?:\.\w+)*\(", re.M),
    re.compile(r"(?<![\w.$])(test|it)(?:\.\w+)*\("),
)
"""How a file defines tests: `test(`, `it.each(`, `t.test(`, `Deno.test(`."""
_PYTHON_TEST = re.compile(r"^\s*(?:async )?def test|^class \w*Test", re.M)
_START = re.compile(r"^\w+\.run\(", re.M)
"""uvu runs what was registered before `test.run()`."""
_RUST_TEST = re.compile(r"^\s*#\[(?:\w+::)*(?:test|rstest)\b", re.M)
_GO_TEST = re.compile(r"^func (Test\w*)\(\w+ \*testing\.T\)", re.M)

_TAPE = re.compile(r"""(?:require\(\s*|\bfrom\s*)['"](?:tape|tap|blue-tape)['"]""")
_ASSERT_MODULE = re.compile(
    r"""\bimport\s+(?:\*\s+as\s+)?(\w+)\s+from\s*['"](?:node:)?assert(?:/strict)?['"]"""
    r"""|\b(?:const|let|var)\s+(\w+)\s*=\s*require\(\s*['"](?:node:)?assert(?:/strict)?['"]"""
)
"""The name under which a file has Node's assertions."""


def planted(test_files: Mapping[str, bytes], rng: str) -> dict[str, bytes]:
    """Test files with a failing test added, at most one per folder and language. Empty: none is of a known kind."""
    files: dict[str, bytes] = {}
    kinds: set[tuple[PurePosixPath, str]] = set()
    for path, content in sorted(test_files.items()):
        place = PurePosixPath(path)
        if (place.parent, place.suffix) in kinds or len(content) > _MAX_BYTES:
            continue
        word = "k" + hashlib.sha256(f"{rng}\0{path}".encode()).hexdigest()[:10]
        if text := _with_failure(place, content, word):
            kinds.add((place.parent, place.suffix))
            files[path] = text.encode()
        if len(files) == _MAX_FILES:
            break
    return files


def is_caught(before: Tests, after: Tests, check_passed: bool) -> bool:
    """Whether the planted failure was reported. Where the runner is not known, a failing check is all there is."""
    if check_passed:
        return False
    if after.names:
        return any(outcome == "failed" and before.names.get(name) != "failed" for name, outcome in after.names.items())
    return not after.runner or after.failed > before.failed


def _with_failure(place: PurePosixPath, content: bytes, word: str) -> str:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return ""
    text = text.rstrip() + "\n"
    if place.suffix == ".py" and _PYTHON_TEST.search(text):
        return _python(text, word)
    if place.suffix in _SCRIPTS:
        return _script(place.name, text, word)
    if place.name.endswith("_test.go") and (first := _GO_TEST.search(text)):  # `-run` that omits it omits this one too
        return f'{text}\nfunc {first[1]}{word.title()}(t *testing.T) {{\n\tt.Fatal("{word}")\n}}\n'
    if place.suffix == ".rs" and _RUST_TEST.search(text):
        return f'{text}\n#[cfg(test)]\nmod {word} {{\n    #[test]\n    fn fails() {{ panic!("{word}") }}\n}}\n'
    return ""


def _python(text: str, word: str) -> str:
    """In the style of the file: what swallows failures of functions may leave those of TestCase alone."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    is_function = any(isinstance(node, ast.FunctionDef) and node.name.startswith("test") for node in body)
    if is_function or not re.search(r"\bTestCase\b|\bunittest\b|django\.test", text):
        added = f"def test_{word}():\n    assert not {word!r}\n"
    else:
        added = (
            f"import unittest as {word}\n\n\nclass Test{word.title()}({word}.TestCase):\n"
            f"    def test_{word}(self):\n        self.assertEqual({word!r}, '')\n"
        )
    lines = text.splitlines(keepends=True)
    at = next((node.lineno - 1 for node in body if _is_main(node)), len(lines))
    return "".join([*lines[:at], f"\n\n{added}\n\n", *lines[at:]])


def _is_main(node: ast.stmt) -> bool:
    """`if __name__ == "__main__":` or a bare call such as `unittest.main()`."""
    is_call = isinstance(node, ast.Expr) and ast.unparse(node).endswith(".main()")
    return is_call or (isinstance(node, ast.If) and "__name__" in ast.unparse(node.test))


def _script(name: str, text: str, word: str) -> str:
    argument, failure = "", f"throw new Error('{word}');"
    if _TAPE.search(text):  # an exception would end the whole run, and no test would be reported
        argument, failure = "t", f"t.fail('{word}');\n  t.end();"
    elif asserting := _ASSERT_MODULE.search(text):  # code under test may have changed the assertions
        failure = f"{asserting[1] or asserting[2]}.strictEqual('{word}', '');"
    elif re.search(r"\bexpect\s*\(", text):
        failure = f"expect('{word}').to.equal('');" if "chai" in text else f"expect('{word}').toBe('');"
    if call := next(filter(None, (pattern.search(text) for pattern in _CALLS)), None):
        failure = f"{call[1]}('{word}', ({argument}) => {{\n  {failure}\n}});"
    elif not re.search(r"test|spec", name):
        return ""
    start = _START.search(text)
    at = start.start() if start else len(text)
    return f"{text[:at]}\n{failure}\n{text[at:]}"
