"""Notifications through Apprise. It is imported in a separate process: the import takes up to half a second, and a
service that hangs can be killed there.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from ralph.core.environment import child_environment
from ralph.core.errors import SetupError
from ralph.core.secrets import masked
from ralph.host.process.signals import StopSignal
from ralph.host.process.start import run
from ralph.notify.message import Message, NotSent

_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")


class Parcel(Struct, frozen=True):
    """The input of the child process, sent through stdin so that addresses appear in no argument or variable."""

    urls: tuple[str, ...]
    title: str
    text: str
    bad: bool


class Apprise(Struct, frozen=True):
    urls: tuple[str, ...]
    env: Mapping[str, str]

    @property
    def name(self) -> str:
        return f"Apprise ({', '.join(sorted({masked(url).partition(':')[0] for url in self.urls}))})"

    def problem(self) -> str:
        if importlib.util.find_spec("apprise") is None:
            return "Apprise is not installed: pip install 'ralph-loop-engine[notify]'"
        return ""

    def send(self, message: Message, timeout: float, cancel: StopSignal) -> None:
        if problem := self.problem():
            raise NotSent(problem)
        bad = message.event.value in ("failed", "budget")
        parcel = msgspec.json.encode(Parcel(self.urls, message.title, message.text, bad))
        argv = (sys.executable, "-I", "-m", "ralph.notify.apprise_child")
        env = child_environment(self.env, _PROXIES)
        try:
            done = run(argv, cwd=Path("/"), env=env, stdin=parcel, timeout=timeout, limit=64_000, grace=1, stop=cancel)
        except SetupError as error:
            raise NotSent(str(error)) from None
        if done.timed_out or cancel.requested:
            raise NotSent("timed out")
        if done.code:
            raise NotSent(f"not delivered to: {_failed(done.out)}")


def _failed(out: bytes) -> str:
    """The schemes listed in the output, and nothing else it may contain."""
    try:
        return ", ".join(msgspec.json.decode(out, type=list[str])) or "unknown services"
    except msgspec.DecodeError:
        return "all services"
