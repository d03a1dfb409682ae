"""All refs of a repository and their reflogs: recorded at a checkpoint, compared with it later, and restored.

An agent may move or delete any of them, leave one empty, write garbage into `packed-refs`, or create one that is in the
way of another. Branches that are checked out in another worktree belong to somebody else and are left alone.

Reflogs, and the stash, which is one, are read and written as files, because git has no command that puts an entry back.
With reftables they are left alone.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from ralph.core.errors import SetupError
from ralph.core.lazy_pattern import lazy_pattern
from ralph.core.text import one_line
from ralph.host.files import make_folder, read_plain, special_in, write_bytes
from ralph.host.git.command import ask, git, line
from ralph.host.git.ref_files import NotPlain, read_refs
from ralph.host.git.repo import Repo
from ralph.host.removal import remove_tree

BRANCHES = "refs/heads/"
KEEP = "refs/ralph/keep/"
"""Where commits stay that an agent had moved a ref to."""
LISTING = ("for-each-ref", "--format=%(objectname) %(refname) %(symref)")
_UNRECORDED = ("refs/stash", "refs/bisect/", "refs/worktree/", "refs/rewritten/", "refs/ralph/checkpoint/", KEEP)
"""The stash is restored with its log; the others belong to an operation in progress, or to Ralph."""
_MAY_ADVANCE = ("refs/remotes/", "refs/notes/", "refs/ralph/")
"""Refs that may move to a descendant: a fetch, a note, a rescue that is saved again."""
_MAY_MOVE = ("refs/ralph/proved/",)
_SYMBOLIC = "ref: "
_BROKEN = lazy_pattern(r"^(?:warning|error): ignoring (?:broken ref|ref with broken name|dangling symref) (\S+)", re.M)
_PACKED_LINE = lazy_pattern(rb"#[^\n]*|[0-9a-f]{40,64} refs/[^\0-\x20\x7f]+|\^[0-9a-f]{40,64}")
STASH = "refs/stash"
_LARGEST_REFLOG = 20 * 1024 * 1024
_REFLOG_ENTRY = lazy_pattern(rb"[0-9a-f]{40,64} ([0-9a-f]{40,64}) .*")


class MovedMeanwhile(SetupError):
    """Somebody moved a ref after it had been looked at. Nothing was changed: look again, then repeat."""


class RestoredRefs(Struct, frozen=True):
    restored: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    """Refs below `KEEP` with the commits that restored refs had been moved to."""
    failed: tuple[str, ...] = ()
    """Sentences about refs that could not be restored."""


def parse_refs(out: bytes) -> dict[str, str]:
    """Ref → object, or `ref: ` and its target for a symbolic ref that is not a branch. From the output of `LISTING`."""
    found = {}
    for item in out.split(b"\n"):
        if item:
            name, ref, *target = os.fsdecode(item).split(" ")
            found[ref] = _value(ref, name, target[0] if target else "")
    return found


def _value(ref: str, name: str, target: str) -> str:
    return f"{_SYMBOLIC}{target}" if target and not ref.startswith(BRANCHES) else name


def plain_refs(repo: Repo) -> dict[str, str]:
    """The same without a process. Raises NotPlain if git has to list them."""
    return {ref: _value(ref, *read) for ref, read in read_refs(repo.common_dir).items()}


def listing(refs: Mapping[str, str]) -> bytes:
    """The reverse of `parse_refs`."""
    lines = []
    for ref, name in refs.items():
        is_symbolic = name.startswith(_SYMBOLIC)
        lines.append(f"- {ref} {name.removeprefix(_SYMBOLIC)}\n" if is_symbolic else f"{name} {ref} \n")
    return os.fsencode("".join(lines))


def is_recorded(ref: str) -> bool:
    return not ref.startswith(_UNRECORDED)


def recorded_refs(repo: Repo) -> dict[str, str]:
    """All refs that a checkpoint records, as they are now. Broken ones are removed: git refuses to replace them."""
    repair_packed_refs(repo)
    with contextlib.suppress(NotPlain):
        return {ref: name for ref, name in plain_refs(repo).items() if is_recorded(ref)}
    answer = ask(repo, *LISTING)
    if broken := _BROKEN.findall(answer.err.decode("utf-8", "surrogateescape")):
        for ref in broken:
            if ref.startswith("refs/") and ".." not in ref.split("/"):
                remove_tree(repo.common_dir / ref)
        answer = ask(repo, *LISTING)
    out = answer.out if answer.code == 0 else git(repo, *LISTING)
    return {ref: name for ref, name in parse_refs(out).items() if is_recorded(ref)}


def repair_packed_refs(repo: Repo) -> bool:
    """Drop lines that git cannot read: it fails on all commands because of one. True if there were any."""
    path = repo.common_dir / "packed-refs"
    data = read_plain(path)
    if data is None:
        return os.path.lexists(path) and remove_tree(path)
    lines = data.split(b"\n")
    good = [text for text in lines[:-1] if _PACKED_LINE.fullmatch(text)]
    if len(good) == len(lines) - 1 and not lines[-1]:
        return False
    # Without the header git does not rely on the order, nor on the `^` lines being complete.
    write_bytes(path, b"".join(text + b"\n" for text in good if not text.startswith((b"#", b"^"))))
    return True


def remove_pipes(repo: Repo) -> None:
    """Remove named pipes below `refs`: git would wait for ever when it reads one."""
    for pipe in special_in(repo.common_dir / "refs", deep=True):
        pipe.unlink()


def displaced(
    repo: Repo, before: Mapping[str, str], now: Mapping[str, str], spared: Collection[str] = ()
) -> dict[str, str]:
    """Ref → what it is restored to; empty: it is deleted. `spared` refs may have moved, but not vanished."""
    found = {}
    for ref, name in before.items():
        new = now.get(ref)
        if new == name or (new is not None and (ref in spared or ref.startswith(_MAY_MOVE))):
            continue
        if new is None or not ref.startswith(_MAY_ADVANCE) or not _is_ancestor(repo, name, new):
            found[ref] = name
    return found | {ref: "" for ref in now if ref not in before and ref.startswith("refs/replace/")}


def _is_ancestor(repo: Repo, old: str, new: str) -> bool:
    if old.startswith(_SYMBOLIC) or new.startswith(_SYMBOLIC):
        return False
    return ask(repo, "merge-base", "--is-ancestor", old, new).code == 0


def checked_out_elsewhere(repo: Repo) -> set[str]:
    if not (repo.common_dir / "worktrees").is_dir():
        return set()
    found, here = set(), False
    for text in line(git(repo, "worktree", "list", "--porcelain")).split("\n"):
        if text.startswith("worktree "):
            here = os.path.realpath(text.removeprefix("worktree ")) == str(repo.root)
        elif text.startswith("branch ") and not here:
            found.add(text.removeprefix("branch "))
    return found


def restore_refs(repo: Repo, wanted: Mapping[str, str], now: Mapping[str, str], *, keep: bool) -> RestoredRefs:
    """Restore these refs. Refs in their way, and with `keep` also what they name now, get a name below `KEEP`.

    A ref whose object no longer exists, or that git refuses to write, is left out and reported. Raises MovedMeanwhile
    if one is no longer as in `now`.
    """
    if not wanted:
        return RestoredRefs()
    in_the_way = _in_the_way(wanted, now)
    gone = missing_objects(repo, (name for name in wanted.values() if name and not name.startswith(_SYMBOLIC)))
    failed = [
        f"{_shown(ref)} could not be restored: {wanted[ref][:12]} no longer exists"
        for ref in wanted
        if wanted[ref] in gone
    ]
    todo = {ref: name for ref, name in wanted.items() if name not in gone}
    kept = _keep(repo, [now[ref] for ref in (*in_the_way, *(todo if keep else ())) if ref in now])
    for ref, name in (dict.fromkeys(in_the_way, "") | todo).items():  # removals first
        if not name:
            _write(repo, f"delete {ref}\n")
    direct = {ref: name for ref, name in todo.items() if name and not name.startswith(_SYMBOLIC)}
    if _write(repo, "".join(f"update {ref} {name}{_expected(now.get(ref, ''))}\n" for ref, name in direct.items())):
        current = recorded_refs(repo)
        if any(ref in current and current[ref] != now.get(ref) for ref in direct):
            raise MovedMeanwhile("a branch moved while it was being restored", hint="run again")
        for ref, name in direct.items():
            if _write(repo, f"update {ref} {name}\n") and (why := _write_over(repo, ref, name)):
                failed.append(f"{_shown(ref)} could not be restored: {why}")
    for ref, name in todo.items():
        if name.startswith(_SYMBOLIC):
            ask(repo, "symbolic-ref", ref, name.removeprefix(_SYMBOLIC))
    lost = {sentence.partition(" could not")[0] for sentence in failed}
    return RestoredRefs(tuple(ref for ref in todo if _shown(ref) not in lost), kept, tuple(failed))


def missing_objects(repo: Repo, names: Iterable[str]) -> set[str]:
    asked = "".join(f"{name}\n" for name in dict.fromkeys(names))
    if not asked:
        return set()
    out = git(repo, "cat-file", "--batch-check", stdin=asked.encode()).decode("ascii", "replace")
    return {text.partition(" ")[0] for text in out.splitlines() if text.endswith(" missing")}


def _in_the_way(wanted: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Refs like `main/x` that keep `main` from being created, and the other way round."""
    made = [ref for ref, name in wanted.items() if name and ref not in now]
    return [
        ref
        for ref in now
        if ref not in wanted and any(ref.startswith(f"{m}/") or m.startswith(f"{ref}/") for m in made)
    ]


