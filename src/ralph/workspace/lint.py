"""`ralph check`: read a plan as strictly as a run would, then look for problems that would waste a run."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from ralph.agents.registry import AGENTS
from ralph.agents.registry import agent as find_agent
from ralph.config.checks import proof_needed
from ralph.config.flags import flags_of
from ralph.config.layers import Settings, load
from ralph.config.schema import Config, all_checks
from ralph.core.errors import BadData, PlanError, RalphError, UsageError
from ralph.core.ports import Layout, Locations, PlanRef, Session
from ralph.core.problems import Place, Problem, Severity
from ralph.core.text import one_line
from ralph.host.files import read_bytes
from ralph.plans.lint import Places, lint
from ralph.plans.registry import IN_ANY_FOLDER, LAYOUTS, traits
from ralph.plans.spec_md import BudgetLine, token_budget
from ralph.plans.store import Loaded
from ralph.workspace.find import Choice, choose_plan, find_plans, find_root, root_of, store_for
from ralph.workspace.prompt_files import prompt_problems
from ralph.workspace.settings_check import (
    parallel_misfits,
    reviewer_misfits,
    sandbox_misfits,
    step_misfits,
    unknown_names,
)
from ralph.workspace.trust import gather, may_run

Flags = Mapping[str, object]
_MOST_BOXES = 20


class Checked(Struct, frozen=True):
    """One checked plan."""

    ref: PlanRef
    problems: tuple[Problem, ...]
    budget: tuple[BudgetLine, ...] = ()
    """Size of what every session reads, for a layout that limits it."""
    remark: str = ""
    """A remark that is not a problem."""


class Report(Struct, frozen=True):
    """The findings in a workspace: in its settings and in each checked plan."""

    root: Path
    settings: tuple[Problem, ...]
    plans: tuple[Checked, ...]
    is_trusted: bool = True
    agent: str = ""
    """Why the agent cannot start on this machine."""

    @property
    def problems(self) -> tuple[Problem, ...]:
        return self.settings + tuple(problem for plan in self.plans for problem in plan.problems)


def check(args: Namespace, env: Mapping[str, str] | None = None) -> Report:
    """Check the named plan, or every plan of the workspace. Broken settings do not hide a broken plan."""
    env = os.environ if env is None else env
    root, path = _start(args, env)
    flags = flags_of(args)
    settings, trouble = _load(root, "", env, flags)
    plans = []
    for ref in _refs(root, path, flags, settings):
        settings, found = _load(root, ref.layout, env, flags)
        trouble += [*found, *(_prompts_and_steps(settings, ref) if settings else ())]
        plans.append(lint_plan(ref, settings, env))
    trusted = _is_trusted(root, plans, settings, env)
    return Report(root, tuple(dict.fromkeys(trouble)), tuple(plans), trusted, _missing_agent(root, settings, env))


def _missing_agent(root: Path, settings: Settings | None, env: Mapping[str, str]) -> str:
    """Looks for its program, and starts nothing. An unknown name is among the problems of the settings."""
    if settings is None or AGENTS.trouble_with(settings.config.agent.name):
        return ""
    agent = settings.config.agent
    session = Session(prompt="", cwd=root, command=agent.command, script=root / agent.script if agent.script else None)
    try:
        find_agent(agent.name).find(session, env.get("PATH", ""))
    except RalphError as error:
        return f"{error}" + (f"; {error.hint}" if error.hint else "")
    return ""


def _prompts_and_steps(settings: Settings, ref: PlanRef) -> Iterator[Problem]:
    misfits = [*step_misfits(settings, ref), *sandbox_misfits(settings), *parallel_misfits(settings)]
    yield from misfits
    if all(problem.severity is not Severity.ERROR for problem in misfits):  # a missing prompt is reported once
        yield from prompt_problems(ref, settings.config)


def _is_trusted(root: Path, plans: Iterable[Checked], settings: Settings | None, env: Mapping[str, str]) -> bool:
    """Whether a run would start the commands of the workspace without asking. True if nothing could be read."""
    readable = []
    for plan in plans:
        with suppress(PlanError):
            readable.append((plan.ref.path, store_for(plan.ref, env).load().plan))
    return settings is None or may_run(root, gather(root, settings, readable), env)


def _start(args: Namespace, env: Mapping[str, str]) -> tuple[Path, Path | None]:
    """The workspace, and the path in it from the command line."""
    if (given := args.path) is None:
        return root_of(args, env), None
    if args.project_dir is not None:
        raise UsageError("PATH and -d cannot be used together", hint="use one of them")
    shown = one_line(repr(given), 80)
    path = Path(os.path.abspath(given))  # noqa: PTH100 - a link in place of a plan is for the reader to refuse
    if not given or not os.path.lexists(path):
        raise UsageError(f"{shown} does not exist", hint="give a workspace, or a plan in it")
    start = path if path.is_dir() else path.parent
    root = find_root(start, env)
    if root is None:
        raise UsageError(f"{shown} is not in a workspace", hint="`ralph init` creates one")
    return root, Path(os.path.realpath(start)) / path.name if start != path else Path(os.path.realpath(path))


def _refs(root: Path, path: Path | None, flags: Flags, settings: Settings | None) -> list[PlanRef]:
    """The plan that `path` names, else all plans that the command line and the settings select."""
    if path is not None:
        found = find_plans(root, _choice(flags, None))
        # `.ralph` itself is the folder of some plans, and holds the folders of others.
        if path != root / ".ralph" and (named := [ref for ref in found if path in (ref.path, ref.folder)]):
            return named
        if not path.is_dir():
            return [_elsewhere(root, path, found)]
    choice = _choice(flags, settings)
    return find_plans(root, choice) or [choose_plan(root, choice)]


def _choice(flags: Flags, settings: Settings | None) -> Choice:
    config = settings.config if settings else Config()
    says = {key: flags.get(key) or getattr(config, key) for key in ("layout", "feature", "prd", "ralph_dir")}
    if not flags.get("layout") and config.layout != "auto" and LAYOUTS.trouble_with(config.layout):
        says["layout"] = ""  # reported among the problems; the plans are still checked
    return Choice(**{key: str(value) for key, value in says.items() if value and value != "auto"})


def _elsewhere(root: Path, path: Path, found: Iterable[PlanRef]) -> PlanRef:
    """`tasks.json` may be in any folder of the workspace (`--ralph-dir`)."""
    if path.name == IN_ANY_FOLDER:
        return find_plans(root, Choice(ralph_dir=str(path.parent.relative_to(root))))[0]
    listed = ", ".join(str(ref.path.relative_to(root)) for ref in found)
    raise UsageError(
        f"{path} is not a plan", hint=f"the plans of this workspace: {listed}" if listed else "`ralph init` creates one"
    )


def _load(root: Path, layout: str, env: Mapping[str, str], flags: Flags) -> tuple[Settings | None, list[Problem]]:
    try:
        settings = load(root=root, layout=layout, name=None, env=env, flags=flags)
    except BadData as error:  # a ConfigError, or a file that is none
        return None, _problems_of(error)
    unknown = list(unknown_names(settings))
    return settings, [*settings.warnings, *(unknown or reviewer_misfits(settings, root))]


def lint_plan(ref: PlanRef, settings: Settings | None, env: Mapping[str, str] | None = None) -> Checked:
    """Without settings no findings about checks: they may be in the part that could not be read."""
    store = store_for(ref, os.environ if env is None else env)
    try:
        loaded = store.load()
    except PlanError as error:
        return Checked(ref, tuple(_problems_of(error, str(ref.path))))
    return lint_loaded(ref, store.layout, loaded, settings)


def lint_loaded(ref: PlanRef, layout: Layout, loaded: Loaded, settings: Settings | None) -> Checked:
    """The same for a plan that was read, or that is about to be written."""
    config = settings.config if settings else Config()
    found = [Problem("beside", notice, Place(str(ref.path)), severity=Severity.WARNING) for notice in loaded.notices]
    found += lint(
        loaded.in_file,
        Places(loaded.in_file, loaded.source, str(ref.path)),
        has_checks=settings is None or has_checks(config),
        review_cap=config.review.cap,
    )
    found += _unnamed_boxes(layout, loaded.source, str(ref.path))
    if traits(ref.layout).folder_is_name and loaded.in_file.name != ref.name:  # seed 003: "matches folder name"
        message = f"feature is {one_line(loaded.in_file.name, 60)!r}, but its folder is {one_line(ref.name, 60)!r}"
        place = Places(loaded.in_file, loaded.source, str(ref.path)).whole("feature")
        found.append(Problem("feature-name", message, place, "give both the same name", Severity.WARNING))
    remark = proof_needed(config, loaded.plan) if settings and (has_checks(config) or loaded.plan.verify) else ""
    if not traits(ref.layout).budgets:
        return Checked(ref, tuple(found), remark=remark)
    where = layout.locations(ref)
    budget = token_budget(_text(where.prompt, ref.root), _text(where.readme, ref.root), loaded.source.decode())
    return Checked(ref, (*found, *_over_budget(budget, where)), budget, remark)


def _unnamed_boxes(layout: Layout, source: bytes, file: str) -> list[Problem]:
    """Lines that look like work but that no run will ever pick up."""
    read = getattr(layout, "unnamed_boxes", None)  # only layouts in Markdown have them
    if read is None:
        return []
    return [
        Problem(
            "not-a-story",
            f"this open checkbox is not a story, so no run works on it: {one_line(text.strip(), 80)}",
            Place(file, line),
            "give it an ID, or remove the checkbox",
            Severity.WARNING,
        )
        for line, text in read(source)[:_MOST_BOXES]
    ]


def _problems_of(error: BadData, file: str = "") -> list[Problem]:
    return list(error.problems) or [Problem("unreadable", error.message, error.where or Place(file), error.hint)]


def has_checks(config: Config) -> bool:
    """Whether anything can fail for an unfinished story: a required check, or a step that runs a command."""
    steps = any(step.enabled and step.type == "command" and not step.continue_on_error for step in config.steps)
    return steps or any(not check.allow_failure for check in all_checks(config))


def _over_budget(budget: Iterable[BudgetLine], where: Locations) -> Iterator[Problem]:
    """Layout `spec.md` (seed): what every session reads has to stay small."""
    files = {"prompt": where.prompt, "readme": where.readme, "spec": where.plan}
    for line in budget:
        if line.over:
            yield Problem(
                "over-budget",
                f"{line.name} has about {line.tokens} tokens; its budget is {line.budget}",
                Place(str(files.get(line.name) or where.plan)),
                "every session reads it; move details to reference documents or beads",
                Severity.WARNING,
            )


def _text(path: Path | None, root: Path) -> str:
    if path is None or not path.exists():
        return ""
    try:
        return read_bytes(path, within=root, limit=1_000_000).decode(errors="replace")
    except BadData:
        return ""
