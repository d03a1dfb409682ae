"""Merge a stream into the current branch: as git objects first, then proven by the checks, then by a fast-forward.

The user's checkout is touched only by the last step, and only if its uncommitted changes are not in the way.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from ralph.config.checks import ChosenCheck, choose
from ralph.config.layers import Settings, load
from ralph.core.environment import child_environment
from ralph.core.errors import PlanError, RalphError, SetupError
from ralph.core.evidence import CheckResult
from ralph.core.plan import Plan
from ralph.core.text import one_line, plural
from ralph.engine import proof_trailers as trailers
from ralph.host.files import make_folder, read_state, write_bytes
from ralph.host.git.command import ask, git, line
from ralph.host.git.merging import commit_object, merge_onto
from ralph.host.git.objects import Changed, TreeEntry, changes, set_entries
from ralph.host.git.repo import Repo
from ralph.host.git.situation import abort_command, phrase, situation
from ralph.host.removal import remove_tree
from ralph.proof.check_run import keeper, run_check
from ralph.run.clones import copy_dependencies, digest
from ralph.run.streams import (
    Stream,
    commit_of,
    current_branch,
    is_ancestor,
    is_running,
    plan_of,
    uncommitted,
    was_killed,
)
from ralph.state.names import CHECK_OUTPUTS, MERGES
from ralph.state.places import plan_state, workspace_state
from ralph.state.runs import moved_to
from ralph.workspace.find import Choice, find_plans, store_for
from ralph.workspace.trust import gather, may_run

_MEMORY = ("progress.md", "progress.txt", "learnings.md")
"""Logs and learnings, which only grow: both sides are kept."""
_TRAILER = "%(trailers:key={},valueonly,separator=%x2C)"
_FORMAT = "%x00".join(("%H", "%s", _TRAILER.format("Ralph-Story"), _TRAILER.format(trailers.GRADE)))


class NotMerged(SetupError):
    """A stream that cannot be merged now. Nothing was changed."""


class Commit(Struct, frozen=True):
    id: str
    subject: str
    story: str
    grade: str
    """How well the story is proven, from the commit's trailers."""


class Preview(Struct, frozen=True, kw_only=True):
    """What a merge would bring in."""

    stream: str
    branch: str
    into: str
    head: str
    tip: str
    commits: tuple[Commit, ...]
    files: tuple[Changed, ...]
    done: int
    total: int


class Proven(Struct, frozen=True):
    results: tuple[CheckResult, ...] = ()
    known: frozenset[str] = frozenset()
    """Commands that fail without the stream too."""

    @property
    def failed(self) -> list[CheckResult]:
        return [each for each in self.results if each.required and not each.passed and each.command not in self.known]


Tell = Callable[[CheckResult], None]


def preview(stream: Stream, env: Mapping[str, str]) -> Preview:
    """Raises NotMerged if the stream or the checkout is in no state for a merge."""
    repo = stream.repo
    _refuse_unready(stream, env)
    head, tip = commit_of(repo, "HEAD"), stream.tip
    base = line(ask(repo, "merge-base", head, tip).out)
    plan = plan_of(stream, env)
    return Preview(
        stream=stream.name,
        branch=stream.branch,
        into=current_branch(repo),
        head=head,
        tip=tip,
        commits=tuple(_commits(repo, f"{head}..{tip}")),
        files=changes(repo, base or head, tip),
        done=sum(story.is_done for story in plan.stories) if plan else 0,
        total=len(plan.stories) if plan else 0,
    )


def _refuse_unready(stream: Stream, env: Mapping[str, str]) -> None:
    name = stream.name
    if is_running(stream, env):
        raise NotMerged(f"stream {name} is running", hint=f"wait until it ends, or `ralph stream stop {name}`")
    if was_killed(stream, env):
        raise NotMerged(f"the run of stream {name} was killed", hint=f"`ralph stream build {name}` recovers it first")
    if left := uncommitted(stream, env):
        some = ", ".join(one_line(path, 60) for path in left[:5])
        raise NotMerged(
            f"stream {name} has uncommitted work: {some}", hint=f"commit it in {stream.tree.root}, or remove it there"
        )
    found = situation(stream.repo)
    if found.in_progress:
        raise NotMerged(
            f"{phrase(found.in_progress)} is in progress in {stream.repo.root}",
            hint=f"finish it, or end it with `{abort_command(found.in_progress)}`",
        )
    if found.detached:
        raise NotMerged("HEAD is detached in your checkout", hint="`git switch BRANCH` to the branch to merge into")


def _commits(repo: Repo, span: str) -> Iterator[Commit]:
    for text in git(repo, "log", "--reverse", f"--format={_FORMAT}", span).decode("utf-8", "replace").splitlines():
        commit, subject, story, grade = text.split("\0")
        yield Commit(commit, subject, story.strip(), grade.strip())


