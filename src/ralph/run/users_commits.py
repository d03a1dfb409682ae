"""A user's commits during a run with several workers: they are the new tip that all later work is merged onto."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from ralph.core.ports import PlanRef
from ralph.core.text import one_line, plural
from ralph.host.git.checkpoint import commit_at
from ralph.host.git.command import Answer, ask, git, line
from ralph.host.git.repo import Repo
from ralph.state.clones import read_clone, record_clone
from ralph.state.places import plan_state


def _why(merged: Answer) -> str:
    """The files in conflict, or those that are in the way."""
    said = (merged.out + b"\n" + merged.err).decode("utf-8", "replace").splitlines()
    conflicts = [text for text in said if text.startswith("CONFLICT")]
    files = [text.strip() for text in said if text.startswith("\t")]
    if conflicts or files:
        return one_line("; ".join(conflicts[:3]) or f"uncommitted changes in {', '.join(files[:3])}", 300)
    return merged.complaint


class UsersCommits:
    """Watches the user's branch, and merges what is new there into the clone."""

    def __init__(self, ref: PlanRef, clone: Repo, env: Mapping[str, str]) -> None:
        self._state, self._clone = plan_state(ref, env), clone
        self._left_out = ""

    def __call__(self) -> Iterator[str]:
        """Take them over. Yields what to say about it."""
        known = read_clone(self._state)
        if known is None or not known.target:
            return
        branch = f"refs/heads/{known.target}"
        tip = commit_at(self._clone, branch)
        if not tip or tip in (known.base, self._left_out):
            return
        if ask(self._clone, "merge-base", "--is-ancestor", known.base, tip).code:
            self._left_out = tip
            yield f"{known.target} was rewritten during the run; its new commits are left out"
            return
        count = int(line(git(self._clone, "rev-list", "--count", f"HEAD..{tip}")) or 0)
        message = f"Merge commits of {known.target} made during the run"
        merged = ask(self._clone, "merge", "--quiet", "--no-verify", "--no-gpg-sign", "-m", message, tip)
        if merged.code:
            ask(self._clone, "merge", "--abort")
            self._left_out = tip
            yield (
                f"left out {plural(count, 'commit')} on {known.target}, which cannot be merged with the work of this "
                f"run: {_why(merged)}"
            )
            return
        record_clone(self._state, replace(known, base=tip))
        if count:
            rest = "it" if count == 1 else "them"
            yield f"merged {plural(count, 'new commit')} from {known.target}; later work builds on {rest}"
