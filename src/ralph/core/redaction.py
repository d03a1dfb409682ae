"""Replace secrets in text and byte streams: tokens of well-known services, known values, and the user's patterns. Pure.

Most text holds no secret, so a cheap test comes first: every token contains a run of at least 20 letters, digits, `_`
and `-`, and only those runs are compared with the shapes. The replacement has no quotes and no backslash, so a line of
JSON stays one. The prefixes and lengths of tokens are those that the issuers document and that public secret scanners
use. A shape is listed if it can be recognized without the text around it; a bare hash, UUID or password cannot.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeVar

import msgspec

from ralph.core.lazy_pattern import lazy_pattern


class Shape(NamedTuple):
    prefixes: str
    """Literal texts that a token begins with, separated by spaces. They do not follow a letter, a digit, `_` or `-`."""
    body: str
    """A regular expression for the rest. If it has a group, only the group is the secret."""


_URL64 = "[A-Za-z0-9_-]"
_END = "(?![A-Za-z0-9])"
AWS_SECRET = r"[\\\"'\s]{0,6}[=:][\\\"'\s]{0,6}([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+])"
"""What follows its name."""

SHAPES = (
    # models
    Shape("sk-", f"(?:ant|proj|svcacct|admin|or-v1|lf)-{_URL64}{{20,400}}|(?=[A-Za-z]*[0-9])[A-Za-z0-9]{{32,200}}"),
    Shape("gsk_", "[A-Za-z0-9]{48,60}"),
    Shape("xai-", "[A-Za-z0-9]{70,90}"),
    Shape("pplx-", "[A-Za-z0-9]{40,60}"),
    Shape("r8_", "[A-Za-z0-9]{37}"),
    Shape("hf_ api_org_", f"[A-Za-z]{{34}}{_END}"),
    # forges
    Shape("ghp_ gho_ ghs_ ghu_ ghr_", "[A-Za-z0-9]{36,255}"),
    Shape("github_pat_", "[A-Za-z0-9_]{40,255}"),
    Shape(
        "glpat- gldt- glrt- glrtr- glcbt- glptt- glft- glimt- glagent- gloas- glsoat- glffct- glwt-",
        "[A-Za-z0-9_-]{20,300}(?:[.][a-z0-9]{2}[.]?[a-z0-9]{7})?",
    ),
    Shape("GR1348941", f"{_URL64}{{20}}"),
    Shape("ATATT3 ATCTT3 ATBB", "[A-Za-z0-9_=-]{24,250}"),
    Shape("sgp_", "(?:[a-fA-F0-9]{16}_|local_)?[a-fA-F0-9]{40}"),
    # clouds
    Shape("AKIA ASIA ABIA ACCA", f"[A-Z0-9]{{16}}{_END}"),
    Shape("AIza", f"{_URL64}{{35}}(?!{_URL64})"),
    Shape("GOCSPX-", f"{_URL64}{{28}}"),
    Shape("ya29.", f"{_URL64}{{40,1000}}"),
    Shape("LTAI", f"[A-Za-z0-9]{{20}}{_END}"),
    Shape("AKID", f"[A-Za-z0-9]{{32}}{_END}"),
    Shape("dop_v1_ doo_v1_ dor_v1_", "[a-f0-9]{64}"),
    Shape("dapi", f"[a-f0-9]{{32}}(?:-[0-9])?{_END}"),
    Shape("fo1_ fm1a_ fm1r_ fm2_", "[A-Za-z0-9_+/=-]{43,2000}"),
    Shape("HRKU-", f"{_URL64}{{36,70}}"),
    Shape("dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.", "[A-Za-z0-9_.-]{40,100}"),
    Shape("hvs. hvb. hvr.", f"{_URL64}{{24,300}}"),
    Shape(".atlasv1.", f"{_URL64}{{60,70}}"),
    Shape("pul-", f"[a-f0-9]{{40}}{_END}"),
    Shape("AccountKey= SharedAccessKey=", "[A-Za-z0-9+/]{40,90}={0,2}"),
    Shape("aws_secret_access_key AWS_SECRET_ACCESS_KEY", AWS_SECRET),
    # messages
    Shape("xoxa- xoxb- xoxc- xoxe- xoxo- xoxp- xoxr- xoxs- xoxd-", "[A-Za-z0-9%-]{15,300}"),
    Shape("xapp-", "[0-9]-[A-Za-z0-9-]{20,200}"),
    Shape("hooks.slack.com/services/ hooks.slack.com/workflows/ hooks.slack.com/triggers/", "[A-Za-z0-9+/_-]{30,100}"),
    Shape("discord.com/api/webhooks/ discordapp.com/api/webhooks/", f"[0-9]{{17,20}}/{_URL64}{{60,70}}"),
    Shape(".webhook.office.com/webhookb2/", "[A-Za-z0-9@/-]{60,300}"),
    Shape(":AA", f"(?<=[0-9]{{8}}:AA){_URL64}{{33}}(?!{_URL64})"),  # Telegram
    Shape("MT Mj Mz ND NT Nj Nz OD OT", rf"[A-Za-z0-9]{{22,26}}\.{_URL64}{{6}}\.{_URL64}{{27,40}}"),  # Discord
    Shape("SG.", rf"{_URL64}{{22}}\.{_URL64}{{43}}"),
    Shape("xkeysib-", "[a-f0-9]{64}-[A-Za-z0-9]{16}"),
    Shape("key-", f"[a-f0-9]{{32}}{_END}"),
    Shape("SK", f"[a-f0-9]{{32}}{_END}"),
    # payment and shops
    Shape("sk_test_ sk_live_ sk_prod_ rk_test_ rk_live_ rk_prod_", "[A-Za-z0-9]{20,250}"),
    Shape("whsec_", "[A-Za-z0-9+/]{32,64}"),
    Shape("sq0atp- sq0csp- sq0idp-", f"{_URL64}{{22,60}}"),
    Shape("shpat_ shpca_ shppa_ shpss_ shptka_", "[a-fA-F0-9]{32}"),
    # registries
    Shape("npm_", f"[A-Za-z0-9]{{36}}{_END}"),
    Shape("_authToken=", "[A-Za-z0-9_.=-]{20,400}"),
    Shape("pypi-", f"AgE{_URL64}{{50,1000}}"),
    Shape("rubygems_", "[a-f0-9]{48}"),
    Shape("dckr_pat_ dckr_oat_", f"{_URL64}{{20,60}}"),
    Shape("CLOJARS_", "[a-z0-9]{60}"),
    Shape("AKCp", "[A-Za-z0-9]{69}"),
    # tools
    Shape("lin_api_ lin_oauth_", "[A-Za-z0-9]{32,64}"),
    Shape("ntn_", "[0-9]{11}[A-Za-z0-9]{35}"),
    Shape("secret_", f"[A-Za-z0-9]{{43}}{_END}"),
    Shape("figd_", f"{_URL64}{{40,60}}"),
    Shape("PMAK-", "[a-f0-9]{24}-[a-f0-9]{34}"),
    Shape("NRAK- NRII- NRJS- NRAA-", "[A-Za-z0-9-]{19,42}"),
    Shape("glsa_ glc_", "[A-Za-z0-9+/=_]{32,400}"),
    Shape("sntrys_ sntryu_", "[A-Za-z0-9+/=_]{40,400}"),
    Shape("dt0c01. dt0s01. dt0s02. dt0s16.", r"[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    Shape("pscale_tkn_ pscale_oauth_ pscale_pw_", "[A-Za-z0-9_=.-]{32,64}"),
    Shape("sbp_", f"[a-f0-9]{{40}}{_END}"),
    Shape("pnu_", f"[A-Za-z0-9]{{36}}{_END}"),
    Shape("tfp_", "[A-Za-z0-9_.=-]{40,70}"),
    Shape("AGE-SECRET-KEY-1", "[A-Z0-9]{58}"),
    Shape("A3-", f"[A-Z0-9]{{6}}-[A-Z0-9]{{6,11}}(?:-[A-Z0-9]{{5}}){{3,4}}{_END}"),
    Shape("ops_eyJ", "[A-Za-z0-9+/=]{250,2000}"),
    # JSON Web Tokens: signed, and encrypted
    Shape(
        "eyJ",
        rf"{_URL64}{{17,4000}}\.(?:eyJ{_URL64}{{17,4000}}(?:\.{_URL64}{{10,1400}})?"
        rf"|{_URL64}{{0,600}}\.{_URL64}{{16}}\.{_URL64}{{16,4000}}\.{_URL64}{{16,22}})",
    ),
    # headers of HTTP requests
    Shape("Bearer bearer", r" ((?=[^\s\"\\]{0,4000}[0-9])[A-Za-z0-9_.~+/=-]{20,4000})"),
    Shape("Authorization", r"[\\\"']{0,4}: ?[\\\"']{0,4}(?:Basic|Token|token) ([A-Za-z0-9_.~+/=-]{20,4000})"),
)  # fmt: skip

CONTINUED = "hook whsec_ fm2_ glc_ sntrys_"
"""In the beginning of tokens that contain `/` or `+`."""


MASK = "[redacted]"
_MASK = MASK.encode()
_RUN = 20
_BASE64 = bytes(97 if (code < 128 and chr(code).isalnum()) or code in b"+/" else 32 for code in range(256))
_A_RUN = b"a" * _RUN
_COLOUR = lazy_pattern(rb"[0-9;]{0,8}m")
_CLASSES = bytes(97 if (code < 128 and chr(code).isalnum()) or code in b"_-" else 32 for code in range(256))
_REACH = 64
"""How far before a run the beginning of a token is looked for."""
_KEY = (
    rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    rb"(?:[A-Za-z0-9+/=:,. \r\n\t\\-]{40,16000}?-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    rb"|(?:(?:\s|\\+[nr])*[A-Za-z0-9+/]{40,80}={0,2}){1,250})"  # its end is missing
)
_KEY_MARK = b"PRIVATE KEY"
_MARKED = (
    (_KEY_MARK, _KEY),
    (b"ecretAccessKey", b"ecretAccessKey" + AWS_SECRET.encode()),
)
"""Secrets that are recognized by a text of their own, which is no long run."""
_A_BLOB = b"a" * 2000
_HEAD = 400
"""Bytes of an image or archive in base64 that are compared."""
_OBJECT_ID = lazy_pattern(r"[0-9a-f]{40}|[0-9a-f]{64}")
_HELD = 16 * 1024
"""Bytes of an unfinished line that a stream holds back; no secret is longer."""
_HELD_FOR_PATTERNS = 4 * 1024 * 1024

Span = tuple[int, int, bytes]
T = TypeVar("T")


_BODIES = {prefix.encode(): shape.body.encode() for shape in SHAPES for prefix in shape.prefixes.split()}
_BY_START: dict[bytes, list[bytes]] = {}
"""Prefixes by their first two bytes, the longest first."""
for _prefix in sorted(_BODIES, key=len, reverse=True):
    _BY_START.setdefault(_prefix[:2], []).append(_prefix)
_ENDS_BEFORE = frozenset((*(prefix[-3:] for prefix in _BODIES if prefix[-1:] in b".="), b"er ", b"ic ", b"en "))
"""What stands before a run that is a token without its prefix; the last ones are `Bearer`, `Basic` and `Token`."""
_BEGINNINGS = tuple(map(str.encode, CONTINUED.split()))
_MANY = 300
"""Runs after which it pays to look at the whole text for the beginnings."""
_BACKSLASH, _PERCENT, _BRACKET, _COLON = rb"\%[:"


class Redactor:
    """`values` are secrets by name, such as environment variables; `patterns` are matched against each line."""

    def __init__(self, values: Mapping[str, str] | None = None, patterns: Iterable[str] = ()) -> None:
        self._labels = {
            form: f"[redacted {name}]".encode() for name, value in (values or {}).items() for form in _forms(value)
        }
        longest_first = sorted(self._labels, key=len, reverse=True)
        self._values = re.compile(b"|".join(map(re.escape, longest_first))) if longest_first else None
        self._patterns = [re.compile(pattern.encode()) for pattern in patterns]
        self.held = _HELD_FOR_PATTERNS if self._patterns else _HELD

    def data(self, data: bytes, spans: Sequence[Span] | None = None) -> bytes:
        """The same object if nothing is secret. `spans`: where the secrets are, if that is known."""
        spans = self.spans(data) if spans is None else [span for span in spans if span[1] <= len(data)]
        if spans:
            data = _replaced(data, spans)
        return self._by_patterns(data) if self._patterns else data

    def text(self, text: str) -> str:
        """The same object if nothing is secret."""
        data = text.encode("utf-8", "surrogatepass")
        clean = self.data(data)
        return text if clean is data else clean.decode("utf-8", "surrogatepass")

    def value(self, value: T) -> T:
        """A struct with all its text redacted, except object IDs of git: a record must stay usable.

        A path with bytes that are not UTF-8 is escaped, because JSON cannot hold it.
        """
        with contextlib.suppress(UnicodeEncodeError):
            data = msgspec.json.encode(value)
            if self.data(data) is data:
                return value
        return msgspec.convert(self._walk(msgspec.to_builtins(value)), type(value))

    def spans(self, data: bytes) -> list[Span]:
        """Where the secrets are, in order and without overlaps."""
        spans = self._tokens(data)
        if any(value in data for value in self._labels):
            spans += self._known(data)
        for mark, pattern in _MARKED:
            if mark in data:
                spans += [(*match.span(match.lastindex or 0), _MASK) for match in re.finditer(pattern, data)]
        if len(spans) < 2:
            return spans
        merged: list[Span] = []
        for start, end, label in sorted(spans, key=lambda span: span[:2]):
            if merged and start < merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]), merged[-1][2])
            else:
                merged.append((start, end, label))
        return merged

    def _tokens(self, data: bytes) -> list[Span]:
        """Looks only at long runs: where one starts, and before it where the text there allows it."""
        spans: list[Span | None] = []
        classes = _classes(data)
        find, starts, ends = classes.find, _BY_START, _ENDS_BEFORE
        joints, count = b"/+:", 0
        at = find(_A_RUN)
        while at >= 0:
            stop = find(b" ", at + _RUN)
            count += 1
            if count == _MANY and not any(text in data for text in _BEGINNINGS):
                joints = b":"
            before = data[at - 1] if at else 32
            if before == _BACKSLASH:  # the run starts with the letter of an escape
                at += 1
            elif before == _PERCENT:
                at += 2
            elif before == _BRACKET and (colour := _COLOUR.match(data, at)):
                at = colour.end()
            elif data[at - 3 : at] in ends or (before in joints and _is_continued(data, at)):
                spans += [_token(data, start) for start in range(max(at - _REACH, 0), at)]
            if data[at : at + 2] in starts:
                spans.append(_token(data, at))
            if stop < 0:
                break
            at = find(_A_RUN, stop)
        return [span for span in spans if span]

    def _known(self, data: bytes) -> list[Span]:
        matches = self._values.finditer(data) if self._values else ()
        return [(*match.span(), self._labels[match[0]]) for match in matches]

    def _by_patterns(self, data: bytes) -> bytes:
        lines = data.split(b"\n")
        changed = [self._line(line) for line in lines]
        return data if all(new is old for new, old in zip(changed, lines, strict=True)) else b"\n".join(changed)

    def _line(self, line: bytes) -> bytes:
        """JSON is matched string by string: a match across a quote would break it."""
        if line.startswith((b"{", b"[")):
            plain = line.replace(b'\\"', b'"').replace(b"\\n", b"\n")
            if not any(pattern.search(line) or pattern.search(plain) for pattern in self._patterns):
                return line
            try:
                return msgspec.json.encode(self._walk(msgspec.json.decode(line)))
            except (msgspec.MsgspecError, RecursionError):
                pass
        for pattern in self._patterns:
            spans = [(*match.span(match.lastindex or 0), _MASK) for match in pattern.finditer(line) if match[0]]
            line = _replaced(line, spans) if spans else line
        return line

    def _walk(self, value: Any) -> Any:
        if isinstance(value, str):
            if _OBJECT_ID.fullmatch(value):
                return value
            return self.text(value.encode("utf-8", "backslashreplace").decode())
        if isinstance(value, list | tuple):
            return [self._walk(item) for item in value]
        if isinstance(value, dict):
            return {key: self._walk(item) for key, item in value.items()}
        return value


class Stream:
    """Redacts a stream in pieces of any size. Holds back an unfinished line, in which a secret may be half read."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._rest = b""

    def feed(self, data: bytes) -> bytes:
        data = self._rest + data if self._rest else data
        end = data.rfind(b"\n") + 1
        spans = None
        if len(data) - end > self._redactor.held:
            spans = self._redactor.spans(data)
            end = _between(spans, data, len(data) - self._redactor.held)
        end = _before_open_key(data, end)
        self._rest = data[end:]
        return self._redactor.data(data[:end], spans) if end else b""

    def flush(self) -> bytes:
        rest, self._rest = self._rest, b""
        return self._redactor.data(rest) if rest else rest


