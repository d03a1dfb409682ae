"""Finds and opens the workspace and the plan that a command is about."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from ralph.config.layers import Settings, load
from ralph.core.errors import PlanError, SetupError, UsageError
from ralph.core.names import plain_path, prd_number, safe_name
from ralph.core.plan import Plan
from ralph.core.ports import Layout, Naming, PlanRef
from ralph.core.text import one_line
from ralph.host.files import read_state
from ralph.host.git.repo import Repo, find_repository, identify
from ralph.plans.registry import IN_ANY_FOLDER, LAYOUTS, detect, layouts_in, plan_in, traits
from ralph.plans.store import Loaded, PlanStore
from ralph.state.clones import current
from ralph.state.names import SIDECAR
from ralph.state.places import home, plan_state
from ralph.workspace.settings_check import chosen_layout

_PLANS_OUTSIDE = (f"ralph/{IN_ANY_FOLDER}", "scripts/ralph/prd.json", "ralph/prd.json")
"""Plans that make a folder a workspace, without a `.ralph/`."""


class Choice(Struct, frozen=True):
    """Which plan of a workspace is meant. Empty: any."""

    layout: str = ""
    feature: str = ""
    prd: str = ""
    ralph_dir: str = ""


class OpenPlan(Struct, frozen=True):
    root: Path
    ref: PlanRef
    layout: Layout
    loaded: Loaded
    store: PlanStore
    settings: Settings

    @property
    def plan(self) -> Plan:
        return self.loaded.plan

    @property
    def source(self) -> bytes:
        return self.loaded.source


def find_root(start: Path, env: Mapping[str, str]) -> Path | None:
    """The folder with `.ralph/` or a plan beside it, here or above.

    The search ends at the home folder and does not leave a git repository, except for one step: the repository may be
    nested in the workspace (`project/.ralph` beside `project/project/.git`).
    """
    user_home = Path(os.path.realpath(home(env)))
    folder = Path(os.path.realpath(start))
    left_repository = False
    while folder != user_home:
        if (folder / ".ralph").is_dir() or any((folder / plan).exists() for plan in _PLANS_OUTSIDE):
            return folder
        if left_repository or folder.parent == folder:
            return None
        left_repository = (folder / ".git").exists()
        folder = folder.parent
    return None


def root_of(args: Namespace, env: Mapping[str, str]) -> Path:
    """The workspace that `-d` names or is inside, else the one around the current folder."""
    given = getattr(args, "project_dir", None)
    if given:
        if not os.path.isdir(given):  # noqa: PTH112 - Path.is_dir fails on a name that is too long
            raise UsageError(
                f"-d {one_line(given, 80)}: not a folder", hint="pass the project folder, the one with .ralph/"
            )
        return find_root(Path(given), env) or Path(os.path.realpath(given))
    if root := find_root(Path.cwd(), env):
        return root
    raise SetupError(
        f"no .ralph/ folder in {Path.cwd()} or above it",
        hint="`ralph init` sets up this project; `-d DIR` names another one",
    )


def find_plans(root: Path, choice: Choice) -> list[PlanRef]:
    names = [choice.layout] if choice.layout else layouts_in(root)
    if choice.prd:
        names = [n for n in names if traits(n).naming is Naming.NUMBERED]
    if choice.ralph_dir:
        return [_in_ralph_dir(root, choice.ralph_dir)]
    found, errors = detect(root, names)
    if choice.layout and errors:
        raise errors[0]
    if choice.prd:
        number = str(prd_number(choice.prd))
        found = [ref for ref in found if ref.name in (number, f"PRD-{number}")]
    if choice.feature:
        wanted = safe_name(choice.feature, "feature")
        found = [ref for ref in found if ref.name == wanted]
    return found


def _in_ralph_dir(root: Path, given: str) -> PlanRef:
    """The plan in a folder chosen by the user, inside the workspace."""
    folder = Path(os.path.realpath(root / plain_path(given, "the folder")))
    if not folder.is_relative_to(root):
        raise UsageError(f"--ralph-dir {given} is outside the workspace {root}", hint="name a folder inside it")
    return plan_in(root, folder)


def choose_plan(root: Path, choice: Choice, branch: str = "") -> PlanRef:
    found = find_plans(root, choice)
    if not found:
        wanted = ", ".join(one_line(v) for v in (choice.layout, choice.feature, choice.prd) if v)
        message, hint = f"no plan{f' ({wanted})' if wanted else ''} in {root}", "`ralph init NAME` creates one"
        for error in detect(root, layouts_in(root))[1]:
            message, hint = f"{message}; {error.message}", f"{hint}; {error.hint}"
        raise SetupError(message, hint=hint)
    if len(found) > 1 and branch:
        found = [ref for ref in found if _branch_of(ref) == branch] or found
    if len(found) > 1:
        listed = "; ".join(f"{ref.path.relative_to(root)} ({_how_to_choose(ref)})" for ref in found[:10])
        hint = "choose one with the option in parentheses"
        raise UsageError(f"there are {len(found)} plans in {root}: {listed}", hint=hint)
    return found[0]


def _branch_of(ref: PlanRef) -> str:
    try:
        return PlanStore(ref, LAYOUTS.get(ref.layout), Path(os.devnull, "none")).load().plan.branch
    except PlanError:
        return ""


def _how_to_choose(ref: PlanRef) -> str:
    flags = {"prd": "--prd", "ralph_dir": "--ralph-dir", "feature": "-f", "layout": "--layout"}
    return " ".join(f"{flags[name]} {value}" for name, value in plan_options(ref).items())


def plan_options(ref: PlanRef) -> dict[str, str]:
    """The options of the command line that choose this plan, by their attribute."""
    known = traits(ref.layout)
    if known.naming is Naming.NUMBERED:
        return {"prd": ref.name.removeprefix("PRD-")}
    if known.any_folder and ref.folder.parent == ref.root:
        return {"ralph_dir": ref.folder.name}
    if known.naming is Naming.NAMED and ref.folder.parent.name == ".ralph":
        return {"feature": ref.name, "layout": ref.layout}
    return {"layout": ref.layout}


def current_branch(root: Path) -> str:
    """The checked-out branch, read from its file without starting git. Empty if that is not possible."""
    try:
        text = read_state(root / ".git" / "HEAD").decode("utf-8", "replace")
    except OSError:
        return ""
    return text.removeprefix("ref: refs/heads/").strip() if text.startswith("ref: refs/heads/") else ""


def store_for(ref: PlanRef, env: Mapping[str, str], settings: str = "") -> PlanStore:
    """`settings`: the identity of a run's settings, for a store that a run writes to."""
    return PlanStore(ref, LAYOUTS.get(ref.layout), plan_state(ref, env) / SIDECAR, settings)


