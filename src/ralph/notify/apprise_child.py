"""The process that calls Apprise. Reads a parcel from stdin; writes the schemes that failed to stdout, as JSON."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable

import msgspec
from msgspec import Struct

from ralph.core.secrets import masked


class Parcel(Struct, frozen=True):
    """The input of this process, sent through stdin so that addresses appear in no argument or variable."""

    urls: tuple[str, ...]
    title: str
    text: str
    bad: bool


def main(data: bytes) -> int:
    logging.disable(logging.CRITICAL)  # it would log addresses
    parcel = msgspec.json.decode(data, type=Parcel)
    failed = [masked(url).partition(":")[0] for url in parcel.urls if not _sent(url, parcel)]
    sys.stdout.write(msgspec.json.encode(failed).decode() + "\n")
    return 1 if failed else 0


def _sent(url: str, parcel: Parcel) -> bool:
    import apprise

    try:
        server = apprise.Apprise()
        notify: Callable[..., object] = server.notify
        kind = apprise.NotifyType.FAILURE if parcel.bad else apprise.NotifyType.INFO
        return bool(server.add(url)) and bool(notify(title=parcel.title, body=parcel.text, notify_type=kind))
    except Exception:  # noqa: BLE001 - whatever a plugin does, the other addresses get their turn
        return False


if __name__ == "__main__":
    sys.exit(main(sys.stdin.buffer.read()))
