"""The channels of notifications: the desktop, a webhook, a command, and every service that Apprise supports.

The desktop and the webhook work without Apprise: they are what a default install has, and the webhook's JSON is an
interface that receivers rely on; Apprise would send another.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import msgspec
from msgspec import Struct

from ralph.config.schema import Notify
from ralph.core.environment import child_environment
from ralph.core.errors import SetupError
from ralph.core.secrets import masked
from ralph.core.text import one_line
from ralph.host.process.programs import which
from ralph.host.process.signals import StopSignal
from ralph.host.process.start import Finished, run
from ralph.notify.apprise_child import Parcel
from ralph.notify.message import Message, NotSent

_SESSION = ("DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY")
"""Variables a program needs to reach the desktop session it was started from."""
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")
_APPLE = ("on run argv", "display notification (item 2 of argv) with title (item 1 of argv)", "end run")


class Channel(Protocol):
    @property
    def name(self) -> str:
        """Contains no secret."""
        ...

    def problem(self) -> str:
        """Why this channel cannot work at all; empty if it can."""
        ...

    def send(self, message: Message, timeout: float, cancel: StopSignal) -> None:
        """Raises NotSent."""
        ...


def channels(config: Notify, root: Path, env: Mapping[str, str]) -> list[Channel]:
    """The configured channels."""
    configured: list[Channel] = [Desktop(env)] if config.desktop else []
    if config.webhook:
        configured.append(Webhook(config.webhook))
    if config.command:
        configured.append(Command(config.command, root, env, config.env))
    if config.apprise:
        configured.append(Apprise(config.apprise, env))
    return configured


class Command(Struct, frozen=True):
    """A user-defined command that gets the message in environment variables and, as JSON, on stdin."""

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    wanted: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"the command {one_line(Path(self.argv[0]).name, 40)}"

    def problem(self) -> str:
        return ""

    def send(self, message: Message, timeout: float, cancel: StopSignal) -> None:
        told = {
            "RALPH_NOTIFY_EVENT": message.event.value,
            "RALPH_NOTIFY_TITLE": message.title,
            "RALPH_NOTIFY_TEXT": message.text,
        }
        env = child_environment(self.env, (*_SESSION, *self.wanted), told)
        done = _execute(self.argv, self.cwd, env, message.as_json(), timeout, cancel)
        if done.code:
            raise NotSent(f"exited with code {done.code}")


def _execute(
    argv: tuple[str, ...], cwd: Path, env: Mapping[str, str], stdin: bytes, timeout: float, cancel: StopSignal
) -> Finished:
    """Run a program. Its output may hold secrets and is never shown."""
    try:
        done = run(argv, cwd=cwd, env=env, stdin=stdin, timeout=timeout, limit=64_000, grace=1, stop=cancel)
    except SetupError as error:
        raise NotSent(str(error)) from None
    if done.timed_out or cancel.requested:
        raise NotSent("timed out")
    return done


class Desktop(Struct, frozen=True):
    """notify-send where it is installed, osascript on macOS."""

    env: Mapping[str, str]

    @property
    def name(self) -> str:
        return "the desktop"

    def problem(self) -> str:
        return "" if self._argv("", "") else "neither notify-send nor osascript is on PATH"

    def send(self, message: Message, timeout: float, cancel: StopSignal) -> None:
        argv = self._argv(message.title, message.text)
        if not argv:
            raise NotSent(self.problem())
        Command(argv, Path("/"), self.env).send(message, timeout, cancel)

    def _argv(self, title: str, text: str) -> tuple[str, ...]:
        path = self.env.get("PATH", "")
        if program := which("notify-send", path):
            return (program, "--app-name=Ralph", "--", title, text)
        if program := which("osascript", path):
            return (program, *(part for line in _APPLE for part in ("-e", line)), title, text)
        return ()


class Apprise(Struct, frozen=True):
    """Imported in a process of its own: that takes up to half a second, and a service that hangs can be killed."""

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
        done = _execute(argv, Path("/"), child_environment(self.env, _PROXIES), parcel, timeout, cancel)
        if done.code:
            try:  # the schemes listed in the output, and nothing else it may contain
                failed = ", ".join(msgspec.json.decode(done.out, type=list[str])) or "unknown services"
            except msgspec.DecodeError:
                failed = "all services"
            raise NotSent(f"not delivered to: {failed}")


class Webhook(Struct, frozen=True):
    """The message as JSON, sent by HTTP POST. The address is a secret and never appears in a message."""

    url: str

    @property
    def name(self) -> str:
        return "the webhook"

    def problem(self) -> str:
        from urllib.parse import urlsplit

        try:
            parts = urlsplit(self.url)
            fits = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            fits = False
        is_plain = self.url.isprintable() and " " not in self.url
        return "" if fits and is_plain else "its address is not a valid http(s) URL"

    def send(self, message: Message, timeout: float, _cancel: StopSignal) -> None:
        """Send the message. Redirects are not followed: the message is for this address only."""
        if problem := self.problem():
            raise NotSent(problem)
        import http.client
        import urllib.error
        import urllib.request

        class Stay(urllib.request.HTTPRedirectHandler):
            def redirect_request(self, *_args: object, **_kwargs: object) -> None:
                return None

        # Its text is repeated under the names that chat services expect: `text`, `content`.
        body = msgspec.to_builtins(message) | {"content": f"{message.title}: {message.text}"}
        headers = {"Content-Type": "application/json", "User-Agent": "ralph"}
        request = urllib.request.Request(self.url, msgspec.json.encode(body), headers, method="POST")
        try:
            with urllib.request.build_opener(Stay).open(request, timeout=timeout):
                return
        except urllib.error.HTTPError as error:
            error.close()
            why = f"responded with status {error.code}"
            raise NotSent(why, retry_in=_retry_in(error.code, error.headers.get("Retry-After", ""))) from None
        except OSError as error:  # URLError is one, with the cause inside
            raise _unreachable(getattr(error, "reason", error)) from None
        except (http.client.HTTPException, ValueError) as error:
            # What they say may quote the address.
            raise NotSent(f"the request failed ({type(error).__name__})") from None


def _retry_in(status: int, retry_after: str) -> float | None:
    """Seconds before the message should be sent again; None: it would be refused again."""
    if status < 500 and status not in (408, 429):
        return None
    if retry_after.strip().isdigit():
        return float(retry_after)
    from datetime import UTC, datetime
    from email.utils import parsedate_to_datetime

    try:
        return max((parsedate_to_datetime(retry_after) - datetime.now(UTC)).total_seconds(), 0.0)
    except (ValueError, TypeError):
        return 0.0


def _unreachable(reason: object) -> NotSent:
    """A connection that was refused is tried again. After a timeout the message may have arrived."""
    if isinstance(reason, TimeoutError):
        return NotSent("did not respond in time")
    why = f" ({reason.strerror or type(reason).__name__})" if isinstance(reason, OSError) else ""
    return NotSent(f"could not be reached{why}", retry_in=0.0)