class Lines:
    """Redacts text that is shown line by line: a private key is hidden from its first line to its last."""

    _BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY")
    _BODY = re.compile(
        r"(?:\x1b\[[\d;]*m|[^\w/])*(?:[A-Za-z0-9+/]{16,}|[A-Za-z0-9+/]+=|[A-Z][\w-]+: .*|)\W*(?:\x1b\[0m)?"
    )

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._is_inside = False

    def text(self, text: str) -> str:
        """The next line, or several."""
        text = self._redactor.text(text)
        if not self._is_inside and _KEY_MARK.decode() not in text:
            return text
        return "\n".join(map(self._line, text.split("\n")))

    def _line(self, line: str) -> str:
        is_end = "-----END " in line
        if self._is_inside and (is_end or self._BODY.fullmatch(line)):
            self._is_inside = not is_end
            return MASK
        begin = self._BEGIN.search(line)
        self._is_inside = bool(begin) and not is_end
        return line[: begin.start()] + MASK if begin and self._is_inside else line


def _between(spans: Iterable[Span], data: bytes, end: int) -> int:
    """Where to cut a line without cutting a secret."""
    end = data.rfind(b" ", max(end - 1024, 0), end) + 1 or end
    for start, stop, _ in spans:
        if start < end < stop:
            return start if stop == len(data) else stop
    return end