def merge_stream(shown: Preview, stream: Stream, settings: Settings, env: Mapping[str, str], tell: Tell) -> str:
    """Prove what `preview` showed, then advance the current branch. Returns the merge commit. Raises NotMerged."""
    repo = stream.repo
    with stream.claim("stream merge"):
        commit = _merged(shown, stream)
        _refuse_in_the_way(repo, stream, shown.head, commit)
        proven = prove(stream, shown.head, commit, settings, env, tell)
        if proven.failed:
            first = proven.failed[0]
            more = f" and {len(proven.failed) - 1} more" if len(proven.failed) > 1 else ""
            raise NotMerged(
                f"the merge of {stream.name} is clean, but `{one_line(first.name, 100)}`{more} fails on the merged "
                "tree",
                hint=f"bring {shown.into} into the stream (`git -C {stream.tree.root} merge {shown.into}`), fix it "
                "there, then merge again",
            )
        _advance(repo, stream, shown, commit)
    return commit


def _merged(shown: Preview, stream: Stream) -> str:
    """The merge as a commit that no ref points to."""
    repo, base = stream.repo, line(ask(stream.repo, "merge-base", shown.head, shown.tip).out)
    merged = merge_onto(repo, shown.head, shown.tip, base)
    both = [path for path in merged.conflicts if path.startswith(".ralph/") and Path(path).name in _MEMORY]
    if conflicts := [path for path in merged.conflicts if path not in both]:
        some = ", ".join(one_line(path, 80) for path in conflicts[:10])
        raise NotMerged(
            f"{shown.branch} conflicts with {shown.into} in {some}",
            hint=f"resolve it in the stream: `git -C {stream.tree.root} merge {shown.into}`, commit, then merge again",
        )
    tree = merged.tree
    if both:
        tree = _united(stream, tree, both, (shown.head, base, shown.tip))
    message = f"Merge stream {stream.name} into {shown.into}\n\nRalph-Stream: {stream.name}\n"
    return commit_object(repo, tree, [shown.head, shown.tip], message)


def _united(stream: Stream, tree: str, paths: Sequence[str], versions: Sequence[str]) -> str:
    """The tree with the lines of both sides in these files. `versions`: ours, the merge base, theirs."""
    repo, folder = stream.repo, make_folder(stream.tree.git_dir / "ralph-union")
    try:
        git(repo, "read-tree", tree, index=folder / "merged")
        entries = {}
        for path in paths:
            for number, version in enumerate(versions):
                (folder / str(number)).write_bytes(ask(repo, "cat-file", "blob", f"{version}:{path}").out)
            text = git(repo, "merge-file", "-p", "--union", *(str(folder / str(number)) for number in range(3)))
            blob = line(git(repo, "hash-object", "-w", "--stdin", stdin=text))
            entries[os.fsencode(path)] = TreeEntry("100644", blob)
        set_entries(repo, entries, folder / "merged")
        return line(git(repo, "write-tree", index=folder / "merged"))
    finally:
        remove_tree(folder)


def prove(stream: Stream, head: str, commit: str, settings: Settings, env: Mapping[str, str], tell: Tell) -> Proven:
    """Run the checks on the merged tree, in a checkout of its own."""
    checks = checks_of(stream, settings, env)
    if not checks:
        return Proven()
    with _checked_out(stream, commit, settings, env) as root:
        results = tuple(_run(checks, root, stream, settings, env, tell))
    failed = [check for check, one in zip(checks, results, strict=True) if check.required and not one.passed]
    known: frozenset[str] = frozenset()
    if failed and settings.config.baseline == "no-worse":
        with _checked_out(stream, head, settings, env) as root:
            before = _run(failed, root, stream, settings, env, lambda result: None)
            known = frozenset(one.command for one in before if not one.passed)
    return Proven(results, known)


def checks_of(stream: Stream, settings: Settings, env: Mapping[str, str]) -> tuple[ChosenCheck, ...]:
    """The project's checks, those of the stream's finished stories, and those that proved stories of other plans."""
    found: dict[tuple[str, str], ChosenCheck] = {}
    for plan in (plan_of(stream, env), *(plan for _, plan in _other_plans(stream, settings, env))):
        if plan is not None:
            finished = plan.with_stories(story for story in plan.stories if story.is_done)
            for check in choose(settings.config, finished, None, "final"):
                found.setdefault((check.command, check.cwd), check)
    return tuple(found.values())


def _other_plans(stream: Stream, settings: Settings, env: Mapping[str, str]) -> Iterator[tuple[Path, Plan]]:
    """Of the workspace, as far as their commands are trusted."""
    for ref in find_plans(stream.main, Choice()):
        try:
            plan = store_for(ref, env).load().plan
        except (PlanError, OSError):
            continue
        is_own = os.path.relpath(ref.path, stream.main) == stream.made.path
        if not is_own and may_run(stream.main, gather(stream.main, settings, [(ref.path, plan)]), env):
            yield ref.path, plan


