"""Where a plan goes: a new place, a plan with nothing but examples, or a plan that already has stories."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ralph.config.layers import Settings, load
from ralph.core.errors import BadData
from ralph.core.plan import Plan
from ralph.core.ports import Naming, PlanRef
from ralph.core.text import without_comments
from ralph.host.files import read_bytes
from ralph.planning.add import is_untouched
from ralph.plans.json_text import Style, dump
from ralph.plans.registry import traits
from ralph.plans.store import Loaded, PlanStore, Sidecar
from ralph.prompts.templates import library, render
from ralph.setup.project_files import RealTree
from ralph.setup.scaffold import (
    DEFAULT_LAYOUT,
    Request,
    branch_prefix,
    fresh_files,
    refer,
    refuse_two_plans_in_one_folder,
)
from ralph.setup.toolchain import ProposedCheck, Toolchain, find
from ralph.workspace.find import Choice, find_plans, store_for
from ralph.workspace.lint import has_checks

_LARGEST = 1_000_000
_PROPOSED = "proposed with the plan"


class Target(Struct, frozen=True):
    ref: PlanRef
    request: Request
    store: PlanStore
    settings: Settings
    toolchain: Toolchain
    base: Loaded
    """The current plan, or the initial content of a new one."""
    exists: bool
    """The plan file exists."""
    requirements: Path
    written: str = ""
    """The text of the requirements page, if the user has written any."""
    on_disk: bytes = b""
    """The plan file as it was read; empty if there is none."""

    @property
    def plan(self) -> Plan:
        return self.base.plan

    @property
    def has_stories(self) -> bool:
        """The plan has the user's stories: new ones are added, and nothing else changes."""
        return self.exists and not is_untouched(self.plan)

    @property
    def has_proposed_checks(self) -> bool:
        """Commands for the whole project that an agent proposed."""
        return any(check.why == _PROPOSED for check in self.toolchain.checks)

    @property
    def has_checks(self) -> bool:
        return has_checks(self.settings.config) or bool(self.toolchain.checks)


def find_target(
    request: Request, env: Mapping[str, str], *, any_layout: bool, flags: Mapping[str, Any] | None = None
) -> Target:
    """`any_layout`: no layout was requested, so the only existing plan is used, if there is exactly one."""
    ref = _existing(request) if any_layout else None
    ref = ref or refer(request)
    refuse_two_plans_in_one_folder(ref)
    request = msgspec.structs.replace(_pinned(request, ref), branch_prefix=branch_prefix(ref.root, ref.layout, env))
    toolchain = find(RealTree(ref.root))
    settings = load(root=ref.root, layout=ref.layout, name=None, env=env, flags=dict(flags or {}))
    return _open(ref, request, settings, toolchain, env)


def plan_target(ref: PlanRef, settings: Settings, now: float, env: Mapping[str, str]) -> Target:
    """An existing plan to add to."""
    return _open(ref, Request(root=ref.root, layout=ref.layout, now=now), settings, find(RealTree(ref.root)), env)


def _open(ref: PlanRef, request: Request, settings: Settings, toolchain: Toolchain, env: Mapping[str, str]) -> Target:
    store = store_for(ref, env)
    exists = ref.path.exists()
    base = store.load() if exists else _beginning(ref, request, toolchain, store)
    where = store.layout.locations(ref)
    page = where.requirements or (where.specs or ref.folder) / "requirements.md"
    on_disk = base.source if exists else b""
    return Target(ref, request, store, settings, toolchain, base, exists, page, _written(page, ref.root), on_disk)


def with_checks(target: Target, commands: tuple[str, ...], env: Mapping[str, str]) -> Target:
    """Commands that the planner proposes for the whole project are used only if the project has none."""
    own = target.plan.verify or has_checks(target.settings.config) if target.exists else target.toolchain.checks
    if not commands or own or target.has_stories:
        return target
    names = [f"check-{number}" if number > 1 else "check" for number in range(1, len(commands) + 1)]
    checks = [
        ProposedCheck(name, command, _PROPOSED, "not found in any file of the project")
        for name, command in zip(names, commands, strict=True)
    ]
    toolchain = Toolchain(tuple(checks), (), target.toolchain.warnings)
    if not target.exists:
        return _open(target.ref, target.request, target.settings, toolchain, env)
    target = msgspec.structs.replace(target, toolchain=toolchain)
    if traits(target.ref.layout).keeps_checks:  # what `ralph init` wrote is kept, with its commands
        return _with_key(target, "verifyCommands", list(commands))
    listed = msgspec.json.encode([{"name": check.name, "command": check.command} for check in checks]).decode()
    settings = {**target.request.settings, "checks": listed}
    return msgspec.structs.replace(target, request=msgspec.structs.replace(target.request, settings=settings))


def described(target: Target, description: str) -> Target:
    """A new plan in JSON gets a one-sentence description."""
    if target.has_stories or not description.strip() or target.ref.path.suffix != ".json":
        return target
    return (
        target if target.exists and target.plan.description else _with_key(target, "description", description.strip())
    )


def _with_key(target: Target, key: str, value: Any) -> Target:
    document: dict[str, Any] = msgspec.json.decode(target.base.source)
    document[key] = value
    return msgspec.structs.replace(target, base=_loaded(target.store, dump(document, Style()) + b"\n"))


def _existing(request: Request) -> PlanRef | None:
    layout = "" if request.layout == DEFAULT_LAYOUT else request.layout
    found = find_plans(request.root, Choice(layout, ralph_dir=request.ralph_dir))
    if request.name:
        found = [ref for ref in found if ref.name in (request.name, f"PRD-{request.name}")]
    return found[0] if len(found) == 1 and found[0].path.exists() else None


def _pinned(request: Request, ref: PlanRef) -> Request:
    """The same request, with the fields that select exactly this plan."""
    known = traits(ref.layout)
    if known.naming is Naming.SINGLE:
        return msgspec.structs.replace(request, layout=ref.layout)
    if known.any_folder and ref.folder.parent != ref.root / ".ralph":
        folder = ref.folder.relative_to(ref.root).as_posix()
        return msgspec.structs.replace(request, layout=ref.layout, ralph_dir=folder)
    return msgspec.structs.replace(request, layout=ref.layout, name=ref.name.removeprefix("PRD-"))


def _beginning(ref: PlanRef, request: Request, toolchain: Toolchain, store: PlanStore) -> Loaded:
    name = ref.path.relative_to(ref.root).as_posix()
    [source] = [file.data for file in fresh_files(ref, request, toolchain) if file.path == name]
    return _loaded(store, source)


def _loaded(store: PlanStore, source: bytes) -> Loaded:
    plan = store.layout.parse(source, str(store.ref.path))
    return Loaded(plan, plan, source, Sidecar())


def _written(page: Path, root: Path) -> str:
    """Empty if the page is only the template of a new plan."""
    with contextlib.suppress(BadData):
        text = read_bytes(page, within=root, limit=_LARGEST).decode("utf-8-sig", "replace")
        return text if _own_words(text) else ""
    return ""


def _own_words(text: str) -> set[str]:
    """Lines that are in no template and no comment: comments change from release to release."""
    known: set[str] = set()
    for name in ("prd", "requirements"):
        known |= {line.strip() for line in render(library(name), {"PROJECT_NAME": ""}, name).splitlines()}
    known.add("What is wanted, and why. The tasks come from this page.")
    lines = {line.strip() for line in without_comments(text).splitlines()}
    return {line for line in lines - known if line and not line.startswith("# ")}