def _before_open_key(data: bytes, end: int) -> int:
    """A private key that has begun is kept whole, so that its lines are known to be its."""
    begin = data.rfind(b"-----BEGIN ", max(end - _HELD, 0), end)
    if begin < 0 or _KEY_MARK not in data[begin : begin + 60] or b"-----END " in data[begin:end]:
        return end
    return begin


def _classes(data: bytes) -> bytes:
    """`a` for every byte that can be part of a run, a space for the others and for the inside of large base64."""
    classes = data.translate(_CLASSES)
    is_dense = len(data) > _HELD and classes.count(b" ") * 16 < len(data)
    blobs = list(_blobs(data.translate(_BASE64))) if is_dense else []
    return _replaced(data, blobs).translate(_CLASSES) if blobs else classes


def _blobs(classes: bytes) -> Iterator[Span]:
    at = classes.find(_A_BLOB)
    while at >= 0:
        stop = classes.find(b" ", at + len(_A_BLOB))
        stop = len(classes) if stop < 0 else stop
        yield at + _HEAD, stop, b" " * (stop - at - _HEAD)
        at = classes.find(_A_BLOB, stop)


@cache
def _compiled(prefix: bytes) -> re.Pattern[bytes]:
    return re.compile(_BODIES[prefix])


def _token(data: bytes, at: int) -> Span | None:
    """The token that begins here."""
    for prefix in _BY_START.get(data[at : at + 2], ()):
        if data.startswith(prefix, at) and (match := _compiled(prefix).match(data, at + len(prefix))):
            return (match.start(1) if match.lastindex else at), match.end(), _MASK
    return None


def _is_continued(data: bytes, run: int) -> bool:
    """Whether a run may be a later part of a token that begins shortly before it."""
    if data[run - 1] == _COLON:
        return data[run : run + 2] == b"AA"
    return any(data.rfind(text, max(run - _REACH, 0), run) >= 0 for text in _BEGINNINGS)


def _forms(value: str) -> Iterator[bytes]:
    """How a value is written: as it is, inside JSON, and line by line."""
    forms = {value, *(json.dumps(value, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False))}
    if "\n" in value:
        forms |= {line.strip() for line in value.splitlines() if len(line.strip()) >= _RUN}
    return (form.encode("utf-8", "surrogatepass") for form in forms)


def _replaced(data: bytes, spans: Iterable[Span]) -> bytes:
    parts, at = [], 0
    for start, end, label in spans:
        parts += [data[at:start], label]
        at = end
    if not parts:
        return data
    return b"".join((*parts, data[at:]))
