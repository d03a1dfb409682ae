"""Emptied functions: what they return, what stays, and that the file is still a program."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sysconfig
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ralph.proof.emptying import LARGEST, SUFFIXES, emptied, why_not
from support.tools import is_everything

EXAMPLES = 60 if is_everything() else 15


def empty(source: str, old: str | None = None, path: str = "src/a.py") -> str | None:
    result = emptied(path, None if old is None else old.encode(), source.encode())
    return None if result is None else result.decode()


PYTHON = {
    "a function": ("def f(x):\n    return x + 1\n\n\nX = 1\n", "def f(x):\n    pass\n\n\nX = 1\n"),
    "several lines": ("def f(x):\n    # why\n    y = x\n    return y\n", "def f(x):\n    # why\n    pass\n"),
    "one line": ("def f(x): return -x\ndef g(x): a(); b();\n", "def f(x): pass\ndef g(x): pass;\n"),
    "docstring": ('def f():\n    """D."""\n    return 1\n', 'def f():\n    """D."""\n    pass\n'),
    "docstring in the line": ('def f(): "D"; return 1\n', 'def f(): "D"; pass\n'),
    "decorators": ("@a\n@b(\n    1\n)\ndef f():\n    return 1\n", "@a\n@b(\n    1\n)\ndef f():\n    pass\n"),
    "nested": ("def f():\n    @a\n    def g(): return 1\n    return g\n", "def f():\n    pass\n"),
    "nested decorator over lines": ("def f():\n    @(\n      a)\n    class G: x = 1\n", "def f():\n    pass\n"),
    "method": ("class A:\n    x = 1\n\n    def f(self):\n        return 1\n\n    y = 2\n",
               "class A:\n    x = 1\n\n    def f(self):\n        pass\n\n    y = 2\n"),
    "init": ("class A:\n  def __init__(self): self.x = 1\n", "class A:\n  def __init__(self): pass\n"),
    "property": ("class A:\n  @property\n  def x(self): return 1\n  @x.setter\n  def x(self, y): self.y = y\n",
                 "class A:\n  @property\n  def x(self): pass\n  @x.setter\n  def x(self, y): pass\n"),
    "async": ("async def f():\n    await g()\n", "async def f():\n    pass\n"),
    "generator": ("def f():\n    yield 1\n", "def f():\n    return; yield\n"),
    "generator in one line": ("def f(): yield from g()\n", "def f(): return; yield\n"),
    "async generator": ("async def f():\n    x = yield 1\n", "async def f():\n    return; yield\n"),
    "a generator inside": ("def f():\n    def g(): yield\n    return g\n", "def f():\n    pass\n"),
    "context manager": ("@contextlib.contextmanager\ndef f():\n    a()\n    yield 1\n",
                        "@contextlib.contextmanager\ndef f():\n    yield\n"),
    "lambda": ("f = lambda x: (x, 1)\ng: F = lambda:(1)\nh = [lambda: 1]\n",
               "f = lambda x: None\ng: F = lambda:(None)\nh = [lambda: 1]\n"),
    "overloads": ("@overload\ndef f(x: int) -> int: ...\ndef f(x): return -x\n",
                  "@overload\ndef f(x: int) -> int: ...\ndef f(x): pass\n"),
    "in statements": ("try:\n  import a\nexcept E:\n  def f(): return 1\nelse:\n  if b:\n    def f(): return 2\n",
                      "try:\n  import a\nexcept E:\n  def f(): pass\nelse:\n  if b:\n    def f(): pass\n"),
    "in a match": ("match a:\n  case 1:\n    def f(): return 1\n", "match a:\n  case 1:\n    def f(): pass\n"),
    "other line ends": ("def f():\r\n    return 1\r\nX = 'é'\r\ndef g():\r    return 'é'\r",
                        "def f():\r\n    pass\r\nX = 'é'\r\ndef g():\r    pass\r"),
    "no newline at the end": ("é = 1; f = lambda: é", "é = 1; f = lambda: None"),
}  # fmt: skip


@pytest.mark.parametrize(("source", "expected"), PYTHON.values(), ids=PYTHON)
def test_python_keeps_all_but_the_body(source: str, expected: str) -> None:
    assert empty(source) == expected
    assert empty(expected) == expected, "nothing is left to empty"


@pytest.mark.parametrize(
    "source",
    [
        "",
        "X = 1\nprint(X)\n",
        "@dataclass\nclass A:\n    x: int = 1\n    y: list = field(default_factory=lambda: [1])\n",
        "def f(:\n",
        "def f():\n\treturn 1\n        return 2\n",
        "\0",
    ],
)
def test_python_without_functions_has_nothing_to_empty(source: str) -> None:
    assert empty(source) is None


def test_functions_that_do_nothing_yet_stay() -> None:
    source = "def f(): ...\ndef g(): pass\ndef h():\n    'Docstring.'\nclass P(Protocol):\n    def i(self): ...\n"
    refusal = "def j():\n    raise NotImplementedError\ndef k(): raise NotImplementedError('later')\n"
    assert empty(source + refusal) == source + refusal
    javascript = "function f() {}\nfunction g() { throw new Error('not implemented') }\n"
    assert empty(javascript, path="a.js") == javascript


OLD = '''class A:
    def same(self):
        """Old."""
        return 1  # old

    def edited(self):
        return 1


def removed():
    return 1


def moved():
    return 1
'''


def test_only_new_and_edited_functions_are_emptied() -> None:
    new = '''def moved():
    return (1)


class A:
    def same(self):
        """New."""

        return 1

    def edited(self):
        return 2


def added():
    return 1
'''
    expected = new.replace("return 2", "pass").replace("added():\n    return 1", "added():\n    pass")
    assert empty(new, OLD) == expected
    assert empty(OLD, OLD) is None


def test_a_function_of_the_same_name_in_another_class_is_new() -> None:
    new = OLD + "\n\nclass B:\n    def same(self):\n        return 1\n"
    assert empty(new, OLD) == OLD + "\n\nclass B:\n    def same(self):\n        pass\n"


def test_one_of_two_definitions_with_the_same_name_is_emptied() -> None:
    old = "if a:\n    def f(): return 1\nelse:\n    def f(): return 2\n"
    assert empty(old.replace("2", "3"), old) == old.replace("return 2", "pass")


def test_an_old_file_that_is_not_python_knows_no_function() -> None:
    assert empty("def f(): return 1\n", "<<<<<<< HEAD\n") == "def f(): pass\n"


def test_other_encodings_stay() -> None:
    latin = "# coding: latin-1\nX = 'é'; f = lambda: 'é'\nY = 'é'\n".encode("latin-1")
    assert emptied("a.py", None, latin) == latin.replace(b"lambda: '\xe9'", b"lambda: None")
    marked = b"\xef\xbb\xbfdef f(): return 1\r\n"
    assert emptied("a.py", None, marked) == b"\xef\xbb\xbfdef f(): pass\r\n"


def test_a_generator_stays_one_and_a_context_manager_still_enters() -> None:
    source = empty(
        "from contextlib import contextmanager\n"
        "def f(): yield 1\n"
        "@contextmanager\ndef g():\n    yield 1\n"
        "async def h():\n    yield 1\n"
    )
    assert source
    values: dict[str, Any] = {}
    exec(source, values)
    assert list(values["f"]()) == []
    with values["g"]() as value:
        assert value is None
    assert hasattr(values["h"](), "__aiter__")


JAVASCRIPT = {
    "function": ("export function f(x) { return -x }\nf.y = 1;\n", "export function f(x) {}\nf.y = 1;\n"),
    "async and generator": ("async function* f() { yield 1 }", "async function* f() {}"),
    "arrow": ("const f = (x) => x + 1, g = async x => { await x };", "const f = (x) => undefined, g = async x => {};"),
    "object": ("module.exports = { a() { return 1 }, b: x => ({ x }), c: 1 };",
               "module.exports = { a() {}, b: x => undefined, c: 1 };"),
    "class": ("class A { #x = () => 1; static y = 2; get z() { return 1 } set z(v) { this.v = v } }",
              "class A { #x = () => undefined; static y = 2; get z() {} set z(v) {} }"),
    "constructor": ("class A { constructor(x) { this.x = x } }", "class A { constructor(x) {} }"),
    "derived constructor": ("class A extends B { constructor(x) { const y = x; super(y); this.x = x } }",
                            "class A extends B { constructor(x) { const y = x; super(y); } }"),
    "route": ("app.get('/a', (q, s) => { s.send(1) });", "app.get('/a', (q, s) => {});"),
    "wrapper": ("(function () { exports.f = function () { return 1 } })();",
                "(function () { exports.f = function () {} })();"),
    "nested": ("function f() { return function g() { return 1 } }", "function f() {}"),
}  # fmt: skip


@pytest.mark.parametrize(("source", "expected"), JAVASCRIPT.values(), ids=JAVASCRIPT)
def test_javascript_keeps_all_but_the_body(source: str, expected: str) -> None:
    assert empty(source, path="a.js") == expected
    assert empty(expected, path="a.mjs") == expected


def test_javascript_empties_only_what_changed() -> None:
    old = "function f() {\n  return 'a b';\n}\napp.get('/a', () => 1);\napp.get('/b', () => 2);\n"
    new = "// new\nfunction f(){return /* why */ 'a b';}\napp.get('/a', () => 2);\napp.get('/b', () => 2);\n"
    assert empty(new, old, "a.js") == new.replace("'/a', () => 2", "'/a', () => undefined")
    assert empty(old.replace("a b", "a  b"), old, "a.js") == old.replace("{\n  return 'a b';\n}", "{}")


def test_tests_inside_a_module_stay() -> None:
    tests = "if (import.meta.vitest) { const { it } = import.meta.vitest; it('adds', () => { f() }) }\n"
    assert empty("const f = () => 1;\n" + tests, path="a.js") == "const f = () => undefined;\n" + tests


def test_typescript_still_has_the_declared_types() -> None:
    source = (
        "export function f(a: number): number;\nexport function f(a: any): any { return -a }\n"
        "const g = (a: number): string => `${a}`;\n"
        "abstract class A<T> extends B { constructor(private x: T) { super() } set y(v: T) { this.x = v } }\n"
        "namespace N { export function h(): void { g(1) } }\n"
    )
    assert empty(source, path="a.ts") == (
        "export function f(a: number): number;\nexport function f(a: any): any { return undefined as any; }\n"
        "const g = (a: number): string => undefined as any;\n"
        "abstract class A<T> extends B { constructor(private x: T) { super() } set y(v: T) {} }\n"
        "namespace N { export function h(): void { return undefined as any; } }\n"
    )
    fails = "function fail(a: string): never { throw new Error(a) }\n"
    assert empty(fails, path="a.ts") == "function fail(a: string): never { return undefined as never; }\n"
    component = "export const C = ({ a }: P) => <b>{a}</b>;\n"
    assert empty(component, path="a.tsx") == "export const C = ({ a }: P) => undefined as any;\n"
    assert empty("const f = <T>(x: T) => <any>x;\n", path="a.ts") == "const f = <T>(x: T) => undefined as any;\n"


@pytest.mark.needs("node")
def test_emptied_javascript_runs(tmp_path: Path) -> None:
    source = "".join(f"{one};\n" for one, _ in JAVASCRIPT.values() if "export" not in one and " f" not in one)
    result = empty(f"const app = {{ get() {{}} }}; class B {{}}\n{{{source}}}\n", "const app = { get() {} };", "a.js")
    assert result
    (tmp_path / "a.js").write_text(result.replace("class A", "new class"))
    subprocess.run(["node", tmp_path / "a.js"], check=True)


GO = """package main

