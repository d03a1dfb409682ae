"""The acceptance tests of each story, in the state folder: no agent sees the hidden ones before their story is done."""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

import msgspec

from ralph.config.checks import choose
from ralph.config.schema import Config
from ralph.core.plan import Plan, Story
from ralph.core.proof import Acceptance
from ralph.core.run_ports import MOST_ACCEPTANCE_SESSIONS
from ralph.host.files import make_folder, read_state, write_bytes

FOLDER = "acceptance"
"""In the plan's own folder of the state."""


class AcceptanceStore:
    """One record per story. Read once: what changes on disk during a run has no effect on it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._records: dict[str, Acceptance] | None = None

    def of(self, story: str) -> Acceptance | None:
        return self.all().get(story)

    def all(self) -> dict[str, Acceptance]:
        if self._records is None:
            self._records = {}
            for path in sorted(self._folder.glob("*.json")):
                with contextlib.suppress(OSError, msgspec.MsgspecError):
                    record = msgspec.json.decode(read_state(path), type=Acceptance)
                    self._records[record.story] = record
        return self._records

    def pending(self, plan: Plan) -> tuple[str, ...]:
        """The files in the repository that fail because their story is still to be implemented."""
        return tuple(
            path
            for record in self.all().values()
            if record.is_visible and not record.has_joined
            if (story := plan.story(record.story)) is not None and not story.is_done
            for path in record.files
        )

    def write(self, record: Acceptance) -> None:
        self.all()[record.story] = record
        self._write(record, ".json")

    def draft(self, record: Acceptance) -> None:
        """Tests that are not accepted yet."""
        self._write(record, ".draft")

    def accept_draft(self, story: str) -> None:
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            self.write(msgspec.json.decode(read_state(self._path(story, ".draft")), type=Acceptance))
        self.drop_draft(story)

    def settle_exam(self, *, is_accepted: bool) -> int:
        """Accept or drop the drafts of an exam, one per story. Returns how many were accepted."""
        accepted = 0
        for path in sorted(self._folder.glob("*.draft")):
            with contextlib.suppress(OSError, msgspec.MsgspecError):
                record = msgspec.json.decode(read_state(path), type=Acceptance)
                if record.is_exam and is_accepted:
                    self.write(record)
                    accepted += 1
                if record.is_exam:
                    path.unlink(missing_ok=True)
        return accepted

    def drop_draft(self, story: str) -> None:
        self._path(story, ".draft").unlink(missing_ok=True)

    def _write(self, record: Acceptance, ending: str) -> None:
        make_folder(self._folder, private=True)
        write_bytes(self._path(record.story, ending), msgspec.json.encode(record), mode=0o600)

    def _path(self, story: str, ending: str) -> Path:
        name = hashlib.sha256(story.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        return self._folder / f"{name}{ending}"


def is_needed(config: Config, record: Acceptance | None, story: Story) -> bool:
    if config.acceptance == "off" or story.is_review_step:
        return False
    if record is not None and record.is_exam:
        return False
    if record is None or record.key != story.content_key:
        return True
    return not record.files and record.sessions < MOST_ACCEPTANCE_SESSIONS


def has_check(config: Config, plan: Plan) -> bool:
    """Whether a check could run acceptance tests: one that is about the whole project."""
    return any(check.required and not check.story for check in choose(config, plan, None, "story"))
