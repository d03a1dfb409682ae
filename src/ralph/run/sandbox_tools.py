"""The sandbox of a plan while no run works: open it for a command or a terminal, and remove what it keeps."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from ralph.core.environment import child_environment
from ralph.core.errors import LockHeld, SetupError
from ralph.core.text import plural
from ralph.host.git.command import ask, git, identity, line
from ralph.host.git.repo import identify
from ralph.host.git.situation import situation
from ralph.host.process.enclosure import Enclosure
from ralph.host.process.programs import which
from ralph.host.removal import remove_tree
from ralph.run.clones import open_clone
from ralph.run.confinement import choose_sandbox, confined, inside
from ralph.run.launch import wants_clone
from ralph.run.spec import Launched, RunSpec
from ralph.sandbox import sbx
from ralph.sandbox.choice import Chosen
from ralph.sandbox.decisions import HostSummary, read_decisions, summary
from ralph.state.clones import Clone, forget_clone, read_clone
from ralph.state.locks import claim, describe, held_locks
from ralph.state.names import CLONES, NETWORK_LOG, PLANS, RUN_LOCK, SANDBOX
from ralph.state.places import plan_state, workspace_state
from ralph.state.runs import journal_path, open_run
from ralph.workspace.find import find_repo, repository_of

OUTSIDE_RUNS = "shell"
"""In place of a run's ID, for the log of what `ralph sandbox shell` and `exec` reached."""
_SHELLS = ("bash", "zsh", "fish", "dash", "ksh", "sh")
Tell = Callable[[str], None]


class Inside(Struct, frozen=True):
    """A sandbox that is open."""

    enclosure: Enclosure
    cwd: Path
    env: dict[str, str]
    title: str
    clone: Clone | None
    log: Path

    def state(self) -> bytes:
        """Changes when files do."""
        return git(self.cwd, "status", "--porcelain") if self.clone is not None else b""

    def refused(self) -> tuple[HostSummary, ...]:
        return tuple(host for host in summary(read_decisions(self.log)) if host.why)


@contextmanager
def open_inside(prepared: Launched, env: Mapping[str, str], tell: Tell, *, is_check: bool) -> Iterator[Inside]:
    """The sandbox as an agent has it, without its login; or as checks have it. No run may work on the plan meanwhile.

    Raises SetupError if there is none, LockHeld.
    """
    chosen = _sandbox(prepared, env)
    ref = prepared.ref
    repo = find_repo(ref, prepared.settings, env)
    spec = RunSpec(run=OUTSIDE_RUNS, ref=ref, settings=inside(prepared.settings, chosen), repo=repo)
    with _claimed(prepared, env), _in_place(spec, prepared, chosen, env, tell) as (placed, clone):
        log = journal_path(workspace_state(ref.root, env), OUTSIDE_RUNS).with_name(NETWORK_LOG)
        log.unlink(missing_ok=True)
        with confined(placed, chosen, clone, env, tell) as confinement:
            assert confinement is not None, "there is a backend"
            try:
                confinement.set_up()
            except SetupError as error:  # the command may be about what is wrong with it
                tell(str(error))
            enclosure = confinement.shell_wall()
            if is_check:
                enclosure = confinement.around_workspace() or enclosure
            child = child_environment(env, placed.config.agent.env, everything=placed.config.env == "caller")
            yield Inside(enclosure, placed.ref.root, child, chosen.title, clone, log)


def _sandbox(prepared: Launched, env: Mapping[str, str]) -> Chosen:
    reasons: list[str] = []
    chosen = choose_sandbox(prepared.settings, env, reasons.append)
    if chosen.backend is None and not reasons:
        raise SetupError("the settings say `sandbox: none`", hint="use --sandbox, or --sandbox=NAME")
    if chosen.backend is None:
        raise SetupError(reasons[0], hint="`ralph sandbox status` shows each kind of sandbox and what it needs")
    return chosen


@contextmanager
def _claimed(prepared: Launched, env: Mapping[str, str]) -> Iterator[None]:
    try:
        with claim(prepared.ref, env, "sandbox"):
            yield
    except LockHeld as error:
        error.hint = "the sandbox belongs to that run; wait until it ends, or `ralph stop`"
        raise


@contextmanager
def _in_place(
    spec: RunSpec, prepared: Launched, chosen: Chosen, env: Mapping[str, str], tell: Tell
) -> Iterator[tuple[RunSpec, Clone | None]]:
    """A clone that has work is used as it is; a new one leaves no record and no branch behind."""
    state = plan_state(spec.ref, env)
    known = read_clone(state)
    if known is not None and Path(known.tree).is_dir():
        repo = identify(Path(known.tree))
        yield replace(spec, repo=repo, is_clone=True), known
        return
    if not wants_clone(spec, chosen, env, tell):
        yield spec, None
        return
    before = _branches(spec.repo.root)
    opened = open_clone(spec, prepared.plan, env, tell)
    try:
        yield replace(spec, ref=opened.ref, repo=opened.repo, is_clone=True), opened.clone
    finally:
        forget_clone(state)
        git(opened.repo, "checkout", "--quiet", "--force", "--detach")
        if opened.clone.branch not in before:
            ask(spec.repo, "branch", "--quiet", "-D", opened.clone.branch)


