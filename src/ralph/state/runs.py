"""The runs of a workspace and of its worktrees: their IDs, folders and journals, the last one and the open one."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from ralph.core.errors import BadData, UsageError
from ralph.core.events import RunStarted
from ralph.core.lazy_pattern import lazy_pattern
from ralph.core.ports import PlanRef
from ralph.core.text import one_line
from ralph.host.files import make_folder, read_bytes, read_state, write_bytes
from ralph.state.locks import is_at_work
from ralph.state.names import JOURNAL, LAST_RUN, OPEN_RUNS, RUNS, WORKTREES
from ralph.state.places import as_text, plan_state, state_home, workspace_id, workspace_state
from ralph.state.streams import main_workspace, stream_folders


def new_run_id(now: float) -> str:
    """Sorts by time: the last part is the fraction of a second and a random digit."""
    fraction = int(now % 1 * 0x1000)
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(now))}-{fraction:03x}{os.urandom(1)[0] & 15:x}"


RUN_ID = lazy_pattern(r"\d{8}-\d{6}-[0-9a-f]{4}")


def last_run_id(plan_state: Path) -> str:
    """Empty if the plan has no run yet, or if the file was damaged."""
    try:
        run = read_state(plan_state / LAST_RUN)[:200].decode("utf-8", "replace").strip()
    except OSError:
        return ""
    return run if RUN_ID.fullmatch(run) else ""


def runs_folder(workspace_state: Path) -> Path:
    return workspace_state / RUNS


def journal_path(workspace_state: Path, run: str) -> Path:
    return runs_folder(workspace_state) / run / JOURNAL


def raw_name(iteration: int, step: str) -> str:
    return f"{iteration:04}-{step}.log"


def list_runs(workspace_state: Path) -> list[str]:
    """Oldest first. Only folders with a journal count."""
    folder = runs_folder(workspace_state)
    if not folder.is_dir():
        return []
    return sorted(entry.name for entry in folder.iterdir() if (entry / JOURNAL).is_file())


def find_run(runs: Sequence[str], wanted: str = "") -> str:
    """The run with this ID or a unique prefix of it; the last run if none is given."""
    if not runs:
        raise UsageError("no runs yet", hint="start one with `ralph run`")
    if not wanted:
        return runs[-1]
    matching = [run for run in runs if run.startswith(wanted)]
    if wanted in runs:
        return wanted
    if len(matching) == 1:
        return matching[0]
    hint = "`ralph runs` lists the runs"
    if matching:
        raise UsageError(f"{len(matching)} runs start with {one_line(repr(wanted), 60)}", hint=hint)
    raise UsageError(f"no run matches {one_line(repr(wanted), 60)}", hint=hint)


class OpenRun(Struct, frozen=True, kw_only=True):
    run: str
    layout: str
    root: str
    folder: str
    path: str
    name: str

    @property
    def ref(self) -> PlanRef:
        return PlanRef(self.layout, Path(self.root), Path(self.folder), Path(self.path), self.name)


def record_open_run(tree: Path, ref: PlanRef, run: str, env: Mapping[str, str]) -> None:
    """`tree`: the root of the working tree."""
    file = _file(tree, env)
    make_folder(file.parent, private=True)
    places = {name: str(getattr(ref, name)) for name in ("root", "folder", "path")}
    found = OpenRun(run=run, layout=ref.layout, name=ref.name, **places)
    text = json.dumps(msgspec.to_builtins(found))  # ASCII: a path may have bytes that are not UTF-8
    write_bytes(file, text.encode() + b"\n", mode=0o600)


def open_run(tree: Path, env: Mapping[str, str]) -> OpenRun | None:
    """The run that was started last in this working tree and has not ended. A live one counts."""
    with contextlib.suppress(OSError, BadData, ValueError, RecursionError):
        file = _file(tree, env)
        return msgspec.convert(json.loads(read_bytes(file)), OpenRun) if file.exists() else None
    return None


def forget_open_run(tree: Path, env: Mapping[str, str]) -> None:
    _file(tree, env).unlink(missing_ok=True)


def _file(tree: Path, env: Mapping[str, str]) -> Path:
    return state_home(env) / OPEN_RUNS / f"{workspace_id(tree)}.json"


def worktrees_of(root: Path, env: Mapping[str, str]) -> Iterator[tuple[Path, Path]]:
    """The worktrees of a workspace: the folder, and the workspace in it, at the same relative path.

    Streams first, then those of `ralph run --worktree`, oldest first.
    """
    folder = workspace_state(root, env) / WORKTREES
    for entry in (*stream_folders(root), *(sorted(folder.iterdir()) if folder.is_dir() else ())):
        yield entry, Path(os.path.realpath(entry / _inside_repository(root)))


def copies_of(root: Path, env: Mapping[str, str]) -> list[Path]:
    """The workspace and its copies in worktrees, oldest first."""
    return [root, *(copy for _, copy in worktrees_of(root, env))]


def family(root: Path, env: Mapping[str, str]) -> list[Path]:
    """The state folders of the workspace that a worktree was created from, and of all its worktrees."""
    root = main_workspace(root)
    everything = Path(os.path.realpath(state_home(env)))
    above = (folder.parent for folder in root.parents if folder.name == WORKTREES)
    home = next((folder for folder in above if folder.parent == everything), workspace_state(root, env))
    trees = sorted((home / WORKTREES).iterdir()) if (home / WORKTREES).is_dir() else ()
    inside = _inside_repository(root)
    return [home, *(workspace_state(tree / inside, env) for tree in (*stream_folders(root), *trees))]


def _inside_repository(root: Path) -> Path:
    top = next((folder for folder in (root, *root.parents) if (folder / ".git").exists()), root)
    return root.relative_to(top)


def moved_to(ref: PlanRef, root: Path) -> PlanRef:
    """The same plan in another copy of the workspace."""
    moved = {name: root / os.path.relpath(getattr(ref, name), ref.root) for name in ("folder", "path")}
    return msgspec.structs.replace(ref, root=root, **moved)


def is_run_of(started: RunStarted, ref: PlanRef) -> bool:
    """Whether a run of this workspace was one of this plan, which it may have worked on in a clone."""
    return plan_in_workspace(started) == os.path.relpath(as_text(ref.path), as_text(ref.root))


def plan_in_workspace(started: RunStarted) -> str:
    return os.path.relpath(started.plan, started.workspace)


def live_ref(ref: PlanRef, env: Mapping[str, str]) -> PlanRef:
    """The plan that a run is working on: the workspace's own, or the copy in a worktree if only a run there is live."""
    if is_at_work(plan_state(ref, env)):
        return ref
    copies = [moved_to(ref, root) for _, root in worktrees_of(ref.root, env)]
    live = [copy for copy in copies if copy.path.is_file() and is_at_work(plan_state(copy, env))]
    if len(live) > 1:
        listed = "; ".join(f"-d {shlex.quote(str(copy.root))}" for copy in live)
        raise UsageError(f"{len(live)} runs work on {ref.name} in worktrees", hint=f"choose one: {listed}")
    return live[0] if live else ref
