"""What tests look like in each language that is read as tokens. Patterns are applied to code without strings."""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

Body = Literal["braces", "call", "end", "indent"]
"""Where a test ends: at its closing brace, with its call, at the `end` below it, at a line that is not indented."""


class Skip(Struct, frozen=True):
    kind: str
    pattern: re.Pattern[str]


class CaseRule(Struct, frozen=True):
    """How a test begins. Groups: `name`, and `test` if only some of the matches are tests."""

    pattern: re.Pattern[str]
    body: Body
    is_test: re.Pattern[str] | None = None
    """What the name, or the head with its annotations, must hold. None: every match is a test."""
    annotated: bool = False
    """`is_test` is searched in the annotations before it."""


class Language(Struct, frozen=True):
    cases: tuple[CaseRule, ...]
    skips: tuple[Skip, ...]
    assertion: re.Pattern[str]
    """The head of an assertion. Group `name` says which."""
    failure: re.Pattern[str] | None = None
    """A call that fails the test; the condition above it is what is asserted."""


def _p(pattern: str, flags: int = 0) -> re.Pattern[str]:
    return re.compile(pattern, flags | re.MULTILINE | re.VERBOSE)


_JS_CASE = _p(
    r"(?<![\w.$>])(?P<x>[xf]?)(?P<word>it|test|specify|describe|context|suite)(?P<mods>(?:\s*\.\s*\w+)*)\s*(?=[(`])"
)
_METHOD = _p(
    r"(?:(?<=[\s*&])|^)(?P<name>(?!if\b|for\b|while\b|switch\b|catch\b|using\b|lock\b|foreach\b"
    r"|synchronized\b|return\b|new\b)[\w$]+)"
    r"\s*\((?:[^(){};]|\([^(){};]*\))*\)\s*(?:throws\s+[\w.,\s]+?|:\s*[\w\\|?<>.\[\]]+"
    r"|=\s*\w+(?:<\w+>)?(?:\(\w*\))?)?\s*\{"
)
_FUNCTION = _p(
    r"\bfun\s+(?:<[^>]*>\s*)?(?P<name>`[^`\n]*`|\w+)\s*\((?:[^(){};]"
    r"|\([^(){};]*\))*\)\s*(?::\s*[\w<>?.]+)?\s*(?:=\s*\w+(?:<\w+>)?(?:\([^(){}]*\))?)?\s*\{"
)

_JAVA_TEST = _p(r"@(?:\w+\.)*(?:Test|ParameterizedTest|RepeatedTest|TestFactory|TestTemplate|Theory|Property)\b")
_CS_TEST = _p(r"\[[^\]]*\b(?:Fact|Theory|Test|TestMethod|TestCase|DataTestMethod|TestCaseSource)\b")
_RUST_TEST = _p(r"\#\[\s*(?:\w+::)*(?:test|rstest|test_case|proptest|quickcheck|wasm_bindgen_test)\b")

