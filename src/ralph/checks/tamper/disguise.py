"""Code that detects that it is being tested: it looks for the runner, or has the tests' answers built in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ralph.checks.tamper.lexing import lex
from ralph.checks.tamper.paths import is_test_file, language_of
from ralph.checks.tamper.source import line_at
from ralph.checks.tamper.values import Finding, Severity

_DETECTS = re.compile(
    r"PYTEST_CURRENT_TEST|PYTEST_VERSION|[\"'](?:_?pytest|unittest"
    r"|nose)[\"']\s+(?:not\s+)?in\s+(?:sys\.(?:modules|argv)|.*sys\.modules)"
    r"|sys\.modules\.get\(\s*[\"'](?:_?pytest|unittest)|[\"']pytest[\"']\s+in\s+(?:sys\.argv"
    r"|os\.environ)|sys\._called_from_test"
    r"|JEST_WORKER_ID|process\.env\.VITEST\b|import\.meta\.vitest|typeof\s+(?:jest|vitest|describe"
    r"|it)\s*(?:!==?|===?)\s*[\"'](?:undefined|function)"
    r"|testing\.Testing\(\)|flag\.Lookup\(\s*\"test\."
    r"|strings\.HasSuffix\(os\.Args\[0\],\s*\"\.test|\bcfg!\(\s*test\s*\)"
    r"|defined\?\(\s*(?:RSpec|Minitest|Test::Unit)|class_exists\(\s*[\"']\\?\\?PHPUnit"
    r"|defined\(\s*[\"']PHPUNIT|Class\.forName\(\s*\"org\.(?:junit|testng)"
    r"|getStackTrace\(\)[^;\n]*junit|(?:inspect\.stack|inspect\.currentframe|sys\._getframe"
    r"|extract_stack)\([^\n]*test|[\"'][^\"'\n]*test[^\"'\n]*[\"'][^\n]*(?:inspect\.stack"
    r"|inspect\.currentframe|sys\._getframe|extract_stack)\(|BATS_TEST_\w+"
    r"|AppDomain[^;\n]*(?:xunit|nunit)"
)
_ENVIRONMENT = re.compile(
    r"NODE_ENV\s*(?:===?|!==?)\s*[\"']test[\"']|[\"']test[\"']\s*(?:===?"
    r"|!==?)\s*process\.env\.NODE_ENV|Rails\.env\.test\?"
    r"|(?:environ(?:\.get)?[\[(]|getenv\()\s*[\"'](?:TESTING|IS_TEST|TEST_MODE|UNDER_TEST"
    r"|RUNNING_TESTS|CI)[\"']|process\.env\.(?:TESTING|IS_TEST|TEST_MODE)\b"
    r"|(?:APP_ENV|RAILS_ENV|RACK_ENV|FLASK_ENV|GO_ENV)[\"')\]\s]*\s*(?:===?|eq)\s*[\"']test(?:ing)?[\"']"
)
_CONFIGURATION = re.compile(
    r"(?:^|/)(?:config|configs|settings|conf|webpack|babel|logging)(?:/|[\w.-]*\.\w+$)"
    r"|\.config\.\w+$|(?:^|/)\.\w+rc(?:\.\w+)?$"
)


def detection_findings(path: str, old: str | None, new: str | None, added: str) -> Iterator[Finding]:
    language = language_of(path)
    if new is None or not language or is_test_file(path):
        return
    if not (_DETECTS.search(added) or _ENVIRONMENT.search(added)):
        return
    after = lex(new, language).code
    before = lex(old, language).code if old else ""
    for pattern, configurable in ((_DETECTS, False), (_ENVIRONMENT, True)):
        known = [match[0] for match in pattern.finditer(before)]
        for match in pattern.finditer(after):
            if match[0] in known:
                known.remove(match[0])
                continue
            severity: Severity = "low" if configurable and _CONFIGURATION.search(path) else "high"
            message = f"`{match[0][:60]}`: the code behaves differently under test"
            yield Finding("test-detected", path, line_at(after, match.start()), message, severity)
            break


_VALUE = r"\"[^\"\n]*\"|'[^'\n]*'|-?\d+(?:\.\d+)?|[Tt]rue|[Ff]alse|None|null"
_ANSWER = re.compile(
    rf"\bif\s*\(?\s*[\w.$]+\s*={{2,3}}\s*(?P<asked>{_VALUE})\s*\)?\s*[:{{]?\s*return\s+(?P<answer>{_VALUE})(?=\s*(?:;|\}}|$|\#|//))",
    re.MULTILINE,
)


def answer_findings(
    path: str, old: str | None, new: str | None, added: str, asserted: Sequence[frozenset[str]]
) -> Iterator[Finding]:
    """`if n == 5: return 120` where a test asks for exactly that. A heuristic: small functions have special cases
    too."""
    if new is None or not asserted or "return" not in added or is_test_file(path):
        return
    known = {(match["asked"], match["answer"]) for match in _ANSWER.finditer(old or "")}
    for match in _ANSWER.finditer(new):
        asked, answer = _token(match["asked"]), _token(match["answer"])
        if (match["asked"], match["answer"]) not in known and any({asked, answer} <= literals for literals in asserted):
            message = f"{match['asked']} → {match['answer']} is hard-coded as in a test"
            yield Finding("answers-hard-coded", path, line_at(new, match.start()), message[:120], "low")
            return


def _token(text: str) -> str:
    if text[:1] in "\"'":
        return "'" + text[1:-1]
    constant = {"true": "#true", "false": "#false", "none": "#none", "null": "#none"}.get(text.lower())
    return constant or text
