"""Errors of an iteration that say something about the agent's work, and are judged like a failed check.

Git refuses to commit a file, a check's folder has become a link, refs are in each other's way: without a verdict no
attempt would be counted, and every later run would fail in the same way. A full disk, a lock held by another program,
a replaced repository and a lost state folder say nothing about the work; those errors end the run. An error nobody
foresaw is a bug of ours that this work brought out: it costs the iteration, not the night, and its traceback is kept.
"""

from __future__ import annotations

import traceback
from pathlib import Path

import msgspec

from ralph.core.errors import LockHeld, RalphError, StoppedNow
from ralph.core.evidence import Evidence
from ralph.core.text import one_line
from ralph.host.file_copies import CopyLost
from ralph.host.files import write_text
from ralph.host.git.locks import GitBusy
from ralph.host.git.repo import RepositoryReplaced
from ralph.host.plain_file import is_disk_trouble
from ralph.host.redaction import redact

_LONGEST = 400
BUG = "internal-error.log"


def is_about_the_work(error: Exception) -> bool:
    if not isinstance(error, RalphError | OSError):
        return not isinstance(error, MemoryError)
    of_others = RepositoryReplaced | CopyLost | GitBusy | LockHeld | StoppedNow
    return not isinstance(error, of_others) and not is_disk_trouble(error)


def with_error(evidence: Evidence, error: Exception, folder: Path) -> Evidence:
    """The same evidence with the error as the reason against keeping the work. `folder`: for the traceback of a bug."""
    said = str(error)
    if not isinstance(error, RalphError | OSError):
        file = folder / BUG
        write_text(file, redact("".join(traceback.format_exception(error))))
        said = f"an error inside Ralph ({type(error).__name__}: {said}); please report it with {file}"
    return msgspec.structs.replace(evidence, error=one_line(said, _LONGEST))