def open_settings(args: Namespace, env: Mapping[str, str] | None = None) -> tuple[Path | None, str, Settings]:
    """The settings of the workspace, if there is one, and of its layout, if there is one plan."""
    env = os.environ if env is None else env
    root = root_of(args, env) if getattr(args, "project_dir", None) else find_root(Path.cwd(), env)
    if root is None:
        return None, "", load(root=None, layout="", name=None, env=env, flags={})
    choice, name, flags = _choice(root, args, env)
    found = find_plans(root, choice)
    layout = found[0].layout if len({ref.layout for ref in found}) == 1 else ""
    return root, layout, load(root=root, layout=layout, name=name, env=env, flags=flags)


def open_ref(
    args: Namespace, env: Mapping[str, str] | None = None, extra_env: Mapping[str, str] | None = None
) -> tuple[PlanRef, Settings]:
    """The plan selected by the command line, not yet read, and its settings."""
    env = os.environ if env is None else env
    root = root_of(args, env)
    choice, name, flags = _choice(root, args, env, extra_env)
    ref = current(choose_plan(root, choice, current_branch(root)), env)
    return ref, load(root=root, layout=ref.layout, name=name, env=env, flags=flags, extra_env=extra_env)


def open_plan(args: Namespace, env: Mapping[str, str] | None = None) -> OpenPlan:
    env = os.environ if env is None else env
    return opened_at(*open_ref(args, env), env)


def opened_at(ref: PlanRef, settings: Settings, env: Mapping[str, str]) -> OpenPlan:
    store = store_for(ref, env)
    return OpenPlan(ref.root, ref, store.layout, store.load(), store, settings)


def _choice(
    root: Path, args: Namespace, env: Mapping[str, str], extra_env: Mapping[str, str] | None = None
) -> tuple[Choice, str | None, dict[str, object]]:
    """The plan that the flags select, else the settings. `layout: auto` selects none."""
    from ralph.config.flags import flags_of

    flags = flags_of(args)
    name = getattr(args, "config", None)
    settings = load(root=root, layout="", name=name, env=env, flags=flags, extra_env=extra_env)
    config = settings.config
    choice = Choice(chosen_layout(settings), config.feature, str(config.prd or ""), config.ralph_dir)
    return choice, name, flags


def repository_of(root: Path, env: Mapping[str, str]) -> Path | None:
    """The git repository that contains the code, or None."""
    try:
        return find_repository(root, home=home(env))
    except SetupError:
        return None


def find_repo(ref: PlanRef, settings: Settings, env: Mapping[str, str]) -> Repo:
    return identify(find_repository(ref.root, settings.config.repo or None, home(env)))
