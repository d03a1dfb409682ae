"""What git knows about a plan, and the commit that archives it: only its paths, with the project's hooks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from ralph.core.errors import SetupError
from ralph.host.git.command import Answer, ask, ask_plainly, git, identity_from_environment, line, names, try_ask
from ralph.host.git.commits import signing
from ralph.host.git.repo import Repo, find_repository, identify
from ralph.host.git.situation import in_progress, phrase
from ralph.state.places import home

_HOOK_TIME = 120.0
_BY_RALPH = ("-c", "user.name=Ralph Loop", "-c", "user.email=ralph@localhost")


class Committed(Struct, frozen=True):
    commit: str = ""
    """The new commit, or an empty string."""
    note: str = ""
    """Why there is none, or a remark about it."""


def repository(root: Path, env: Mapping[str, str]) -> Repo | None:
    """The repository that contains the workspace. A nested one does not see the plan."""
    try:
        repo = identify(find_repository(root, home=home(env)))
    except SetupError:
        return None
    return repo if root.is_relative_to(repo.root) else None


def first_and_last_change(repo: Repo, path: Path) -> tuple[str, str]:
    """Dates of the first and the last commit that touched a file; empty if there is none."""
    answer = ask(repo, "log", "--format=%cI", "--", str(path.relative_to(repo.root)))
    dates = answer.out.decode().split() if answer.code == 0 else []
    return (dates[-1], dates[0]) if dates else ("", "")


def commit(repo: Repo, paths: Iterable[Path], message: str, *, hooks: bool = True) -> Committed:
    """Commit changes in these paths and nothing else. Other changes the user has staged stay staged.

    Without `hooks` at the end of a run: a hook, or a script it calls, could change what was proven.
    """
    if waiting := in_progress(repo.git_dir):
        return Committed(note=f"not committed: {phrase(waiting)} is in progress")
    from tempfile import NamedTemporaryFile  # 5 ms that no run has to wait for at its start

    changed = _changed(repo, paths)
    if not changed:
        return Committed(note="not committed: git ignores these files, or nothing changed")
    # From a file that is complete, not through a pipe: if we are killed, git takes half a list for the whole of it,
    # and no list for everything.
    with NamedTemporaryFile(prefix="ralph-paths-") as listed:
        listed.write(b"".join(path + b"\0" for path in changed))
        listed.flush()
        return _commit(repo, (f"--pathspec-from-file={listed.name}", "--pathspec-file-nul"), message, hooks=hooks)


def _commit(repo: Repo, paths: tuple[str, ...], message: str, *, hooks: bool) -> Committed:
    git(repo, "add", "--all", *paths)
    by, note = _identity(repo)
    args = ("commit", "--quiet", "--only", "--message", message, *paths)
    # Hooks find the environment they expect if git is called as the user would.
    answer = ask_plainly(repo.root, *by, *args, timeout=_HOOK_TIME) if hooks else _without_hooks(repo, by, args)
    if answer.code != 0:
        ask(repo, "reset", "--quiet", *paths)
        return Committed(note=f"not committed: {_last_words(answer)}")
    return Committed(line(git(repo, "rev-parse", "--short", "HEAD")), note)


def _without_hooks(repo: Repo, by: tuple[str, ...], args: tuple[str, ...]) -> Answer:
    settings, identity = ("-c", f"core.hooksPath={os.devnull}", *by), identity_from_environment()
    with signing(repo) as sign:
        if sign.is_wanted:
            signed = (*settings, *sign.settings, "-c", "commit.gpgSign=true", *args)
            answer = try_ask(repo, *signed, env_extra={**identity, **sign.env}, timeout=_HOOK_TIME)
            if answer.code == 0:
                return answer
    return ask(repo, *settings, *args, env_extra=identity, timeout=_HOOK_TIME)


def _changed(repo: Repo, paths: Iterable[Path]) -> list[bytes]:
    """Changed paths that git would commit, relative to the repository. Ignored files are left out."""
    wanted = [os.fsencode(path.relative_to(repo.root)) for path in paths]
    status = git(repo, "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--", *wanted)
    return [entry[3:] for entry in names(status)]


def _identity(repo: Repo) -> tuple[tuple[str, ...], str]:
    known = identity_from_environment()
    for key, variable in (("user.name", "GIT_AUTHOR_NAME"), ("user.email", "GIT_AUTHOR_EMAIL")):
        if variable not in known and ask(repo, "config", key).code != 0:
            return _BY_RALPH, "committed by Ralph Loop <ralph@localhost>: git does not know who you are"
    return (), ""


def _last_words(answer: Answer) -> str:
    """The most useful line: a hook's last one, or git's first one."""
    said = [text for text in answer.err.decode("utf-8", "replace").splitlines() if text.strip()]
    return said[-1] if said else answer.complaint
