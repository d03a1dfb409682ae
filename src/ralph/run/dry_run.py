"""`--dry-run`: which story, mode, prompt, command line and checks a run would use, and in which sandbox.

Changes nothing, and starts nothing but a sandbox, to see whether it works.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator, Mapping

import msgspec

from ralph.agents.registry import agent as find_agent
from ralph.budget.forecast import allowance, spending_of
from ralph.config.checks import choose
from ralph.core.errors import SetupError
from ralph.core.fallback import next_reviewer
from ralph.core.history import History, to_be_told
from ralph.core.money import Spending
from ralph.core.moves import Move, Stop, Wait, Work
from ralph.core.permissions import may_line
from ralph.core.plan import Mode, Story
from ralph.core.ports import Session
from ralph.core.run_ports import Attempt
from ralph.core.text import estimate_tokens
from ralph.engine.decide import decide
from ralph.engine.prepare import attempt_number
from ralph.host.git.repo import FileId, Repo
from ralph.prompts.review import Matter
from ralph.proof.acceptance_tests import AcceptanceStore, has_check, is_needed
from ralph.proof.exam_session import ExamRounds, is_due
from ralph.review.material import Reviewing, refuse_unknown_reviewers
from ralph.run.confinement import inside, sandbox_line
from ralph.run.sandbox_status import decide_sandbox, workspace_line
from ralph.run.session import Known, session_for
from ralph.run.spec import Launched, RunSpec
from ralph.session.hook_policy import rights_of
from ralph.session.steps import plan_steps
from ralph.state.names import ACCEPTANCE
from ralph.state.places import plan_state, workspace_state
from ralph.workspace.control import notes_for
from ralph.workspace.find import find_repo, store_for
from ralph.workspace.own_files import RequestFiles, bookkeeping
from ralph.workspace.runs import feedback


def dry_run(prepared: Launched, env: Mapping[str, str]) -> Iterator[str]:
    review = prepared.settings.config.review
    if review.enabled:
        refuse_unknown_reviewers(review.reviewers, prepared.ref.root)
    decided = decide_sandbox(prepared.settings, env)
    place = workspace_line(prepared.settings, prepared.ref, decided.chosen, env)
    prepared = msgspec.structs.replace(prepared, settings=inside(prepared.settings, decided.chosen))
    config = prepared.settings.config
    steps = plan_steps(prepared.settings, prepared.ref.root)
    move = next_move(prepared, env, spending_of(prepared.ref, config, env))
    if not isinstance(move, Work):
        yield f"Nothing to work on: {_explain(move)}"
        return
    planned = steps.setup if move.mode is Mode.SETUP else steps.work
    agent_steps = [step for step in planned if step.kind == "agent"]
    session = session_of(prepared, move, dict(agent_steps[0].config) if agent_steps else {}, env)
    session = msgspec.structs.replace(session, budget_usd=allowance(prepared.ref, config, move.story, env))
    story = prepared.plan.story(move.story) if move.story else None
    yield f"story      {move.story or f'({move.mode.value})'} {story.title if story else ''}".rstrip()
    yield f"mode       {move.mode.value}"
    yield f"steps      {', '.join(step.name for step in planned)}"
    rights = msgspec.structs.replace(rights_of(config), sandbox=sandbox_line(prepared.settings, decided.chosen))
    yield f"agent      {may_line(rights)}"
    yield f"sandbox    {'the run would not start: ' if decided.stops else ''}{decided.line}"
    yield f"workspace  {place}"
    command, missing = _command(session, session.agent or config.agent.name, env)
    yield f"command    {command}"
    checks = choose(config, prepared.plan, story, "review" if move.mode is Mode.REVIEW else "story")
    yield f"checks     {'; '.join(check.command for check in checks) or 'none: unproven unless a review approves it'}"
    if session.system:
        yield f"\n--- appended to the system prompt (about {estimate_tokens(session.system)} tokens)\n{session.system}"
    yield f"\n--- prompt by stdin (about {estimate_tokens(session.prompt)} tokens)\n{session.prompt}"
    if missing:
        raise missing


def next_move(prepared: Launched, env: Mapping[str, str], spending: Spending | None = None) -> Move:
    """The first thing a run would do."""
    config, plan = prepared.settings.config, prepared.plan
    return decide(
        plan,
        History(spending=spending or Spending()),
        prepared.limits,
        time.time(),
        needs_setup=needs_setup(prepared),
        review=config.review.enabled,
        needs_acceptance=acceptance_for(prepared, env),
        needs_exam=is_exam_due(prepared, env),
    )


def needs_setup(prepared: Launched) -> bool:
    markers = plan_steps(prepared.settings, prepared.ref.root).markers
    return bool(markers) and not all(marker.exists() for marker in markers)


def acceptance_for(prepared: Launched, env: Mapping[str, str]) -> Callable[[Story], bool]:
    """Whether tests for a story would be written before it is implemented."""
    config, plan = prepared.settings.config, prepared.plan
    tests = AcceptanceStore(plan_state(prepared.ref, env) / ACCEPTANCE)
    return lambda story: has_check(config, plan) and is_needed(config, tests.of(story.id), story)


def is_exam_due(prepared: Launched, env: Mapping[str, str]) -> bool:
    config, plan, folder = prepared.settings.config, prepared.plan, plan_state(prepared.ref, env)
    if prepared.options.exam or prepared.options.stories:
        return prepared.options.exam
    return is_due(config, plan, ExamRounds(folder, AcceptanceStore(folder / ACCEPTANCE)).of(plan))


def session_of(prepared: Launched, move: Work, step: Mapping[str, object], env: Mapping[str, str]) -> Session:
    reading = store_for(prepared.ref, env).load()
    story = reading.plan.story(move.story) if move.story else None
    reviewers = prepared.settings.config.review.reviewers
    attempt = Attempt(
        number=1,
        work=move,
        story=story,
        attempt=attempt_number(story, move.mode, reviewers),
        reading=reading,
        checkpoint={},
        begun=0,
        reviewer=next_reviewer(reviewers, story) if move.mode is Mode.REVIEW else "",
    )
    spec = RunSpec(run="dry-run", ref=prepared.ref, settings=prepared.settings, repo=_no_repo(prepared))
    request = RequestFiles(prepared.ref.root, prepared.ref.folder).request
    notes = tuple(note.text for _, note in notes_for(plan_state(prepared.ref, env), move.story))
    last = to_be_told(feedback(prepared.ref, env), move.story)
    matter = _matter(prepared, attempt, env) if move.mode is Mode.REVIEW else None
    known = Known(feedback=last, guidance=notes, matter=matter, request=request)
    return session_for(spec, attempt, step, known, env)


def _matter(prepared: Launched, attempt: Attempt, env: Mapping[str, str]) -> Matter:
    """What a reviewer would receive, from the journals of earlier runs."""
    ref, config = prepared.ref, prepared.settings.config
    try:
        repo = find_repo(ref, prepared.settings, env)
    except SetupError:
        return Matter()
    own = bookkeeping(ref, store_for(ref, env).layout.locations(ref), repo.root, config)
    return Reviewing(repo, ref, workspace_state(ref.root, env), own.covers).matter(attempt.story, attempt.reviewer)


def _no_repo(prepared: Launched) -> Repo:
    """A dry run also works in a folder that is not yet a repository."""
    nowhere = FileId(0, 0)
    root = prepared.ref.root
    return Repo(
        root=root,
        git_dir=root / ".git",
        common_dir=root / ".git",
        object_format="sha1",
        root_id=nowhere,
        git_dir_id=nowhere,
        common_dir_id=nowhere,
    )


def _command(session: Session, name: str, env: Mapping[str, str]) -> tuple[str, SetupError | None]:
    """The command line, and why it could not be started. `…` is the private folder, a new one for each process."""
    agent = find_agent(name)
    try:
        program = agent.find(session, env.get("PATH", ""))
    except SetupError as error:
        return f"({error})", error
    return shlex.join(agent.launch(session, program).argv).replace(str(session.folder), "…"), None


def _explain(move: object) -> str:
    match move:
        case Stop(reason=reason, detail=detail):
            return f"{reason.value}{f' ({detail})' if detail else ''}"
        case Wait(why=why):
            return f"it would wait: {why}"
        case _:
            return "every story is done; the checks would run once more"
