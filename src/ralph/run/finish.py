"""After the last iteration, while the plan is still locked: record the run, archive the plan, push."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping

from ralph.archive import commit as archive_commit
from ralph.core.environment import child_environment
from ralph.core.errors import RalphError
from ralph.core.events import IterationEnded, Proved, Record
from ralph.core.moves import BY_SIGNAL, Reason, Stop
from ralph.core.ports import PlanRef
from ralph.core.text import one_line
from ralph.host.git.checkpoint import release
from ralph.host.git.command import ask
from ralph.host.git.repo import Repo, RepositoryReplaced
from ralph.host.process.signals import StopSignal
from ralph.host.process.start import Finished, run
from ralph.journal.records import read
from ralph.plans.registry import traits
from ralph.proof.verify import pin
from ralph.run.spec import RunSpec
from ralph.state.names import INDEX
from ralph.state.places import plan_state, workspace_state
from ralph.state.runs import journal_path
from ralph.workspace.find import OpenPlan, store_for
from ralph.workspace.own_files import RequestFiles
from ralph.workspace.tracker import Tracking

Tell = Callable[[str], None]
_PUSH_TIME = 120.0
_PUSH_GRACE = 1.0


def finish_run(spec: RunSpec, stop: Stop, env: Mapping[str, str], tell: Tell) -> None:
    """A failure here is reported; it does not change the run's result."""
    try:
        _finish(spec, stop, env, tell)
    except RepositoryReplaced:
        return
    except (RalphError, OSError) as error:
        tell(f"the run ended, but the final clean-up failed: {error}")


def _finish(spec: RunSpec, stop: Stop, env: Mapping[str, str], tell: Tell) -> None:
    if stop.reason is Reason.REPOSITORY:
        return
    release(spec.repo, plan_state(spec.ref, env) / INDEX)
    complete = stop.reason is Reason.COMPLETE
    if complete or stop.reason is Reason.OPEN_FINDINGS:
        _keep_proven_tree(spec, env)
    if complete and traits(spec.ref.layout).waits_by_file:
        RequestFiles(spec.ref.root, spec.ref.folder).complete()
    if stop.reason not in BY_SIGNAL:
        # A user who stops a run does not want to wait for the project's hooks again.
        _record(spec, env, tell)
    if complete and spec.config.archive.on_complete:
        _archive(spec, env, tell)
    if complete and spec.is_parallel:
        from ralph.run.worker_clone import remove_clones  # other runs have no use for it

        remove_clones(spec.ref, spec.repo, env)


def _keep_proven_tree(spec: RunSpec, env: Mapping[str, str]) -> None:
    """For `ralph proof audit`, which compares the tree of the last full pass with the current one."""
    path = journal_path(workspace_state(spec.ref.root, env), spec.run)
    proved = [record.event.tree for record in read(path) if isinstance(record.event, Proved)]
    if proved:
        pin(spec.repo, spec.ref, proved[-1])


def _record(spec: RunSpec, env: Mapping[str, str], tell: Tell) -> None:
    """Commit the last iteration's bookkeeping, so that a run leaves a clean tree."""
    where = store_for(spec.ref, env).layout.locations(spec.ref)
    paths = [path for path in (where.plan, where.progress, where.learnings) if path and path.is_file()]
    paths += Tracking(spec.ref, spec.config, env).files(spec.repo)
    inside = [path for path in paths if path.is_relative_to(spec.repo.root)]
    steps = spec.config.steps  # a pipeline says itself whether anything is committed
    if inside and (not steps or any(step.enabled and step.type == "git-commit" for step in steps)):
        archive_commit.commit(spec.repo, inside, f"chore(ralph): record run {spec.run}", hooks=False)


def _archive(spec: RunSpec, env: Mapping[str, str], tell: Tell) -> None:
    from ralph.archive.archive import (
        Dates,  # much to import for the end of a run, and not every run has it
        owns_its_folder,
        put_away,
    )

    store = store_for(spec.ref, env)
    opened = OpenPlan(spec.ref.root, spec.ref, store.layout, store.load(), store, spec.settings)
    repo = _around(spec.ref, spec.repo)
    first, last = archive_commit.first_and_last_change(repo, spec.ref.path) if repo else ("", "")
    now = time.time()
    dates = Dates(first, last, time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now)))
    done = put_away(opened, dates, label="", keep=False, now=now, env=env)
    if repo is not None:
        paths = [done.path, *done.moved, *(spec.ref.root / path for path in done.fresh)]
        if owns_its_folder(spec.ref):
            paths = [done.path, spec.ref.folder]
        archive_commit.commit(repo, paths, f"chore: archive {done.path.name}", hooks=False)
    tell(f"archived the plan: {done.path.relative_to(spec.ref.root)}")


def _around(ref: PlanRef, repo: Repo) -> Repo | None:
    return repo if ref.root.is_relative_to(repo.root) else None


class Pusher:
    """`push: after-story`: the loop pushes what it has accepted. A failed push is only reported."""

    def __init__(
        self, repo: Repo, env: Mapping[str, str], tell: Tell, stop: StopSignal | None = None, branch: str = ""
    ) -> None:
        """`branch`: the one to push to, where a clone works for it; empty: the same as here."""
        self._repo = repo
        self._refspec = f"HEAD:refs/heads/{branch}" if branch else "HEAD"
        self._stop = stop
        self._env = child_environment(env, ("SSH_AUTH_SOCK", "SSH_AGENT_PID", "GIT_SSH_COMMAND"))
        self._tell = tell
        self._pushed = self._last_commit()

    def __call__(self, record: Record) -> None:
        event = record.event
        if isinstance(event, IterationEnded) and event.completes and event.commit:
            self._push(event.story)

    def finish(self, stop: Stop) -> None:
        """Push what was committed after the last story: the record of the run, the archive."""
        if stop.reason in (Reason.INTERRUPTED, Reason.TERMINATED, Reason.REPOSITORY):
            return
        last = self._last_commit()
        if last != self._pushed and self._push("the last commit"):
            self._tell(f"pushed to origin: {last}")

    def _last_commit(self) -> str:
        answer = ask(self._repo, "log", "-1", "--format=%h %s")
        return one_line(answer.out.decode("utf-8", "replace"), 80) if answer.code == 0 else ""

    def _push(self, what: str) -> bool:
        env = self._env | {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
        argv = ["git", "-C", os.fspath(self._repo.root), "push", "--quiet", "origin", self._refspec]
        done = run(argv, cwd=self._repo.root, env=env, timeout=_PUSH_TIME, grace=_PUSH_GRACE, stop=self._stop)
        if done.ok:
            self._pushed = self._last_commit()
        elif self._stop is not None and self._stop.requested:
            self._tell(f"did not finish pushing {what}: the run was stopped")
        else:
            self._tell(f"could not push {what}: {_why_not_pushed(done)}")
        return done.ok


def _why_not_pushed(done: Finished) -> str:
    """The line that matters: what the server says, or why a ref was rejected. Git's own last line says neither."""
    if done.timed_out:
        return f"no answer within {_PUSH_TIME:g} seconds"
    lines = [text.strip() for text in done.err.decode("utf-8", "replace").splitlines() if text.strip()]
    lines = [text for text in lines if not text.startswith(("hint:", "warning:", "To ")) and text != "remote:"]
    starts = ("! [", "remote: ", "fatal:", "ERROR", "error:")
    chosen = [next((text for text in lines if text.startswith(start)), "") for start in starts]
    some = [text for text in chosen[:2] if text] or [text for text in chosen if text][:1] or lines[-1:]
    return one_line("; ".join(some), 300) or f"exit code {done.code}"