import (
	"errors"
	"fmt"
	text "strings"
)

type S[T any] struct{ x T }

func (s *S[T]) Get(a, b int) (T, error) {
	if a > b {
		return s.x, errors.New("a")
	}
	return s.x, nil
}

func named() (n int, err error) { n = 1; return n, nil }

func upper(new string) string { return text.ToUpper(new) }

func channel() <-chan func() map[string]int { return make(chan func() map[string]int) }

var literal = func() []byte { return []byte("a") }

func nothing() { fmt.Println("called") }
"""
GO_MAIN = """
func main() {
	s := &S[int]{1}
	a, err := s.Get(2, 1)
	n, _ := named()
	nothing()
	fmt.Print(a, err, n, upper("a") == "", channel() == nil, literal() == nil)
}
"""


def test_go_returns_zero_values_and_keeps_no_unused_import() -> None:
    result = empty(GO + GO_MAIN, GO_MAIN.replace("\nfunc", "package main\nfunc"), "a.go")
    assert result is not None
    assert result.endswith(GO_MAIN)
    assert '\t_ "errors"\n\t"fmt"\n\t_ "strings"\n' in result
    assert "(T, error) { return func() (_ T, _ error) { return }() }" in result
    assert "(n int, err error) { return }" in result
    assert "func nothing() {}" in result


@pytest.mark.skipif(not shutil.which("go"), reason="Go is not installed")
def test_emptied_go_compiles_and_runs(tmp_path: Path) -> None:
    result = empty(GO + GO_MAIN, GO_MAIN.replace("\nfunc", "package main\nfunc"), "a.go")
    (tmp_path / "a.go").write_text(result or "")
    env = {"HOME": str(tmp_path), "PATH": str(Path(shutil.which("go") or "").parent), "GOTOOLCHAIN": "local"}
    command = ["go", "run", "a.go"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("0 <nil> 0 true true true", "")


RUST = """pub struct S(i32);
impl S {
    pub const fn new(x: i32) -> S { S(x) }
    fn get(&self) -> Option<i32> { Some(self.0) }
}
trait T { fn name(&self) -> String { String::from("a") } fn other(&self); }
impl T for S { fn other(&self) { println!("called") } }
fn all() -> impl Iterator<Item = i32> { vec![1].into_iter() }
fn show() -> impl std::fmt::Display { 1 }
fn maybe() -> Option<impl Iterator<Item = i32>> { Some(vec![1].into_iter()) }
fn text<'a>() -> &'a str { "a" }
fn pair() -> Result<(), String> { Err("a".into()) }
"""
RUST_MAIN = """
fn main() {
    let s = S(1);
    s.other();
    print!("{:?} {:?} {} {} {:?}", s.get(), s.name(), all().count(), show(), text());
}

