"""The planning dialogue so far, kept in the state folder: an interrupted call can be resumed."""

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
from ralph.prompts.planning import Exchange
from ralph.state.places import planning_folder

_KEPT_CALLS = 20


class Draft(Struct, frozen=True, kw_only=True):
    version: int = 1
    at: float = 0
    layout: str = ""
    name: str = ""
    ralph_dir: str = ""
    plan: str = ""
    """The plan that is added to: a draft for one plan is not used for another."""
    idea: str = ""
    source: str = ""
    """The file the requirements came from, as it was named."""
    requirements: str = ""
    dialogue: tuple[Exchange, ...] = ()
    answer: str = ""
    """The last usable answer, if there was one."""
    is_told: bool = False
    """The agent already got the problems found in the answer: on resume the user sees it as it was."""

    def about(self) -> str:
        """One line by which the user recognizes it."""
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(self.at))
        what = self.source or self.idea
        return f"{one_line(what, 60)!r} from {when}, {len(self.dialogue)} answered"


class Drafts:
    """One draft of each kind per workspace."""

    def __init__(self, root: Path, kind: str, env: Mapping[str, str]) -> None:
        self.path = planning_folder(root, env) / f"draft-{kind}.json"

    def read(self) -> Draft | None:
        """A damaged draft is kept aside and treated as missing."""
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


def tidy(shelf: Path) -> None:
    """Keep the agents' output of the last planning calls only."""
    calls = [path for path in shelf.iterdir() if path.is_dir()] if shelf.is_dir() else []
    for path in sorted(calls, key=lambda path: path.stat().st_mtime)[:-_KEPT_CALLS]:
        shutil.rmtree(path, ignore_errors=True)
