"""A run on another machine, read through its `ralph serve`.

The bytes of the journal are copied into a temporary file and folded here, so that it shows the same as there. Diffs,
transcripts, outputs and acts are asked for.
"""

from __future__ import annotations

import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ralph.core.errors import RalphError, SetupError, UsageError
from ralph.core.evidence import CheckResult
from ralph.core.review import Entry
from ralph.core.text import one_line
from ralph.state.names import JOURNAL
from ralph.tui.session import SessionText
from ralph.tui.source import Output
from ralph.views.acts import Act, ActVerb
from ralph.views.attempts import AgentSession, Attempt
from ralph.views.diff import Diff
from ralph.views.run_view import RunView
from ralph.views.transcript import Transcript
from ralph.workspace.runs import Standing

_PATIENCE = 10.0
_KEPT = 600
_OFTEN = 0.25
_SELDOM = 1.0
"""Seconds between two looks at the journal, and at everything else that may have changed."""
_MOST = 64 * 1024 * 1024


class Server(Struct, frozen=True):
    """`https://host:port`, and its token."""

    base: str
    token: str

    @classmethod
    def of(cls, url: str, token: str) -> Server:
        """The token may be in the URL, as `ralph serve` prints it."""
        parts = urllib.parse.urlsplit(url if "://" in url else f"http://{url}")
        try:
            is_fine = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_fine = False
        if not is_fine:
            raise UsageError(f"not the URL of a server: {one_line(url, 80)}", hint="give the one `ralph serve` prints")
        own = urllib.parse.parse_qs(parts.query).get("token", [""])[0]
        return cls(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}", own or token)

    @property
    def host(self) -> str:
        return urllib.parse.urlsplit(self.base).netloc

    @property
    def is_loopback(self) -> bool:
        return urllib.parse.urlsplit(self.base).hostname in ("localhost", "127.0.0.1", "::1")

    def get(self, path: str, **query: object) -> bytes:
        asked = urllib.parse.urlencode({name: str(value) for name, value in query.items()})
        return self._send(f"{path}?{asked}" if asked else path, None)

    def post(self, path: str, document: object) -> bytes:
        return self._send(path, msgspec.json.encode(document))

    def _send(self, path: str, body: bytes | None) -> bytes:
        headers = {"Authorization": f"Bearer {self.token}", "Accept": "application/json", "Origin": self.base}
        if body is not None:
            headers["Content-Type"] = "application/json"
        request = urllib.request.Request(self.base + path, body, headers)
        handlers: list[urllib.request.BaseHandler] = [_NoRedirects()]
        if self.is_loopback:
            handlers.append(urllib.request.ProxyHandler({}))
        try:
            with urllib.request.build_opener(*handlers).open(request, timeout=_PATIENCE) as answer:
                data: bytes = answer.read(_MOST)
                return data
        except urllib.error.HTTPError as error:
            with error:
                raise _refusal(error.code, error.read(100_000), self.host) from None
        except (OSError, ValueError) as error:
            why = getattr(error, "reason", error)
            raise Unreachable(f"{self.host} does not answer: {one_line(str(why), 200)}") from None


