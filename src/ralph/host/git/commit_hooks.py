"""The project's own commit hooks, as they were before the agent ran. A failing hook is a failed check."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from ralph.core.text import clean
from ralph.host.files import write_bytes
from ralph.host.git.repo import Repo
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


class Hooks(Struct, frozen=True):
    """How hooks are run."""

    env: Mapping[str, str] = {}
    timeout: float = 300.0
    stop: StopSignal | None = None

    def run(self, repo: Repo, hook: Path, *args: str, index: Path) -> HookFailure | None:
        """Run a hook as git would: in the root, with the index of the pending commit, and empty stdin."""
        env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        env |= {"GIT_INDEX_FILE": str(index), "GIT_EDITOR": ":", "GIT_PREFIX": "", "GIT_TERMINAL_PROMPT": "0"}
        if repo.link:  # in a linked worktree git says where the git folder is
            env["GIT_DIR"] = str(repo.git_dir)
        argv, env = [str(hook), *args], {**env, **self.env}
        try:
            done = run(argv, cwd=repo.root, env=env, timeout=self.timeout, limit=_MOST_OUTPUT, stop=self.stop)
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
