"""The project's own commit hooks, as they were before the agent ran. A failing hook is a failed check."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from msgspec import Struct

from ralph.core.text import clean
from ralph.host.files import write_bytes
from ralph.host.git.repo import Repo
from ralph.host.process.enclosure import Enclosure
from ralph.host.process.signals import StopSignal
from ralph.host.process.start import CannotStart, run

_MOST_OUTPUT = 100_000


class HookFailure(Struct, frozen=True):
    hook: str
    """"pre-commit" or "commit-msg"."""
    code: int
    output: str
    timed_out: bool = False


def hook_of(repo: Repo, name: str) -> Path | None:
    path = repo.hooks_folder / name
    return path if path.is_file() and os.access(path, os.X_OK) else None


def hooks_in_tree(repo: Repo) -> bytes | None:
    """The hooks folder, if it is part of the project, such as `.husky`. Agents may edit those."""
    folder = Path(os.path.normpath(repo.hooks_folder))
    if folder.is_relative_to(repo.root) and not folder.is_relative_to(repo.root / ".git"):
        return os.fsencode(folder.relative_to(repo.root))
    return None


class HookCall(Struct, frozen=True):
    """A hook to run, with the index of the pending commit and, for `commit-msg`, the file of its message."""

    hook: Path
    index: Path
    message: Path | None = None
    git_dir: Path | None = None
    """Told to the hook, as git does in a linked worktree."""
    enclosure: Enclosure | None = None


Around = Callable[[HookCall], AbstractContextManager[HookCall]]
"""The same call as it is where the hook can run: in a sandbox, its files are elsewhere."""


class Hooks(Struct, frozen=True):
    """How hooks are run."""

    env: Mapping[str, str] = {}
    timeout: float = 300.0
    stop: StopSignal | None = None
    around: Around = nullcontext

    def run(self, repo: Repo, hook: Path, *, index: Path, message: Path | None = None) -> HookFailure | None:
        """Run a hook as git would: in the root, with the index of the pending commit, and empty stdin."""
        ours = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        env = {"GIT_EDITOR": ":", "GIT_PREFIX": "", "GIT_TERMINAL_PROMPT": "0"}
        wanted = HookCall(hook, index, message, repo.git_dir if repo.link else None)
        try:
            with self.around(wanted) as call:
                env |= {"GIT_INDEX_FILE": str(call.index)} | ({"GIT_DIR": str(call.git_dir)} if call.git_dir else {})
                done = run(
                    [str(call.hook), *([str(call.message)] if call.message else [])],
                    cwd=repo.root,
                    env={**({} if call.enclosure else ours), **env, **self.env},
                    timeout=self.timeout,
                    limit=_MOST_OUTPUT,
                    stop=self.stop,
                    enclosure=call.enclosure,
                )
        except CannotStart as error:
            return HookFailure(hook.name, 127, str(error))
        if done.ok:
            return None
        output = clean((done.out + done.err).decode("utf-8", "replace"))
        return HookFailure(hook.name, done.code, output, done.timed_out)


def restore_own(own: Mapping[Path, bytes], root: Path) -> tuple[str, ...]:
    """Write the loop's files again where a hook changed them. Returns their paths in the repository."""
    restored = []
    for path, data in own.items():
        try:
            is_same = not path.is_symlink() and path.read_bytes() == data
        except OSError:
            is_same = False
        if not is_same:
            write_bytes(path, data)
            restored.append(os.path.relpath(path, root))
    return tuple(restored)
