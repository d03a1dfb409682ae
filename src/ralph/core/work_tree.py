"""What the engine needs of the repository it works in. `host.git.work_tree` provides it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from ralph.core.authorship import Author
from ralph.core.authorship import Session as SessionRecord
from ralph.core.evidence import CheckResult


class Inspection(Struct, frozen=True):
    """The working tree after an agent session."""

    tree: str
    changed: tuple[str, ...] = ()
    """Every path that differs from the checkpoint."""
    commits: tuple[str, ...] = ()
    """Commits the agent made itself."""
    sound: bool = True
    """False: the agent rewrote history or left its branch, so none of its work can be kept."""
    notices: tuple[str, ...] = ()
    """What the agent did to the repository itself."""


class Commit(Struct, frozen=True):
    """A commit, or the hook that refused it, or what changed after it was judged."""

    commit: str = ""
    files: tuple[str, ...] = ()
    refused: CheckResult | None = None
    changed: tuple[str, ...] = ()
    """Files that differ from the judged tree. Nothing was committed."""
    changed_by: str = ""
    """The hook that changed them; empty: they changed while the checks ran."""
    notices: tuple[str, ...] = ()


class RolledBack(Struct, frozen=True):
    ref: str = ""
    """Where the work is; empty when there was nothing to save."""
    commit: str = ""
    removed: int = 0
    rewritten: int = 0
    ask: str = ""
    """What the user has to look at."""
    notices: tuple[str, ...] = ()


class Shared(Struct, frozen=True):
    """A checkpoint that includes what somebody else changed in the working tree since."""

    checkpoint: dict[str, Any]
    notices: tuple[str, ...] = ()
    ask: str = ""
    """What the user has to look at if the work is not accepted."""
    can_undo: bool = True
    """Whether the agent's work can be undone without somebody else's."""
    committed: tuple[str, ...] = ()
    """Files that somebody else is known to have committed, and that are still so."""


class PutBack(Struct, frozen=True):
    """Protected files restored from the checkpoint."""

    paths: tuple[str, ...] = ()
    ref: str = ""
    """The rescue ref with the agent's version of them."""
    left: tuple[str, ...] = ()
    """Those that could not be restored."""


class WorkTree(Protocol):
    """The git repository, as the loop uses it. Checkpoints travel as plain data, so that they fit in the journal."""

    def checkpoint(self) -> dict[str, Any]: ...

    def is_in_place(self) -> bool:
        """Whether its folder is still the same one, whatever happened to the repository in it."""
        ...

    def knows(self, checkpoint: dict[str, Any]) -> bool:
        """Whether it can return to this checkpoint. Another repository cannot."""
        ...

    def note_session(self, session: SessionRecord) -> None:
        """Record when an agent, or what ran after it, could write to the working tree."""
        ...

    def share(self, checkpoint: dict[str, Any], is_ours: Callable[[str], bool], *, files: bool = True) -> Shared:
        """Take what somebody else changed into the checkpoint, by the sessions noted. `is_ours`: the loop's files."""
        ...

    def save(self, checkpoint: dict[str, Any], name: str, message: str) -> RolledBack:
        """Save everything under a rescue ref and change nothing."""
        ...

    def inspect(self, checkpoint: dict[str, Any], *, as_shared: bool = False) -> Inspection:
        """`as_shared`: the loop has written no file since `share`, whose look at the files is used again."""
        ...

    def put_back(
        self, checkpoint: dict[str, Any], is_protected: Callable[[str], bool], name: str, *, also_new: bool = True
    ) -> PutBack:
        """Restore protected files from the checkpoint, after saving everything under a rescue ref."""
        ...

    def dirty(self) -> frozenset[str]:
        """Paths that differ from HEAD."""
        ...

    def tree(self) -> str:
        """The identity of the working tree as it is now."""
        ...

    def author_of(self, path: Path) -> Author:
        """Who wrote a file last, by the sessions noted."""
        ...

    def merged(self, base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
        """Both changes of one text; None if they are in each other's way."""
        ...

    def keep_uncommitted(
        self, checkpoint: dict[str, Any], tree: str, is_ours: Callable[[str], bool]
    ) -> tuple[str, ...]:
        """Notices about files without a commit that the work changed or deleted. A ref keeps them.

        `is_ours`: files that the loop writes itself.
        """
        ...

    def roll_back(self, checkpoint: dict[str, Any], name: str, message: str, leave: Sequence[Path] = ()) -> RolledBack:
        """Save everything under a rescue ref, then return to the checkpoint, except for the files in `leave`.

        Safe to repeat after a crash.
        """
        ...

    def commit(
        self,
        checkpoint: dict[str, Any],
        tree: str,
        extra: Sequence[Path],
        message: str,
        trailers: Mapping[str, str | Sequence[str]],
        parents: Sequence[str] = (),
    ) -> Commit | None:
        """Commit what changed between the checkpoint and `tree`, and the files in `extra`. None: nothing changed.

        `parents`: further ones, which make it a merge commit.
        """
        ...

    def find_commit(self, trailers: dict[str, str]) -> str:
        """The recent commit that carries these trailers, or an empty string."""
        ...
