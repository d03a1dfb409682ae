"""Settings that cannot work here: names missing from a table of variants, steps that do not fit the workspace."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from ralph.agents.registry import AGENTS
from ralph.config.durations import EXPECTED, parse_duration
from ralph.config.keys import nearest_hint
from ralph.config.layers import Kind, Settings
from ralph.config.schema import Step
from ralph.config.sections import Routing
from ralph.core.errors import ConfigError, UsageError
from ralph.core.fallback import OTHER, parts, reviewer_parts
from ralph.core.ports import PlanRef
from ralph.core.problems import Place, Problem, Severity
from ralph.core.registry import Registry
from ralph.core.text import one_line, plural
from ralph.engine.steps import STEPS
from ralph.plans.registry import LAYOUTS, traits
from ralph.prompts.templates import REVIEWERS
from ralph.sandbox.hosts import parse_hosts


def unknown_names(settings: Settings) -> Iterator[Problem]:
    """The unknown names, each with its place. Does not import the known ones."""
    config = settings.config
    if config.layout != "auto":
        yield from _look_up(settings, LAYOUTS, config.layout, "layout")
    yield from _look_up(settings, AGENTS, config.agent.name, "agent.name")
    yield from _choices(settings)
    if config.review.agent and config.review.agent != OTHER:
        yield from _look_up(settings, AGENTS, config.review.agent, "review.agent")
    if config.planning.agent:
        yield from _look_up(settings, AGENTS, config.planning.agent, "planning.agent")
    for number, step in enumerate(config.steps):
        if step.enabled:
            yield from _look_up(settings, STEPS, step.type, "steps", f"[{number}].type")


_ELSEWHERE = ("amp", "crush", "cursor", "kilo")
"""Agents, not models: `fallback` and `routing` may name both."""
_CLOSE = 0.75


def _choices(settings: Settings) -> Iterator[Problem]:
    """Wrong names in the settings that name a model, an agent, or `agent/model`."""
    config = settings.config
    known = set(_routes(Routing()))  # models: to look for third-party agents of that name takes 10 ms
    routes = {f"routing.{level}": choice for level, choice in _routes(config.routing) if (level, choice) not in known}
    for key, choice in (*(("fallback", choice) for choice in config.fallback), *routes.items()):
        if wrong := _wrong_choice(choice, config.agent.name):
            yield _unknown(settings, key, *wrong)
    for reviewer in config.review.reviewers:
        page, at, choice = reviewer.rpartition("@")
        if not at or (page not in REVIEWERS and reviewer.endswith((".md", ".txt"))):  # an @ in the name of a file
            continue
        if unknown := AGENTS.trouble_with(choice.partition("/")[0]):
            yield _unknown(settings, "review.reviewers", f"reviewer {reviewer!r}: {unknown.message}", unknown.hint)
        elif wrong := _wrong_choice(choice, config.agent.name):
            yield _unknown(settings, "review.reviewers", *wrong)


def reviewer_misfits(settings: Settings, root: Path) -> Iterator[Problem]:
    """Reviewers that are neither in the library nor a file, and `other` where there is only one agent."""
    config, review = settings.config, settings.config.review
    if not review.enabled or not (review.reviewers or review.agent == OTHER):
        return
    agents = (*AGENTS.names(), config.agent.name)
    choices = [reviewer_parts(name, agents) for name in review.reviewers]
    for page, _ in choices:
        if page and page not in REVIEWERS and not (root / page).is_file():
            hint = f"the library has {', '.join(REVIEWERS)}; or name a prompt file"
            message = f"unknown reviewer {page!r}: not in the library, and no such file"
            yield _unknown(settings, "review.reviewers", message, hint)
    routing = config.routing
    routes = (routing.simple, routing.medium, routing.complex) if routing.enabled else ()
    named = {parts(choice, agents)[0] for choice in (*config.fallback, *routes, *(choice for _, choice in choices))}
    if review.agent == OTHER and not named - {"", config.agent.name}:
        message = f"review.agent is `other`, but {config.agent.name} is the only agent of this run"
        yield _unknown(settings, "review.agent", message, "name another one in fallback, routing or review.reviewers")


def _routes(routing: Routing) -> Iterator[tuple[str, str]]:
    yield from (("simple", routing.simple), ("medium", routing.medium), ("complex", routing.complex))


def _wrong_choice(choice: str, own: str) -> tuple[str, str] | None:
    """A message and a hint. A word that resembles no agent is a model, and so is `vendor/model`."""
    agent, slash, model = choice.partition("/")
    if not choice:
        return None
    if slash and not agent:
        return f"{choice!r} names no agent", f"did you mean {model or own}? An agent and a model are AGENT/MODEL"
    if slash and not model:
        return f"{choice!r} names no model", f"did you mean {agent}? An agent and a model are AGENT/MODEL"
    if agent in AGENTS.built_in() or (wrong := AGENTS.trouble_with(agent)) is None:
        return None
    if agent in _ELSEWHERE:
        return wrong.message, wrong.hint
    if not (near := _resembles(agent)):
        return None
    meant = f"{near}/{model}" if slash else near
    return wrong.message, f"did you mean {meant}? A model of that name is {own}/{choice}"


def _resembles(word: str) -> str:
    """The agent whose name this looks like. Names of models have digits or dashes, or are longer: `qwen3`, `mini`."""
    names = [name for name in AGENTS.names() if abs(len(name) - len(word)) < 2]
    if not names or not word.isalpha():
        return ""
    from difflib import get_close_matches  # few settings have such a word

    return next(iter(get_close_matches(word, names, 1, _CLOSE)), "")


def refuse_unknown_names(settings: Settings) -> None:
    _refuse(settings, list(unknown_names(settings)))


def chosen_layout(settings: Settings) -> str:
    """The layout named in the settings; empty for `auto`."""
    name = settings.config.layout
    if name == "auto":
        return ""
    _refuse(settings, list(_look_up(settings, LAYOUTS, name, "layout")))
    return name


def _refuse(settings: Settings, problems: list[Problem]) -> None:
    for problem in problems:
        if settings.origin(problem.where.path.partition("[")[0]).kind is Kind.FLAG:  # wrong usage, not bad data
            raise UsageError(problem.message, hint=problem.hint)
    if problems:
        raise ConfigError.of(problems)


def _look_up(settings: Settings, registry: Registry, name: str, key: str, inside: str = "") -> Iterator[Problem]:
    if wrong := registry.trouble_with(name):
        yield _unknown(settings, key, wrong.message, wrong.hint, inside)


def _unknown(settings: Settings, key: str, message: str, hint: str, inside: str = "") -> Problem:
    origin = settings.origin(key)
    where = Place(origin.file or str(origin), origin.line or None, None, key + inside)
    return Problem("unknown-name", message, where, hint)


KEYS = {
    "agent": ("prompt_file", "prd_file", "model", "timeout", "allowed_tools"),
    "command": ("command", "args", "cwd", "working_dir"),
    "readme-check": ("file", "path"),
    "git-commit": (),
    "noop": (),
}
"""Keys that the built-in types accept in `config`, besides `marker_file`. Those of other types are not known here."""


def refuse_misfits(settings: Settings, ref: PlanRef) -> list[Problem]:
    """Raise ConfigError for what would fail in a run. Returns the warnings."""
    found = [*step_misfits(settings, ref), *sandbox_misfits(settings), *parallel_misfits(settings)]
    _refuse(settings, [problem for problem in found if problem.severity is Severity.ERROR])
    return found


def step_misfits(settings: Settings, ref: PlanRef) -> Iterator[Problem]:
    for number, step in enumerate(settings.config.steps):
        if step.enabled:
            yield from _OfStep(settings, ref, number, step).problems()


_PER_CORE = 4
"""Workers for each core: agents mostly wait for a model, but every worker also runs the checks."""
_PER_WORKER = 512 * 1024**2
"""Bytes of memory for an agent and the checks of a worker."""


def parallel_misfits(settings: Settings) -> Iterator[Problem]:
    """Settings that exclude several workers, and more workers than this machine has room for."""
    config, origin = settings.config, settings.origin("parallel")
    where = Place(origin.file or str(origin), origin.line or None, None, "parallel")
    if config.parallel == 1 or config.on:
        return
    if config.workspace == "in-place":
        message = f"{config.parallel} workers need a clone each, but workspace is in-place"
        yield Problem("parallel", message, where, "use --workspace auto, or --parallel 1")
    most = machine_room()
    if config.parallel > most.workers:
        message = (
            f"{config.parallel} workers are too many for {most.words}: checks may time out; use at most {most.workers}"
        )
        yield Problem("parallel", message, where, f"use --parallel {most.workers} or less", Severity.WARNING)


class Room(NamedTuple):
    workers: int
    words: str


def machine_room() -> Room:
    """How many workers are plausible here, and why."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    memory = 0
    with suppress(OSError, ValueError, AttributeError):
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    most = min(cores * _PER_CORE, memory // _PER_WORKER if memory > 0 else cores * _PER_CORE)
    size = f", {memory / 1024**3:.0f} GB of memory" if memory > 0 else ""
    return Room(max(most, 1), f"{plural(cores, 'core')}{size}")


_WITHOUT_CLONE = ("srt", "sbx")
_WITHOUT_IMAGE = ("bwrap", "srt", "sbx", "none")


def sandbox_misfits(settings: Settings) -> Iterator[Problem]:
    """Settings of the sandbox that are wrong, or make no sense together."""
    config, box = settings.config, settings.config.sandbox

    def problem(key: str, message: str, hint: str, severity: Severity = Severity.ERROR) -> Problem:
        origin = settings.origin(key)
        return Problem(
            "sandbox", message, Place(origin.file or str(origin), origin.line or None, None, key), hint, severity
        )

    try:
        parse_hosts(box.allow_hosts)
    except ConfigError as error:
        yield problem("sandbox.allow_hosts", error.message.removeprefix("sandbox.allow_hosts: "), error.hint)
    if config.workspace == "clone" and box.use in _WITHOUT_CLONE:
        hint = "set workspace to in-place, or sandbox to bwrap, podman or docker"
        yield problem("workspace", f"the sandbox {box.use} cannot work in a clone", hint)
    if box.network == "open" and box.use == "srt":
        yield problem(
            "sandbox.network", "srt cannot open the network", "list hosts in sandbox.allow_hosts, or use bwrap"
        )
    if box.network != "listed" and box.allow_hosts:
        what = "everything can be reached" if box.network == "open" else "nothing can be reached"
        message = f"it has no effect: {what} with `sandbox.network: {box.network}`"
        yield problem("sandbox.allow_hosts", message, "set sandbox.network to listed, or remove one", Severity.WARNING)
    if box.image and box.use in _WITHOUT_IMAGE:
        message = f"it has no effect with `sandbox: {box.use}`"
        yield problem("sandbox.image", message, "set sandbox to podman, docker or auto, or remove it", Severity.WARNING)


class _OfStep:
    def __init__(self, settings: Settings, ref: PlanRef, number: int, step: Step) -> None:
        origin = settings.origin("steps")
        self._file, self._line = origin.file or str(origin), origin.line or None
        self._path = f"steps[{number}].config"
        self._ref = ref
        self._step = step

    def problems(self) -> Iterator[Problem]:
        yield from self._unknown_keys()
        if self._step.type == "command" and not str(self._step.config.get("command") or "").strip():
            yield self._problem("missing", "the step has no command", "command", 'e.g. "command": "make test"')
        if self._step.type == "agent":
            yield from self._of_agent()
        if (marker := self._path_in("marker_file")) and not self._is_inside(marker):
            yield self._outside("marker_file")

    def _of_agent(self) -> Iterator[Problem]:
        timeout = self._step.config.get("timeout")
        if timeout is not None and parse_duration(str(timeout)) is None:
            yield self._problem("wrong-type", f"expected {EXPECTED}, found {_shown(timeout)}", "timeout")
        if (plan := self._path_in("prd_file")) and os.path.realpath(plan) != os.path.realpath(self._ref.path):
            known = self._ref.path.relative_to(self._ref.root)
            message = f"the plan of this workspace is {known}, not {self._value('prd_file')}"
            severity = Severity.ERROR if traits(self._ref.layout).has_pipeline else Severity.WARNING
            yield self._problem("other-plan", message, "prd_file", "move the plan, or remove the key", severity)
        prompt, marker = self._path_in("prompt_file"), self._path_in("marker_file")
        if prompt is None or (marker is not None and marker.exists()):  # setup is done and needs no prompt
            return
        if not self._is_inside(prompt):
            yield self._outside("prompt_file")
        elif not prompt.is_file():
            hint = (
                "create it (`ralph init` writes the prompts of the layout), or remove the key to use the built-in "
                "prompt"
            )
            yield self._problem("missing-file", f"{self._value('prompt_file')} does not exist", "prompt_file", hint)

    def _unknown_keys(self) -> Iterator[Problem]:
        if self._step.type not in KEYS:
            return
        known = ("marker_file", *KEYS[self._step.type])
        for key in self._step.config:
            if key not in known:
                message = f"a step of type {self._step.type} has no setting {_shown(key)}; it is ignored"
                yield self._problem("unknown-key", message, key, nearest_hint(key, known), Severity.WARNING)

    def _path_in(self, key: str) -> Path | None:
        value = self._step.config.get(key)
        return self._ref.root / str(value) if value else None

    def _is_inside(self, path: Path) -> bool:
        root = os.path.realpath(self._ref.root)
        real = Path(os.path.realpath(path))
        return real.is_relative_to(root) and str(real) != root

    def _outside(self, key: str) -> Problem:
        message = f"{self._value(key)} is outside the workspace {self._ref.root}"
        return self._problem("outside", message, key, "name a file inside it, with a relative path")

    def _value(self, key: str) -> str:
        return one_line(str(self._step.config[key]), 100)

    def _problem(
        self, code: str, message: str, key: str, hint: str = "", severity: Severity = Severity.ERROR
    ) -> Problem:
        where = Place(self._file, self._line, None, f"{self._path}.{one_line(key, 60)}")
        return Problem(code, message, where, hint, severity)


def _shown(value: Any) -> str:
    return one_line(repr(value), 60)