#[cfg(test)]
mod tests { fn helper() -> i32 { 1 } #[test] fn a() { assert_eq!(helper(), 1) } }

#[test]
fn b() { assert!(true) }
"""


def test_rust_keeps_its_tests_and_what_cannot_be_emptied() -> None:
    result = empty(RUST + RUST_MAIN, "fn main() {}", "a.rs")
    assert result is not None
    assert result.endswith(RUST_MAIN.partition("#[cfg")[2])
    assert "const fn new(x: i32) -> S { unimplemented!() }" in result
    assert "fn get(&self) -> Option<i32> { Default::default() }" in result
    assert "fn maybe() -> Option<impl Iterator<Item = i32>> { Some(" in result
    assert "fn show() -> impl std::fmt::Display { 1 }" in result
    assert "fn pair() -> Result<(), String> { unimplemented!() }" in result


TRICKY = {
    "a.go": (
        (
            "package a\n"
            'var table = map[string]func(int) error{\n\t"}": nil,\n\t"a": func(int) error { return f(\'{\') },\n}\n'
            "type F func(a int) interface{ M() }\n"
            'func g() struct{ x int } { /* } */ return h(`}`, "\\"}") }\n'
            "func (t *T[K, V]) m(f func() (int, error)) (func(int) string, []chan<- int) { return nil, f(1) }\n"
            "var once = func() int { return k(2) }()\n"
        ),
        (
            "package a\n"
            'var table = map[string]func(int) error{\n\t"}": nil,\n'
            '\t"a": func(int) error { return func() (_ error) { return }() },\n}\n'
            "type F func(a int) interface{ M() }\n"
            "func g() struct{ x int } { return func() (_ struct{ x int }) { return }() }\n"
            "func (t *T[K, V]) m(f func() (int, error)) (func(int) string, []chan<- int) "
            "{ return func() (_ func(int) string, _ []chan<- int) { return }() }\n"
            "var once = func() int { return k(2) }()\n"
        ),
    ),
    "a.rs": (
        (
            "/* { /* } */ fn no() { 1 } */\n"
            "macro_rules! m { ($x:expr) => { fn inner() { 1 } } }\n"
            'fn a<\'a, F: Fn(&\'a str) -> u8>(f: F) -> [u8; { 1 + 1 }] where F: Copy { f("}\\""); f(r#"}"#) }\n'
            "pub(crate) unsafe extern \"C\" fn r#type(c: fn(u8) -> u8) { loop { c(b'{'); } }\n"
            "trait T { fn no(&self); fn yes(&self) { x() } }\n"
            "#[cfg(test)]\n#[allow(unused)]\npub mod tests { fn no() { y() } }\n"
        ),
        (
            "/* { /* } */ fn no() { 1 } */\n"
            "macro_rules! m { ($x:expr) => { fn inner() { 1 } } }\n"
            "fn a<'a, F: Fn(&'a str) -> u8>(f: F) -> [u8; { 1 + 1 }] where F: Copy { unimplemented!() }\n"
            'pub(crate) unsafe extern "C" fn r#type(c: fn(u8) -> u8) {}\n'
            "trait T { fn no(&self); fn yes(&self) {} }\n"
            "#[cfg(test)]\n#[allow(unused)]\npub mod tests { fn no() { y() } }\n"
        ),
    ),
}


@pytest.mark.parametrize("path", TRICKY)
def test_braces_in_strings_comments_types_and_macros_are_no_bodies(path: str) -> None:
    source, expected = TRICKY[path]
    assert empty(source, path=path) == expected
    assert empty(expected, path=path) == expected
    assert empty(source, source, path) is None
    assert empty(source + "}", path=path) is None


@pytest.mark.skipif(not shutil.which("rustc"), reason="Rust is not installed")
def test_emptied_rust_compiles_and_runs(tmp_path: Path) -> None:
    main = RUST_MAIN.partition("#[cfg")[0]
    result = empty(RUST + main, main, "a.rs")
    (tmp_path / "a.rs").write_text(result or "")
    toolchains = Path(shutil.which("rustc") or "").parent.parent.parent / ".rustup"  # HOME is another one in tests
    env = {**os.environ, **({"RUSTUP_HOME": str(toolchains)} if toolchains.is_dir() else {})}
    subprocess.run(["rustc", "-Awarnings", "a.rs"], cwd=tmp_path, env=env, check=True)
    done = subprocess.run([tmp_path / "a"], capture_output=True, text=True, check=True)
    assert done.stdout == 'None "" 0 1 ""'


def test_why_not_names_what_is_missing() -> None:
    assert {why_not(f"a{suffix}") for suffix in SUFFIXES} == {""}
    assert why_not("src/a.rb") == "emptying functions is not supported in .rb files"
    assert why_not("Makefile") == "not a known source file"
    assert emptied("a.rb", None, b"def f() = 1") is None


def test_huge_files_are_left_alone() -> None:
    assert emptied("a.py", None, b"def f(): return 1\n" + b"#" * LARGEST) is None


FRAGMENTS = st.sampled_from(
    ["def f(x):", "\n", "    ", "return 1", "lambda: ", "(" * 90, ")", "{", "}", "=>", "fn f() ", "func F() ", "'",
     '"""', "\\", "\r", "\f", "async ", "@", "# coding: utf-7\n", "\ufeff", "function* f() ", "class A ", "yield", "é"]
)  # fmt: skip