class Unreachable(SetupError):
    """It may answer later."""

    def __init__(self, message: str) -> None:
        super().__init__(message, hint="is `ralph serve` running there, and the port reachable from here?")


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """The token goes to this server and to no other."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def _refusal(code: int, body: bytes, host: str) -> RalphError:
    try:
        said = msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.DecodeError:
        said = {}
    text, hint = one_line(str(said.get("error", "")), 300), one_line(str(said.get("hint", "")), 300)
    if code in (401, 403) and not text:
        text = f"{host} refuses this token"
    if code == 401:  # its own hint is for browsers
        hint = "pass the URL that `ralph serve` prints, or set RALPH_TOKEN"
    if code >= 500:
        return Unreachable(text or f"{host} answers with status {code}")
    return UsageError(text or f"{host} answers with status {code}", hint=hint or "does `ralph serve` run there?")


def choose_run(server: Server, wanted: str) -> str:
    """The named run, else one that is under way, else the last one that had an iteration, else the last one."""
    home = msgspec.json.decode(server.get("/api/home"), type=dict[str, Any])
    runs = [each for each in home["runs"] if str(each["run"]).startswith(wanted)]
    if wanted and len(runs) != 1:
        known = ", ".join(str(each["run"]) for each in (runs or home["runs"])[:5])
        raise UsageError(f"no single run {one_line(wanted, 40)} on {server.host}", hint=f"runs there: {known}")
    if not runs:
        raise UsageError(f"{server.host} has no runs yet", hint="`ralph run` there starts one")
    chosen = (each for trait in ("is_live", "iterations") for each in runs if each.get(trait))
    return str(next(chosen, runs[0])["run"])


class Remote:
    def __init__(self, server: Server, run: str) -> None:
        self._server, self._run = server, run
        self._folder = tempfile.TemporaryDirectory(prefix="ralph-ui-")
        journal = Path(self._folder.name) / run / JOURNAL
        journal.parent.mkdir(mode=0o700)
        journal.touch(mode=0o600)
        self.view = RunView(journal)
        self.trouble = ""
        self._size = 0
        self._looked = self._asked = 0.0
        self._known: dict[str, Any] = {}
        self._acts: dict[tuple[str, int], frozenset[ActVerb]] = {}
        self._texts: dict[tuple[int, int], tuple[float, SessionText]] = {}
        self._diffs: dict[tuple[object, ...], Diff] = {}

    @property
    def where(self) -> str:
        return self._server.host

    @property
    def _path(self) -> str:
        return f"/api/runs/{self._run}"

    def poll(self) -> bool:
        now = time.monotonic()
        if now - self._looked < _OFTEN:
            return False
        self._looked = now
        try:
            data = self._server.get(f"{self._path}/journal", **{"from": self._size})
            if now - self._asked > _SELDOM:
                self._asked = now
                self._known = msgspec.json.decode(self._server.get(self._path), type=dict[str, Any])
                self._acts.clear()
        except Unreachable as error:
            self.trouble = f"{error.message}; trying again"
            return False
        self.trouble = ""
        if data:
            with self.view.journal.open("ab") as stream:
                stream.write(data)
            self._size += len(data)
            self._looked = 0
        return self.view.poll()

    def standing(self) -> Standing:
        return Standing(self._known["standing"]) if self._known else self.view.standing()

    def session(self, attempt: Attempt, session: AgentSession, *, is_running: bool) -> SessionText:
        of = attempt.iteration, attempt.sessions.index(session)
        asked, known = self._texts.get(of, (0.0, SessionText()))
        if known.entries and not (is_running and time.monotonic() - asked > _SELDOM / 2):
            return known
        path, at = f"{self._path}/attempts/{attempt.iteration}/transcript", of[1]
        total = msgspec.json.decode(self._server.get(path, session=at, count=1), type=Transcript).total
        start = max(total - _KEPT, 0)
        found = msgspec.json.decode(self._server.get(path, session=at, start=start, count=_KEPT), type=Transcript)
        self._texts = {of: (time.monotonic(), SessionText(found.entries, start))}
        return self._texts[of][1]

    def diff(self, attempt: Attempt) -> Diff:
        of = (attempt.iteration, attempt.commit, attempt.rescue_commit, attempt.tree)
        if of not in self._diffs:
            data = self._server.get(f"{self._path}/attempts/{attempt.iteration}/diff")
            self._diffs = {of: msgspec.json.decode(data, type=Diff)}
        return self._diffs[of]

    def output(self, attempt: Attempt | None, index: int, result: CheckResult) -> Output:
        of = f"/attempts/{attempt.iteration}" if attempt else ""
        found = msgspec.json.decode(self._server.get(f"{self._path}{of}/checks/{index}"), type=dict[str, Any])
        return Output(str(found["output"]), bool(found["is_whole"]))

    def possible(self, story: str, finding: Entry | None) -> frozenset[ActVerb]:
        verbs = set(self._known.get("acts", ()))
        if story and verbs:
            if (story, 0) not in self._acts:
                path = f"{self._path}/stories/{urllib.parse.quote(story, safe='')}"
                said = msgspec.json.decode(self._server.get(path), type=dict[str, Any])
                self._acts[story, 0] = frozenset(map(ActVerb, said["acts"]))
            verbs |= self._acts[story, 0]
        if finding is not None and verbs:
            verbs |= {ActVerb.CONFIRM, ActVerb.REJECT}
        return frozenset(map(ActVerb, verbs))

    def act(self, act: Act) -> str:
        said = msgspec.json.decode(self._server.post(f"{self._path}/acts", act), type=dict[str, Any])
        self._asked = 0
        return str(said.get("message", ""))

    def plan(self) -> None:
        return None

    def close(self) -> None:
        self._folder.cleanup()