def _branches(folder: Path) -> set[str]:
    return set(line(git(folder, "for-each-ref", "--format=%(refname:short)", "refs/heads")).split("\n"))


def shell_of(env: Mapping[str, str]) -> str:
    """The user's shell, if it is one that sits where the system's programs are; it has no settings of theirs inside."""
    wanted = env.get("SHELL", "")
    if Path(wanted).name in _SHELLS and wanted.startswith(("/bin/", "/usr/bin/")) and Path(wanted).is_file():
        return wanted
    return which("bash", "/usr/bin:/bin") or "/bin/sh"


# --- reset -----------------------------------------------------------------------------------------------------------


class Removed(Struct, frozen=True):
    paths: tuple[Path, ...]
    kept_branches: tuple[str, ...] = ()
    microvm: str = ""
    """The name of the sandbox of sbx that was removed."""


def reset(root: Path, env: Mapping[str, str], *, force: bool) -> Removed:
    """Remove the clones of a workspace, the home folder of its agents and what else their sandboxes keep.

    Raises LockHeld while a run works, SetupError if a clone has work that the checkout has not; with `force` that
    work stays on its branch.
    """
    state = workspace_state(root, env)
    for path, owner in held_locks(state / PLANS):
        if path.name == RUN_LOCK:
            raise LockHeld(f"a run is using the sandbox: {describe(owner)}", hint="wait until it ends, or `ralph stop`")
    records = {folder: known for folder in _folders(state / PLANS) if (known := read_clone(folder)) is not None}
    if not force:
        for known in records.values():
            _refuse_to_lose(known, env)
    removed, kept = [], []
    for folder, known in records.items():
        if _ahead(known):
            _commit_rest(known)
            kept.append(known.branch)
        forget_clone(folder)
    for folder in _folders(state / CLONES):
        for tree in _folders(folder):
            _remove_worktree(tree, kept)
        remove_tree(folder)
        removed.append(folder)
    own = state / SANDBOX
    if own.is_dir():
        remove_tree(own)
        removed.append(own)
    is_gone = _remove_microvm(root, env)
    return Removed(tuple(removed), tuple(kept), is_gone)


def _commit_rest(known: Clone) -> None:
    """What is not committed there, such as a story that was added to its plan, goes on the branch."""
    tree = Path(known.tree)
    if not tree.is_dir() or not git(tree, "status", "--porcelain", "--untracked-files=no"):
        return
    ask(tree, "checkout", "--quiet", known.branch)
    git(tree, "add", "--update")
    message = "ralph: what the clone had when it was removed"
    git(tree, "commit", "--quiet", "--no-verify", "-m", message, env_extra=identity("Ralph Loop", "ralph@localhost"))


def _remove_microvm(root: Path, env: Mapping[str, str]) -> str:
    """The one sandbox that stays: sbx has one for each workspace."""
    found = sbx.find(env)
    repository = repository_of(root, env)
    if found.why_not or repository is None:
        return ""
    name = sbx.name_of(repository)
    return name if sbx.reset(found.program, name) else ""


def _folders(parent: Path) -> list[Path]:
    return sorted(path for path in parent.iterdir() if path.is_dir()) if parent.is_dir() else []


def _refuse_to_lose(known: Clone, env: Mapping[str, str]) -> None:
    tree = Path(known.tree)
    if not tree.is_dir():
        return
    if unfinished := open_run(tree, env):
        raise SetupError(
            f"run {unfinished.run} was killed while an agent worked in {tree}",
            hint="`ralph run` recovers its work first; --force gives it up",
        )
    if ahead := _ahead(known):
        raise SetupError(
            f"branch {known.branch} has {plural(ahead, 'commit')} that your checkout does not have",
            hint=f"`git merge {known.branch}` brings the work in; --force removes the clone and keeps the branch",
        )
    dirty = [entry.path for entry in situation(identify(tree)).dirty if entry.path not in known.copied]
    if dirty:
        some = ", ".join(shlex.quote(path) for path in dirty[:3]) + (", …" if len(dirty) > 3 else "")
        raise SetupError(
            f"the clone has changes that are in no commit ({some})", hint=f"look at {tree}, or use --force"
        )


def _ahead(known: Clone) -> int:
    """How many commits the clone has that the checkout has not."""
    tree, checkout = Path(known.tree), Path(known.checkout)
    if not tree.is_dir() or not checkout.is_dir():
        return 0
    head = line(ask(checkout, "rev-parse", "--verify", "--quiet", "HEAD").out)
    found = line(ask(tree, "rev-list", "--count", f"{head}..HEAD").out) if head else ""
    return int(found or 0)


def _remove_worktree(tree: Path, kept: Sequence[str]) -> None:
    """With git, so that the repository forgets it; its branch goes too, unless it has work."""
    common = line(ask(tree, "rev-parse", "--path-format=absolute", "--git-common-dir").out)
    branch = line(ask(tree, "symbolic-ref", "--quiet", "--short", "HEAD").out)
    if not common:
        return
    ask(Path(common), "worktree", "remove", "--force", "--force", str(tree))
    remove_tree(tree)
    ask(Path(common), "worktree", "prune")
    if branch.startswith("ralph/work/") and branch not in kept:
        ask(Path(common), "branch", "--quiet", "-D", branch)
