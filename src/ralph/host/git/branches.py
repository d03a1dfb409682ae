"""The branch a plan is worked on. Never switched to while the tree has uncommitted changes."""

from __future__ import annotations

from collections.abc import Sequence

from ralph.core.errors import SetupError, UsageError
from ralph.core.lazy_pattern import lazy_pattern
from ralph.core.text import one_line
from ralph.host.git.checkpoint import head_of
from ralph.host.git.command import Answer, GitFailed, ask, git, line
from ralph.host.git.repo import Repo
from ralph.host.git.situation import Situation, abort_command, phrase, situation

_ELSEWHERE = lazy_pattern(r"already (?:checked out|used by worktree) at '(.*)'")


def switch_to_branch(repo: Repo, name: str, aside: Sequence[str] = ()) -> bool:
    """Switch to a branch, and create it from HEAD if it does not exist. True: it is new.

    `aside` are paths whose changes are ignored, such as the plan's own folder.
    """
    ref = f"refs/heads/{valid_name(repo, name)}"
    if head_of(repo)[0] == name:
        return False
    now = situation(repo)
    exists = has_branch(repo, name)
    _refuse_work(name, now, aside)
    if now.unborn:
        if exists:
            raise SetupError(
                f"branch {now.branch} has no commits yet, but {name} has",
                hint=f"switch manually with `git switch {name}`",
            )
        git(repo, "symbolic-ref", "HEAD", ref)
        return True
    answer = ask(repo, "switch", "--no-guess", "--quiet", *(() if exists else ("-c",)), name)
    if answer.code:
        raise _why_not(name, answer)
    return not exists


def has_branch(repo: Repo, name: str) -> bool:
    return ask(repo, "show-ref", "--verify", "--quiet", f"refs/heads/{name}").code == 0


def valid_name(repo: Repo, name: str) -> str:
    """`name`, if git accepts it as a branch name exactly as written."""
    answer = ask(repo, "check-ref-format", "--branch", name) if not name.startswith("-") else None
    if answer is None or answer.code or line(answer.out) != name or name == "HEAD":
        raise UsageError(
            f"{one_line(repr(name), 80)} is not a valid branch name",
            hint="use letters, digits, '-', '_', '.' and '/', e.g. ralph/user-login",
        )
    return name


def _refuse_work(name: str, now: Situation, aside: Sequence[str]) -> None:
    if now.in_progress:
        raise SetupError(
            f"cannot switch branches: {phrase(now.in_progress)} is in progress",
            hint=f"finish it, or end it with `{abort_command(now.in_progress)}`",
        )
    work = [entry for entry in now.dirty if not any(_is_below(entry.path, folder) for folder in aside)]
    if work:
        some = ", ".join(dict.fromkeys(one_line(entry.path, 60) for entry in work[:3]))
        more = f" and {len(work) - 3} more" if len(work) > 3 else ""
        raise SetupError(
            f"the plan needs branch {name}, but there are uncommitted changes: {some}{more}",
            hint="commit or stash them, or run in a separate worktree with --worktree",
        )


def _is_below(path: str, folder: str) -> bool:
    folder = folder.strip("/")
    return path == folder or path.startswith(f"{folder}/")


def _why_not(name: str, answer: Answer) -> SetupError:
    said = answer.err.decode("utf-8", "replace")
    if found := _ELSEWHERE.search(said):
        return SetupError(
            f"branch {name} is checked out in another worktree: {one_line(found[1], 200)}",
            hint=f"run Ralph there, or remove it with `git worktree remove '{one_line(found[1], 200)}'`",
        )
    if "would be overwritten" in said:
        files = [one_line(text, 60) for text in said.splitlines() if text.startswith("\t")]
        return SetupError(
            f"switching to {name} would overwrite {', '.join(files[:3])}", hint="commit or move these files first"
        )
    if "cannot lock ref" in said or "unable to create" in said:
        return SetupError(
            f"cannot create branch {name}: its name conflicts with an existing branch",
            hint=f"rename that branch, or choose another name ({answer.complaint})",
        )
    return GitFailed(("switch", name), answer)
