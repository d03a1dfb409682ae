"""The full output of a failing check, as a file in the state folder: journal and prompt hold only its end."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from ralph.config.checks import ChosenCheck
from ralph.host.files import make_folder, write_bytes
from ralph.host.redaction import redact


def keeper(folder: Path, label: str, check: ChosenCheck) -> Callable[[bytes], str]:
    """Write an output under a label, such as the iteration, and return its path. The next one replaces it."""

    def keep(output: bytes) -> str:
        path = make_folder(folder, private=True) / f"{label}-{_as_file_name(check)}.txt"
        write_bytes(path, redact(output), mode=0o600, durable=False)
        return str(path)

    return keep


def _as_file_name(check: ChosenCheck) -> str:
    """Readable, and different for every check."""
    words = "".join(char if char.isascii() and char.isalnum() else "-" for char in check.name[:40]).strip("-")
    return f"{words}-{hashlib.sha256(f'{check.cwd} {check.command}'.encode('utf-8', 'replace')).hexdigest()[:6]}"