@given(st.sampled_from(SUFFIXES), st.lists(FRAGMENTS).map("".join), st.lists(FRAGMENTS).map("".join))
def test_no_text_makes_it_fail(suffix: str, old: str, new: str) -> None:
    emptied(f"a{suffix}", old.encode(), new.encode())


@given(st.sampled_from(SUFFIXES), st.none() | st.binary(), st.binary())
def test_no_bytes_make_it_fail(suffix: str, old: bytes | None, new: bytes) -> None:
    emptied(f"a{suffix}", old, new)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_deep_nesting_does_not_make_it_fail(suffix: str) -> None:
    for text in ("-" * 100_000, "f = " + "(" * 5_000 + ")" * 5_000, "f(" * 3_000 + ")" * 3_000, "x = a" + ".a" * 5_000):
        emptied(f"a{suffix}", None, f"{text}\ndef f(): return {text}".encode())


@cache
def python_files() -> list[Path]:
    """The standard library, without its tests."""
    library = Path(sysconfig.get_path("stdlib"))
    skipped = (library / "site-packages", library / "test")
    return sorted(file for file in library.rglob("*.py") if not any(file.is_relative_to(one) for one in skipped))


@cache
def javascript_files() -> list[Path]:
    program = shutil.which("npm")
    package = Path(program or "/").resolve().parent.parent
    return sorted(file for file in package.rglob("*.js") if file.is_file()) if program else []


