"""What a story's own words allow: a value it names, a behaviour it changes, a feature it removes.

An agent cannot write them, so they can excuse a change that would otherwise look like cheating. Phrases that stand in
every plan ("tests pass", "lint is clean") excuse nothing: a sentence has to say what is done to what.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from msgspec import Struct

from ralph.checks.tamper.paths import words_of
from ralph.checks.tamper.source import word_set

_SENTENCE_END = re.compile(r"[.!?;](?=\s|$)|\n|:\s")
_WORDS = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:[.,]\d+)*")
_NUMBER_WORDS = (
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
)

_CHANGE = re.compile(
    r"^\W*(?:[-*\d.)\]\[ x]*)(?:US-\d+\s+)?(?:change|rename|replace|switch|modify|alter|convert"
    r"|migrate|raise|lower|increase|decrease"
    r"|reduce|bump|round|adjust|move|turn|let|make|extend|translate|reword)\b.*\b(?:to|into|with"
    r"|so|by|from|instead|as|of)\b"
    r"|\b(?:instead of|rather than|no longer|from now on|becomes?|used to|not any ?more)\b"
    r"|\b(?:now|must|should|shall) (?:now )?(?:returns?|be|shows?|gives?|raises?|throws?|prints?"
    r"|uses?|reads?|says?|answers?|includes?)\b"
    r".*\b(?:instead|now|not)\b|\bnow (?:returns?|shows?|gives?|raises?|prints?|uses?|says?|answers?|includes?)\b",
    re.IGNORECASE,
)
_TEST_WORK = re.compile(
    r"\b(?:updat|adjust|adapt|rewrit|chang|refactor|replac|re-?record|regenerat|correct|renam"
    r"|reorgani|split|merg)\w*\b.*"
    r"\b(?:tests?|specs?|expectations?|assertions?|fixtures?|snapshots?|golden|expected)\b",
    re.IGNORECASE,
)
_SNAPSHOT_WORK = re.compile(
    r"\b(?:updat|adjust|rewrit|chang|replac|re-?record|regenerat|refresh"
    r"|renew)\w*\b.*\b(?:snapshots?|golden|approved|recorded|expected)\b",
    re.IGNORECASE,
)
_REMOVAL = re.compile(
    r"\b(?:remov(?:e|es|ing)|delet(?:e|es|ing)|drops?|dropping|retir(?:e|es|ing)|deprecat(?:e|es"
    r"|ing)|discontinue|strip|eliminate"
    r"|get rid of|stops?|withdraw|removal of)\b(?P<after>[^\n]*)"
    r"|(?P<before>[^\n]*?)\b(?:(?:is|are|be|been|was|were) (?:\w+ )?(?:removed|deleted|dropped"
    r"|gone|retired)|no longer\b(?P<rest>[^\n]*))",
    re.IGNORECASE,
)
_OBJECT_END = re.compile(
    r"\b(?:from|in|when|if|by|with|on|before|after|because|so|that|which|unless|until|and then|to)\b|[,(]"
)
_FILLER = re.compile(r"\b(?:support|code|handling|everything|all|traces?) (?:for|of)\b", re.IGNORECASE)
_ACTION = re.compile(
    r"\b(?:configur|set ?up|add|chang|relax|lower|disabl|allow|migrat|upgrad|switch|enabl|exclud"
    r"|ignor|rais|updat|bump|introduc"
    r"|creat|mov|replac|renam|drop|remov|extend|adjust|loosen|skip|rewrit|run|use|speed|cach|split"
    r"|simplif|writ|mak)\w*\b",
    re.IGNORECASE,
)
_RELAX = re.compile(
    r"\b(?:lower|relax|reduc|drop|exclud|omit|ignor|disabl|allow|remov|loosen|turn off|migrat"
    r"|switch|replac|mov|upgrad|configur|set up"
    r"|adopt|introduc|renam|skip|leave out|separat|split)\w*\b",
    re.IGNORECASE,
)
_BOILERPLATE = re.compile(
    r"\b(?:pass(?:es|ing)?|green|clean|succeeds?|without (?:errors|warnings)|no (?:errors|warnings)|stays?)\b",
    re.IGNORECASE,
)
_GENERIC = word_set(
    "the and for with from into that this its our their all any old new test tests case cases "
    "should must when then are was not "
    "has have will can get set add use via per out one function method class module file code "
    "feature endpoint field option value "
    "values result results response data json list dict self client body legacy unused dead "
    "obsolete deprecated support user "
    "users works work correctly returns return raises"
)


class StoryWords(Struct, frozen=True):
    text: str = ""
    words: frozenset[str] = frozenset()
    numbers: frozenset[str] = frozenset()
    sentences: tuple[str, ...] = ()

    @classmethod
    def of(cls, text: str) -> StoryWords:
        found = [word.lower() for word in _WORDS.findall(text[:50_000])]
        numbers = {_plain_number(number) for number in _NUMBER.findall(text)}
        numbers |= {str(value) for value, word in enumerate(_NUMBER_WORDS) if word in found}
        sentences = tuple(part.strip() for part in _SENTENCE_END.split(text[:50_000]) if part.strip())
        return cls(text.lower(), frozenset(found), frozenset(numbers), sentences)

    def expects(self, new: Iterable[str], old: Iterable[str]) -> bool:
        """Every added literal appears in the story. Literals are tokens of the model (`suite.is_literal`)."""
        before = set(old)
        known = {word for token in before for word in _words(token)}
        came = [token for token in new if token not in before]
        return bool(came) and all(self._names(token, known) for token in came)

    def _names(self, token: str, known: set[str]) -> bool:
        kind, content = token[:1], token[1:]
        if kind == "#":
            return bool(self.words & _CONSTANT_WORDS.get(content, frozenset()))
        if kind != "'":
            return _plain_number(token) in self.numbers
        if not content.strip():
            return bool(self.words & {"empty", "blank", "nothing"})
        if len(content) > 2 and content.lower() in self.text:
            return True
        fresh = [word for word in _words(token) if word not in known]
        return bool(fresh) and all(word in self.words or word in self.numbers for word in fresh)

    def changes(self, names: Iterable[str]) -> bool:
        """A sentence says that this behaviour, or its test, changes."""
        return any(
            (_CHANGE.search(sentence) or _TEST_WORK.search(sentence)) and _mentions(sentence, names)
            for sentence in self.sentences
        )

    def renews_snapshots(self) -> bool:
        return any(_SNAPSHOT_WORK.search(sentence) for sentence in self.sentences)

    def removes(self, words: Iterable[str]) -> bool:
        """Most of what a sentence says is to be removed is what these words are about."""
        about = {_stem(word) for word in words}
        for sentence in self.sentences:
            for match in _REMOVAL.finditer(sentence):
                phrases = [part for part in match.group("after", "before", "rest") if part]
                for phrase in phrases:
                    gone = _significant(_OBJECT_END.split(_FILLER.sub("", phrase))[0])
                    if gone and 2 * len(gone & about) >= len(gone):
                        return True
        return False

    def works_on(self, *topics: str) -> bool:
        """A sentence says that one of these is changed (`coverage`, `Makefile`), not just that it passes."""
        topic = re.compile(r"(?<![\w-])(?:" + "|".join(topics) + r")(?![\w-])", re.IGNORECASE)
        return any(
            topic.search(sentence) and _ACTION.search(sentence) and not _BOILERPLATE.search(sentence)
            for sentence in self.sentences
        )

    def relaxes(self, *topics: str) -> bool:
        """A sentence asks for less strictness in one of these, or for a move to another tool."""
        topic = re.compile(r"(?<![\w-])(?:" + "|".join(topics) + r")(?![\w-])", re.IGNORECASE)
        return any(topic.search(sentence) and _RELAX.search(sentence) for sentence in self.sentences)

    def names_file(self, path: str) -> bool:
        """The story changes this very file."""
        name = path.rsplit("/", 1)[-1]
        return "." in name.strip(".") and self.works_on(re.escape(path), re.escape(name))


_CONSTANT_WORDS = {
    "true": frozenset({"true", "yes"}),
    "false": frozenset({"false", "no"}),
    "none": frozenset({"none", "null", "nil", "nothing", "undefined"}),
}


def _plain_number(text: str) -> str:
    text = text.replace("_", "").replace(",", "").lstrip("-")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _words(token: str) -> list[str]:
    return [word.lower() for word in _WORDS.findall(token.replace("_", " "))] if token.startswith("'") else []


def _mentions(sentence: str, names: Iterable[str]) -> bool:
    """One of the names verbatim, or all words of a name with several words."""
    said = {_stem(word) for word in words_of(sentence)}
    for name in names:
        words = [_stem(word) for word in words_of(name) if len(word) > 2 and word not in _GENERIC]
        if words and all(word in said for word in words):
            return True
    return False


def _significant(phrase: str) -> set[str]:
    return {_stem(word) for word in words_of(phrase) if len(word) > 2 and word not in _GENERIC}


@lru_cache(maxsize=10_000)
def _stem(word: str) -> str:
    """`exporter`, `exports` and `exporting` are one word here."""
    for ending in ("ations", "ation", "ings", "ing", "ions", "ion", "ers", "er", "ors", "or", "ed", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word
