"""Merge a candidate onto the tip of a branch as git objects: no working tree, index or ref of the user is touched.

Git runs in a private folder without the user's configuration, so no merge driver, filter or hook can start a program.
The built-in drivers (`merge=union`, `-merge`) apply, as named in the `.gitattributes` at the root of the tip.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from ralph.host.files import disk_trouble
from ralph.host.git.command import (
    Answer,
    GitFailed,
    ask,
    git,
    line,
    names,
    printable,
    without_settings,
)
from ralph.host.git.commits import commit_tree
from ralph.host.git.objects import (
    SUBMODULE,
    TreeEntry,
    blobs,
    changes,
    empty_tree,
    entries,
    no_entry,
    read_blobs,
    set_entries,
)
from ralph.host.git.refs import MovedMeanwhile
from ralph.host.git.repo import Repo
from ralph.host.git.rescue import AUTHOR
from ralph.host.removal import is_reached_directly

PREFIX = "refs/ralph/"
_TIP, _STORY = "tip", "story"
"""The names of the two sides in conflict markers."""
_BEGIN, _END = b"<<<<<<< ", b">>>>>>> "
_UNKNOWN_OPTION = 129
"""The exit code of git before 2.38, whose merge-tree has no --write-tree."""
_NOBODY = "Ralph <ralph@localhost> 0 +0000"
_LARGEST = 4 * 1024 * 1024
_MOST_READ = 32 * 1024 * 1024
_MOST_PATHS = 20
_MOST_LINES = 60
"""Of the conflicts of one file that are shown."""
_REGULAR = ("100644", "100755")


class Merged(Struct, frozen=True):
    tree: str
    """The result; with conflict markers in the files where the sides conflict."""
    conflicts: tuple[str, ...] = ()
    text: str = ""
    """The conflicts for a reader: what git says of each file, and both sides."""


class _Private(Struct, frozen=True):
    """An empty working tree and a git folder that shares nothing with the repository but its objects."""

    root: Path
    git_dir: Path
    objects: Path

    @property
    def surroundings(self) -> Mapping[str, str]:
        own = {
            "GIT_OBJECT_DIRECTORY": str(self.objects),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": _quoted(self.git_dir / "objects"),
            "GIT_INDEX_FILE": str(self.git_dir / "index"),
        }
        return own | without_settings(self.git_dir)


@disk_trouble()
def merge_onto(repo: Repo, onto: str, candidate: str, base: str) -> Merged:
    """The change from `base` to `candidate`, made to `onto`, as a cherry-pick does. All are commits or trees."""
    base = base or empty_tree(repo)
    with _private(repo) as private:
        trees = _trees(repo, private, (onto, candidate, base))
        merged = _merge_trees(repo, private, *trees)
        return merged if merged is not None else merge_by_index(repo, private, onto, candidate, base)


@contextmanager
def _private(repo: Repo) -> Iterator[_Private]:
    from tempfile import TemporaryDirectory  # 5 ms that no run has to wait for at its start

    with TemporaryDirectory(prefix="ralph-merge-") as folder:
        root, git_dir = Path(folder) / "tree", Path(folder) / "git"
        root.mkdir()
        (git_dir / "refs" / "heads").mkdir(parents=True)
        (git_dir / "objects" / "info").mkdir(parents=True)
        objects = repo.common_dir / "objects"
        (git_dir / "objects" / "info" / "alternates").write_bytes(os.fsencode(_quoted(objects)) + b"\n")
        is_default = repo.object_format == "sha1"
        lines = ["[core]", "bare = false", f"repositoryformatversion = {0 if is_default else 1}"]
        lines += [] if is_default else ["[extensions]", f"objectFormat = {repo.object_format}"]
        (git_dir / "config").write_text("\n".join([*lines, ""]))
        (git_dir / "HEAD").write_text("ref: refs/heads/none\n")
        yield _Private(root, git_dir, objects)


def _quoted(path: Path) -> str:
    """As git reads a path in a list of object folders."""
    text = str(path)
    if not any(sign in text for sign in ':"\\\n') and not text.startswith("#"):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _trees(repo: Repo, private: _Private, commits: Sequence[str]) -> list[str]:
    """Their trees. The attributes of the first apply to the merge."""
    listed = [*(f"{name}^{{tree}}" for name in commits), f"{commits[0]}:.gitattributes"]
    asked = "".join(f"{name}\n" for name in listed).encode()
    answers = git(repo, "cat-file", "--batch-check=%(objectname) %(objecttype)", stdin=asked).decode().splitlines()
    *trees, attributes = (answer.partition(" ") for answer in answers)
    if any(kind != "tree" for _, _, kind in trees):
        raise GitFailed(("cat-file",), Answer(128, b"", b"fatal: missing object " + " ".join(commits).encode()))
    if attributes[2] == "blob":
        (private.root / ".gitattributes").write_bytes(blobs(repo, [attributes[0]])[attributes[0]])
    return [name for name, _, _ in trees]


def _merge_trees(repo: Repo, private: _Private, onto: str, candidate: str, base: str) -> Merged | None:
    """With git's own merge, which follows renames. None: this git is too old for it.

    `merge-tree --merge-base` needs git 2.40, so the three trees become commits of which the first is the merge base.
    """
    start = _scratch_commit(repo, private, base)
    for name, tree in ((_TIP, onto), (_STORY, candidate)):
        made = _scratch_commit(repo, private, tree, start)
        (private.git_dir / "refs" / "heads" / name).write_text(f"{made}\n")
    answer = ask(private, "merge-tree", "--write-tree", "-z", "--messages", _TIP, _STORY)
    if answer.code == _UNKNOWN_OPTION:
        return None
    if answer.code not in (0, 1):
        raise GitFailed(("merge-tree",), answer)
    fields = names(answer.out)
    tree = fields[0].decode()
    if answer.code == 0:
        return Merged(tree)
    end = fields.index(b"", 1) if b"" in fields[1:] else len(fields)
    messages = list(_messages(fields[end + 1 :]))
    unmerged = [item.partition(b"\t")[2] for item in fields[1:end]]
    paths = list(dict.fromkeys(unmerged or [path for listed, _ in messages for path in listed]))
    about: dict[bytes, list[str]] = {}
    for listed, message in messages:
        if message.startswith("CONFLICT") and listed:
            about.setdefault(listed[0], []).append(message)
    return _explained(repo, tree, paths, about)


def _scratch_commit(repo: Repo, private: _Private, tree: str, parent: str = "") -> str:
    """A commit that vanishes with the folder. Written as a file, which is faster than a process for each."""
    lines = [f"tree {tree}", *([f"parent {parent}"] if parent else []), f"author {_NOBODY}", f"committer {_NOBODY}"]
    body = "\n".join([*lines, "", "merge", ""]).encode()
    data = b"commit %d\0" % len(body) + body
    name = hashlib.new(repo.object_format, data, usedforsecurity=False).hexdigest()
    path = private.git_dir / "objects" / name[:2] / name[2:]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(zlib.compress(data, 1))
    return name


def _messages(fields: Sequence[bytes]) -> Iterator[tuple[list[bytes], str]]:
    """The paths and the text of each: their number, the paths, the kind of message, the message."""
    at = 0
    while at < len(fields) and fields[at].isdigit():
        count = int(fields[at])
        paths = list(fields[at + 1 : at + 1 + count])
        yield paths, fields[at + 2 + count].decode("utf-8", "replace").strip()
        at += 3 + count


def merge_by_index(repo: Repo, private: _Private, onto: str, candidate: str, base: str) -> Merged:
    """With the commands of any git: file by file, without renames."""
    trees = [f"{name}^{{tree}}" for name in (base, onto, candidate)]
    git(private, "read-tree", "-m", "-i", "--aggressive", *trees)
    stages: dict[bytes, dict[str, TreeEntry]] = {}
    for item in names(git(private, "ls-files", "-z", "--unmerged")):
        head, _, path = item.partition(b"\t")
        mode, name, stage = head.decode().split(" ")
        stages.setdefault(path, {})[stage] = TreeEntry(mode, name)
    settled: dict[bytes, TreeEntry] = {}
    about: dict[bytes, list[str]] = {}
    for path, sides in stages.items():
        settled[path], why = _settle(repo, private, sides)
        if why:
            about[path] = [f"CONFLICT ({why}): {printable(path)}"]
    set_entries(private, dict.fromkeys(stages, no_entry(repo)))
    kept = {path: entry for path, entry in settled.items() if entry != no_entry(repo)}
    for path in [path for path in kept if any(other.startswith(path + b"/") for other in kept)]:
        del kept[path]  # a file on one side and a folder on the other: both are named, the folder is kept
    set_entries(private, kept)
    return _explained(repo, line(git(private, "write-tree")), list(about), about)


def _settle(repo: Repo, private: _Private, sides: Mapping[str, TreeEntry]) -> tuple[TreeEntry, str]:
    """The entry for one path, and the kind of conflict, if there is one."""
    base, ours, theirs = sides.get("1"), sides.get("2"), sides.get("3")
    if ours is None or theirs is None:
        left = ours or theirs
        if base is None or left is None:
            return left or no_entry(repo), "file/directory"
        return left, "modify/delete"
    kinds = {entry.mode for entry in (ours, theirs)}
    if SUBMODULE in kinds:
        return ours, "submodule"
    if not kinds.issubset(_REGULAR):
        return ours, "add/add" if base is None else "distinct types"
    old_mode = base.mode if base and base.mode in _REGULAR else ""
    mode = theirs.mode if ours.mode == old_mode else ours.mode
    is_mode_clash = ours.mode != theirs.mode and old_mode not in (ours.mode, theirs.mode)
    if ours.id == theirs.id or (base and theirs.id == base.id):
        return TreeEntry(mode, ours.id), "mode" if is_mode_clash else ""
    if base and ours.id == base.id:
        return TreeEntry(mode, theirs.id), "mode" if is_mode_clash else ""
    start = base.id if base and base.mode in _REGULAR else ""
    merged = _merge_files(private, ours.id, start, theirs.id)
    if merged is None:
        return TreeEntry(mode, ours.id), "binary"
    name = line(git(private, "hash-object", "-w", "-t", "blob", "--stdin", stdin=merged[0]))
    return TreeEntry(mode, name), ("content" if base else "add/add") if merged[1] else ""


def _merge_files(private: _Private, ours: str, base: str, theirs: str) -> tuple[bytes, bool] | None:
    """The text with both changes, and whether they conflict. None: not text."""
    content = blobs(private, [name for name in (ours, base, theirs) if name])
    places = []
    for label, name in ((_TIP, ours), ("base", base), (_STORY, theirs)):
        place = private.git_dir / f"merge-{label}"
        place.write_bytes(content.get(name, b""))
        places.append(str(place))
    labels = [part for label in (_TIP, "base", _STORY) for part in ("-L", label)]
    answer = ask(private, "merge-file", "--stdout", "--quiet", *labels, *places)
    return (answer.out, answer.code > 0) if answer.code < 128 else None


def _explained(repo: Repo, tree: str, paths: Sequence[bytes], about: Mapping[bytes, Sequence[str]]) -> Merged:
    shown = dict.fromkeys([*paths[:_MOST_PATHS], *list(about)[:_MOST_PATHS]])
    texts = _contents(repo, tree, list(shown))
    parts = []
    for path in shown:
        hunks = _hunks(texts.get(path, b""))
        said = list(about.get(path, ())) or ([f"CONFLICT: {printable(path)}"] if hunks else [])
        if said:
            parts.append("\n".join([*said, *hunks]))
    if more := len(paths) - _MOST_PATHS:
        parts += [f"… and {more} more"] if more > 0 else []
    return Merged(tree, tuple(printable(path) for path in paths), "\n\n".join(parts))


def _contents(repo: Repo, tree: str, paths: Sequence[bytes]) -> dict[bytes, bytes]:
    """The text of these files in a tree, without symlinks and very large files."""
    if not paths:
        return {}
    every = entries(repo, tree)
    ids = {path: entry.id for path in paths if (entry := every.get(path)) and entry.mode in _REGULAR}
    found = read_blobs(repo, list(ids.values()), largest=_LARGEST, most=_MOST_READ)
    return {path: found[name] for path, name in ids.items() if name in found}


def _hunks(text: bytes) -> list[str]:
    """The parts between conflict markers, with them."""
    found: list[str] = []
    is_inside = False
    for item in text.split(b"\n"):
        is_inside = is_inside or item.startswith(_BEGIN)
        if is_inside:
            found.append(item.decode("utf-8", "backslashreplace"))
        is_inside = is_inside and not item.startswith(_END)
    more = len(found) - _MOST_LINES
    return [*found[:_MOST_LINES], f"… {more} more lines"] if more > 0 else found


def left_markers(repo: Repo, tree: str, paths: Sequence[str]) -> tuple[str, ...]:
    """Those of these files that still have a conflict marker at the start of a line."""
    if not paths:
        return ()
    wanted = set(paths)
    texts = _contents(repo, tree, [path for path in entries(repo, tree) if printable(path) in wanted])
    marked = {printable(path) for path, text in texts.items() if _is_marked(text)}
    return tuple(path for path in paths if path in marked)


def _is_marked(text: bytes) -> bool:
    return any(item.startswith((_BEGIN, _END)) for item in text.split(b"\n"))


def commit_object(repo: Repo, tree: str, parents: Sequence[str], message: str) -> str:
    """A commit that no ref points to yet. By the user, or by Ralph if git has no user; never signed: nobody sees it."""
    flags = [part for parent in dict.fromkeys(parents) for part in ("-p", parent)]
    unsigned = replace(repo, settings={**repo.settings, "commit.gpgsign": "false"})
    text = message.encode("utf-8", "replace")
    return commit_tree(unsigned, (f"{tree}^{{tree}}", *flags, "-F", "-"), text, AUTHOR)[0]


@disk_trouble()
def without(repo: Repo, tree: str, base_tree: str, is_own: Callable[[str], bool]) -> str:
    """The tree with Ralph's own files as they are in `base_tree`."""
    base_tree = base_tree or empty_tree(repo)
    own = {change.raw: change.old for change in changes(repo, base_tree, tree) if is_own(change.path)}
    if not own:
        return line(git(repo, "rev-parse", "--verify", f"{tree}^{{tree}}"))
    with _private(repo) as private:
        git(private, "read-tree", f"{tree}^{{tree}}")
        gone = {path: entry for path, entry in own.items() if entry == no_entry(repo)}
        set_entries(private, gone | own)  # a file that gives way to a folder goes first
        return line(git(private, "write-tree"))