def assert_emptied_python_parses(file: Path) -> bytes | None:
    content = file.read_bytes()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(content)
        except (SyntaxError, ValueError):
            return None  # the standard library has files that are wrong on purpose
        result = emptied(str(file), None, content)
        if result is not None:
            ast.parse(result)
    return result


def assert_emptied_javascript_parses(file: Path) -> None:
    content = file.read_bytes()
    result = emptied(str(file), None, content)
    if result is not None:
        assert emptied(str(file), content, content) is None, file
        assert emptied(str(file), None, result) == result, file


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.data())
def test_emptied_python_of_others_parses(data: st.DataObject) -> None:
    file = data.draw(st.sampled_from(python_files()))
    result = assert_emptied_python_parses(file)
    assert result is None or emptied(str(file), None, result) == result, file
    assert emptied(str(file), file.read_bytes(), file.read_bytes()) is None, file


@pytest.mark.needs("npm")
@settings(max_examples=EXAMPLES, deadline=None)
@given(st.data())
def test_emptied_javascript_of_others_parses(data: st.DataObject) -> None:
    assert_emptied_javascript_parses(data.draw(st.sampled_from(javascript_files())))


@pytest.mark.slow
@pytest.mark.skipif(not is_everything(), reason="takes 20 seconds: scripts/test --everything")
def test_all_emptied_files_of_others_parse() -> None:
    assert sum(assert_emptied_python_parses(file) is not None for file in python_files()) > 300
    for file in javascript_files():
        assert_emptied_javascript_parses(file)