LANGUAGES: dict[str, Language] = {
    "javascript": Language(
        cases=(CaseRule(_JS_CASE, "call"),),
        skips=(
            Skip("skip", _p(r"\b(?:this|ctx|context|t|test)\s*\.\s*(?:skip|fixme|todo)\s*\(|(?<![\w.$])pending\s*\(")),
            Skip("skip", _p(r"[{,]\s*(?:skip|todo)\s*:\s*(?!false\b)")),
            Skip("focus", _p(r"[{,]\s*only\s*:\s*true\b")),
        ),
        assertion=_p(
            r"(?<![\w.$])(?:expect|assertThat)\s*(?P<fluent>\()"
            r"|(?<![\w$])(?:sinon\s*\.\s*)?assert(?:\s*\.\s*(?P<name>\w+))*\s*\("
            r"|(?<![\w$])t\s*\.\s*(?P<ava>is|not|deepEqual|true|false|truthy|falsy|like|throws|throwsAsync"
            r"|regex|equal|same|ok|notOk)\s*\("
            r"|(?P<should>\.\s*should\s*\.)"
        ),
    ),
    "go": Language(
        cases=(
            CaseRule(
                _p(r"^func\s+(?:\([^)\n]*\)\s*)?(?P<name>\w+)\s*\([^{\n]*\{"),
                "braces",
                _p(r"^(?:Test|Example|Fuzz)(?![a-z])"),
            ),
        ),
        skips=(Skip("skip", _p(r"\bt\s*\.\s*(?:Skip|Skipf|SkipNow)\s*\(|\bs\s*\.\s*T\(\)\s*\.\s*Skip\w*\s*\(")),),
        assertion=_p(
            r"(?<![\w.])(?:assert|require|is|suite|s|check)\s*\.\s*(?:Require\(\)\s*\.\s*"
            r"|Assert\(\)\s*\.\s*)?(?P<name>[A-Z]\w*)\s*\("
            r"|(?<![\w.])(?:g\s*\.\s*)?(?:Expect|Ω|Eventually|Consistently)\s*(?P<fluent>\()"
        ),
        failure=_p(r"\b(?:t|tb|b|s\.T\(\))\s*\.\s*(?:Error|Errorf|Fatal|Fatalf|Fail|FailNow)\s*\("),
    ),
    "rust": Language(
        cases=(
            CaseRule(_p(r"\bfn\s+(?P<name>\w+)\s*(?:<[^>]*>)?\s*\([^{;]*\{"), "braces", _RUST_TEST, annotated=True),
        ),
        skips=(
            Skip("skip", _p(r"\#\[\s*ignore\b|\#\[\s*cfg_attr\s*\([^\]]*\bignore\b")),
            Skip("xfail", _p(r"\#\[\s*should_panic\b")),
            Skip("guard", _p(r"\#\[\s*cfg\s*\((?!\s*test\s*\))[^\]]*\)\s*\]")),
        ),
        assertion=_p(r"(?<![\w])(?P<name>(?:debug_|prop_)?assert(?:_\w+)?)!\s*[(\[{]"),
        failure=_p(r"(?<![\w])(?:panic|unreachable)!\s*[(\[{]"),
    ),
    "ruby": Language(
        cases=(
            CaseRule(
                _p(
                    r"^[ \t]*(?P<x>[xf]?)(?P<word>it|specify|scenario|example|test|describe|context|feature"
                    r"|RSpec\.describe)\b(?!\s*[=.,)])(?P<head>[^\n]*)"
                ),
                "end",
            ),
            CaseRule(_p(r"^[ \t]*def\s+(?:self\.)?(?P<name>\w+[?!]?)"), "end", _p(r"^test_")),
        ),
        skips=(
            Skip("skip", _p(r"^[ \t]*(?:skip|pending)\b(?!\s*[=.])")),
            Skip("skip", _p(r"(?:,\s*|\()(?::skip\b|:pending\b|(?:skip|pending):\s*(?!false))")),
            Skip("focus", _p(r",\s*(?::focus\b|focus:\s*true)")),
        ),
        assertion=_p(
            r"(?<![\w.:])(?:expect|is_expected|assert_that)\b\s*(?P<fluent>[({.])"
            r"|^[ \t]*(?P<name>(?:assert|refute|flunk)\w*[?!]?)(?=[\s(])"
            r"|\.\s*(?P<must>(?:must|wont)_\w+|should(?:_not)?)\b"
        ),
    ),
    "java": Language(
        cases=(
            CaseRule(_FUNCTION, "braces", _JAVA_TEST, annotated=True),
            CaseRule(_METHOD, "braces", _JAVA_TEST, annotated=True),
        ),
        skips=(
            Skip("skip", _p(r"@(?:\w+\.)*(?:Ignore|Disabled)(?!\w)")),
            Skip("skipif", _p(r"@(?:Disabled|Enabled)(?:If|On|For)\w*")),
            Skip("skip", _p(r"(?<![\w])(?:Assumptions?\s*\.\s*)?assum(?:e\w*|ing\w*)\s*\(")),
            Skip("skip", _p(r"@Test\s*\([^)]*\benabled\s*=\s*false")),
        ),
        assertion=_p(
            r"(?<![\w.])(?:\w+\.)*(?:assertThat|expectThat|assertSoftly)\s*(?P<fluent>\()"
            r"|(?<![\w.])(?:Assert(?:ions)?\.|\w+Assert\.)?(?P<name>assert\w+|fail|verify\w*)\s*(?:<[^<>()]*>)?\s*[({]"
            r"|[ \t)](?P<infix>should(?:Not)?(?:Be|Equal|Throw|Contain|Match|Have|Start|End)\w*)\b"
            r"|(?P<expected>@Test\s*\(\s*expected\s*=)"
        ),
    ),
    "php": Language(
        cases=(
            CaseRule(
                _p(r"\bfunction\s+(?P<name>\w+)\s*\([^{;]*\{"),
                "braces",
                _p(r"\#\[\s*(?:\\?\w+\\)*Test\b|^test"),
                annotated=True,
            ),
            CaseRule(_JS_CASE, "call"),
        ),
        skips=(
            Skip(
                "skip",
                _p(
                    r"->\s*markTest(?:Skipped|Incomplete)\s*\(|::\s*markTest(?:Skipped|Incomplete)\s*\("
                    r"|\)\s*->\s*(?:skip|todo)\s*\("
                ),
            ),
            Skip("focus", _p(r"\)\s*->\s*only\s*\(")),
        ),
        assertion=_p(
            r"(?:\$this\s*->\s*|(?:self|static|parent|\\?\w*Assert)\s*::\s*)(?P<name>assert\w+"
            r"|expectException\w*|fail)\s*\("
            r"|(?<![\w.$>])expect\s*(?P<fluent>\()"
        ),
    ),
    "csharp": Language(
        cases=(CaseRule(_METHOD, "braces", _CS_TEST, annotated=True),),
        skips=(
            Skip("skip", _p(r"\bSkip\s*=\s*(?!null)|\[[^\]]*\b(?:Ignore|Explicit)\b(?:\s*\(|\s*\]|\s*,)")),
            Skip(
                "skip",
                _p(
                    r"\bAssert\s*\.\s*(?:Ignore|Inconclusive|Skip\w*|Pass)\s*\(|\bSkip\s*\.\s*(?:If|IfNot"
                    r"|When)\s*\("
                ),
            ),
        ),
        assertion=_p(
            r"(?<![\w.])(?:\w*Assert)\s*\.\s*(?P<name>(?!Ignore|Inconclusive|Skip"
            r"|Pass)\w+)\s*(?P<types><[^()]*?>)?\s*\("
            r"|(?P<should>\.\s*Should(?:\(\))?\s*\.)"
            r"|\.\s*(?P<must>Should(?:Not)?(?:Be|Throw|Contain|Start|End|Have|Match)\w*)\s*\("
        ),
    ),
    "swift": Language(
        cases=(CaseRule(_p(r"\bfunc\s+(?P<name>\w+)\s*\([^{;]*\{"), "braces", _p(r"^test|@Test\b"), annotated=True),),
        skips=(Skip("skip", _p(r"\bXCTSkip(?:If|Unless)?\b|\bXCTExpectFailure\b|\.disabled\s*\(")),),
        assertion=_p(r"(?<![\w.])(?P<name>XCTAssert\w*|XCTFail|XCTUnwrap)\s*\(|\#(?:expect|require)\s*(?P<fluent>\()"),
    ),
    "cpp": Language(
        cases=(
            CaseRule(
                _p(r"^[ \t]*(?:TEST|TEST_F|TEST_P|TYPED_TEST|TEST_CASE|SCENARIO)\s*\((?P<name>[^)\n]*)\)\s*\{"),
                "braces",
            ),
        ),
        skips=(
            Skip("skip", _p(r"\bGTEST_SKIP\b|\bDISABLED_\w+|\[\.\]|\[!mayfail\]|\[!shouldfail\]|^[ \t]*SKIP\s*\(")),
        ),
        assertion=_p(r"(?<![\w.])(?P<name>(?:EXPECT|ASSERT|CHECK|REQUIRE)(?:_\w+)?|assert)\s*\("),
    ),
    "shell": Language(
        cases=(
            CaseRule(_p(r"^[ \t]*@test\s+(?P<name>[^\n]*?)\s*\{[ \t]*$"), "braces"),
            CaseRule(_p(r"^[ \t]*(?:function\s+)?(?P<name>\w+)\s*\(\)\s*\{"), "braces", _p(r"^test")),
        ),
        skips=(Skip("skip", _p(r"(?:^|[;&|]|\bthen\b|\bdo\b)[ \t]*(?:skip|startSkipping)\b(?!\w*=)")),),
        assertion=_p(
            r"^[ \t]*(?:\}|then\b|do\b|else\b|!)?[ \t]*(?P<name>\[\[?(?=\s)|\(\(|test(?=\s)|assert\w*"
            r"|refute\w*|grep\b|diff\b|cmp\b|fail\b)"
        ),
    ),
    "python": Language(
        cases=(CaseRule(_p(r"^[ \t]*(?:async\s+)?def\s+(?P<name>\w+)\s*\("), "indent", _p(r"^test")),),
        skips=(
            Skip(
                "skip",
                _p(
                    r"@(?:pytest\.)?mark\.(?:skip|skipif)\b|@(?:unittest\.)?skip\w*|\bpytest\.skip\s*\("
                    r"|\bskipTest\s*\(|\bSkipTest\b"
                ),
            ),
            Skip("xfail", _p(r"@(?:pytest\.)?mark\.xfail\b|\bexpectedFailure\b|\bpytest\.xfail\s*\(")),
        ),
        assertion=_p(r"^[ \t]*(?P<word>assert)\b|(?<![\w])(?:self|np\.testing)\.(?P<name>assert\w+)\s*\("),
    ),
}
