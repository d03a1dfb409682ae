"""What was said so far, kept in the state folder: a call that was stopped goes on where it was."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from ralph.core.errors import BadData
from ralph.core.text import one_line
from ralph.host.files import keep_aside, make_folder, read_bytes, write_bytes
from ralph.host.places import workspace_state
from ralph.prompts.planning import Exchange

_KEPT_CALLS = 20


class Draft(Struct, frozen=True, kw_only=True):
    version: int = 1
    at: float = 0
    layout: str = ""
    name: str = ""
    ralph_dir: str = ""
    plan: str = ""
    """The plan that is added to: what was said about one is not for another."""
    idea: str = ""
    source: str = ""
    """The file that the requirements came from, by the name it was given."""
    requirements: str = ""
    dialogue: tuple[Exchange, ...] = ()
    answer: str = ""
    """The last answer that could be used, when there was one."""
    is_told: bool = False
    """The agent has been told what was found in it: a person who comes back sees it as it was."""

    def about(self) -> str:
        """One line by which a person knows it again."""
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(self.at))
        what = self.source or self.idea
        return f"{one_line(what, 60)!r} from {when}, {len(self.dialogue)} answered"


class Drafts:
    """One draft of each kind in a workspace."""

    def __init__(self, root: Path, kind: str, env: Mapping[str, str]) -> None:
        self.path = planning_folder(root, env) / f"draft-{kind}.json"

    def read(self) -> Draft | None:
        """A damaged one is kept aside, and there is none then."""
        if not self.path.exists():
            return None
        try:
            return msgspec.json.decode(read_bytes(self.path), type=Draft)
        except (msgspec.DecodeError, BadData):
            keep_aside(self.path)
            return None

    def keep(self, draft: Draft) -> None:
        make_folder(self.path.parent, private=True)
        data = msgspec.json.encode(msgspec.structs.replace(draft, at=time.time()))
        write_bytes(self.path, data + b"\n", mode=0o600)

    def drop(self) -> None:
        self.path.unlink(missing_ok=True)


def planning_folder(root: Path, env: Mapping[str, str]) -> Path:
    return workspace_state(root, env) / "planning"


def tidy(shelf: Path) -> None:
    """Of what agents said in planning sessions, the last calls are kept."""
    calls = [path for path in shelf.iterdir() if path.is_dir()] if shelf.is_dir() else []
    for path in sorted(calls, key=lambda path: path.stat().st_mtime)[:-_KEPT_CALLS]:
        shutil.rmtree(path, ignore_errors=True)
