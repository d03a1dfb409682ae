"""The layouts, by name, and the folders of features: `.ralph/<feature>/`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from glob import glob
from pathlib import Path

from ralph.core.errors import SetupError, UsageError
from ralph.core.lazy_pattern import lazy_pattern
from ralph.core.names import safe_name
from ralph.core.ports import Layout, PlanRef, Traits
from ralph.core.registry import Registry

RESERVED = frozenset({"archive", "configs", "locks", "logs", "prompts", "runs", "specs", "worktrees"})
_PRD = lazy_pattern(r"prd-[0-9]+", re.IGNORECASE)


def feature_name(name: str) -> str:
    """Return `name` if it is valid as a feature's folder."""
    if safe_name(name, "feature").lower() in RESERVED or _PRD.fullmatch(name):
        hint = "choose another name, e.g. user-login"
        raise UsageError(f"a feature cannot be called {name}: .ralph/{name} is reserved", hint=hint)
    return name


def features_with(root: Path, file: str) -> list[str]:
    """Names of the features that have this file, whatever its type. Follows no link to a folder."""
    base = root / ".ralph"
    if base.is_symlink() or not base.is_dir():
        return []
    with os.scandir(base) as entries:
        folders = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    return [name for name in folders if _is_feature(name) and os.path.lexists(base / name / file)]


def _is_feature(name: str) -> bool:
    try:
        feature_name(name)
    except UsageError:
        return False
    return True


_BUILT_IN = {
    "plan.md": ("ralph.plans.plan_md", ".ralph/PRD-*/plan.md"),
    "tasks.json": ("ralph.plans.tasks_json", "ralph/tasks.json", ".ralph/*/tasks.json"),
    "steps": ("ralph.plans.steps_json", ".ralph/prd.json", ".ralph/configs/default.json"),
    "feature": ("ralph.plans.feature_json", ".ralph/*/prd.json"),
    "spec.md": ("ralph.plans.spec_md", ".ralph/spec.md"),
    "snarktank": ("ralph.plans.snarktank", "scripts/ralph/prd.json", "ralph/prd.json", "ralph.sh"),
}
"""Module, and the files that it requires: checking for them is cheaper than importing a module that does."""
LAYOUTS = Registry("layout", {name: module for name, (module, *_) in _BUILT_IN.items()}, "ralph.layouts", Layout)
IN_ANY_FOLDER = "tasks.json"
"""The layout and the file of a plan that can be in any folder."""
_DEFAULT = Traits()


def layout(name: str) -> Layout:
    """The layout of this name. Raises UsageError, with the closest name, if it is unknown."""
    found: Layout = LAYOUTS.get(name)
    return found


def traits(name: str) -> Traits:
    """The traits of the layout of this name; the defaults if it cannot be loaded, e.g. because it was removed."""
    try:
        found: Traits = getattr(LAYOUTS.get(name), "TRAITS", _DEFAULT)
    except (UsageError, SetupError):
        return _DEFAULT
    return found


def plan_in(root: Path, folder: Path) -> PlanRef:
    """The plan in a folder that the user chose (`--ralph-dir`)."""
    return PlanRef(IN_ANY_FOLDER, root, folder, folder / IN_ANY_FOLDER, folder.relative_to(root).as_posix())


def all_layouts() -> list[Layout]:
    """Without third-party layouts that cannot be loaded."""
    usable = [name for name, error in LAYOUTS.third_party().items() if error is None]
    return [layout(name) for name in (*LAYOUTS.built_in(), *usable)]


def detect(root: Path, names: Iterable[str]) -> tuple[list[PlanRef], list[SetupError]]:
    """The plans of these layouts in a workspace, and an error for each third-party layout that failed."""
    plans: list[PlanRef] = []
    errors: list[SetupError] = []
    for name in names:
        try:
            known = layout(name)
        except SetupError as error:
            errors.append(error)
            continue
        try:
            plans += known.detect(root)
        except Exception as error:
            if name in _BUILT_IN:
                raise
            errors.append(LAYOUTS.failure(name, "cannot look for plans", error))
    return plans, errors


def layouts_in(root: Path) -> list[str]:
    """The layouts that may be in a workspace. Third-party layouts are tried if there is no built-in one."""
    names = [name for name, (_, *signs) in _BUILT_IN.items() if any(_exists(root, sign) for sign in signs)]
    return names or [name for name in LAYOUTS.names() if name not in _BUILT_IN]


def _exists(root: Path, sign: str) -> bool:
    if "*" in sign:
        return bool(glob(sign, root_dir=root))  # noqa: PTH207 - Path.glob passes over broken links
    return os.path.lexists(root / sign)
