"""A webhook: the message as JSON, by HTTP POST. Its address is a secret, and is in no word said about it."""

from __future__ import annotations

from msgspec import Struct

from ralph.host.signals import StopSignal
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
        return "" if fits and self.url.isprintable() and " " not in self.url else "its address is no http(s) address"

    def send(self, message: Message, timeout: float, _cancel: StopSignal) -> None:
        """Redirections are not followed: the message is for this address and no other."""
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
            raise NotSent(f"it answered with status {error.code}") from None
        except urllib.error.URLError as error:
            reason = error.reason
            raise NotSent(_in_words(reason) if isinstance(reason, OSError) else "it cannot be reached") from None
        except OSError as error:
            raise NotSent(_in_words(error)) from None
        except (http.client.HTTPException, ValueError) as error:
            # What they say may quote the address.
            raise NotSent(f"it cannot be talked to ({type(error).__name__})") from None


def _body(message: Message) -> bytes:
    """With the words once more under the names that chat services look for (`text`, `content`)."""
    import msgspec

    return msgspec.json.encode(msgspec.to_builtins(message) | {"content": f"{message.title}: {message.text}"})


def _in_words(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    return f"it cannot be reached ({error.strerror or type(error).__name__})"
