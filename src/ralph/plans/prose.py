"""Analyse prose: whether a criterion can be checked, and how many sentences there are. Pure.

Both are guesses, and a false alarm costs more trust than a miss. So most words count as vague only if nothing else in
the criterion can be checked: no number, no quoted text, no path, no command.
"""

from __future__ import annotations

import re

from ralph.core.lazy_pattern import lazy_pattern

_WELL = r"(?:correctly|properly|appropriately|gracefully|nicely|cleanly|adequately|sufficiently|flawlessly|perfectly)"
_AS_MEANT = r"as (?:expected|intended|designed|desired|needed|appropriate|it should)"

_ALWAYS = lazy_pattern(
    rf"\bworks? (?:{_WELL}|well|fine|reliably|{_AS_MEANT})\b"
    r"|\b(?:tbd|tba)\b|\bto be (?:defined|determined|decided|specified)\b|\?\?\?|(?-i:\bTODO:|^\W*TODO\W*$|\bFIXME\b)"
    r"|\band so (?:on|forth)\b|,\s*etc\b|(?<![/\w.])etc(?:\.(?=[\s)]|$)|$)"
    r"|\bbug[- ]free\b|\bstate[- ]of[- ]the[- ]art\b|\bworld[- ]class\b",
    re.IGNORECASE,
)
_TASTE = (
    r"(?:user|developer|mobile|beginner)[- ]friendly|intuitive(?:ly)?|high[- ]quality|production[- ](?:ready|grade)"
    r"|best practices?|seamless(?:ly)?|smooth(?:ly)?|easily|effortless(?:ly)?"
    r"|easy to (?:use|understand|read|maintain|extend|follow|navigate)"
    r"|(?:looks?|feels?) (?:good|nice|right|great|fine|professional|modern|polished|clean|pretty)"
    r"|well[- ](?:tested|documented|structured|designed|written|organi[sz]ed)"
    r"|(?:good|proper|appropriate|adequate|sufficient|reasonable|suitable|decent|acceptable)"
    r" (?:error (?:handling|messages?)|validation|tests?|test coverage|coverage|logging|documentation|performance"
    r"|security|styling|speed|ux|user experience|code|quality|names?)"
    r"|responds? (?:quickly|promptly|fast)|loads? (?:quickly|fast|faster)|runs? (?:quickly|fast|faster|smoothly)"
    r"|fast enough|as (?:fast|soon|much|little) as possible|in a timely manner"
    r"|all (?:necessary|relevant|appropriate) \w+"
)
_MANNER = (
    rf"{_AS_MEANT}|{_WELL} \w+(?:ed|ing)|(?:\w+ed|displays?|renders?|behaves?|functions?|performs?|handles?) {_WELL}"
    r"|no (?:known )?(?:bugs|issues|problems)[.!]?$|and more[.!]?$"
)
_TROUBLE = r"(?:errors?|edge cases?|exceptions?|failures?|(?:invalid|bad|wrong) (?:input|data))"
_HANDLED = (
    rf"handles? (?:all |any )?(?:the )?{_TROUBLE}(?: {_WELL})?[.!]?$"
    rf"|{_TROUBLE} (?:is|are) (?:handled|dealt with|covered)(?: {_WELL})?[.!]?$"
)
_STATE = (
    r"(?:is|are|be|been|gets?|becomes?|looks?) (?:now |fully |very |really |more )?"
    r"(?:good|fast|faster|quick|robust|clean|cleaner|easy|easier|simple|secure|performant|efficient|responsive|scalable"
    r"|reliable|stable|complete|completed|done|finished|implemented|working|correct|fine|okay|ok|acceptable|optimi[sz]ed"
    r"|maintainable|readable|accessible|tested|documented|improved|enhanced|better|nicer|refactored|cleaned up)"
    r"(?:,? (?:and|or) \w+)*[.!]?$"
    r"|(?:is|are) (?:up|running|up and running)[.!]?$|\bworks?(?: (?:now|again|everywhere))?[.!]?$"
    r"|^(?:improve|enhance|optimi[sz]e|refactor|clean up)\b"
)
_UNLESS_CONCRETE = lazy_pattern(rf"\b(?:{_TASTE}|{_MANNER}|{_HANDLED})(?!\w)", re.IGNORECASE)
_UNLESS_CONDITIONAL = lazy_pattern(rf"(?:\b|^)(?:{_STATE})", re.IGNORECASE)
_CONCRETE = lazy_pattern(
    r"""[0-9]|`[^`]+`|"[^"]+"|“[^”]+”|«[^»]+»|(?<!\w)'[^']+'(?!\w)|(?<!\w)--\w|(?<!\w)/\w|\w/\w+/|\b\w+\.[a-z]{1,4}\b"""
    r"|\b(?:GET|POST|PUT|PATCH|DELETE|HEAD)\b|[<>=]=?|:\s\S+\s\S+"
)
_CONDITIONAL = lazy_pattern(
    r"\b(?:when|whenever|if|after|until|once|unless|while|before|without|only)\b", re.IGNORECASE
)


