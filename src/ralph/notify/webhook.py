"""A webhook: the message as JSON, sent by HTTP POST. The address is a secret and never appears in a message."""

from __future__ import annotations

from msgspec import Struct

from ralph.host.process.signals import StopSignal
from ralph.notify.message import Message, NotSent


class Webhook(Struct, frozen=True):
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
        return (
            "" if fits and self.url.isprintable() and " " not in self.url else "its address is not a valid http(s) URL"
        )

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

        headers = {"Content-Type": "application/json", "User-Agent": "ralph"}
        request = urllib.request.Request(self.url, _body(message), headers, method="POST")
        try:
            with urllib.request.build_opener(Stay).open(request, timeout=timeout):
                return
        except urllib.error.HTTPError as error:
            error.close()
            why = f"responded with status {error.code}"
            raise NotSent(why, retry_in=_retry_in(error.code, error.headers.get("Retry-After", ""))) from None
        except urllib.error.URLError as error:
            raise _unreachable(error.reason) from None
        except OSError as error:
            raise _unreachable(error) from None
        except (http.client.HTTPException, ValueError) as error:
            # What they say may quote the address.
            raise NotSent(f"the request failed ({type(error).__name__})") from None


def _body(message: Message) -> bytes:
    """The message as JSON, with its text repeated under the names that chat services expect (`text`, `content`)."""
    import msgspec

    return msgspec.json.encode(msgspec.to_builtins(message) | {"content": f"{message.title}: {message.text}"})


def _retry_in(status: int, retry_after: str) -> float | None:
    """Seconds before the message should be sent again; None: it would be refused again."""
    if status < 500 and status not in (408, 429):
        return None
    if retry_after.strip().isdigit():
        return float(retry_after)
    if retry_after:
        from datetime import UTC, datetime
        from email.utils import parsedate_to_datetime

        try:
            return max((parsedate_to_datetime(retry_after) - datetime.now(UTC)).total_seconds(), 0.0)
        except (ValueError, TypeError):
            return 0.0
    return 0.0


def _unreachable(reason: object) -> NotSent:
    """A connection that was refused is tried again. After a timeout the message may have arrived."""
    if not isinstance(reason, OSError):
        return NotSent("could not be reached", retry_in=0.0)
    return NotSent(_in_words(reason), retry_in=None if isinstance(reason, TimeoutError) else 0.0)


def _in_words(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "did not respond in time"
    return f"could not be reached ({error.strerror or type(error).__name__})"
