"""What an agent did inside submodules. The repository around them records only which commit each of them is at."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from ralph.core.errors import SetupError
from ralph.core.text import one_line
from ralph.host.git.checkpoint import Checkpoint, submodule, submodule_index, undo_tampering
from ralph.host.git.command import ask, printable
from ralph.host.git.repo import Repo
from ralph.host.git.snapshot import snapshot
from ralph.host.git.tree_diff import changes, entries

_FEW = 3


class Inside(Struct, frozen=True):
    objections: tuple[str, ...] = ()
    """Edits that no commit has: a clone would not have them either."""
    notices: tuple[str, ...] = ()


def look_inside(repo: Repo, checkpoint: Checkpoint, index_file: Path) -> Inside:
    objections: list[str] = []
    notices: list[str] = []
    for path, before in checkpoint.submodules:
        name = one_line(printable(path), 100)
        try:
            inner = submodule(repo, path)
            own_index = submodule_index(index_file, path)
            undo_tampering(inner, before, own_index)
            edited = list(_uncommitted(inner, before, own_index))
        except SetupError as error:
            objections.append(f"the submodule {name} is not usable any more: {error}")
            continue
        if edited:
            some = ", ".join(one_line(each, 60) for each in edited[:_FEW])
            objections.append(
                f"changes inside the submodule {name} are not committed, so a clone would not have them: {some};"
                " commit them inside the submodule, or undo them"
            )
        if _is_only_here(inner, before):
            notices.append(f"the submodule {name} is at a new commit that none of its remotes has: push it")
        deeper = look_inside(inner, before, own_index)
        objections += deeper.objections
        notices += deeper.notices
    return Inside(tuple(objections), tuple(notices))


def _uncommitted(repo: Repo, before: Checkpoint, index_file: Path) -> Iterator[str]:
    now = snapshot(repo, index_file, unreadable_before=before.unreadable).tree
    changed = changes(repo, before.tree, now)
    committed = entries(repo, "HEAD") if changed else {}
    for change in changed:
        known = committed.get(change.raw)
        if (known.mode, known.id) != (change.new_mode, change.new_id) if known else change.status != "D":
            yield change.path


def _is_only_here(repo: Repo, before: Checkpoint) -> bool:
    head = ask(repo, "rev-parse", "--verify", "--quiet", "HEAD").out.decode().strip()
    if not head or head == before.head:
        return False
    return ask(repo, "for-each-ref", "--count=1", f"--contains={head}", "refs/remotes").out == b""