def _keep(repo: Repo, names: Iterable[str]) -> tuple[str, ...]:
    wanted = {f"{KEEP}{name[:16]}": name for name in names if not name.startswith(_SYMBOLIC)}
    kept = []
    for ref, name in wanted.items():
        if not _write(repo, f"update {ref} {name}\n"):
            kept.append(ref)
    return tuple(kept)


def _write(repo: Repo, script: str) -> str:
    """Git's complaint, or an empty string."""
    if not script:
        return ""
    answer = ask(repo, "update-ref", "--no-deref", "-m", "ralph: restored", "--stdin", stdin=os.fsencode(script))
    return answer.complaint if answer.code else ""


def _expected(name: str) -> str:
    return f" {name}" if name and not name.startswith(_SYMBOLIC) else ""


def _write_over(repo: Repo, ref: str, name: str) -> str:
    """Again, after removing files that are no refs and have the ref's name, or that of a folder above it."""
    refs = repo.common_dir / "refs"
    path = repo.common_dir / ref
    for place in (path, *path.parents):
        is_file = os.path.lexists(place) and (place.is_symlink() or not place.is_dir())
        if place != refs and place.is_relative_to(refs) and (is_file or place == path):
            remove_tree(place)
    return _write(repo, f"update {ref} {name}\n")


