"""Whether git would add files to a repository as they are: it converts nothing, and takes their names.

The commit then has the same blobs as the snapshot that was judged, and no process is needed to make its tree.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from ralph.core.lazy_pattern import lazy_pattern
from ralph.host.git.loose import TREE, NotLoose, Objects, read_tree
from ralph.host.git.objects import Changed, folders
from ralph.host.git.repo import Repo

_ATTRIBUTES = b".gitattributes"
_SYSTEM = ("/etc/gitattributes", "/usr/local/etc/gitattributes", "/opt/homebrew/etc/gitattributes")
_KINDS = ("100644", "100755", "120000", "000000")
_ORDINARY = lazy_pattern(
    rb"(?:(?!\.git[. ]*(?:/|\Z)|\.gitmodules|\.{1,2}(?:/|\Z))[A-Za-z0-9_+=@%,()\[\]{}!#$&^'. -]+(?:/(?=.)|\Z))+",
    re.IGNORECASE,
)
"""Names that git takes on every system. It has rules of its own for others, such as `git~1`."""


def has_plain_modes(settings: Mapping[str, str]) -> bool:
    """Whether the mode of a file is the one on disk, and its name the one in the folder."""
    is_usual = all(settings.get(f"core.{name}", "true") == "true" for name in ("filemode", "symlinks"))
    return is_usual and all(settings.get(f"core.{n}", "false") == "false" for n in ("ignorecase", "precomposeunicode"))


def require_plain(
    repo: Repo, settings: Mapping[str, str], todo: Sequence[Changed], objects: Objects, tree: str
) -> None:
    """Raises NotLoose if git has to add one of these. `tree` is what they are added to."""
    is_plain = (
        has_plain_modes(settings)
        and settings.get("core.autocrlf", "false") == "false"
        and "core.attributesfile" not in settings
        and all({change.old_mode, change.new_mode} <= {*_KINDS} for change in todo)
        and all(_ORDINARY.fullmatch(change.raw) for change in todo)
        and not any(map(os.path.lexists, _of_all_repositories(repo)))
    )
    if not is_plain:
        raise NotLoose
    around = {b"", *folders(change.raw for change in todo)}
    root = os.fsencode(repo.root) + b"/"
    if any(os.path.lexists(root + (folder + b"/" if folder else b"") + _ATTRIBUTES) for folder in around):
        raise NotLoose
    _require_none_in(objects, tree, around)


def _require_none_in(objects: Objects, tree: str, around: set[bytes]) -> None:
    """A file of attributes that was deleted still counts while it is in the index."""
    node = read_tree(objects, tree)
    if _ATTRIBUTES in node:
        raise NotLoose
    for name in {folder.partition(b"/")[0] for folder in around if folder}:
        mode, inner = node.get(name, ("", ""))
        if mode == TREE:
            below = {folder.partition(b"/")[2] for folder in around if folder.partition(b"/")[0] == name}
            _require_none_in(objects, inner, below)


def _of_all_repositories(repo: Repo) -> list[str]:
    import shutil  # not before the first session

    base = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")  # noqa: PTH111 - never fails
    beside = Path(os.path.realpath(shutil.which("git") or "/usr/bin/git")).parent.parent / "etc" / "gitattributes"
    return [*_SYSTEM, str(beside), f"{base}/git/attributes", str(repo.common_dir / "info" / "attributes")]
