"""What an agent can put in its request file: a claim, a question, learnings.

Parsed leniently and never trusted.
"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
from msgspec import Struct

from ralph.core.evidence import Claim
from ralph.core.learning import LONGEST
from ralph.core.review import Answer, Fate, Finding, Reply, ReviewStatus
from ralph.core.text import clean, one_line

_LONGEST = 2000
_MOST_FINDINGS = 50
_MOST_REPLIES = 200
_LONGEST_ID = 20
_MOST_LEARNINGS = 20
_MOST_STARTS = 20


class Request(Struct, frozen=True):
    claim: Claim | None = None
    ask: str = ""
    complete: bool = False
    """A COMPLETE file exists: a claim about the whole plan."""
    waiting: str = ""
    """The text of a WAITING file."""
    review: Answer | None = None
    replies: tuple[Reply, ...] = ()
    """A fix's answer to each finding."""
    learned: tuple[str, ...] = ()
    """Learnings for later sessions: claims, too."""
    problem: str = ""
    """Why the request could not be parsed."""


class _Finding(Struct):
    text: str = ""
    place: str = ""
    severity: str = ""
    criterion: str = ""
    id: str = ""
    evidence: str = ""


class _Reply(Struct):
    id: str = ""
    fate: str = ""
    reason: str = ""


class _Review(Struct):
    verdict: str = ""
    feedback: str = ""
    findings: tuple[_Finding, ...] = ()


class _Wire(Struct):
    claim: str = ""
    ask: str = ""
    review: _Review | None = None
    fixes: tuple[_Reply, ...] = ()
    learn: Any = None


def read_request(data: bytes) -> Request:
    """Anything that cannot be parsed is not a request."""
    try:
        wire = _decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        return Request(problem=f"the request file could not be parsed: {one_line(str(error), 200)}")
    word = wire.claim.strip().lower().replace("_", "-").replace(" ", "-")
    claim = Claim(word) if word in set(Claim) else None
    replies = tuple(reply for given in wire.fixes[:_MOST_REPLIES] if (reply := _reply(given)) is not None)
    return Request(
        claim,
        clean(wire.ask).strip()[:_LONGEST],
        review=_answer(wire.review),
        replies=replies,
        learned=_learned(wire.learn),
    )


def _decode(data: bytes) -> _Wire:
    """Strict JSON, or what is left of it after an encoding error: a lone surrogate, which JavaScript writes where an
    emoji was cut, bytes that are not UTF-8, another UTF, a raw newline in a text."""
    try:
        return msgspec.json.decode(data, type=_Wire)
    except (msgspec.DecodeError, UnicodeDecodeError):
        encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
        text = data.decode(encoding, "replace")
        try:
            value = json.loads(text, strict=False)
        except json.JSONDecodeError as error:
            raise ValueError(f"line {error.lineno}, column {error.colno}: {error.msg}") from None
        return msgspec.json.decode(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"), type=_Wire)


def answer_at_the_end(text: str) -> Request:
    """The request at the end of an agent's last message, for agents that write no files."""
    body = text.strip().removesuffix("```").rstrip()
    starts = [found.start() for found in re.finditer(r"^\{", body, re.MULTILINE)] if body.endswith("}") else []
    for start in starts[: -_MOST_STARTS - 1 : -1]:
        found = read_request(body[start:].encode("utf-8", "replace"))
        if found.review is not None or found.replies:
            return found
    return Request()


def _learned(given: object) -> tuple[str, ...]:
    """A list of sentences; a single sentence, or objects with `text`, are accepted too."""
    listed = given if isinstance(given, list) else [given]
    texts = [one.get("text") if isinstance(one, dict) else one for one in listed]
    said = (one_line(text, LONGEST) for text in texts if isinstance(text, str))
    return tuple(dict.fromkeys(filter(None, said)))[:_MOST_LEARNINGS]


_FATES = {"fixed": Fate.FIXED, "rejected": Fate.REJECTED, "reject": Fate.REJECTED}


def _reply(given: _Reply) -> Reply | None:
    fate = _FATES.get(given.fate.strip().lower())
    name = clean(given.id).strip()[:_LONGEST_ID]
    return Reply(name, fate, clean(given.reason).strip()[:_LONGEST]) if fate and name else None


_VERDICTS = {
    "approved": ReviewStatus.APPROVED,
    "approve": ReviewStatus.APPROVED,
    "changes-requested": ReviewStatus.CHANGES_REQUESTED,
    "request-changes": ReviewStatus.CHANGES_REQUESTED,
}


def _answer(given: _Review | None) -> Answer | None:
    word = given.verdict.strip().lower().replace("_", "-").replace(" ", "-") if given else ""
    if given is None or word not in _VERDICTS:
        return None
    findings = tuple(
        Finding(*(clean(part).strip()[:_LONGEST] for part in msgspec.structs.astuple(one)))
        for one in given.findings[:_MOST_FINDINGS]
        if one.text.strip() or one.id.strip()
    )
    return Answer(_VERDICTS[word], clean(given.feedback).strip()[: 4 * _LONGEST], findings)
