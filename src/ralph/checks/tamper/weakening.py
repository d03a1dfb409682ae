"""Compares a test with its old version: which assertions were removed, and whether others replaced them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct

from ralph.checks.tamper.evidence import Evidence, high_unless
from ralph.checks.tamper.exceptions import is_broader
from ralph.checks.tamper.paths import stem_words, words_of
from ralph.checks.tamper.suite import EXACT, Assertion, Case, Fate, Tokens, literals, name_words, names, shape
from ralph.checks.tamper.values import Finding, Severity

_FATES = {
    Fate.CONDITIONAL: ("assertion-conditional", "now runs only under a condition ({condition})"),
    Fate.SWALLOWED: ("assertion-swallowed", "can now fail without failing the test: its failure is caught"),
    Fate.UNREACHABLE: ("assertion-unreachable", "is now never reached"),
    Fate.CONSTANT: ("assertion-constant", "can no longer fail"),
}
_OPPOSITES = (
    {"==", "!="},
    {"in", "not in"},
    {"has", "has not"},
    {"is", "is not"},
    {"true", "not"},
    {"<", ">="},
    {">", "<="},
    {"none", "there"},
    {"none", "not none"},
    {"empty", "not empty"},
)
_STILL_CLOSE = 1e-3


class Judgement(Struct, frozen=True):
    """How one assertion compares with one that may have replaced it. No code: it is fine."""

    code: str
    message: str = ""
    severity: Severity = "high"


FINE = Judgement("")


class Difference(Struct, frozen=True):
    old: Case
    new: Case
    lost: tuple[Assertion, ...]
    """In the old version, and no longer in the new one."""
    gained: tuple[Assertion, ...]
    worse: tuple[Assertion, ...]
    """Still present, but with another fate. As in the new version."""
    constant: tuple[Assertion, ...]
    """New ones that cannot fail."""
    fed: tuple[Assertion, ...]
    """Unchanged, but about different data. As in the new version."""


def difference(old: Case, new: Case) -> Difference:
    left: dict[Tokens, list[Assertion]] = {}
    for assertion in new.assertions:
        left.setdefault(assertion.tokens, []).append(assertion)
    lost, worse = [], []
    for assertion in old.assertions:
        if assertion.fate > Fate.CONDITIONAL and not assertion.doubtful:
            _take(left, assertion, Fate.CONSTANT)
        elif _take(left, assertion, assertion.fate) is None:
            lost.append(assertion)
    gone, fed = [], []
    for assertion in lost:
        if (found := _take(left, assertion, Fate.CONSTANT)) is not None:
            worse.append(found)
        elif (found := _take_written_alike(left, assertion)) is not None:
            fed.append(found)
        else:
            gone.append(assertion)
    rest = [assertion for several in left.values() for assertion in several]
    return Difference(
        old,
        new,
        tuple(gone),
        tuple(assertion for assertion in rest if assertion.fate <= Fate.CONDITIONAL),
        tuple(worse),
        tuple(assertion for assertion in rest if assertion.fate is Fate.CONSTANT),
        tuple(fed),
    )


def _take(left: dict[Tokens, list[Assertion]], like: Assertion, worst: Fate) -> Assertion | None:
    """The same assertion, if there is one whose fate is no worse. Each can be matched once."""
    for assertion in left.get(like.tokens, ()):
        if assertion.fate <= worst:
            left[like.tokens].remove(assertion)
            return assertion
    return None


def _take_written_alike(left: dict[Tokens, list[Assertion]], like: Assertion) -> Assertion | None:
    """The same words and expected value, although the names in it mean something else."""
    if like.plain == like.tokens:
        return None
    for several in left.values():
        for assertion in several:
            same = assertion.plain == like.plain and assertion.expected == like.expected
            if same and assertion.fate <= like.fate and (names(assertion.subject) or not names(like.subject)):
                several.remove(assertion)
                return assertion
    return None


class Pool:
    """New assertions anywhere in the change: one that was removed here may have moved there."""

    def __init__(self, gained: Sequence[Assertion], helpers: dict[str, frozenset[str]]) -> None:
        self._left = Counter(assertion.tokens for assertion in gained if assertion.fate is Fate.LIVE)
        self._helpers = helpers

    def has(self, assertion: Assertion) -> bool:
        if self._left[assertion.tokens] > 0:
            self._left[assertion.tokens] -= 1
            return True
        return False

    def has_all(self, assertions: Sequence[Assertion]) -> bool:
        """All of them, each matched once."""
        found = [self.has(assertion) for assertion in assertions]
        return all(found)

    def is_in_helper(self, assertion: Assertion, gained: Sequence[Assertion]) -> bool:
        """The test calls a helper instead, which compares with the same values."""
        wanted = set(literals(assertion.expected))
        for other in gained:
            for name in names(other.tokens):
                held = self._helpers.get(name)
                if held is not None and wanted <= held | set(literals(other.tokens)):
                    return True
        return False


def weakened(found: Difference, pool: Pool, evidence: Evidence) -> Iterator[Finding]:
    for assertion in found.worse:
        code, told = _FATES[assertion.fate]
        message = f"`{assertion.said}` " + told.format(condition=assertion.condition[:60])
        yield Finding(code, found.new.outline.path, assertion.line, message, "high")
    for assertion in found.fed[:1]:
        message = f"`{assertion.said}` is about different data than before"
        yield Finding("test-data-edited", found.new.outline.path, assertion.line, message, "low")
    for assertion in found.lost:
        if pool.has(assertion) or _is_replaced_failure(assertion, found.new):
            continue
        judgement, line = _judge(assertion, found, pool, evidence)
        if judgement.code:
            yield Finding(judgement.code, found.new.outline.path, line, judgement.message, judgement.severity)


def _is_replaced_failure(assertion: Assertion, new: Case) -> bool:
    """`assert False, "to do"` may be replaced by a real test."""
    return assertion.is_failure and any(a.fate <= Fate.CONDITIONAL and not a.is_failure for a in new.assertions)


def _judge(old: Assertion, found: Difference, pool: Pool, evidence: Evidence) -> tuple[Judgement, int]:
    ranked = sorted(found.gained, key=lambda new: _likeness(old, new), reverse=True)
    judged = [(_replaced(old, new, found, evidence), new) for new in ranked[:30]]
    if any(judgement == FINE for judgement, _ in judged if judgement is not None):
        return FINE, 0
    if pool.is_in_helper(old, found.gained):
        return FINE, 0
    for judgement, new in judged:
        if judgement is not None:
            return judgement, new.line
    if found.constant:
        constant = max(found.constant, key=lambda new: _likeness(old, new))
        return Judgement("assertion-constant", f"`{constant.said}` cannot fail; it was `{old.said}`"), constant.line
    subject = _subject_words(old)
    about = [*subject, *words_of(found.old.outline.name)]
    severity = high_unless(evidence.removal_is_asked_for(about) and bool(subject))
    return Judgement(
        "assertion-removed", f"`{old.said}` was removed (was on line {old.line})", severity
    ), found.new.outline.line


def _subject_words(old: Assertion) -> list[str]:
    return [word for token in (*names(old.tokens), *literals(old.tokens)) for word in words_of(token)]


def _likeness(old: Assertion, new: Assertion) -> float:
    mine, others = names(old.tokens), names(new.tokens)
    overlap = len(mine & others) / max(1, len(mine | others))
    score = overlap + 4 * (old.subject == new.subject) + 3 * (shape(old.tokens) == shape(new.tokens))
    return score + 2 * (set(literals(old.tokens)) <= set(literals(new.tokens)))


def _replaced(old: Assertion, new: Assertion, found: Difference, evidence: Evidence) -> Judgement | None:
    """Whether `new` asserts what `old` did. None: unrelated."""
    if bool(old.raises) != bool(new.raises):
        return None
    if old.raises:
        return _replaced_exception(old, new, found, evidence)
    mine, others = names(old.tokens), names(new.tokens)
    same_subject = old.subject == new.subject
    values = set(literals(old.tokens))
    kept = _keeps(old, new, found.new)
    if not (same_subject or mine & others or (kept and (len(values) > 1 or (values and _are_related(old, new))))):
        return None
    if old.plain == new.plain and old.expected == new.expected and old.plain != old.tokens and not names(new.subject):
        return Judgement("assertion-constant", f"`{new.said}` no longer depends on the code")
    if _are_opposites(old, new):
        return _edited(old, new, found, evidence, f"`{new.said}` asserts the opposite of `{old.said}`")
    if new.tokens[-1:] == ("or",) and old.tokens[-1:] != ("or",):
        return _loosened(old, new, found, evidence)
    if same_subject and new.op_is_close and old.expected == new.expected:
        return _closeness(old, new, found, evidence)
    if shape(old.tokens) == shape(new.tokens):
        return _edited(old, new, found, evidence)
    if new.strength < old.strength or _is_blurred(old, new):
        return FINE if _says_empty(old, new) else _loosened(old, new, found, evidence)
    if kept and (literals(old.tokens) or same_subject):
        return FINE
    if len(literals(new.tokens)) > len(literals(old.tokens)) and new.strength >= EXACT and mine & others:
        return FINE  # more is compared than before: a whole list instead of its length
    judged = _edited(old, new, found, evidence)
    nothing_fixed = not values and not same_subject
    # The same is expected of something that is found in another way: a locator, a helper.
    found_otherwise = old.expected == new.expected and bool(literals(old.expected)) and bool(others - mine)
    return Judgement(judged.code, judged.message, "low") if nothing_fixed or found_otherwise else judged


def _keeps(old: Assertion, new: Assertion, case: Case) -> bool:
    """The compared values are unchanged, and the input is still somewhere in the test."""
    held = set(literals(new.tokens))
    return set(literals(old.expected)) <= held and set(literals(old.subject)) <= held | set(case.loose)


_BLURS = frozenset({"set", "frozenset", "sorted", "len", "bool", "Counter", "Set", "new"})


def _is_blurred(old: Assertion, new: Assertion) -> bool:
    """`names() == [...]` → `set(names()) == {...}`: order and number do not count any more."""
    wrapped = new.subject[:1] and new.subject[0] in _BLURS and len(new.subject) > len(old.subject)
    return bool(wrapped and old.subject[:1] and old.subject[0] not in _BLURS and _is_part(old.subject, new.subject))


def _is_part(part: Tokens, whole: Tokens) -> bool:
    return any(whole[at : at + len(part)] == part for at in range(len(whole) - len(part) + 1))


def _are_related(old: Assertion, new: Assertion) -> bool:
    return bool(name_words(old.tokens) & name_words(new.tokens))


def _says_empty(old: Assertion, new: Assertion) -> bool:
    """`x == []` → `not x`."""
    falsy = old.expected in (("#none",), ("0",), ("'",), ("#false",)) or (
        not literals(old.expected) and len(old.expected) <= 6
    )
    return (
        falsy
        and new.tokens[-1:] == ("not",)
        and old.strength >= EXACT
        and bool(names(old.subject) & names(new.subject))
    )


def _are_opposites(old: Assertion, new: Assertion) -> bool:
    if old.subject != new.subject or old.expected != new.expected:
        return False
    one, two = old.tokens[len(old.subject)], new.tokens[len(new.subject)]
    return one == f"not {two}" or two == f"not {one}" or any({one, two} == pair for pair in _OPPOSITES)


def _closeness(old: Assertion, new: Assertion, found: Difference, evidence: Evidence) -> Judgement:
    if old.op_is_close:
        return FINE if new.tolerance <= old.tolerance * 1.01 else _loosened(old, new, found, evidence)
    value = max((abs(number) for token in new.expected if (number := _number(token)) is not None), default=1.0)
    return FINE if new.tolerance <= _STILL_CLOSE * max(1.0, value) else _loosened(old, new, found, evidence)


def _number(token: str) -> float | None:
    try:
        return float(token)
    except ValueError:
        return None


def _about(old: Assertion, found: Difference) -> list[str]:
    """Names by which a story may refer to what an assertion is about."""
    stem = "_".join(stem_words(found.old.outline.path))
    return [
        *names(old.subject),
        found.old.outline.name.rpartition(".")[2].removeprefix("test_"),
        *([stem] if stem else []),
    ]


def _edited(old: Assertion, new: Assertion, found: Difference, evidence: Evidence, message: str = "") -> Judgement:
    asked = evidence.story.expects(literals(new.tokens), literals(old.tokens)) or evidence.change_is_asked_for(
        _about(old, found)
    )
    with_code = " while the code changed as well" if evidence.code_changed else ""
    was, now = (old.said, new.said) if old.said != new.said else (_values(old, new), _values(new, old))
    told = message or f"`{was}` became `{now}`{with_code}"
    return Judgement("expected-edited", told + ("; the story mentions it" if asked else ""), high_unless(asked))


def _values(one: Assertion, other: Assertion) -> str:
    """The values that one assertion compares with and the other does not, if they are otherwise the same."""
    own = [token.lstrip("'#") for token in literals(one.tokens) if token not in literals(other.tokens)]
    return ", ".join(own)[:80] or one.said


def _loosened(old: Assertion, new: Assertion, found: Difference, evidence: Evidence) -> Judgement:
    asked = evidence.change_is_asked_for(_about(old, found)) and evidence.story.expects(
        literals(new.tokens), literals(old.tokens)
    )
    asked = asked or evidence.removal_is_asked_for(_subject_words(old))
    return Judgement("assertion-loosened", f"`{new.said}` accepts more than `{old.said}` did", high_unless(asked))


def _replaced_exception(old: Assertion, new: Assertion, found: Difference, evidence: Evidence) -> Judgement | None:
    dropped = [token for token in old.expected if token not in new.expected]
    if old.raises == new.raises and not dropped:
        if old.subject == new.subject or names(old.subject) & names(new.subject) or not names(old.subject):
            return FINE
        return None
    message = f"`{new.said}` expects more exception types than `{old.said}` did"
    if is_broader(old.raises, new.raises):
        return FINE
    if is_broader(new.raises, old.raises):
        return Judgement("exception-broadened", message)
    if old.raises == new.raises:
        if len(new.expected) < len(old.expected):
            return Judgement("exception-broadened", f"`{new.said}` no longer checks the error message")
        return _edited(old, new, found, evidence)
    return _edited(old, new, found, evidence)
