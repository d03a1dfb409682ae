"""Read many blobs of a repository with one process."""

from __future__ import annotations

from collections.abc import Sequence

from ralph.host.git.command import git, line
from ralph.host.git.repo import Repo


def empty_tree(repo: Repo) -> str:
    return line(git(repo, "hash-object", "-t", "tree", "--stdin"))


def read_blobs(repo: Repo, names: Sequence[str], *, largest: int, most: int) -> dict[str, bytes]:
    """The content of blobs by ID, in the order given, until `most` bytes are read. Larger ones are left out."""
    if not names:
        return {}
    listed = "\n".join(dict.fromkeys(names)).encode() + b"\n"
    wanted: list[str] = []
    total = 0
    for item in git(repo, "cat-file", "--batch-check=%(objectname) %(objectsize)", stdin=listed).decode().splitlines():
        name, _, size = item.partition(" ")
        if size.isdigit() and int(size) <= largest and total + int(size) <= most:
            wanted.append(name)
            total += int(size)
    if not wanted:
        return {}
    data = git(repo, "cat-file", "--batch", stdin="\n".join(wanted).encode() + b"\n")
    found: dict[str, bytes] = {}
    at = 0
    while at < len(data):
        end = data.index(b"\n", at)
        name, _, size = data[at:end].decode().split(" ")
        found[name] = data[end + 1 : end + 1 + int(size)]
        at = end + 2 + int(size)
    return found
