"""Where checks prove a candidate: in the proof checkout, or, where that does not work, in the workspace."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

import msgspec
from msgspec import Struct

from ralph.config.checks import ChosenCheck
from ralph.config.schema import Config
from ralph.core.environment import child_environment, run_marks
from ralph.core.evidence import CheckResult
from ralph.core.lazy_pattern import lazy_pattern
from ralph.core.ports import PlanRef
from ralph.core.proof import Tests
from ralph.host.files import make_folder, read_state, write_bytes
from ralph.host.git.checkout import Checkout
from ralph.host.git.command import git, names
from ralph.host.git.objects import DIFF, Changed, TreeEntry, entries, parse_changes
from ralph.host.git.repo import Repo
from ralph.host.git.shadow import shadow_of
from ralph.host.git.swap import Keep, keep_nothing, swapped
from ralph.host.process.activity import changed_since
from ralph.host.process.enclosure import Enclosure
from ralph.host.process.signals import StopSignal
from ralph.host.process.start import Finished, run, shell
from ralph.host.removal import remove_tree
from ralph.proof.check_run import keeper, run_check
from ralph.proof.dependencies import (
    Copies,
    dependencies_digest,
    dependency_folders,
    is_dependency_folder,
    is_dependency_list,
    setup_command,
)
from ralph.proof.environment import HomeSettings
from ralph.proof.files import Role, role_of
from ralph.proof.results import read_tests, report_environment
from ralph.state.names import CHECKOUT_ID, INDEX, PROOF_PLACE, REPORTS
from ralph.state.places import checkout_folder, plan_state, workspace_state

BUILD_CACHES = frozenset({
    "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", "target", ".gradle", ".next", ".turbo", ".nx",
    ".parcel-cache", ".stack-work", "dist-newstyle", "_build", ".build", ".dart_tool", ".tox", ".nox",
})  # fmt: skip
"""Ignored folders that stay between candidates: without them a build starts from nothing."""
_MOST_DEPENDENCY_FILES = 200
_MOST_NAMED = 20
_DENIED = lazy_pattern(rb"permission denied|EACCES", re.IGNORECASE)


class Ran(Struct, frozen=True):
    result: CheckResult
    output: bytes
    """Bounded, but more than the tail in the result."""
    tests: Tests


Tell = Callable[[ChosenCheck, "Ran | None"], None]
"""Called with None when a check starts, and with its result when it has ended."""


def silent(check: ChosenCheck, ran: Ran | None) -> None:
    """Tell nobody."""


class Walls(Protocol):
    """The sandbox that checks run in."""

    def around_checkout(self, folder: Path, needed: Iterable[Path], hidden: Iterable[Path]) -> Enclosure | None:
        """For checks in `folder`, which need some other folders and must not see some. None: they run without one."""
        ...

    def around_workspace(self) -> Enclosure | None: ...

    def may_excuse(self) -> bool:
        """Whether a check that fails in the sandbox may be tried outside: no agent has worked yet."""
        ...

    def excuse(self, why: str) -> None:
        """Checks run without a sandbox from now on."""
        ...


class Runner(Struct, frozen=True, kw_only=True):
    """How checks are run, wherever that is."""

    ceiling: float
    walls: Walls | None = None
    stop: StopSignal | None = None
    outputs: Path | None = None
    """With a label, the whole output of a failing check is kept here."""

    @property
    def is_stopped(self) -> bool:
        return self.stop is not None and self.stop.requested

    def run(
        self,
        checks: Sequence[ChosenCheck],
        root: Path,
        env: Mapping[str, str],
        reports: Path,
        label: str,
        tell: Tell = silent,
        enclosure: Enclosure | None = None,
        *,
        may_leave: bool = False,
    ) -> Iterator[Ran]:
        """`may_leave`: a check that fails in the sandbox may be tried outside. Not in a checkout: there it could pass
        by what it finds in the workspace, and other ways to use a checkout come first."""
        for number, check in enumerate(checks):
            if self.is_stopped:
                return
            tell(check, None)
            folder = reports / str(number)
            remove_tree(folder)
            make_folder(folder, private=True)
            outputs: list[bytes] = []
            attempt = partial(
                run_check,
                check.name,
                check.command,
                root=root,
                env=report_environment(folder, env),
                timeout=min(check.timeout or self.ceiling, self.ceiling),
                cwd=check.cwd,
                required=check.required,
                stop=self.stop,
                keep=keeper(self.outputs, label, check) if self.outputs and label else None,
                read=outputs.append,
            )
            result = attempt(enclosure=enclosure)
            is_tried = may_leave and enclosure is not None and not result.passed
            if is_tried and self.walls is not None and self.walls.may_excuse():
                inside, outputs[:] = list(outputs), []
                outside = attempt()
                if outside.passed:
                    said = telling_line(b"".join(inside).decode("utf-8", "replace"))
                    self.walls.excuse(f"`{check.command}` fails in it: {said}")
                    result, enclosure = outside, None
                else:
                    outputs[:] = inside
            output = b"".join(outputs)
            tests = read_tests(check.command, output, folder, root / check.cwd)
            if not result.passed:
                failed = sorted(name for name, state in tests.names.items() if state == "failed")
                result = msgspec.structs.replace(result, failed=tuple(failed[:_MOST_NAMED]))
            ran = Ran(result, output, tests)
            tell(check, ran)
            yield ran


class Place(Protocol):
    """`begin` for every candidate, then `run` for it and for variants of it."""

    where: str
    """`checkout` or `in-place`."""
    note: str
    """What to tell the user once, at the start. Empty: nothing."""
    limits: tuple[str, ...]
    """What the proof of this candidate does not cover."""

    def compose(self, base: str, files: Mapping[str, bytes | None]) -> str: ...

    def begin(self, candidate: str, snapshot: str, keep: Keep = keep_nothing) -> None:
        """`snapshot` is the working tree, byte by byte; `candidate` is what would be committed of it.

        `keep`: keeps the working tree while checks run on something else in its place.
        """
        ...

    def run(
        self, tree: str, checks: Sequence[ChosenCheck], *, label: str = "", tell: Tell = silent
    ) -> tuple[Ran, ...]: ...


class CheckoutPlace:
    where = "checkout"

    def __init__(
        self,
        checkout: Checkout,
        runner: Runner,
        env: Mapping[str, str],
        *,
        root: Path,
        copies: Copies,
        setup: str = "",
        is_set_up: bool = False,
        recopy: Callable[[], None] = lambda: None,
    ) -> None:
        self.note = ""
        self.limits: tuple[str, ...] = ()
        self.checkout = checkout
        self.env = env
        self.root = root
        """Where checks run: the folder that corresponds to the workspace."""
        self._runner = runner
        self._copies = copies
        self._setup = setup
        """The command that installs dependencies, configured or detected."""
        self._is_set_up = is_set_up
        """Dependencies come from that command, not from copies."""
        self._recopy = recopy
        self.fence: Enclosure | None = None
        """Hides the workspace, and more, from the checks."""
        self.is_walled = False
        """It is a sandbox, in which everything of the candidate runs."""
        self.tried: frozenset[tuple[str, str]] = frozenset()
        """Command and folder of checks that are known to pass behind it."""
        self.weaker: Callable[[ChosenCheck], Sequence[Enclosure | None]] = lambda check: ()
        self._digest = ""
        """Of the dependencies that are installed here."""
        self._reports = checkout.folder / ".reports"
        self.watched: tuple[Path, ...] = ()
        """Packages outside the repository that the checks use: an agent may have changed them."""
        self.settings: HomeSettings | None = None
        """What the home folder of the checkout had when this place was chosen."""
        self._since = time.time()

    def compose(self, base: str, files: Mapping[str, bytes | None]) -> str:
        return self.checkout.compose(base, files)

    def begin(self, candidate: str, snapshot: str = "", keep: Keep = keep_nothing) -> None:
        self.limits = ()
        remove_tree(self._reports)
        if self.settings:
            self.settings.restore()
        self.checkout.move(candidate)
        self.checkout.scrub(BUILD_CACHES | self._builds())
        if not self._is_set_up and (lost := self._copies.repair()):
            listed = ", ".join(os.path.relpath(name, self.checkout.path) for name in lost)
            self.limits += (f"checks changed {listed} in the checkout, and it could not be restored",)
        if changed := changed_since(self.watched, self._since):
            self.limits += (f"{changed}, outside the repository, changed during the run",)
        if (digest := self.dependencies(candidate)) != self._digest:
            self._renew(digest)

    def run(self, tree: str, checks: Sequence[ChosenCheck], *, label: str = "", tell: Tell = silent) -> tuple[Ran, ...]:
        self.checkout.move(tree)
        make_folder(self._reports, private=True)
        make_folder(Path(self.env["TMPDIR"]), private=True)
        return tuple(ran for check in checks for ran in self._run_one(check, label, tell))

    def _run_one(self, check: ChosenCheck, label: str, tell: Tell) -> Iterator[Ran]:
        """A check that was not tried when the run started may need a folder that is hidden from the others."""
        if not self._runner.is_stopped:
            tell(check, None)
        fences = [
            self.fence,
            *(self.weaker(check) if self.fence and (check.command, check.cwd) not in self.tried else ()),
        ]
        for fence in fences:
            results = list(self._runner.run([check], self.root, self.env, self._reports, label, enclosure=fence))
            if not any(_DENIED.search(ran.output) for ran in results if not ran.result.passed):
                break
        if fence is not self.fence and any(ran.result.passed for ran in results):
            self.limits += (f"`{check.command}` passes only if it can read files outside the checkout",)
        for ran in results:
            tell(check, ran)
        yield from results

    def prepare(self, tree: str) -> str:
        """Move to a tree and install what it needs. Returns why that failed, or an empty string."""
        self.checkout.move(tree)
        self._digest = self.dependencies(tree)
        mark = self.checkout.git_dir / "installed"
        wanted = f"{self._setup}\n{self._digest}\n"
        if not self._is_set_up or (mark.is_file() and mark.read_text() == wanted):
            return ""
        mark.unlink(missing_ok=True)
        if reason := self._run_setup():
            return reason
        mark.write_text(wanted)
        return ""

    def dependencies(self, tree: str) -> str:
        files = {path: name for path, name in self.checkout.files(tree).items() if is_dependency_list(path)}
        files = dict(sorted(files.items(), key=lambda item: (item[0].count("/"), item[0]))[:_MOST_DEPENDENCY_FILES])
        contents = self.checkout.contents(set(files.values()))
        return dependencies_digest({path: contents.get(name, b"") for path, name in files.items()})

    def shell(self, command: str, cwd: str = "", timeout: float = 60) -> Finished:
        enclosure = self.fence if self.is_walled else None
        return run(
            shell(command),
            cwd=self.root / cwd,
            env=self.env,
            timeout=timeout,
            stop=self._runner.stop,
            enclosure=enclosure,
        )

    def _builds(self) -> set[str]:
        """`build` is a cache of compiled files in some projects, and anything in others."""
        makers = ("CMakeLists.txt", "build.gradle", "build.gradle.kts", "meson.build")
        return {"build"} if any((self.checkout.path / name).is_file() for name in makers) else set()

    def _renew(self, digest: str) -> None:
        """The candidate lists other dependencies than those that are installed here."""
        self._digest = digest
        reason = self._run_setup() if self._setup else "there is no set-up command"
        if not reason:
            return
        self.limits += (f"dependencies changed: those installed in the workspace were used ({reason})",)
        with contextlib.suppress(Exception):
            self._recopy()

    def _run_setup(self) -> str:
        make_folder(Path(self.env["TMPDIR"]), private=True)
        done = self.shell(self._setup, timeout=self._runner.ceiling)
        if done.ok:
            self._copies.accept()
            self.checkout.kept = tuple(dict.fromkeys((*self.checkout.kept, *dependency_folders(self.checkout))))
            return ""
        return f"`{self._setup}` failed: {telling_line((done.out + done.err).decode('utf-8', 'replace'))}"


class InPlace:
    """The workspace itself. Other trees are put into it while checks run."""

    where = "in-place"

    def __init__(
        self,
        checkout: Checkout,
        repo: Repo,
        index_file: Path,
        runner: Runner,
        env: Mapping[str, str],
        *,
        root: Path,
        reports: Path,
        note: str = "",
    ) -> None:
        self.note = note
        self.limits: tuple[str, ...] = ()
        self._checkout = checkout
        self._repo = repo
        self._index_file = index_file
        self._runner = runner
        self._env = env
        self.root = root
        self._reports = reports
        self._keep: Keep = keep_nothing
        self._candidate = self._snapshot = ""

    def compose(self, base: str, files: Mapping[str, bytes | None]) -> str:
        return self._checkout.compose(base, files)

    def begin(self, candidate: str, snapshot: str, keep: Keep = keep_nothing) -> None:
        remove_tree(self._reports)
        self._candidate, self._snapshot, self._keep = candidate, snapshot, keep

    def run(self, tree: str, checks: Sequence[ChosenCheck], *, label: str = "", tell: Tell = silent) -> tuple[Ran, ...]:
        make_folder(self._reports, private=True)
        todo = self._back_to_snapshot(tree) if tree != self._candidate else []
        shadow = shadow_of(self._repo, self._index_file)
        # An index of its own: the private one would list blobs that only the checkout has.
        index = self._index_file.with_name(f"{self._index_file.name}.swapped")
        composed = msgspec.structs.replace(shadow, objects=self._checkout.git_dir / "objects", index=index)
        with swapped(composed, todo, self._keep) if todo else contextlib.nullcontext():
            enclosure = self._runner.walls.around_workspace() if self._runner.walls else None
            return tuple(
                self._runner.run(
                    checks, self.root, self._env, self._reports, label, tell, enclosure=enclosure, may_leave=True
                )
            )

    def _back_to_snapshot(self, tree: str) -> list[Changed]:
        """From `tree` to what is in the workspace now, for the paths in which `tree` differs from the candidate."""
        now = entries(self._repo, self._snapshot)
        nothing = TreeEntry("000000", self._repo.no_object)
        todo = []
        out = git(self._checkout, "diff-tree", "-r", "-z", "--raw", *DIFF, tree, self._candidate)
        for change in parse_changes(out):
            new = now.get(change.raw, nothing)
            status = "D" if new is nothing else "A" if change.status == "A" else "M"
            if change.is_submodule or (new is nothing and change.status == "A"):
                continue
            todo.append(Changed(change.path, status, change.old_mode, new.mode, change.old_id, new.id, change.raw))
        return todo


def telling_line(output: str) -> str:
    """The line of a failing command's output that says most: the last error, else the last line."""
    lines = [text.strip() for text in output.splitlines() if text.strip(" =-_")]
    signs = ("No module named", "Cannot find", "not found", "No such file", "Error:", "error:", "ERR!", "fatal:")
    for sign in signs:
        if chosen := next((text for text in reversed(lines) if sign in text), ""):
            return chosen.removeprefix("E ").strip()[:200]
    return lines[-1][:200] if lines else "no output"


