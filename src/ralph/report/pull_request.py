"""A pull request with the report of a run as its text, through GitHub's program `gh`, for the user.

An agent never gets here: the command refuses inside a loop, and the guard denies it, as it denies `gh pr create`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct

from ralph.core.errors import SetupError, UsageError
from ralph.core.review import OPEN_FINDINGS
from ralph.core.text import one_line, plural
from ralph.host.git.command import ask, ask_plainly
from ralph.host.git.repo import Repo
from ralph.host.process.programs import which
from ralph.host.process.start import Finished, run
from ralph.report.report import Report

_LONGEST = 60_000
"""GitHub refuses a text of more than 65,536 characters."""
_LONGEST_TITLE = 72
_PATIENCE = 120.0
_MAIN = ("main", "master", "trunk", "develop")
_MENTION = re.compile(r"@(?=[A-Za-z0-9])")
_ADDRESS = re.compile(r"https?://\S+")
_NOT_LOGGED_IN = 4
"""The exit code of gh for it."""


class PullRequest(Struct, frozen=True, kw_only=True):
    branch: str
    base: str
    remote: str
    title: str
    body: str
    is_pushed: bool
    """The remote has the branch as it is here."""
    unknown: tuple[str, ...] = ()
    """What is missing before it can be opened. Only a draft has any."""


def prepare(
    repo: Repo, report: Report, body: str, *, base: str = "", remote: str = "", title: str = "", is_draft: bool = False
) -> PullRequest:
    """Raises an error that says what is missing; for a draft, that is in `unknown`. Changes nothing."""
    accepted = [story for story in report.stories if story.state in ("done", OPEN_FINDINGS) and story.commits]
    if not accepted:
        name = report.explanation.run
        raise UsageError(f"run {name} has no accepted story with a commit", hint="`ralph report` shows what it did")
    commits = [commit.id for story in accepted for commit in story.commits]
    unknown: list[str] = []

    def known(find: Callable[[], str]) -> str:
        try:
            return find()
        except (SetupError, UsageError) as error:
            if not is_draft:
                raise
            unknown.append(f"{error}; {error.hint}")
            return ""

    where = remote or known(lambda: _remote_of(repo, report.branch))
    target = base or (known(lambda: _main_branch(repo, where)) if where else "")
    branch = known(lambda: _branch_of(repo, report, commits, target, where))
    pushed = known(lambda: _pushed(repo, where, branch)) if where and branch else ""
    return PullRequest(
        branch=branch,
        base=target,
        remote=where,
        title=one_line(title, 250) or _title(report, [story.title for story in accepted]),
        body=text_for_github(body),
        is_pushed=bool(pushed) and pushed == _commit(repo, f"refs/heads/{branch}"),
        unknown=tuple(unknown),
    )


def _branch_of(repo: Repo, report: Report, commits: list[str], base: str, remote: str) -> str:
    """The run's, else the one that is checked out now, if the work is on it and it is not the base."""
    own, name = report.branch, report.explanation.run
    tip = _commit(repo, f"refs/heads/{own}") if own else ""
    has_work = bool(tip) and any(_is_in(repo, commit, tip) for commit in commits)
    if has_work and own != base:
        return own
    current = _line(repo, "symbolic-ref", "--quiet", "--short", "HEAD")
    if current not in ("", own, base) and all(_is_in(repo, commit, f"refs/heads/{current}") for commit in commits):
        return current
    if not own:
        raise SetupError(f"run {name} worked without a branch", hint="`git switch -c NAME`, then `ralph pr`")
    if not has_work:
        hint = "`ralph explain` says where it is and how to merge it"
        raise SetupError(f"the accepted work of run {name} is not on branch {own}", hint=hint)
    hint = (
        f"`git switch -c NAME`, then `ralph pr`. Local {own} keeps the commits, too, until "
        f"`git branch -f {own} {remote or 'REMOTE'}/{own}`. `ralph run --worktree` works on a branch of its own"
    )
    raise UsageError(f"the run worked on {own} itself; a pull request needs a branch of its own", hint=hint)


def text_for_github(text: str) -> str:
    """No name that an agent or a plan wrote notifies anybody, and the text is not too long."""
    text = _MENTION.sub("@<!-- -->", text)
    if len(text) <= _LONGEST:
        return text
    return text[:_LONGEST].rpartition("\n")[0] + "\n\n… cut here; `ralph report --markdown -` prints all of it\n"


def push(repo: Repo, wanted: PullRequest) -> None:
    """As the user would: with the project's hooks and the user's credentials, never with force."""
    ref = f"refs/heads/{wanted.branch}"
    done = ask_plainly(repo.root, "push", "--set-upstream", wanted.remote, f"{ref}:{ref}", timeout=_PATIENCE * 5)
    if done.code:
        hint = f"try `git push {wanted.remote} {wanted.branch}` yourself; Ralph never pushes with force"
        raise SetupError(f"could not push {wanted.branch} to {wanted.remote}: {done.complaint}", hint=hint)