def settings_of(stream: Stream, env: Mapping[str, str]) -> Settings:
    """Those of the user's workspace: an agent cannot have changed them."""
    return load(root=stream.main, layout=stream.made.layout, name=None, env=env, flags={})


@contextmanager
def _checked_out(stream: Stream, commit: str, settings: Settings, env: Mapping[str, str]) -> Iterator[Path]:
    """A temporary worktree of a commit with the installed dependencies; the workspace in it."""
    home = workspace_state(stream.main, env) / MERGES / stream.name
    folder = home / stream.repo.root.name
    _remove(stream.repo, home, folder)
    make_folder(home, private=True)
    try:
        git(stream.repo, "worktree", "add", "--quiet", "--detach", str(folder), commit)
        copy_dependencies(stream.repo, folder, home / "copies.json", settings.config)
        yield Path(os.path.realpath(folder / os.path.relpath(stream.main, stream.repo.root)))
    finally:
        _remove(stream.repo, home, folder)


def _remove(repo: Repo, home: Path, folder: Path) -> None:
    if home.exists():
        ask(repo, "worktree", "remove", "--force", "--force", str(folder))
        remove_tree(home)
        ask(repo, "worktree", "prune")


def _run(
    checks: Sequence[ChosenCheck],
    root: Path,
    stream: Stream,
    settings: Settings,
    env: Mapping[str, str],
    tell: Tell,
) -> Iterator[CheckResult]:
    config = settings.config
    clean = child_environment(env, config.agent.env, everything=config.env == "caller")
    outputs = plan_state(moved_to(stream.ref, stream.main), env) / CHECK_OUTPUTS
    for check in checks:
        result = run_check(
            check.name,
            check.command,
            root=root,
            env=clean,
            timeout=min(check.timeout or config.time_ceiling, config.time_ceiling),
            cwd=check.cwd,
            required=check.required,
            keep=keeper(outputs, "merge", check),
        )
        tell(result)
        yield result


def _refuse_in_the_way(repo: Repo, stream: Stream, head: str, commit: str) -> list[str]:
    """The files that step aside: Ralph's own, as the stream copied them. Any other change in a touched file is refused,
    and so is one that is staged."""
    touched = {change.path for change in changes(repo, head, commit)}
    dirty = dict.fromkeys(entry.path for entry in situation(repo).dirty if entry.path in touched)
    aside: list[str] = []
    blocked: list[str] = []
    for path in dirty:
        is_known = digest(repo.root / path) in (stream.made.copied.get(path), _digest_in(repo, commit, path))
        (aside if is_known else blocked).append(path)
    if blocked:
        some = ", ".join(one_line(path, 60) for path in blocked[:10])
        raise NotMerged(
            f"your checkout has uncommitted changes in {plural(len(blocked), 'file')} that the merge touches: {some}",
            hint="commit or stash them, then merge again",
        )
    return aside


def _digest_in(repo: Repo, commit: str, path: str) -> str:
    found = ask(repo, "cat-file", "blob", f"{commit}:{path}")
    return hashlib.sha256(found.out).hexdigest() if found.code == 0 else ""


def _advance(repo: Repo, stream: Stream, shown: Preview, commit: str) -> None:
    """Move the branch by a fast-forward from what was shown: git refuses if it has moved, or would lose a change."""
    if current_branch(repo) != shown.into or commit_of(repo, "HEAD") != shown.head:
        raise NotMerged(f"{shown.into} has moved since the merge was proven", hint="merge again")
    saved = {path: read_state(repo.root / path) for path in _refuse_in_the_way(repo, stream, shown.head, commit)}
    try:
        for path in saved:
            (repo.root / path).unlink()
            ask(repo, "reset", "--quiet", "--", path)
            if ask(repo, "cat-file", "-e", f"HEAD:{path}").code == 0:
                git(repo, "checkout", "--quiet", "HEAD", "--", path)
        done = ask(repo, "merge", "--ff-only", "--quiet", commit)
        if done.code:
            raise NotMerged(f"git could not advance {shown.into}: {done.complaint}", hint="fix this, then merge again")
    except RalphError:
        for path, data in saved.items():
            make_folder((repo.root / path).parent)
            write_bytes(repo.root / path, data)
        raise
    if not is_ancestor(repo, commit, "HEAD"):
        raise NotMerged(f"{shown.into} was moved by another process", hint="merge again")


def merge_order(streams: Sequence[tuple[Stream, Preview]]) -> list[tuple[Stream, Preview]]:
    """Finished plans first, then the smallest change: what is sure to be good is in before what is risky."""
    return sorted(streams, key=lambda each: (each[1].done < each[1].total, len(each[1].files), each[0].name))
