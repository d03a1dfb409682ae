"""The sessions of agents: who works, with which prompt, hooks and rights."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from ralph.agents.registry import agent as find_agent
from ralph.budget.run_budget import RunBudget
from ralph.core.plan import Mode
from ralph.core.ports import Session
from ralph.core.run_ports import Attempt
from ralph.memory.store import Touched
from ralph.prompts.review import Matter, schema_for
from ralph.prompts.session import build
from ralph.proof.exam_session import READS_HISTORY
from ralph.review.material import Reviewing
from ralph.run.prompt import brief
from ralph.run.spec import RunSpec
from ralph.session.choice import who_works
from ralph.session.hook_policy import allowed_folders, prepare_hooks
from ralph.workspace.control import Guidance
from ralph.workspace.find import store_for


class AgentSessions:
    """`budget` runs an agent and books what it costs."""

    def __init__(
        self,
        spec: RunSpec,
        env: Mapping[str, str],
        folder: Path,
        request: Path,
        budget: RunBudget,
        guidance: Guidance,
        reviewing: Reviewing,
        touched: Touched,
    ) -> None:
        self._spec, self._env, self._folder, self._request = spec, env, folder, request
        self._guidance, self._reviewing, self._touched = guidance, reviewing, touched
        self.run, self.news = budget, budget.news

    def session(self, attempt: Attempt, step: dict[str, Any], feedback: str) -> Session:
        spec, env = self._spec, self._env
        notes = self._guidance(attempt.number, attempt.work.story)
        matter = self._reviewing.matter(attempt.story, attempt.reviewer) if attempt.mode is Mode.REVIEW else None
        files = self._touched.of(attempt.work.story)
        session = session_for(spec, attempt, step, feedback, self._request, env, notes, matter, files)
        if not find_agent(session.agent or spec.config.agent.name).HOOKS:
            return session
        where = store_for(spec.ref, env).layout.locations(spec.ref)
        hooks = prepare_hooks(spec.ref, where, spec.config, attempt, spec.run, self._folder, env)
        return msgspec.structs.replace(session, hooks=hooks)


def session_for(
    spec: RunSpec,
    attempt: Attempt,
    step: Mapping[str, Any],
    feedback: str,
    request: Path,
    env: Mapping[str, str],
    guidance: tuple[str, ...] = (),
    matter: Matter | None = None,
    touched: Iterable[str] = (),
) -> Session:
    """The session of one agent process: its prompt, and the settings that the step overrides."""
    config, ref = spec.config, spec.ref
    store = store_for(ref, env)
    briefing = brief(
        ref,
        store.layout,
        config,
        attempt.reading.plan,
        attempt.reading.source,
        attempt.story,
        attempt.mode,
        iteration=attempt.number,
        most=attempt.most or spec.limits.cap(sum(story.is_open for story in attempt.reading.plan.stories)),
        attempt=attempt.attempt,
        feedback=feedback,
        guidance=guidance,
        matter=matter,
        touched=touched,
        step=step,
        env=env,
        request=request,
    )
    prompt = build(briefing)
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
        allowed_tools=tools if isinstance(tools, str) else ",".join(map(str, tools)),
        disallowed_tools=",".join((*config.agent.disallowed_tools, *denied)),
        fallback_model=config.agent.fallback_model,
        budget_usd=config.agent.budget_usd,
        keep=config.agent.keep_sessions,
        permissions=config.permissions,
        folders=tuple(allowed_folders(config, ref.root, env)),
        command=who.command,
        script=ref.root / config.agent.script if config.agent.script else None,
        story=attempt.work.story,
        title=attempt.story.title if attempt.story else "",
        mode=attempt.mode,
        iteration=attempt.number,
        attempt=attempt.attempt,
        reviewer=attempt.reviewer,
        free=attempt.free,
        plan=ref.path,
        request=request,
        is_root=hasattr(os, "geteuid") and os.geteuid() == 0,
    )
