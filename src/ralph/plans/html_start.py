"""How an HTML block starts in Markdown, and what ends it: the seven kinds of CommonMark."""

from __future__ import annotations

import re
from typing import NamedTuple

_TAG = r"[A-Za-z][A-Za-z0-9-]*"
_ATTRIBUTE = r"[ \t]+[A-Za-z_:][A-Za-z0-9:._-]*(?:[ \t]*=[ \t]*(?:[^ \t\"'=<>`]+|'[^']*'|\"[^\"]*\"))?"
_BLOCK_TAGS = (
    "address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details|dialog|dir|div|dl|dt"
    "|fieldset|figcaption|figure|footer|form|frame|frameset|h1|h2|h3|h4|h5|h6|head|header|hr|html|iframe|legend|li|link"
    "|main|menu|menuitem|nav|noframes|ol|optgroup|option|p|param|search|section|summary|table|tbody|td|tfoot|th|thead"
    "|title|tr|track|ul"
)
_STARTS = (
    (
        re.compile(r"<(?:script|pre|style|textarea)(?=[ \t>]|\Z)", re.I),
        re.compile(r"</(?:script|pre|style|textarea)>", re.I),
    ),
    (re.compile(r"<!--"), re.compile(r"-->")),
    (re.compile(r"<\?"), re.compile(r"\?>")),
    (re.compile(r"<![A-Za-z]"), re.compile(r">")),
    (re.compile(r"<!\[CDATA\["), re.compile(r"\]\]>")),
    (re.compile(rf"</?(?:{_BLOCK_TAGS})(?=[ \t]|/?>|\Z)", re.I), None),
)
"""How an HTML block starts, and how its last line looks. None: a blank line ends it."""
_LONE_TAG = re.compile(rf"<(?:{_TAG}(?:{_ATTRIBUTE})*[ \t]*/?|/{_TAG}[ \t]*)>[ \t]*\Z")


class HtmlStart(NamedTuple):
    closer: re.Pattern[str] | None
    """The text that its last line contains. None: a blank line ends it."""


def html_start(text: str, at: int, stop: int, *, in_paragraph: bool) -> HtmlStart | None:
    """The HTML block that starts here, if any. A lone tag does not interrupt a paragraph."""
    for opening, closer in _STARTS:
        if opening.match(text, at, stop):
            return HtmlStart(closer)
    if not in_paragraph and _LONE_TAG.match(text, at, stop):
        return HtmlStart(None)
    return None
