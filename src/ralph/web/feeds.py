"""The journals that are being looked at: each is read once, for all its viewers, and further as it grows.

Reading happens in threads, one at a time per journal. Journals that nobody looked at for longest are dropped.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from ralph.core.agent import Tokens
from ralph.core.events import AgentStarted
from ralph.host.redaction import redact
from ralph.views.acts import done_since, possible
from ralph.views.catalog import RunCard, cards, find_journal
from ralph.views.documents import LIVE, home_document, plain, run_document, waiting_for_user
from ralph.views.run_view import RunView
from ralph.views.transcript import Entries
from ralph.web.channel import Channel
from ralph.workspace.agent_stream import AgentStream, raw_log

_MOST_FEEDS = 16
_MOST_EVENTS = 500_000
"""Of all journals together."""
_MOST_ENTRIES = 60
"""Of a running session."""
_OFTEN, _SELDOM = 0.1, 1.0
"""Seconds between two looks at a journal: of a run that is alive, and of another one."""
_HOME = 0.5
"""Seconds between two looks at all journals."""
_TAIL = 500
"""The most events that are sent at once. A page fetches the others if it shows them."""


def encoded(value: Any) -> bytes:
    """Everything that is sent goes through here: what is invisible is shown, secrets are redacted."""
    return redact(msgspec.json.encode(plain(value)))


class Session:
    """A running session, as its raw log grows."""

    def __init__(self, started: AgentStarted, stream: AgentStream) -> None:
        self.started = started
        self.version = 0
        self.entries = Entries(_MOST_ENTRIES)
        self._stream = stream

    @property
    def tokens(self) -> Tokens:
        return self._stream.tokens

    @property
    def cost_usd(self) -> float | None:
        return self._stream.cost_usd

    def poll(self) -> bool:
        count = 0

        def tell(event: Any) -> None:
            nonlocal count
            count += 1
            self.entries.add(event)

        self._stream.poll(tell)
        self.version += bool(count)
        return bool(count)

    def close(self) -> None:
        self._stream.close()


class Feed:
    def __init__(self, journal: Path, env: Mapping[str, str], *, read_only: bool) -> None:
        self.view = RunView(journal)
        self.version = 0
        """Grows with everything that is new."""
        self.sessions: dict[int, Session] = {}
        self.channel = Channel(self.poll, self._pause)
        self._env, self._read_only = env, read_only
        self._turn = threading.RLock()
        self._seen = (-1, -1)
        self._made: tuple[int, float, bytes] = (-1, 0, b"")
        self._tails: OrderedDict[tuple[int, int], bytes] = OrderedDict()

    @contextmanager
    def reading(self) -> Iterator[RunView]:
        """The run as it is now. No other thread reads or changes it meanwhile."""
        with self._turn:
            self.poll()
            yield self.view

    @property
    def is_live(self) -> bool:
        return self.view.standing() in LIVE

    def _pause(self) -> float:
        return _OFTEN if self.is_live else _SELDOM

    def poll(self) -> bool:
        """Read what is new. Says whether there was anything."""
        with self._turn:
            version = self.version
            try:
                known = self.view.journal.stat()
            except OSError:
                return False
            if (seen := (known.st_size, known.st_mtime_ns)) != self._seen:
                if known.st_size < self._seen[0]:  # a recovery has cut it
                    self.view = RunView(self.view.journal)
                self._seen = seen
                self.view.catch_up()
                self.version += 1
            self._follow_sessions()
            if self.is_live:  # what is under way lasts until now, not until its last event
                self.view.state.now = max(self.view.state.now, time.time())
            return self.version != version

    def _follow_sessions(self) -> None:
        open_now = self.view.state.parallel.open if self.is_live else {}
        for number in list(self.sessions):
            activity = open_now.get(number)
            if activity is None or activity.agent != self.sessions[number].started:
                self.sessions.pop(number).close()
        started = self.view.first
        for number, activity in open_now.items():
            if activity.agent is None or started is None:
                continue
            if number not in self.sessions:
                worker = activity.started.worker if activity.started else 0
                raw = raw_log(started, activity.agent, self._env, worker)
                if not raw.is_file():  # the agent has printed nothing yet
                    continue
                self.sessions[number] = Session(activity.agent, AgentStream(raw, activity.agent.agent or started.agent))
            self.version += self.sessions[number].poll()

    def document(self) -> tuple[int, bytes]:
        """The run document, and the version it shows. Made once for all viewers."""
        with self._turn:
            version, at, data = self._made
            if version != self.version or time.monotonic() - at > _SELDOM:
                data = encoded(self.describe())
                self._made = self.version, time.monotonic(), data
            return self.version, data

    def describe(self) -> dict[str, Any]:
        with self._turn:
            state = self.view.state
            acts = () if self._read_only else sorted(possible(state, is_live=self.is_live))
            return run_document(self.view, time.time(), sessions=self.sessions, acts=acts, read_only=self._read_only)

    def story_acts(self, story: str) -> list[str]:
        if self._read_only:
            return []
        findings = (None, *self.view.findings(story))
        state, is_live = self.view.state, self.is_live
        first = self.view.first
        is_settled = not is_live and first is not None and done_since(first, story, self._env)
        found = (
            possible(state, is_live=is_live, story=story, finding=each, is_settled=is_settled) for each in findings
        )
        return sorted(set[str]().union(*found))

    def tail(self, since: int) -> tuple[int, bytes]:
        """How many events there are, and those after the first `since`, as far as a viewer can take them."""
        with self._turn:
            count = self.view.count
            if (since, count) not in self._tails:
                start = max(since, count - _TAIL)
                page = {"count": count, "events": self.view.events(start, count - start)}
                self._tails[since, count] = encoded(page)
                while len(self._tails) > 4:
                    self._tails.popitem(last=False)
            return count, self._tails[since, count]

    def live(self, seen: Mapping[int, tuple[AgentStarted, int]]) -> list[tuple[int, tuple[AgentStarted, int], bytes]]:
        """Of each running session that is not as it was seen: the iteration, what it is now, and its last entries."""
        with self._turn:
            return [
                (number, mark, encoded(self._live(number, session)))
                for number, session in self.sessions.items()
                if seen.get(number) != (mark := (session.started, session.version))
            ]

    def _live(self, number: int, session: Session) -> dict[str, Any]:
        started = self.view.state.parallel.started(number)
        return {
            "iteration": number,
            "story": started.story if started else "",
            "entries": list(session.entries.found),
            "tokens": session.tokens.total,
            "cost_usd": session.cost_usd,
        }

    def close(self) -> None:
        with self._turn:
            for session in self.sessions.values():
                session.close()
            self.sessions.clear()


class Feeds:
    """By run; the one that was asked for last is last."""

    def __init__(self, env: Mapping[str, str], *, read_only: bool = False) -> None:
        self._env, self._read_only = env, read_only
        self._known: OrderedDict[str, Feed] = OrderedDict()
        self._turn = threading.Lock()

    def get(self, run: str) -> Feed | None:
        """None: there is no such run on this machine."""
        with self._turn:
            feed = self._known.get(run)
        if feed is None or not feed.view.journal.is_file():
            journal = find_journal(run, self._env)
            if journal is None:
                return None
            feed = Feed(journal, self._env, read_only=self._read_only)
        with self._turn:
            known = self._known.get(run)
            if known is None or known.view.journal != feed.view.journal:
                self._known[run] = feed
            feed = self._known[run]
            self._known.move_to_end(run)
            self._drop(run)
        return feed

    def close(self) -> None:
        for feed in self._known.values():
            feed.close()

    def _drop(self, kept: str) -> None:
        for run, feed in list(self._known.items()):
            count = sum(each.view.count for each in self._known.values())
            if len(self._known) <= _MOST_FEEDS and count <= _MOST_EVENTS:
                return
            if run != kept and not feed.channel.viewers:
                self._known.pop(run)
                feed.close()


class Home:
    """All runs of this machine."""

    def __init__(self, env: Mapping[str, str], *, version: str, host: str, read_only: bool) -> None:
        self._env = env
        self._facts: Any = {"version": version, "host": host, "read_only": read_only}
        self._turn = threading.Lock()
        self._cards: list[RunCard] | None = None
        self.version = 0
        self.channel = Channel(self.poll, lambda: _HOME)

    def poll(self) -> bool:
        with self._turn:
            found = cards(self._env)
            is_new = found != self._cards
            self._cards = found
            self.version += is_new
            return is_new

    def document(self) -> tuple[int, bytes]:
        with self._turn:
            found, version = self._cards or [], self.version
        waiting = list(waiting_for_user(found))
        return version, encoded(home_document(found, waiting, time.time(), **self._facts))