_LONGEST = 2000
"""Longer criteria have other problems."""


def vague_words(criterion: str) -> str:
    """The words that make a criterion impossible to check; empty if there are none."""
    text = " ".join(criterion[:_LONGEST].split())
    if found := _ALWAYS.search(text):
        return found[0].strip(" ,")
    if _CONCRETE.search(text):
        return ""
    if found := _UNLESS_CONCRETE.search(text):
        return found[0]
    if not _CONDITIONAL.search(text) and (found := _UNLESS_CONDITIONAL.search(text)):
        return found[0]
    return ""


_FENCED = lazy_pattern(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_QUOTED = lazy_pattern(r"`[^`\n]*`|https?://\S+?(?=[.,;:!?)]*(?:\s|$))")
_BREAK = lazy_pattern(r"\n[ \t]*\n|^[ \t]*(?:[-*+]|[0-9]{1,3}[.)])[ \t]+|^#+[ \t]+", re.MULTILINE)
_END = lazy_pattern(r"(?:[.!?]+|…)[\"'”’)\]*_]*(?=\s|$)|[。！？]")
_PHASE = lazy_pattern(r"\s*Part of:? [^\n]+\s*\Z")
_SHORT = lazy_pattern(
    r"(?:^|[\s(\"'“])(?:(?-i:[A-Z])|e\.g|i\.e|a\.m|p\.m|u\.s|vs|cf|ca|approx|resp|incl|excl|no|nr|fig|eq|sec|min|max|mr|mrs"
    r"|ms|dr|prof|st|inc|ltd|jr|sr|dept|est|ver|v|al)$",
    re.IGNORECASE,
)
_WORD = lazy_pattern(r"[^\W_]")
_NEAR = 12
_ET_CETERA = lazy_pattern(r"\betc$", re.IGNORECASE)


def count_sentences(text: str) -> int:
    """Sentences, paragraphs and list items. A single line break ends nothing: user stories are often split into
    three lines. A line that only introduces a list, and the phase that an import adds, are none.
    """
    text = _QUOTED.sub("code", _FENCED.sub("code", text))
    return sum(_sentences_in(part) for part in _BREAK.split(text) if not _PHASE.match(part))


def count_words(text: str) -> int:
    """Without code, which may be long and say little."""
    return len(_FENCED.sub("code", text).split())


def _sentences_in(paragraph: str) -> int:
    count, start = 0, 0
    for end in _END.finditer(paragraph):
        # Only the nearest characters matter; whole slices would make a long text take forever.
        before, after = (
            paragraph[max(start, end.start() - _NEAR) : end.start()],
            paragraph[end.end() : end.end() + _NEAR],
        )
        may_go_on = end[0].startswith("…") or _ET_CETERA.search(before)
        if (end[0].startswith(".") and _SHORT.search(before)) or (may_go_on and not _starts_anew(after)):
            continue
        count += _has_words(paragraph, start, end.start())
        start = end.end()
    is_lead = paragraph.rstrip().endswith(":")
    return count + (not is_lead and _has_words(paragraph, start, len(paragraph)))


def _starts_anew(text: str) -> bool:
    text = text.lstrip()
    return not text or text[0].isupper()


def _has_words(text: str, start: int, end: int) -> bool:
    return _WORD.search(text, start, end) is not None