IN_PLACE = "in-place"


class Request(Struct, frozen=True, kw_only=True):
    """What the choice depends on."""

    repo: Repo
    workspace: Path
    """Where checks run without a checkout; mostly the root of the repository."""
    state: Path
    """Of the workspace."""
    plan_state: Path
    index_file: Path
    run: str
    env: Mapping[str, str]
    """Of the caller."""
    runner: Runner
    where: str = "checkout"
    setup: str = "auto"
    files: tuple[str, ...] = ()
    agent_env: tuple[str, ...] = ()
    pass_all_env: bool = True


def request_for(
    ref: PlanRef, repo: Repo, config: Config, env: Mapping[str, str], run: str = "", runner: Runner | None = None
) -> Request:
    """`run` and `runner` are needed only to run checks."""
    return Request(
        repo=repo,
        workspace=ref.root,
        state=workspace_state(ref.root, env),
        plan_state=plan_state(ref, env),
        index_file=plan_state(ref, env) / INDEX,
        run=run,
        env=env,
        runner=runner or Runner(ceiling=config.time_ceiling),
        where=config.proof.where,
        setup=config.proof.setup,
        files=config.proof.files,
        agent_env=config.agent.env,
        pass_all_env=config.env == "caller",
    )


class Known(Struct, frozen=True):
    key: str
    way: str
    note: str = ""
    hidden: str = ""
    setup: str = ""
    files: tuple[str, ...] = ()
    """The settings at that time."""


