"""Proofs read from the commits of a branch: for a fresh clone, or if the state folder is gone.

Anyone who can commit can write such a message. So it is reported as the commit's statement, and if the journal of the
run it names exists, the journal decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from ralph.engine import proof_trailers as names
from ralph.host.git.command import ask
from ralph.host.git.repo import Repo
from ralph.proof.records import Proof

_MOST_COMMITS = 5000
_MOST_PER_STORY = 20
_START, _FIELD = "\x1e", "\x1f"


def from_commits(repo: Repo, plan: str, known_runs: Sequence[str] = ()) -> dict[str, Proof]:
    """The latest proof of each story of a plan, by its path in the repository. Not of runs that are `known_runs`."""
    found: dict[str, Proof] = {}
    for commit, at, _, trailers in _told(repo):
        story, run = _one(trailers, "Ralph-Story"), _one(trailers, "Ralph-Run")
        if not story or not run or run in known_runs or _one(trailers, names.VERDICT) != names.DONE:
            continue
        if _one(trailers, names.PLAN) not in ("", plan):
            continue
        number = _one(trailers, "Ralph-Iteration")
        proof = Proof(
            story=story,
            run=run,
            iteration=int(number) if number.isdecimal() else 0,
            at=at,
            tree=_one(trailers, names.TREE),
            check_set=_one(trailers, names.CHECK_SET),
            commit=commit,
            checks=names.read_checks(trailers),
            unlisted=names.unlisted(trailers),
            is_from_commit=True,
            agent_commits=tuple(trailers.get(names.AGENT_COMMIT, ())),
            grade=_one(trailers, names.GRADE),
            where=_one(trailers, names.WHERE),
            witnesses=tuple(trailers.get(names.WITNESS, ())),
        )
        found.setdefault(story, proof)
    return found


class NamedCommit(Struct, frozen=True):
    """A commit that names its story and its run."""

    commit: str
    run: str
    subject: str


def commits_by_story(repo: Repo, plan: str, branch: str) -> dict[str, list[NamedCommit]]:
    """The commits of each story of a plan on a branch, oldest first; of a long history the newest."""
    found: dict[str, list[NamedCommit]] = {}
    for commit, _, subject, trailers in _told(repo, f"refs/heads/{branch}" if branch else "HEAD"):
        mine = found.setdefault(_one(trailers, "Ralph-Story"), [])
        if _one(trailers, names.PLAN) in ("", plan) and len(mine) < _MOST_PER_STORY:
            mine.insert(0, NamedCommit(commit, _one(trailers, "Ralph-Run"), subject))
    return found


def _told(repo: Repo, ref: str = "HEAD") -> Iterator[tuple[str, float, str, Mapping[str, Sequence[str]]]]:
    """Commit, time, subject and trailers, newest first."""
    form = f"--format={_START}%H{_FIELD}%ct{_FIELD}%s{_FIELD}%(trailers:only,unfold)"
    answer = ask(repo, "log", f"-{_MOST_COMMITS}", "--grep=^Ralph-Story: ", form, "--end-of-options", ref, "--")
    if answer.code:  # a branch without a commit
        return
    for item in answer.out.decode("utf-8", "replace").split(_START)[1:]:
        commit, _, rest = item.partition(_FIELD)
        at, _, rest = rest.partition(_FIELD)
        subject, _, text = rest.partition(_FIELD)
        yield commit, float(at or 0), subject, names.parsed(text.splitlines())


def _one(trailers: Mapping[str, Sequence[str]], name: str) -> str:
    """Two different values: neither counts."""
    values = trailers.get(name, ())
    return values[0] if len(values) == 1 else ""