def open_request(repo: Repo, wanted: PullRequest, env: Mapping[str, str], *, draft: bool = False) -> str:
    """The address of the new pull request."""
    words = ["pr", "create", "--base", wanted.base, "--head", wanted.branch, "--title", wanted.title]
    done = gh(repo.root, [*words, "--body-file", "-", *(["--draft"] if draft else [])], wanted.body, env)
    return _address(done)


def comment(root: Path, which_one: str, body: str, env: Mapping[str, str]) -> str:
    """The address of the comment. An earlier one of this user's stays as it is."""
    return _address(gh(root, ["pr", "comment", which_one, "--body-file", "-"], text_for_github(body), env))


def require_gh(root: Path, env: Mapping[str, str]) -> str:
    """A `gh` that the workspace brings along does not count."""
    if found := which("gh", env.get("PATH", os.defpath), outside=root):
        return found
    hint = "install it from https://cli.github.com, or paste what `ralph pr --dry-run` prints"
    raise SetupError("gh, GitHub's program for the command line, is not installed", hint=hint)


def gh(root: Path, words: list[str], body: str, env: Mapping[str, str]) -> Finished:
    """Run GitHub's program. Raises SetupError with what it says if it fails."""
    settings = {"GH_PROMPT_DISABLED": "1", "GH_NO_UPDATE_NOTIFIER": "1", "NO_COLOR": "1"}
    argv = [require_gh(root, env), *words]
    done = run(argv, cwd=root, env={**env, **settings}, stdin=body.encode("utf-8", "replace"), timeout=_PATIENCE)
    if done.ok:
        return done
    lines = [line for line in done.err.decode("utf-8", "replace").splitlines() if line.strip()]
    said = one_line(" ".join(lines[-2:]), 400) or (
        f"no answer within {_PATIENCE:g} seconds" if done.timed_out else f"exit code {done.code}"
    )
    hint = "`gh auth status` says whether you are logged in, and to what"
    if "already exists" in said:
        hint = f"add the report to it: `ralph pr --comment {_found(said)}`".rstrip()
    elif done.code == _NOT_LOGGED_IN:
        hint = "`gh auth login`, or set GH_TOKEN"
    raise SetupError(f"gh {' '.join(words[:2])}: {said}", hint=hint)


def _found(text: str) -> str:
    found = _ADDRESS.search(text)
    return found[0] if found else "NUMBER"


def _address(done: Finished) -> str:
    lines = done.out.decode("utf-8", "replace").split()
    return next((word for word in reversed(lines) if _ADDRESS.fullmatch(word)), "")


def _title(report: Report, titles: list[str]) -> str:
    if len(titles) == 1:
        return one_line(titles[0], _LONGEST_TITLE)
    return one_line(f"{report.explanation.plan or 'Ralph'}: {plural(len(titles), 'story')}", _LONGEST_TITLE)


def _commit(repo: Repo, ref: str) -> str:
    return _line(repo, "rev-parse", "--quiet", "--verify", f"{ref}^{{commit}}")


def _is_in(repo: Repo, commit: str, tip: str) -> bool:
    return ask(repo, "merge-base", "--is-ancestor", commit, tip).code == 0


def _remote_of(repo: Repo, branch: str) -> str:
    """Where git itself would push the branch, else the only remote."""
    remotes = _text(ask(repo.root, "remote").out).split()
    if not remotes:
        raise SetupError("the repository has no remote", hint="`git remote add origin URL`")
    keys = (f"branch.{branch}.pushRemote", "remote.pushDefault", f"branch.{branch}.remote")
    own = next((name for key in keys if (name := _line(repo, "config", "--get", key)) in remotes), "")
    if own or "origin" in remotes or len(remotes) == 1:
        return own or ("origin" if "origin" in remotes else remotes[0])
    raise UsageError(f"there are {len(remotes)} remotes: {', '.join(remotes)}", hint="choose one with --remote")


def _main_branch(repo: Repo, remote: str) -> str:
    """What the remote calls its main branch, else the one that is usual and there."""
    known = f"refs/remotes/{remote}/"
    if head := _line(repo, "symbolic-ref", "--quiet", f"{known}HEAD").removeprefix(known):
        return head
    if found := next((name for name in _MAIN if _commit(repo, known + name)), ""):
        return found
    raise UsageError(f"the main branch of {remote} is not known here", hint="pass it: --base BRANCH")


def _pushed(repo: Repo, remote: str, branch: str) -> str:
    """The commit that the branch has on the remote. Empty: it is not there."""
    done = ask_plainly(repo.root, "ls-remote", remote, f"refs/heads/{branch}", timeout=_PATIENCE)
    if done.code:
        hint = f"`git ls-remote {remote}` must work before a pull request can be opened"
        raise SetupError(f"cannot reach {remote}: {done.complaint}", hint=hint)
    rows = (line.split("\t") for line in _text(done.out).splitlines())
    return next((tip for tip, *ref in rows if ref == [f"refs/heads/{branch}"]), "")


def _line(repo: Repo, *args: str) -> str:
    answer = ask(repo.root, *args)
    return _text(answer.out).strip() if answer.code == 0 else ""


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
