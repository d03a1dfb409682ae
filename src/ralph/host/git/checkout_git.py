"""The git folders of the proof checkout: what they take from the user's repository, as it is when a run starts."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from ralph.host.git.checkpoint import head_of
from ralph.host.git.command import ask, git, names
from ralph.host.git.repo import Repo
from ralph.host.git.shadow import excludes_of
from ralph.host.git.tree_diff import SUBMODULE
from ralph.host.removal import remove_tree

# Settings that decide which bytes git writes for a blob. How the file system behaves is found out by `git init`.
_COPIED = frozenset({"core.autocrlf", "core.eol", "core.safecrlf", "user.name", "user.email"})
_COPIED_SECTIONS = ("filter.", "lfs.")
_REFS = ("refs/heads", "refs/tags", "refs/remotes")
_PACKED = b"# pack-refs with: peeled fully-peeled sorted \n"


class Sources(Struct, frozen=True):
    """Of the user's repository: everything but the objects that a second git folder needs."""

    branch: str
    """Empty when HEAD is detached."""
    refs: Mapping[bytes, bytes]
    """Name → lines of `packed-refs`."""
    settings: tuple[tuple[str, str], ...]
    exclude: bytes
    attributes: bytes
    user_attributes: bytes
    shallow: bytes
    submodules: frozenset[bytes]
    """Those of HEAD. A repository that an agent makes inside the workspace is none: no clone would have it."""


def sources_of(repo: Repo) -> Sources:
    listed = (os.fsdecode(item) for item in names(git(repo, "config", "-z", "--show-scope", "--list")))
    pairs = [(scope, *item.partition("\n")[::2]) for scope, item in zip(listed, listed, strict=True)]
    settings = tuple((key, value) for scope, key, value in pairs if scope != "command" and _is_copied(key))
    own = next((value for _, key, value in reversed(pairs) if key == "core.attributesfile"), None)
    if own is None:
        own = f"{os.environ.get('XDG_CONFIG_HOME') or '~/.config'}/git/attributes"
    branch, _ = head_of(repo)
    return Sources(
        branch=branch or "",
        refs=_refs(repo),
        settings=settings,
        exclude=excludes_of(repo),
        attributes=_content(repo.common_dir / "info" / "attributes"),
        user_attributes=_content(repo.root / os.path.expanduser(own)),  # noqa: PTH111 - an absolute one replaces it
        shallow=_content(repo.common_dir / "shallow"),
        submodules=_submodules(repo),
    )


def _submodules(repo: Repo) -> frozenset[bytes]:
    listed = ask(repo, "ls-tree", "-r", "-z", "--full-tree", "HEAD").out
    return frozenset(item.partition(b"\t")[2] for item in names(listed) if item.startswith(SUBMODULE.encode()))


def _is_copied(key: str) -> bool:
    return key in _COPIED or key.startswith(_COPIED_SECTIONS)


def _refs(repo: Repo) -> dict[bytes, bytes]:
    form = "%(objectname) %(refname)%00%(*objectname)%00"
    fields = git(repo, "for-each-ref", f"--format={form}", *_REFS).replace(b"\0\n", b"\0").split(b"\0")[:-1]
    found = {}
    for item, peeled in zip(fields[::2], fields[1::2], strict=True):
        found[item.partition(b" ")[2]] = item + b"\n" + (b"^" + peeled + b"\n" if peeled else b"")
    return found


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def config_text(sources: Sources, probed: str, attributes: Path) -> bytes:
    """`probed` is what `git init` wrote."""
    lines = [probed.rstrip("\n"), "[core]", "\tlogAllRefUpdates = false"]
    lines += [f"\tattributesFile = {_quoted(str(attributes))}", "[gc]", "\tauto = 0", "[maintenance]", "\tauto = false"]
    for key, value in sources.settings:
        section, _, name = key.partition(".")
        inner, _, name = name.rpartition(".")
        lines += [f"[{section} {_quoted(inner)}]" if inner else f"[{section}]", f"\t{name} = {_quoted(value)}"]
    return os.fsencode("\n".join(lines) + "\n")


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def write_git_folder(
    folder: Path, sources: Sources, config: bytes, alternates: list[Path], commit: str = "", index: Path | None = None
) -> None:
    """Everything but the objects. `commit` is what HEAD points to."""
    for name in ("objects/info", "refs", "info"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "objects/info/alternates").write_bytes(b"".join(os.fsencode(path) + b"\n" for path in alternates))
    (folder / "config").write_bytes(config)
    (folder / "info/exclude").write_bytes(sources.exclude)
    (folder / "info/attributes").write_bytes(sources.attributes)
    if sources.shallow:
        (folder / "shallow").write_bytes(sources.shallow)
    refs = dict(sources.refs)
    head = commit
    if sources.branch:
        own = os.fsencode(f"refs/heads/{sources.branch}")
        head = f"ref: {os.fsdecode(own)}"
        if commit:
            refs[own] = commit.encode() + b" " + own + b"\n"
    (folder / "packed-refs").write_bytes(_PACKED + b"".join(refs[ref] for ref in sorted(refs)))
    if index is not None:
        with contextlib.suppress(FileNotFoundError):
            (folder / "index").write_bytes(index.read_bytes())
    (folder / "HEAD").write_bytes(os.fsencode(head or "ref: refs/heads/none") + b"\n")


def clone_submodule(source: Path, target: Path, commit: str, env: Mapping[str, str]) -> bool:
    """Make `target` a clone of the submodule at `source`, with `commit` checked out. False: that is not possible."""
    if not (target / ".git").is_dir() or (target / ".git").is_symlink():
        remove_tree(target)
        options = ("--shared", "--no-checkout", "-q", "--template=")
        if ask(target.parent, "clone", *options, "--", str(source), str(target), env_extra=env).code:
            return False
    steps = (("checkout", "-q", "--force", "--detach", commit), ("clean", "-ffdq"))
    return all(ask(target, *step, env_extra=env).code == 0 for step in steps)