def last_choice(request: Request) -> Known | None:
    try:
        return msgspec.json.decode(read_state(request.plan_state / PROOF_PLACE), type=Known)
    except (OSError, msgspec.DecodeError):
        return None


def remember(request: Request, known: Known) -> None:
    path = make_folder(request.plan_state, private=True) / PROOF_PLACE
    write_bytes(path, msgspec.json.encode(known), mode=0o600, durable=False)


def workspace_place(request: Request, note: str = "") -> InPlace:
    """The workspace itself, with the caller's environment."""
    base = child_environment(request.env, request.agent_env, everything=request.pass_all_env)
    return InPlace(
        make_checkout(request),
        request.repo,
        request.index_file,
        request.runner,
        base | dict([run_marks(request.run)[0]]),
        root=request.workspace,
        reports=request.plan_state / REPORTS,
        note=note,
    )


def expected_place(request: Request) -> str:
    """One sentence for `ralph doctor preflight`: where proof will run, and why. Nothing is run or written."""
    if request.where == IN_PLACE:
        return "proof runs in the workspace (proof.where: in-place)"
    if counterpart(request, Path("/")) is None:
        return elsewhere(request)
    known = last_choice(request)
    if known is not None and (known.setup, known.files) != (request.setup, request.files):
        known = None
    if known is not None and known.way == IN_PLACE:
        return known.note
    if request.setup not in ("auto", "none"):
        return f"proof runs in a clean checkout, after `{request.setup}`"
    found = dependency_folders(request.repo)
    setup, folders = setup_of(request, found), ", ".join(found[:5])
    means = f", with a copy of {folders}" if folders else f", set up by `{setup}` if needed" if setup else ""
    return f"proof runs in a clean checkout{means}" + ("" if known else "; the first run tests that")