@pytest.mark.slow
@pytest.mark.skipif(not is_everything(), reason="takes seconds: scripts/test --everything")
@pytest.mark.needs("node")
def test_all_emptied_javascript_of_npm_is_javascript(tmp_path: Path) -> None:
    """By another parser than the one that found the functions."""
    changed = 0
    for number, file in enumerate(javascript_files()):
        if (result := emptied(str(file), None, file.read_bytes())) is not None:
            (tmp_path / f"{number}.txt").write_bytes(result)
            changed += 1
    script = (
        "const fs = require('fs'), vm = require('vm');"
        "for (const f of fs.readdirSync('.')) { const s = fs.readFileSync(f, 'utf8').replace(/^#!.*/, '');"
        "try { vm.compileFunction(s) } catch (e) { if (!/import|export/.test(e.message)) console.log(f, e.message) } }"
    )
    done = subprocess.run(["node", "-e", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert (done.stdout, changed > 100 or not javascript_files()) == ("", True)


STUBS = {
    "a.py": "def f(cents, percent):\n    return cents\ng = lambda cents: cents\n",
    "a.js": "exports.f = (cents, percent) => cents;\nfunction g(a) { return a; }\n",
    "a.ts": "export function f(cents: number, percent: number): number { return cents; }\n",
    "a.go": "package a\n\nfunc F(cents, percent int) (int, error) {\n\treturn cents, nil\n}\n",
    "a.rs": "pub fn f(cents: u64, _percent: u64) -> Option<u64> {\n    Some(cents)\n}\n",
}


@pytest.mark.parametrize("path", STUBS)
def test_a_function_that_returns_what_it_was_given_is_empty_already(path: str) -> None:
    assert empty(STUBS[path], path=path) == STUBS[path]


NO_STUBS = {
    "a.py": ("def f(x):\n    return -x\n", "def f(x):\n    return 5\n", "def f(self):\n    return self\n"),
    "a.js": ("const f = (x) => -x;\n", "const f = (x) => 5;\n", "function f(x) { return x.y; }\n"),
    "a.go": ("package a\n\nfunc f(x int) int {\n\treturn g(x)\n}\n",),
    "a.rs": ("fn f(x: u64) -> Option<u64> {\n    Some(x + 1)\n}\n",),
}


@pytest.mark.parametrize("path", NO_STUBS)
def test_a_function_that_does_something_is_emptied(path: str) -> None:
    for source in NO_STUBS[path]:
        assert empty(source, path=path) not in (None, source)
