"""Recognise usage, rate, quota and billing limits in a client's final error, for clients without typed events.

Never applied to tool output or to the model's text, where limits are an ordinary topic. Even so, reports on work and
limits of other kinds (context, turns, files, memory) are excluded.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from ralph.results.reset_time import reset_time
from ralph.results.screen import ESCAPES

_LONGEST = 20_000
_UNSEEN = ESCAPES + "|[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]"


class FoundLimit(NamedTuple):
    limit: bool
    kind: str | None = None
    """usage: a plan's allowance; rate: too many requests at once; quota: an API's allowance; billing: no money."""
    resets_at: float | None = None


NO_LIMIT = FoundLimit(False)

_BILLING = (
    r"credit balance is too low",
    r"\bout of (?:\w+ )?credits?\b",
    r"\b(?:insufficient|not enough|no|zero) (?:\w+ )?(?:credits?|balance|funds)\b",
    r"\bcredits? (?:limit )?(?:are |is |have |has )?(?:been )?(?:exhausted|depleted|used up|run out|expired|reached)\b",
    r"\bbalance is (?:insufficient|too low|empty)\b",
    r"\b(?:exceeded|exhausted) your [^.\n]{0,30}\bcredits\b|\blow credit\b|余额不足|欠费",
    r"\bused (?:up )?all (?:of )?(?:your |the |its )?(?:available |free |remaining )?credits\b",
    r"\brequires more credits\b",
    r"\bpayment[ _]required\b",
    r"\b(?:billing|spend(?:ing)?) (?:hard )?limit (?:has been |was |is )?(?:reached|exceeded|hit)\b",
    r"\b(?:reached|exceeded|hit)\b[^.\n]{0,40}\b(?:billing|spend(?:ing)?) (?:hard )?limit\b",
    r"billing_hard_limit|billing_error|insufficient_(?:funds|credits|balance)",
    r"\baccount is not active, please check your billing\b",
    r"\b(?:error|status|code|http)\W{0,4}(?:code\W{0,3})?402\b|\b402 payment\b",
    r"\bsubscription (?:has )?(?:expired|lapsed)\b",
)
_ADVICE = (r"\b(?:purchase|buy|add|top up) (?:more )?(?:api )?(?:credits|funds)\b",)
"""Many errors advise paying; it is the reason only if there is no other."""
_QUOTA = (
    r"insufficient_quota|quota_?exceeded|RESOURCE_EXHAUSTED|\bresource has been exhausted\b",
    r"\bquota (?:'[^'\n]{1,60}' )?(?:has been |was |is |limit )?(?:exceeded|reached|exhausted|used up|depleted)\b",
    r"\b(?:exceeded|exhausted|reached|hit|used up) (?:your|the|its|allocated|all)?(?:[^.\n]|\.\d){0,60}?\bquota\b",
    r"\bexhausted your (?:daily |current )?capacity\b",
    r"\b(?:no|out of) (?:remaining )?quota\b|\bquota (?:remaining|left)\W{1,3}0\b",
    r"\bquota will (?:be )?(?:reset|refresh)",
    r"\bexceeds? (?:your |the )?(?:current |daily |monthly )quota\b|exceeded_current_quota|额度已用完|配额",
)
_SPAN = r"(?:usage|session|weekly|daily|monthly|hourly|opus|sonnet|haiku|plan|subscription|free|premium|request|message"
_SPAN += r"|5h|\d+[ -]?(?:hour|hr|h|day|d|week))s?"
_WHOSE = r"\byou(?:'ve| have|'re| are)? (?:now )?(?:hit|reached|exceeded|used up|at|over|exhausted) (?:your|the|all)\b"
_USAGE = (
    r"usage_limit_(?:reached|exceeded)|\busage[ _]limit[ _](?:has been )?(?:reached|exceeded|hit)\b",
    rf"\b{_SPAN} limit (?:has been |was |is )?(?:reached|exceeded|hit|exhausted)\b",
    rf"{_WHOSE}(?P<what>(?:[^.\n]|\.\d){{0,50}}?)\b(?:limits?|allowance)\b",
    r"\b(?:has|have) (?:hit|reached|exceeded) (?:its|their|the|your) (?:\w+ ){0,3}usage limits?\b",
    r"\breached your specified api usage limits?\b",
    r"\bout of (?:\w+ )?(?:usage|requests|messages)\b",
    r"(?<!rate )(?<!rate-)\blimit reached\s*(?:[·∙•|:-]|\W)\s*(?:resets?|try again)",
    r"\byour (?:[\w-]+ ){0,2}limits? (?:will )?resets?\b",
    r"\bexhausted your (?:plan|subscription|free trial)",
    r"\busage limit (?:reached )?for\b",
    r"\bused (?:up )?(?:all|100%) of your (?:\w+ ){0,3}(?:usage|requests|allowance|messages|limit)\b",
    r"\bpremium requests? (?:allowance|limit)\b",
    r"\bexceeded your (?:\w+ ){0,3}(?:requests?|messages?) (?:allowance|limit)\b",
)
_RATE = (
    r"\brate[ _-]?limit(?:s|ed|ing)?(?: was| has been| is| were)? (?:reached|exceeded|hit|error)\b",
    r"rate_limit_(?:error|exceeded|reached)|\brate_limited\b|RateLimit(?:Error|Exceeded|Exception)",
    r"\brate[ -]limits? (?:will )?resets?\b|\breached (?:organization )?max (?:RPM|TPM|concurrency)\b",
    r"\b(?:concurrency limit|tier capacity) (?:exceeded|reached)\b|请求过于频繁",
    r"\blimited to \d+ (?:api )?(?:calls|requests)\b",
    r"\brate[ _-]limit(?:s|ed)?\b(?![.(/]\w)(?=.*(?:(?<!line )\b429|\btry again|\bretry|\bwait)\b)",
    r"\b(?:exceed(?:ed|s)?|hit|reached|over)\b[^.\n]{0,60}\brate[ -]limits?\b",
    r"\b(?:been|being|are|were|got) (?:temporarily )?rate[ -]?limited\b|^\W*rate[ -]?limited\b",
    r"\btoo many (?:concurrent )?(?:requests|tokens)\b|too_many_requests",
    r"\bThrottling(?:Exception|Error)?\b|\brequests? (?:was|were|(?:has|have) been|(?:is|are) being) throttled\b",
    r"\b(?:error|status|http|rejected|failed|api|\[)\W{0,4}(?:code\W{0,4}|status\W{0,4})?429\b",
    r"[\"'](?:status)?code[\"']\W{1,3}429\b",
    r"^\W*429\b|\b429[ :]+(?:\{|too|rate|error|client|quota|you|request|no body|status)",
    r"\btemporarily limiting requests\b|\A\W*(?:http[ _]429|rate_limit(?:ed)?)\W*\Z",
    r"\brequests? per (?:minute|day|hour|second)\b[^.\n]{0,40}\b(?:exceeded|reached)\b",
    r"\bretry[-_]after[\"']?\s*[:=]\s*[\"']?\d",
)

_OTHER_LIMITS = (
    r"\b(?:context|token|output|input|prompt|turns?|iteration|recursion|depth|file|size|upload|storage|disk|memory|heap|"
    r"stack|time|timeout|character|length|line|budget|attempts?|retry|retries|descriptor|open files|process|cpu|"
    r"complexity|nesting|page|attachment|image|tool|payload|body|row|column|branch|cache|log|rate|quota)\b"
)
_OTHER_QUOTAS = (
    r"\b(?:disk|storage|inode|filesystem|localstorage|indexeddb|mailbox) quota\b|QuotaExceededError|\bEDQUOT\b"
)
_WARNINGS = r"\b(?:approaching|close to|nearing|almost|about to (?:hit|reach)|used \d\d% of) (?:your |the |reaching )?$"

_WORK = (
    r"\A\W*(?:I(?:'ve| have)?\b|we(?:'ve| have)?\b|this (?:pr|commit|change|patch|test|function|module|story)\b|"
    r"the (?:new|user|middleware|tests?|function|class|module|endpoint|feature|code|docs|readme|limiter|handler)\b|"
    r"(?:successfully )?(?:added?|implement(?:ed|s)?|fix(?:ed|es)?|updat(?:ed|es?)|creat(?:ed|es?)|refactor(?:ed|s)?|"
    r"wrote|writes?|introduc(?:ed|es?)|document(?:ed|s)?|configur(?:ed|es?)|test(?:ed|s)?|remov(?:ed|es?)|rais(?:ed|es?)|"
    r"handles?|return(?:s|ed)?|changed?|made|allow(?:s|ed)?|bump(?:ed)?|increas(?:ed|es?)|all tests|done|completed?|"
    r"feat|chore|docs|story|us-\d+|todo|passed|searching|let me|when|if|once|should|must|given|verified|ensure[sd]?)\b)"
)
"""How a report on work begins."""
_ABOUT_WORK = (
    r"\b(?:middleware|decorator|(?:rate )?limiter|unit tests?|test cases?|test suite|endpoint|feature|readme|changelog|"
    r"should return|will return|returns? (?:a |an )?(?:http )?429|respond(?:s|ed)? with|per ip|token bucket|redis|"
    r"(?:when|if) (?:a|the) (?:user|client|limit|caller|quota)|sliding window|for example|e\.g\.|integration test|"
    r"mock(?:ed|s)?|simulat\w+|acceptance criteria|docstring|pull request|describe\(|it\(|expect\(|def test_|assert)\b"
)
_CHECKED = r"AssertionError|\bexpected\b.{1,80}\b(?:to (?:equal|be|contain|match)|received|but (?:got|was))\b"
"""A failing test that is about limits."""
_ERROR = (
    r"\A\W*(?:\w*error\b|\w+ error:|fatal|exception|http\b|status|ran into|failed|reconnecting|stream|\d{3}\b|\{|"
    r"\[api|\w+\.\w*(?:error|exception)|exceeded retry limit|sorry|you(?:'ve|'re| have| are| exceeded)\b|claude\b)"
)
_RESETS = r"\bresets?\b[^.\n]{0,40}\d|\btry again (?:in|at)\b|\bretry (?:in|after)\b|\bregain access\b"


def detect_limit(text: str, *, agent: str = "", now: float, tz: str = "") -> FoundLimit:
    """`tz` applies if the text names no time zone; `agent` is the client that reported the error."""
    text = _plain(text)
    kind = _kind(text, agent)
    if kind is None:
        return NO_LIMIT
    return FoundLimit(True, kind, reset_time(text, now, tz))


def _plain(text: str) -> str:
    """Removes colours, typographic apostrophes, escapes of nested JSON, and long gaps, which make patterns slow."""
    text = text if len(text) <= 2 * _LONGEST else text[:_LONGEST] + "\n" + text[-_LONGEST:]
    text = re.sub(_UNSEEN, "", text)
    for fancy in "’‘ʼ`´":
        text = text.replace(fancy, "'")
    text = text.replace('\\"', '"').replace("\\n", "\n").replace("\u202f", " ").replace("\xa0", " ")
    return re.sub(r"\s*\n\s*", "\n", re.sub(r"[ \t]+", " ", text))


def _kind(text: str, agent: str) -> str | None:
    if not text.strip() or _is_about_work(text):
        return None
    if _where(text, _BILLING, "billing") is not None:
        return "billing"
    quota, usage = _where(text, _QUOTA, "quota"), _where(text, _USAGE, "usage")
    if quota is not None or usage is not None:
        is_quota = usage is None or (quota is not None and (quota < usage or "insufficient_quota" in text))
        return "quota" if is_quota else "usage"
    for kind, patterns in (("rate", _RATE), ("billing", _ADVICE)):
        if _where(text, patterns, kind) is not None:
            return kind
    is_bare = _found(r"^\W*(?:\w+\W+){0,4}limit (?:reached|exceeded|hit)\b", text)
    if is_bare and (agent or _found(_RESETS, text)) and not _found(_OTHER_LIMITS, text):
        return "usage"
    return None


def _where(text: str, patterns: tuple[str, ...], kind: str) -> int | None:
    """The position of the first statement about this kind of limit; limits of other kinds are skipped."""
    found = [
        match.start() for pattern in patterns for match in _compiled(pattern).finditer(text) if _is_meant(match, kind)
    ]
    return min(found, default=None)


def _is_meant(match: re.Match[str], kind: str) -> bool:
    if kind == "quota" and _found(_OTHER_QUOTAS, _around(match)):
        return False
    what = match.groupdict().get("what") or ""
    if _found(_OTHER_LIMITS, what) and not _found(r"\b(?:monthly|weekly|daily|hourly) token", what):
        return False
    before = match.string[max(0, match.start() - 30) : match.start()]
    return kind not in ("usage", "quota") or not _found(_WARNINGS, before)


def _around(match: re.Match[str]) -> str:
    text = match.string
    return text[max(0, match.start() - 25) : match.end() + 25]


def _is_about_work(text: str) -> bool:
    """A report on work that deals with limits; an error states what happened just now."""
    if _found(_WORK, text) or _found(_CHECKED, text):
        return True
    return _found(_ABOUT_WORK, text) and not (_found(_ERROR, text) or _found(_RESETS, text))


def _found(pattern: str, text: str) -> bool:
    return _compiled(pattern).search(text) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.MULTILINE if pattern.startswith("^") else re.IGNORECASE)