def make_checkout(request: Request) -> Checkout:
    seed = request.state / CHECKOUT_ID
    if not seed.exists():
        make_folder(request.state, private=True)
        write_bytes(seed, os.urandom(16).hex().encode(), mode=0o600)
    return Checkout(request.repo, checkout_folder(request.state, request.env))


def counterpart(request: Request, checkout: Path) -> Path | None:
    """The folder of the checkout, in `checkout`, that corresponds to the workspace. None: there is none."""
    root, workspace = request.repo.root, request.workspace
    if workspace.is_relative_to(root):
        return checkout / root.name / workspace.relative_to(root)
    return checkout if root.parent == workspace else None


def elsewhere(request: Request) -> str:
    return f"proof runs in the workspace: the repository {request.repo.root} is not directly in it"


def setup_of(request: Request, folders: Sequence[str]) -> str:
    if request.setup == "none":
        return ""
    if request.setup != "auto":
        return request.setup
    try:
        present = [entry.name for entry in os.scandir(request.repo.root)]
    except OSError:
        return ""
    return setup_command(present, folders)


_MOST_LISTED = 2000
_CODE = frozenset({Role.SOURCE, Role.TEST, Role.HELPER})


def ignored_work(repo: Repo, since: float) -> tuple[str, ...]:
    """Ignored source files of the repository that were written since a time, with paths from its root."""
    listed = git(repo, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
    found = set()  # git may list a folder and what is in it
    for raw in names(listed)[:_MOST_LISTED]:
        path = os.fsdecode(raw)
        if not BUILD_CACHES.isdisjoint(path.split("/")):  # pytest's cache ignores itself: git lists what is in it
            continue
        for name in _files(repo.root, path) if path.endswith("/") else [path]:
            if role_of(name) in _CODE and _written(repo.root / name) >= since:
                found.add(name)
    return tuple(sorted(found))


def _files(root: Path, folder: str) -> Iterator[str]:
    """Without caches and installed dependencies."""
    if folder.rstrip("/").rpartition("/")[2] == ".ralph" or is_dependency_folder(root, folder):
        return
    count = 0
    for where, folders, files in os.walk(root / folder):
        folders[:] = [each for each in folders if each not in BUILD_CACHES]
        for each in files:
            count += 1
            if count > _MOST_LISTED:
                return
            yield os.path.relpath(f"{where}/{each}", root)


def _written(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except OSError:
        return 0
