"""The commits that an agent made itself."""

from __future__ import annotations

from msgspec import Struct

from ralph.host.git.checkpoint import Checkpoint, head_of
from ralph.host.git.command import ask, git
from ralph.host.git.repo import Repo

_MOST_COMMITS = 1000


class AgentCommits(Struct, frozen=True, kw_only=True):
    commits: tuple[str, ...] = ()
    """Oldest first."""
    is_rewritten: bool = False
    """The checkpoint's commit is no longer part of the history."""
    has_switched: bool = False
    """HEAD is on another branch, or detached."""


def agent_commits(repo: Repo, checkpoint: Checkpoint) -> AgentCommits:
    """The commits the agent made since the checkpoint."""
    branch, head = head_of(repo)
    has_switched = branch != checkpoint.branch
    if head == checkpoint.head:
        return AgentCommits(has_switched=has_switched)
    if head is None:
        return AgentCommits(is_rewritten=True, has_switched=has_switched)
    since = (f"^{checkpoint.head}",) if checkpoint.head else ()
    listed = git(repo, "rev-list", "--reverse", f"--max-count={_MOST_COMMITS}", head, *since).decode().split()
    kept = not checkpoint.head or ask(repo, "merge-base", "--is-ancestor", checkpoint.head, head).code == 0
    return AgentCommits(commits=tuple(listed), is_rewritten=not kept, has_switched=has_switched)
