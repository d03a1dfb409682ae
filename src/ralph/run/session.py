"""The sessions of agents: who works, with which prompt, hooks and rights."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from ralph.agents.registry import agent as find_agent
from ralph.config.checks import When, choose
from ralph.config.schema import Config, minimum_grade
from ralph.core.agent import Outcome
from ralph.core.events import AnyEvent
from ralph.core.evidence import Ended
from ralph.core.learning import Learning, distinct
from ralph.core.plan import Mode, Plan, State, Story
from ralph.core.ports import Locations, PlanRef, Rights, Session, Task
from ralph.core.proof import Acceptance
from ralph.core.rules import Patience
from ralph.core.run_ports import Attempt
from ralph.importing.stories import read_imports, sources_in
from ralph.memory.store import Memory, Touched, learnings_elsewhere, memory_of, recent_learnings
from ralph.plans.registry import layout, traits
from ralph.prompts.memory import cue_for
from ralph.prompts.review import Matter, schema_for
from ralph.prompts.session import Briefing, Count, Notes, Paths, build
from ralph.proof.acceptance_tests import AcceptanceStore
from ralph.proof.exam_session import READS_HISTORY
from ralph.review.material import Reviewing
from ralph.run.confinement import Confinement
from ralph.run.spec import RunSpec
from ralph.session.choice import who_works
from ralph.session.hook_policy import allowed_folders, prepare_hooks
from ralph.state.names import ACCEPTANCE
from ralph.state.places import plan_state
from ralph.workspace.control import Guidance
from ralph.workspace.find import store_for
from ralph.workspace.prompt_files import template_for
from ralph.workspace.stuck_stories import read_answers

_MOST_PATTERNS = 20
_SHORT_LOG = 4000
"""Bytes. Seed 003 attaches the progress log. A longer one would be read in every session, most of it for nothing: the
prompt has the learnings that matter."""


class About(Struct, frozen=True, kw_only=True):
    """What a prompt is about."""

    plan: Plan
    source: bytes
    """The text of the plan."""
    story: Story | None
    mode: Mode
    iteration: int = 1
    most: int = 1
    """The cap on iterations."""
    attempt: int = 1


class Known(Struct, frozen=True, kw_only=True):
    """What else a session is told."""

    feedback: str = ""
    guidance: tuple[str, ...] = ()
    matter: Matter | None = None
    touched: Iterable[str] = ()
    """Files that earlier attempts at the story changed."""
    request: Path | None = None


class SessionBudget(Protocol):
    """Runs an agent, and books what it costs."""

    def news(self, plan: Plan) -> Iterable[AnyEvent]: ...

    def __call__(self, session: Session, step: str, patience: Patience) -> tuple[Ended, Outcome]: ...


class AgentSessions:
    """`budget` runs an agent and books what it costs."""

    def __init__(
        self,
        spec: RunSpec,
        env: Mapping[str, str],
        folder: Path,
        request: Path,
        budget: SessionBudget,
        guidance: Guidance,
        reviewing: Reviewing,
        touched: Touched,
        confinement: Confinement | None = None,
    ) -> None:
        self._confinement = confinement
        self._spec, self._env, self._folder, self._request = spec, env, folder, request
        self._guidance, self._reviewing, self._touched = guidance, reviewing, touched
        self.run, self.news = budget, budget.news

    def session(self, attempt: Attempt, step: dict[str, Any], feedback: str) -> Session:
        spec, env = self._spec, self._env
        notes = self._guidance(attempt.number, attempt.work.story)
        matter = self._reviewing.matter(attempt.story, attempt.reviewer) if attempt.mode is Mode.REVIEW else None
        files = self._touched.of(attempt.work.story)
        known = Known(feedback=feedback, guidance=notes, matter=matter, touched=files, request=self._request)
        checkout = self._confinement.alias if self._confinement else None
        session = msgspec.structs.replace(session_for(spec, attempt, step, known, env), checkout=checkout)
        if not find_agent(session.agent or spec.config.agent.name).HOOKS:
            return session
        where = store_for(spec.ref, env).layout.locations(spec.ref)
        hooks = prepare_hooks(
            spec.ref,
            where,
            spec.config,
            attempt,
            spec.run,
            self._folder,
            env,
            alone=self._confinement is not None and self._confinement.has_own_processes,
            checkout=checkout,
        )
        return msgspec.structs.replace(session, hooks=hooks)


def session_for(
    spec: RunSpec, attempt: Attempt, step: Mapping[str, Any], known: Known, env: Mapping[str, str]
) -> Session:
    """The session of one agent process: its prompt, and the settings that the step overrides."""
    config, ref, plan = spec.config, spec.ref, attempt.reading.plan
    about = About(
        plan=plan,
        source=attempt.reading.source,
        story=attempt.story,
        mode=attempt.mode,
        iteration=attempt.number,
        attempt=attempt.attempt,
        most=attempt.most or spec.limits.cap(sum(story.is_open for story in plan.stories)),
    )
    prompt = build(brief(ref, config, about, known, step, env))
    who = who_works(spec.settings, attempt.work, attempt.story, step)
    tools = step.get("allowed_tools") or ",".join(config.agent.allowed_tools)
    denied = READS_HISTORY if attempt.mode is Mode.EXAM else ()
    return Session(
        prompt=prompt.text,
        system=prompt.system,
        cwd=ref.root,
        agent=who.name,
        model=who.model,
        schema=schema_for(attempt.mode),
        rights=Rights(
            permissions=config.permissions,
            allowed_tools=tools if isinstance(tools, str) else ",".join(map(str, tools)),
            disallowed_tools=",".join((*config.agent.disallowed_tools, *denied)),
            folders=tuple(allowed_folders(config, ref.root, env)),
            is_root=hasattr(os, "geteuid") and os.geteuid() == 0,
        ),
        task=Task(
            story=attempt.work.story,
            title=attempt.story.title if attempt.story else "",
            mode=attempt.mode,
            iteration=attempt.number,
            attempt=attempt.attempt,
            reviewer=attempt.reviewer,
            free=attempt.free,
        ),
        fallback_model=config.agent.fallback_model,
        budget_usd=config.agent.budget_usd,
        keep=config.agent.keep_sessions,
        command=who.command,
        script=ref.root / config.agent.script if config.agent.script else None,
        plan=ref.path,
        request=known.request,
    )


def brief(
    ref: PlanRef, config: Config, about: About, known: Known, step: Mapping[str, Any], env: Mapping[str, str]
) -> Briefing:
    plan, story, mode = about.plan, about.story, about.mode
    where = layout(ref.layout).locations(ref)
    memory = memory_of(ref, where, env)
    acceptance = AcceptanceStore(plan_state(ref, env) / ACCEPTANCE).of(story.id) if story else None
    when: When = "review" if mode is Mode.REVIEW else "story"
    return Briefing(
        traits=traits(ref.layout),
        mode=mode,
        story=story,
        origin=_origin(ref, plan, story, env),
        story_block=_block(ref, about.source, story),
        template=template_for(ref, config, mode, step),
        count=Count(
            iteration=about.iteration,
            max_iterations=about.most,
            attempt=about.attempt,
            done=plan.count(State.DONE),
            total=len(plan.stories),
        ),
        paths=Paths(
            plan=_relative(where.plan, ref.root),
            progress=_relative(where.progress, ref.root),
            prd=_relative(where.requirements, ref.root),
            request=_relative(known.request, ref.root),
        ),
        name=ref.name.removeprefix("PRD-"),
        attachments=_attachments(ref, where) if mode is not Mode.EXAM else (),
        checks=tuple(check.command for check in choose(config, plan, story, when)),
        rules=tuple(_rules(config, story, acceptance)) if mode in (Mode.IMPLEMENT, Mode.FIX) else (),
        notes=Notes(
            learnings=_learnings(ref, memory, env) if _may_hear(config, mode) else (),
            file=memory.name,
            tokens=config.memory.prompt_tokens,
            cue=cue_for(story, known.touched, known.feedback),
            lasting=config.memory.repo_file,
        ),
        feedback=known.feedback,
        guidance=known.guidance,
        matter=_told_of(known.matter, acceptance),
        answers=read_answers(plan_state(ref, env)).of(story.id if story else ""),
        review=config.review.when == "always",
        review_cap=config.review.cap,
        exam=_exam(ref, where, plan, env) if mode is Mode.EXAM else "",
    )


def _exam(ref: PlanRef, where: Locations, plan: Plan, env: Mapping[str, str]) -> str:
    from ralph.proof.exam import exam_material  # few runs need it

    return exam_material(ref, where, plan, env)


def _told_of(matter: Matter | None, acceptance: Acceptance | None) -> Matter | None:
    if matter is None or acceptance is None or not acceptance.files:
        return matter
    return msgspec.structs.replace(matter, acceptance=acceptance.tests, is_hidden=acceptance.is_hidden)


def _rules(config: Config, story: Story | None, acceptance: Acceptance | None) -> Iterator[str]:
    """Rules that an agent would otherwise learn from a rejected attempt."""
    if patterns := ", ".join(f"`{pattern}`" for pattern in config.protected[:_MOST_PATTERNS]):
        yield f"These files are protected; edits to them are reverted: {patterns}"
    if acceptance is not None and acceptance.is_visible:
        files = ", ".join(f"`{path}`" for path in list(acceptance.files)[:_MOST_PATTERNS])
        yield f"Another session wrote acceptance tests: {files}. They have to pass; edits to them are reverted"
    elif acceptance is not None and acceptance.files:
        yield (
            "Another session wrote acceptance tests from this story's text. You cannot see them; they have to pass. "
            "Implement what the text says for every input, not only for its examples"
        )
    minimum = minimum_grade(config)
    needs_witness = story is not None and not story.verify and not story.is_review_step and minimum != "unproven"
    if needs_witness and minimum == "reviewed":
        yield "Where a test can show the change, add or change one that fails without it and passes with it"
    elif needs_witness:
        yield "Add or change a test that fails without your change and passes with it, or the work is rejected"
    if config.tamper != "off":
        yield "Do not change what existing tests expect, unless the story asks for it"


def _learnings(ref: PlanRef, memory: Memory, env: Mapping[str, str]) -> tuple[Learning, ...]:
    return distinct((*recent_learnings(memory), *learnings_elsewhere(ref, memory, env)))


def _may_hear(config: Config, mode: Mode) -> bool:
    """A reviewer judges without the notes of the agent that wrote the code, and so does an examiner."""
    return config.memory.prompt_tokens > 0 and mode not in (Mode.REVIEW, Mode.EXAM)


def _block(ref: PlanRef, source: bytes, story: Story | None) -> str:
    own = getattr(layout(ref.layout), "story_block", None)  # only plan.md has one
    return own(source, story.id) if own and story is not None else ""


def _origin(ref: PlanRef, plan: Plan, story: Story | None, env: Mapping[str, str]) -> str:
    """Where a story was imported from. An agent may rewrite the notes that say so, but not the record."""
    if story is None:
        return ""
    known = sources_in(plan) | read_imports(ref, env)
    return next((f"the import {key}" for key, imported in known.items() if imported == story.id), "")


def _attachments(ref: PlanRef, where: Locations) -> tuple[str, ...]:
    """The files a client includes by `@path`."""
    if not traits(ref.layout).attaches_files:
        return ()
    paths = [_relative(where.plan, ref.root)]
    if where.progress and _size(where.progress) <= _SHORT_LOG:  # a run begins the log
        paths.append(_relative(where.progress, ref.root))
    if where.specs and where.specs.is_dir():
        paths.append(_relative(where.specs, ref.root) + "/")
    return tuple(paths)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _relative(path: Path | None, root: Path) -> str:
    if path is None:
        return ""
    return os.path.relpath(path, root)
