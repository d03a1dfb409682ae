"""Sanitise text from other tools for use in a plan: one line where required, and nothing hidden. Pure."""

from __future__ import annotations

import re
import unicodedata
from enum import Enum, auto

from ralph.core.lazy_pattern import lazy_pattern
from ralph.core.text import clean, one_line

LONGEST_TITLE = 200
LONGEST_TEXT = 20_000
_JOINERS = "\u200c\u200d"
_COMMENT = lazy_pattern(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_WRAPPED = lazy_pattern(r"(\*\*|__|~~|\*|_)(?P<text>(?:(?!\1).)+)\1(?P<rest>[ \t]*[:.–—-]?[ \t]*.*)", re.DOTALL)
_TICKED = lazy_pattern(r"^\s*(?:✅|✔️?|☑️?)\s*|\s*(?:✅|✔️?|☑️?|\((?:done|completed|fixed)\))\s*$", re.IGNORECASE)
_STRUCK = lazy_pattern(r"\s*~~.+~~\s*", re.DOTALL)


def visible(text: str) -> str:
    """Without escape sequences, control characters and invisible ones. Joiners in letters and emoji stay."""
    text = clean(text.removeprefix("\ufeff"))
    if text.isascii():
        return text
    return "".join(c for c in text if c in _JOINERS or unicodedata.category(c) not in ("Cf", "Cs", "Co"))


def line(text: str) -> str:
    return one_line(visible(_COMMENT.sub(" ", text)))


def title(text: str) -> str:
    """On one line, without surrounding marks, and short enough to read at a glance."""
    return one_line(unwrapped(_TICKED.sub("", line(text))).rstrip(" :"), LONGEST_TITLE)


def unwrapped(words: str) -> str:
    """`**Add** a page` → `Add a page`."""
    found = _WRAPPED.fullmatch(words)
    return (found["text"] + found["rest"]).strip() if found else words


def looks_done(text: str) -> bool:
    """Struck through, or with a tick that is not a checkbox."""
    return bool(_STRUCK.fullmatch(text) or _TICKED.search(line(text)))


def prose(text: str) -> str:
    """Lines and paragraphs, without comments, trailing spaces and runs of empty lines."""
    text = visible(text.replace("\r\n", "\n").replace("\r", "\n"))
    lines = [found.rstrip() for found in text.split("\n")]
    whole = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")
    if len(whole) > LONGEST_TEXT:
        whole = whole[:LONGEST_TEXT].rstrip() + "\n…"
    return whole


def without_comments(text: str) -> str:
    return _COMMENT.sub("", text)


def slug(text: str) -> str:
    """For comparing names: letters and digits only."""
    return re.sub(r"[\W_]+", " ", text.casefold()).strip()


class Fate(Enum):
    """What a status of another tool means for us."""

    OPEN = auto()
    DONE = auto()
    BLOCKED = auto()
    GONE = auto()
    UNKNOWN = auto()
    """Imported as open, and said."""


_FATES = {
    Fate.DONE: "done|complete|completed|closed|resolved|pass|passed|passing|true|verified|merged|shipped|released"
    "|finished|fixed|implemented|deployed",
    Fate.GONE: "cancelled|canceled|won t do|wont do|won t fix|wontfix|duplicate|not planned|rejected|obsolete|abandoned"
    "|superseded|dropped|removed|skipped|not applicable|n a|archived|declined|cannot reproduce",
    Fate.BLOCKED: "blocked|deferred|on hold|waiting|paused|postponed",
    Fate.OPEN: "|open|opened|reopened|todo|to do|pending|backlog|new|ready|not started|in progress|inprogress|doing"
    "|started|active|false|failing|fail|failed|draft|approved|ready for dev"
    "|ready for development|selected for development"
    "|planned|unstarted|triage|drafted|contexted|failing tests|review|in review|ready for review|optional|queued|next",
}
_FATE_OF = {word: fate for fate, words in _FATES.items() for word in words.split("|")}


def fate(status: str) -> Fate:
    return _FATE_OF.get(slug(re.sub(r"[^\w\s'’/-]", " ", visible(status))), Fate.UNKNOWN)


_LEVELS = (
    (re.compile(r"\b(?:critical|urgent|blockers?|immediate|highest|must|p0)\b", re.IGNORECASE), 1),
    (re.compile(r"\b(?:high|important|major|p1)\b", re.IGNORECASE), 2),
    (re.compile(r"\b(?:medium|normal|should|p2)\b", re.IGNORECASE), 3),
    (re.compile(r"\b(?:low|minor|nice|could|p3)\b", re.IGNORECASE), 4),
    (re.compile(r"\b(?:lowest|trivial|someday|backlog|later|future|ideas|p4)\b", re.IGNORECASE), 5),
)


def level_of(words: str) -> int:
    """1 to 5 for words that express importance, 0 for others."""
    return next((level for pattern, level in _LEVELS if pattern.search(words)), 0)
