"""Whether a story's text names a file or a test, and whether a change is about what it names. Numbers name nothing."""

from __future__ import annotations

import re

from ralph.core.lazy_pattern import lazy_pattern
from ralph.proof.file_table import Role, role_of, word_set
from ralph.proof.restore import has_inline_tests

_GENERIC = word_set(
    "test tests testing spec specs util utils index config conftest main setup init common helper helpers base core "
    "data types model models fixture fixtures snapshot snapshots package module build check checks default example "
    "examples errors error schema server client app cli api lib src source result results expected output input case "
    "cases values value story project files file settings makefile readme script scripts"
)
_WORD = lazy_pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_CODE = lazy_pattern(r"`([^`\n]+)`|\b([A-Za-z_]\w*)(?=\()|\b([A-Za-z]+_\w+|[a-z]+[A-Z]\w*)\b|(--[a-z][\w-]+)")
_NAME = lazy_pattern(r"[A-Za-z_][\w-]{2,}")
_QUOTED = lazy_pattern(r"""(?<!\w)['"“‘]([^'"“”‘’\n]{3,40})['"”’](?!\w)""")
_SHORTEST_STEM = 5
_FEWEST_WORDS = 2


def names_file(story_text: str, path: str) -> bool:
    """By its path, name, or specific stem. For a source file with tests inside that is not enough."""
    if has_inline_tests(path) and role_of(path) is Role.SOURCE:
        return False
    path = path.removeprefix("./")
    name = path.rsplit("/", 1)[-1]
    if _has_word(story_text, path) or ("." in name.strip(".") and _has_word(story_text, name)):
        return True
    if "." not in name and name.lower() in (
        "makefile",
        "gnumakefile",
        "justfile",
        "rakefile",
        "dockerfile",
        "jenkinsfile",
    ):
        return _has_word(story_text, name)
    stem = _stem(name)
    is_own_name = role_of(path) is not Role.TEST or re.search(r"(?i)test|spec", stem) is not None
    if is_own_name and _has_word(story_text, stem) and _is_specific(stem):
        return True  # `discount` names the product; `test_discount` names the tests
    subject = re.sub(r"^(?:test|spec)[_.-]|[_.-](?:tests?|spec)$|Tests?$", "", stem)
    return subject != stem and _mentions_tests_of(story_text, subject)


def _stem(name: str) -> str:
    return name.lstrip(".").split(".")[0]


def _is_specific(stem: str) -> bool:
    if not re.search(r"[A-Za-z]{3}", stem) or stem.lower() in _GENERIC:
        return False
    return len(stem) >= _SHORTEST_STEM or "_" in stem or "-" in stem


def _has_word(text: str, word: str) -> bool:
    return re.search(rf"(?<![\w./-]){re.escape(word)}(?![\w/-]|\.\w)", text, re.IGNORECASE) is not None


def _mentions_tests_of(text: str, subject: str) -> bool:
    """`the tests of csv export`, `csv_export tests` for test_csv_export.py."""
    words = _words(subject)
    if not words or not any(len(word) > 2 and not word.isdigit() for word in words):
        return False
    phrase = r"[\s_-]+".join(map(re.escape, words))
    return (
        re.search(
            rf"(?i)\b{phrase}[\s_-]+(?:unit[\s-]+)?tests?\b|\btests?\s+(?:of|for|in)\s+(?:the\s+)?`?{phrase}\b", text
        )
        is not None
    )


def names_test(story_text: str, test: str) -> bool:
    """By the test's own name. The name of what it tests is not enough: every story names that."""
    function = re.split(r"::|(?<=\w)\.(?=\w)| > |/(?=[A-Z])", re.sub(r"\[.*\]$", "", test.strip()))[-1].strip()
    is_sentence = len(function.split()) >= _FEWEST_WORDS
    if not is_sentence and not re.search(r"(?i)test|spec", function):
        return False
    return re.search(rf"(?<!\w){re.escape(function)}(?!\w)", story_text, re.IGNORECASE) is not None


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]


def subjects(story_text: str) -> frozenset[str]:
    """The code that a story names: in backquotes, with parentheses, in snake_case or camelCase, or as an option."""
    spans = [part for found in _CODE.finditer(story_text) for part in found.groups() if part]
    # Of `name(arguments)`, the name: its arguments are words that other functions use, too.
    code = " ".join(part.partition("(")[0].rpartition(" ")[2] if "(" in part else part for part in spans)
    return frozenset(name for name in _NAME.findall(code) if name.lower() not in _GENERIC)


def is_about(story_text: str, added: str) -> bool:
    """Whether added lines mention any of the code that the story names, or a text that it quotes.

    What the story calls, as in `discount(cents)`, they must call or define: a comment about a discount does neither.
    Plain words alone decide nothing.
    """
    names = subjects(story_text)
    called = set(_CALLED.findall(story_text))
    quoted = {text for text in _QUOTED.findall(story_text) if re.search(r"[A-Za-z]{3}", text)}
    wanted = [*names, *(text for text in quoted if text.lower() not in _GENERIC)]
    uses = (rf"(?<!\w){re.escape(name)}(?!\w){_USE if name in called else ''}" for name in wanted)
    return not names or any(re.search(use, added, re.IGNORECASE) for use in uses)


_CALLED = lazy_pattern(r"\b([A-Za-z_]\w{2,})\(")
_USE = r"['\"]?\s*[(=:<,)\]}]"
"""`discount(`, `discount = `, `"discount": `, `map(discount, prices)`, `{ discount }`."""
