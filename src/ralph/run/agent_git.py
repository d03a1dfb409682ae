"""The repository that an agent in a sandbox works with: its own, made for every session.

The loop's git folder is out of its reach, and git outside never reads this one: settings and hooks that the agent
leaves there could start programs. Its commits are packed inside the sandbox and fetched from that file.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from ralph.core.lazy_pattern import lazy_pattern
from ralph.host.files import make_folder, read_state, special_in
from ralph.host.git.checkpoint import head_of
from ralph.host.git.command import GitFailed, ask, git, line
from ralph.host.git.refs import _is_ancestor
from ralph.host.git.repo import Repo
from ralph.host.process.enclosure import Enclosure
from ralph.host.process.start import CannotStart, run
from ralph.host.removal import is_reached_directly, remove_tree
from ralph.sandbox.wall import Mount

_PACKED = "# pack-refs with: peeled fully-peeled sorted \n"
_POINTER, _BUNDLE = "pointer", "bundle"
_KEPT = "refs/ralph/agent/"
_PACK_SECONDS = 300.0
_SETTINGS = (
    "user.name",
    "user.email",
    "core.filemode",
    "core.symlinks",
    "core.ignorecase",
    "core.autocrlf",
    "core.eol",
)


class AgentGit:
    def __init__(self, repo: Repo, folder: Path, objects: Path, trace: Path) -> None:
        """`trace`: where git commands of agents are recorded; taking over their commits counts as one."""
        self._repo, self.folder, self.objects, self._trace = repo, folder, objects, trace
        self.git_dir = folder / "git"
        self._base = f"refs/heads/{folder.name}"
        """In the store, which the plans of a workspace share."""
        self._branch = self._head = ""

    def prepare(self) -> None:
        """Make it: the branch, its history and the tags, and an index that knows the files."""
        repo = self._repo
        branch, head = head_of(repo)
        self._head, self._branch = head or line(git(repo, "rev-parse", "HEAD")), branch or "work"
        tags = self._update_objects()
        remove_tree(self.folder)
        for inner in ("objects/info", "objects/pack", "refs/heads", "refs/tags", "info"):
            make_folder(self.git_dir / inner, private=True)
        written = {
            "HEAD": f"ref: refs/heads/{self._branch}\n",
            "packed-refs": f"{_PACKED}{self._head} refs/heads/{self._branch}\n{tags}",
            "objects/info/alternates": f"{self.objects / 'objects'}\n",
            "config": self._config(),
        }
        for name, text in written.items():
            (self.git_dir / name).write_text(text, encoding="utf-8", errors="surrogateescape")
        for name in ("index", "info/exclude"):
            source = (repo.git_dir if name == "index" else repo.common_dir) / name
            if source.is_file():
                (self.git_dir / name).write_bytes(source.read_bytes())
        (self.folder / _POINTER).write_text(f"gitdir: {self.git_dir}\n", encoding="utf-8", errors="surrogateescape")

    def _update_objects(self) -> str:
        """Fetch what the branch has reached since, into a store that has nothing else. Returns the tags in it."""
        if not (self.objects / "HEAD").is_file():
            remove_tree(self.objects)
            make_folder(self.objects.parent, private=True)
            kind = f"--object-format={self._repo.object_format}"
            git(self.objects.parent, "init", "--quiet", "--bare", "--template=", kind, str(self.objects))
        if _text(self.objects / self._base).strip() != self._head:
            source = f"+refs/heads/{self._branch}:{self._base}"
            git(self.objects, "fetch", "--quiet", "--no-write-fetch-head", str(self._repo.common_dir), source)
        listed = git(self.objects, "for-each-ref", "--format=%(objectname) %(refname)%00%(*objectname)", "refs/tags")
        lines = (text.partition("\0") for text in line(listed).split("\n") if text)
        return "".join(f"{tag}\n" + (f"^{peeled}\n" if peeled else "") for tag, _, peeled in lines)

    def _config(self) -> str:
        wanted = "|".join(key.replace(".", r"\.") for key in _SETTINGS)
        listed = ask(self._repo, "config", "--null", "--get-regexp", f"^({wanted})$").out
        items = (item.partition("\n") for item in listed.decode("utf-8", "surrogateescape").split("\0") if item)
        known = {key: value for key, _, value in items}  # the last one counts
        is_sha256 = self._repo.object_format == "sha256"
        text = f"[core]\n\trepositoryformatversion = {int(is_sha256)}\n\tbare = false\n\tlogallrefupdates = true\n"
        text += "[extensions]\n\tobjectformat = sha256\n" if is_sha256 else ""
        for key, value in known.items():
            if value:
                section, _, name = key.partition(".")
                quoted = value.replace("\\", "\\\\").replace('"', '\\"')
                text += f'[{section}]\n\t{name} = "{quoted}"\n'
        return text

    def add_tree(self, index: Path) -> None:
        """Add the objects of a pending commit, for hooks that look at it. Only right after `prepare`."""
        tree = line(git(self._repo, "write-tree", index=index))
        wanted = f"{tree}\n^{self._head}\n".encode()
        pack = git(self._repo, "pack-objects", "--revs", "--stdout", "--quiet", "--thin", stdin=wanted)
        git(self.git_dir, "unpack-objects", "-q", stdin=pack)

    def mounts(self, tree: Path, checkout: Path | None) -> tuple[Mount, ...]:
        """The clone, at its own path and at that of the user's checkout, with this repository in both."""
        pointer = self.folder / _POINTER
        there = (Mount(tree, checkout, is_writable=True), Mount(pointer, checkout / ".git")) if checkout else ()
        return (*there, Mount(pointer, tree / ".git"))

    def collect(self, enclosure: Enclosure, name: str) -> Iterator[str]:
        """Take over what the agent committed: its branch moves there; what is elsewhere is kept. Yields notices.

        `name`: of the session, for refs.
        """
        if not is_reached_directly(self.folder, self.git_dir) or special_in(self.git_dir, deep=True):
            yield "the agent put links or pipes in place of its repository, so only its files count"
            return
        refs = _read_refs(self.git_dir)
        tip = refs.get("HEAD", "")
        fresh = {
            name: commit for name, commit in refs.items() if commit != self._head and not name.startswith("refs/tags/")
        }
        if not fresh:
            return
        try:
            self._fetch(enclosure, name)
        except (CannotStart, GitFailed, OSError) as error:
            yield f"the agent's commits could not be read, so only its files count: {error}"
            return
        kept = {
            line(text)
            for text in git(self._repo, "for-each-ref", "--format=%(objectname)", f"{_KEPT}{name}/").splitlines()
        }
        if tip != self._head and tip in kept and _is_ancestor(self._repo, self._head, tip):
            traced = {"GIT_TRACE2_EVENT": str(self._trace), "GIT_TRACE2_EVENT_BRIEF": "1"}
            git(self._repo, "reset", "--quiet", "--mixed", tip, env_extra=traced)
        elif tip != self._head:
            yield f"the agent rewrote the history of its branch: only its files count; {_KEPT}{name}/ has its commits"
        self._forget_reachable(name)

    def _fetch(self, enclosure: Enclosure, name: str) -> None:
        bundle = self.git_dir / _BUNDLE
        remove_tree(bundle)
        argv = ("git", f"--git-dir={self.git_dir}", "bundle", "create", "--quiet", str(bundle), "HEAD", "--all")
        env = {"PATH": os.environ.get("PATH", os.defpath), "HOME": "/nonexistent", "LC_ALL": "C"}
        made = run((*argv, f"^{self._head}"), cwd=Path("/"), env=env, timeout=_PACK_SECONDS, enclosure=enclosure)
        if not made.ok or not stat.S_ISREG(bundle.lstat().st_mode):  # a folder would be read as a repository
            raise OSError(made.err.decode("utf-8", "replace").strip()[:200] or "git bundle failed")
        wanted = (f"+refs/*:{_KEPT}{name}/*", f"+HEAD:{_KEPT}{name}/HEAD")
        options = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance")
        git(self._repo, "-c", "fetch.fsckObjects=true", "fetch", *options, str(bundle), *wanted)

    def _forget_reachable(self, name: str) -> None:
        """Refs are only needed for what no branch has."""
        for text in line(git(self._repo, "for-each-ref", "--format=%(objectname) %(refname)", f"{_KEPT}{name}/")).split(
            "\n"
        ):
            commit, _, ref = text.partition(" ")
            if ref and ask(self._repo, "merge-base", "--is-ancestor", commit, "HEAD").code == 0:
                ask(self._repo, "update-ref", "-d", ref, commit)


_HEX = lazy_pattern(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


def _read_refs(git_dir: Path) -> dict[str, str]:
    """The refs of a repository that nobody trusts, without git: names and commits, as far as they are plain."""
    found: dict[str, str] = {}
    for text in _text(git_dir / "packed-refs").splitlines():
        commit, _, ref = text.partition(" ")
        if _HEX.fullmatch(commit) and ref.startswith("refs/"):
            found[ref] = commit
    for folder, _, files in os.walk(git_dir / "refs"):
        for name in files:
            path = Path(folder, name)
            if _HEX.fullmatch(commit := _text(path).strip()):
                found[str(path.relative_to(git_dir))] = commit
    head = _text(git_dir / "HEAD").strip()
    if _HEX.fullmatch(head):
        found["HEAD"] = head
    elif (at := head.removeprefix("ref: ")) in found:
        found["HEAD"] = found[at]
    return found


def _text(path: Path) -> str:
    try:
        return read_state(path).decode("utf-8", "replace") if not path.is_symlink() else ""
    except OSError:
        return ""
