"""What the choice of a place for proof depends on, what was chosen last, and what to expect of the next run."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from ralph.config.schema import Config
from ralph.core.environment import child_environment, run_marks
from ralph.core.ports import PlanRef
from ralph.host.files import make_folder, read_state, write_bytes
from ralph.host.git.checkout import Checkout
from ralph.host.git.repo import Repo
from ralph.proof.dependencies import dependency_folders, setup_command
from ralph.proof.place import InPlace, Runner
from ralph.state.places import CHECKOUT_ID, checkout_folder, plan_state, workspace_state

_KNOWN = "proof-place.json"
"""In the plan's own folder: the way that was chosen last, and for which checks and dependencies."""
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
        index_file=plan_state(ref, env) / "index",
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
        return msgspec.json.decode(read_state(request.plan_state / _KNOWN), type=Known)
    except (OSError, msgspec.DecodeError):
        return None


def remember(request: Request, known: Known) -> None:
    path = make_folder(request.plan_state, private=True) / _KNOWN
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
        reports=request.plan_state / "reports",
        note=note,
    )


def expected_place(request: Request) -> str:
    """One sentence for `ralph preflight`: where proof will run, and why. Nothing is run or written."""
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
