"""`ralph check`: reads a plan as strictly as a run would, then looks for what would waste one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from ralph.app.workspace import store_for
from ralph.config.layers import Settings
from ralph.core.errors import BadData, PlanError
from ralph.core.ports import Locations, PlanRef
from ralph.core.problems import Place, Problem, Severity
from ralph.host.files import read_bytes
from ralph.plans.lint import lint


def lint_plan(ref: PlanRef, settings: Settings, env: Mapping[str, str] | None = None) -> list[Problem]:
    store = store_for(ref, os.environ if env is None else env)
    try:
        loaded = store.load()
    except PlanError as error:
        return list(error.problems) or [Problem("unreadable", error.message, error.where or Place(), error.hint)]
    config = settings.config
    found = lint(
        loaded.in_file,
        str(ref.path),
        has_checks=bool(config.checks or config.quality_checks),
        review_cap=config.review.cap,
    )
    if ref.layout == "spec.md":
        found += _over_budget(store.layout.locations(ref), loaded.source.decode(), ref.root)
    return found


def _over_budget(where: Locations, spec: str, root: Path) -> list[Problem]:
    """Seed layout `spec.md`: what every session reads has to stay small."""
    from ralph.plans.spec_md import token_budget

    lines = token_budget(_text(where.prompt, root), _text(where.readme, root), spec)
    files = {"prompt": where.prompt, "readme": where.readme, "spec": where.plan}
    return [
        Problem(
            "over-budget",
            f"{line.name} takes about {line.tokens} tokens of a budget of {line.budget}",
            Place(str(files.get(line.name) or where.plan)),
            "every session reads it; move details to reference documents or beads",
            Severity.WARNING,
        )
        for line in lines
        if line.over
    ]


def _text(path: Path | None, root: Path) -> str:
    if path is None or not path.exists():
        return ""
    try:
        return read_bytes(path, within=root, limit=1_000_000).decode(errors="replace")
    except BadData:
        return ""