def _shown(ref: str) -> str:
    return one_line(ref, 100)


def copy_reflogs(repo: Repo, index_file: Path) -> None:
    """Update the copies. A file with the size and time of its copy is not read."""
    store = _store(index_file)
    logs = {name: path for name, path in _logs(repo) if path.stat().st_size <= _LARGEST_REFLOG}
    for name, path in logs.items():
        found, copy = path.stat(), store / name
        try:
            known = copy.stat()
            is_same = (known.st_size, known.st_mtime_ns) == (found.st_size, found.st_mtime_ns)
        except OSError:
            is_same = False
        if not is_same and (data := read_plain(path)) is not None:
            make_folder(copy.parent, private=True)
            temporary = copy.with_name(f".{os.getpid()}")
            temporary.write_bytes(data)
            os.utime(temporary, ns=(found.st_atime_ns, found.st_mtime_ns))
            if copy.is_dir():
                remove_tree(copy)
            temporary.replace(copy)
    for name, copy in list(_below(store)):
        if name not in logs:
            copy.unlink(missing_ok=True)


def restore_reflogs(repo: Repo, index_file: Path, refs: frozenset[str]) -> tuple[str, ...]:
    """Put back the entries that are missing, before newer ones. `refs` exist. Returns the names of the changed logs.

    Entries whose commits no longer exist are left out: git would call them invalid.
    """
    changed: dict[str, tuple[list[bytes], list[bytes]]] = {}
    for name, copy in _below(_store(index_file)):
        if name == STASH or (name != "HEAD" and name not in refs):
            continue
        before, now = copy.read_bytes(), read_plain(_place(repo, name)) or b""
        if not now.startswith(before):
            changed[name] = before.splitlines(), now.splitlines()
    gone = missing_objects(repo, (commit for old, _ in changed.values() for line in old for commit in _commits(line)))
    gone.discard(repo.no_object)
    for name, (old, now_lines) in changed.items():
        known = set(old)
        kept = [line for line in old if gone.isdisjoint(_commits(line))]
        kept += [line for line in now_lines if line not in known and commit_in(line)]
        write_reflog(_place(repo, name), b"".join(line + b"\n" for line in kept))
    return tuple(changed)


def write_reflog(path: Path, data: bytes) -> None:
    if path.is_symlink() or not path.is_file():
        remove_tree(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, data)


def stash_entries(repo: Repo) -> list[bytes]:
    """The lines of the stash's log, oldest first."""
    return (read_plain(_place(repo, STASH)) or b"").splitlines()


def saved_stash_entries(index_file: Path) -> list[bytes]:
    return (read_plain(_store(index_file) / STASH) or b"").splitlines()


def stash_log(repo: Repo) -> Path:
    return _place(repo, STASH)


def commit_in(entry: bytes) -> str:
    """The commit that an entry of a reflog names; empty: it is damaged."""
    found = _REFLOG_ENTRY.fullmatch(entry)
    return found[1].decode() if found else ""


def _commits(entry: bytes) -> tuple[str, ...]:
    """The old and the new commit."""
    return tuple(part.decode("ascii", "replace") for part in entry.split(b" ", 2)[:2]) if commit_in(entry) else ()


def _store(index_file: Path) -> Path:
    return index_file.with_name(f"{index_file.name}.reflogs")


def _place(repo: Repo, name: str) -> Path:
    return (repo.git_dir if name == "HEAD" else repo.common_dir) / "logs" / name


def _logs(repo: Repo) -> Iterator[tuple[str, Path]]:
    if (repo.git_dir / "logs" / "HEAD").is_file():
        yield "HEAD", repo.git_dir / "logs" / "HEAD"
    for name, path in _below(repo.common_dir / "logs"):
        if name.startswith("refs/"):
            yield name, path


def _below(folder: Path) -> Iterator[tuple[str, Path]]:
    for where, _, files in os.walk(folder):
        for file in files:
            path = Path(where) / file
            if not path.is_symlink() and not file.startswith(".") and not file.endswith(".lock"):
                yield os.path.relpath(path, folder), path