def same_but_own(repo: Repo, tree_a: str, tree_b: str, is_own: Callable[[str], bool]) -> bool:
    """Whether two trees or commits differ in nothing but Ralph's own files."""
    return all(is_own(change.path) for change in changes(repo, tree_a, tree_b))


def keep_ref(repo: Repo, name: str, commit: str, old: str = "") -> None:
    """Point `refs/ralph/<name>` at a commit, if it still is at `old`; empty: if it does not exist. Safe to repeat.

    An empty `commit` deletes the ref. Raises MovedMeanwhile if it is somewhere else.
    """
    ref = name if name.startswith(PREFIX) else f"{PREFIX}{name}"
    wanted, expected = commit or repo.no_object, old or repo.no_object
    moved = ask(repo, "update-ref", ref, wanted, expected) if commit else ask(repo, "update-ref", "-d", ref, expected)
    if moved.code == 0:
        return
    now = ask(repo, "rev-parse", "--verify", "--quiet", ref)
    if (line(now.out) if now.code == 0 else "") != commit:
        raise MovedMeanwhile(f"{ref} was moved by another process: {moved.complaint}", hint="run again")


def put_tree(repo: Repo, tree: str, base: str = "HEAD") -> None:
    """Bring the files of a tree into the working tree of a clone of ours, as uncommitted changes. Files that are alike
    in it and in `base` stay. Untracked files in its way were made by checks there, and go."""
    ask(repo, "update-index", "-q", "--refresh")  # read-tree refuses files whose times differ from the index
    added = names(git(repo, "diff-tree", "-r", "-z", "--name-only", "--diff-filter=A", base, tree))
    for path in added:
        there = repo.root / os.fsdecode(path)
        if is_reached_directly(repo.root, there) and (there.is_file() or there.is_symlink()):
            there.unlink()
    git(repo, "read-tree", "-m", "-u", base, tree)
