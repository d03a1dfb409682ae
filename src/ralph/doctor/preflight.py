"""Checks everything a run needs before it starts, and reports all problems at once, each with its fix.

A run that can start does not pay for this: its first steps refuse what they must, and only then is the rest checked.
`ralph preflight` checks without starting anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from ralph.agents.registry import agent as find_agent
from ralph.budget.settings import prices_of
from ralph.config.checks import choose
from ralph.config.schema import Config
from ralph.config.trust import Commands, check_trust
from ralph.core.environment import child_environment, secret_names
from ralph.core.errors import NotTrusted, RalphError
from ralph.core.fallback import parts
from ralph.core.permissions import may_line
from ralph.core.problems import Severity
from ralph.core.text import one_line
from ralph.doctor import probes, sandbox
from ralph.doctor.agent_state import client, login
from ralph.doctor.doctor import Finding, Level, Line, Patient, fail, ok, warn
from ralph.doctor.workspace_probes import proof_finding
from ralph.host.git.situation import situation
from ralph.host.process.signals import StopSignal
from ralph.notify.channels import channels
from ralph.proof.check_run import run_check
from ralph.proof.check_trouble import why_not_runnable
from ralph.proof.place import expected_place, request_for
from ralph.review.material import lens
from ralph.run.launch import probe
from ralph.run.repository import ours, refuse_unless_ready
from ralph.run.spec import Launched, RunSpec
from ralph.session.choice import known_agents
from ralph.session.hook_policy import rights_of
from ralph.session.steps import plan_steps
from ralph.state.runs import open_run
from ralph.workspace.find import find_repo
from ralph.workspace.lint import lint_plan
from ralph.workspace.settings_check import unknown_names
from ralph.workspace.trust import gather, may_run, read_record

Look = Callable[[Launched, Mapping[str, str]], Iterable[Finding]]


def preflight(prepared: Launched, env: Mapping[str, str], *, checks: bool = False) -> list[Line]:
    """The findings of every probe, in the order a run meets them. `checks`: also run the checks, as a baseline does."""
    looks: dict[str, Look] = {
        "plan": _plan,
        "settings": _settings,
        "trust": _trust,
        "agent": _agents,
        "rights": _rights,
        "login": _login,
        "sandbox": _sandbox,
        "environment": _environment,
        "prompts": _prompts,
        "repository": _repository,
        "disk": _disk,
        "checks": _checks if checks else _named_checks,
        "proof": _proof,
    }
    return [
        Line(topic, found.level, one_line(found.text, 400), one_line(found.fix, 300))
        for topic, look in looks.items()
        for found in _looked(look, prepared, env)
    ]


def _looked(look: Look, prepared: Launched, env: Mapping[str, str]) -> list[Finding]:
    found: list[Finding] = []
    try:
        found.extend(look(prepared, env))
    except RalphError as error:
        found.append(fail(_listed(error), error.hint or "see `ralph check`"))
    return found


def _listed(error: RalphError) -> str:
    """On one line, with commas between the entries of a list."""
    head, *entries = str(error).splitlines() or [""]
    return f"{head} {', '.join(entry.strip() for entry in entries)}" if entries else head


def with_the_rest(error: RalphError, prepared: Launched, env: Mapping[str, str]) -> RalphError:
    """The error that kept a run from starting, with everything else that would have."""
    rest = [
        line
        for line in preflight(prepared, env)
        if line.level is Level.FAIL and line.text[:60] not in one_line(_listed(error), 2000)
        if line.topic != "trust" or not isinstance(error, NotTrusted)
    ]
    if not rest:
        return error
    listed = "\n".join(f"  {line.topic}: {line.text}" + (f"\n    fix: {line.fix}" if line.fix else "") for line in rest)
    error.message = f"{error.message}\nalso fix before a run can start:\n{listed}"
    error.args = (error.message,)
    return error


def _plan(prepared: Launched, env: Mapping[str, str]) -> Iterator[Finding]:
    problems = lint_plan(prepared.ref, prepared.settings, env).problems
    errors = [problem for problem in problems if problem.severity is Severity.ERROR]
    for problem in errors[:5]:
        yield fail(str(problem), problem.hint or "ralph check")
    if not errors:
        more = f", warnings: {len(problems)} (see `ralph check`)" if problems else ""
        yield ok(f"{prepared.ref.name} ({prepared.ref.layout}), stories: {len(prepared.plan.stories)}{more}")


def _settings(prepared: Launched, env: Mapping[str, str]) -> Iterator[Finding]:
    settings, root = prepared.settings, prepared.ref.root
    found = list(unknown_names(settings))
    for problem in found:
        yield fail(str(problem), problem.hint or "`ralph config` shows the settings")
    if not found:  # an unknown step type cannot be checked
        plan_steps(settings, root)
    yield from _prices(settings.config, root)
    for problem in settings.warnings:
        yield warn(str(problem), problem.hint or "`ralph config` shows the settings")
    for way in channels(settings.config.notify, root, env):
        if why := way.problem():
            yield warn(
                f"no notification by {way.name}: {why}", ("fix or remove it; `ralph notify test` sends a test message")
            )
    if not found:
        yield ok("valid")


def _prices(config: Config, root: Path) -> Iterator[Finding]:
    try:
        prices_of(config, root)
    except RalphError as error:
        yield fail(f"budget.prices: {error}", error.hint or "set it to a price file, or remove it; see docs/cost.md")


def _trust(prepared: Launched, env: Mapping[str, str]) -> Iterator[Finding]:
    commands = _commands(prepared)
    if may_run(prepared.ref.root, commands, env):
        yield ok(
            f"all {len(commands)} commands of the workspace are trusted"
            if commands
            else "the workspace defines no commands"
        )
        return
    status = check_trust(read_record(prepared.ref.root, env), commands).status
    yield fail(f"commands of the workspace are not trusted ({status.value})", _REVIEW)


_REVIEW = "review them with `ralph trust`"


def _commands(prepared: Launched) -> Commands:
    return gather(prepared.ref.root, prepared.settings, [(prepared.ref.path, prepared.plan)])


def _agents(prepared: Launched, env: Mapping[str, str]) -> Iterator[Finding]:
    config = prepared.settings.config
    path = env.get("PATH", "")
    trusted = may_run(prepared.ref.root, _commands(prepared), env)
    yield client(config.agent.name, probe(prepared), env, trusted=trusted)
    if config.review.enabled and config.review.agent and config.review.agent != config.agent.name:
        reviewer = msgspec.structs.replace(probe(prepared), command=config.review.command)
        yield ok(f"reviewer {config.review.agent}: {find_agent(config.review.agent).find(reviewer, path)}")
    for choice in config.fallback:
        name, _ = parts(choice, known_agents(config))
        if name and name != config.agent.name:
            yield _stand_in(prepared, name, path)


def _sandbox(prepared: Launched, env: Mapping[str, str]) -> Iterator[Finding]:
    yield sandbox.finding(prepared.settings.config.permissions, env)


def _rights(prepared: Launched, env: Mapping[str, str]) -> Iterator[Finding]:
    yield ok(f"the agent {may_line(rights_of(prepared.settings.config))}")


def _stand_in(prepared: Launched, name: str, path: str) -> Finding:
    """A missing fallback does not keep a run from starting."""
    try:
        bare = msgspec.structs.replace(probe(prepared), command=())
        return ok(f"fallback {name}: {find_agent(name).find(bare, path)}")
    except RalphError as error:
        return warn(f"fallback {name} is not usable: {error}", error.hint or "remove it from fallback")


def _environment(prepared: Launched, env: Mapping[str, str]) -> Iterator[Finding]:
    """Shows names only. The tests may need a variable that looks like a secret, so it is not refused."""
    config = prepared.settings.config
    wanted = (*find_agent(config.agent.name).ENV, *config.agent.env)
    secrets = secret_names(child_environment(env, wanted, everything=config.env == "caller"))
    if not secrets:
        yield ok("no variable passed to the agent and the checks looks like a secret")
        return
    shown = ", ".join(secrets[:_MOST_SECRETS]) + (" …" if len(secrets) > _MOST_SECRETS else "")
    less = "; `env: minimal` passes fewer" if config.env == "caller" else ""
    yield ok(f"variables passed to the agent and the checks that look like secrets ({len(secrets)}): {shown}{less}")


_MOST_SECRETS = 12


def _login(prepared: Launched, env: Mapping[str, str]) -> Iterator[Finding]:
    return login(prepared.settings.config.agent.name, env)


def _prompts(prepared: Launched, env: Mapping[str, str]) -> Iterator[Finding]:
    config, root = prepared.settings.config, prepared.ref.root
    missing = 0
    if config.prompt and not (root / config.prompt).is_file():
        missing += 1
        yield fail(f"the prompt file {config.prompt} does not exist", "pass a file with -p, or remove the setting")
    for step in config.steps:
        named = str(step.config.get("prompt_file") or "")
        if step.enabled and named and not (root / named).is_file():
            missing += 1
            yield warn(f"step {step.name or step.type}: {named} does not exist", "the built-in prompt is used instead")
    for name in config.review.reviewers if config.review.enabled else ():
        lens(name, root)
    if not missing:
        yield ok("all found")


def _repository(prepared: Launched, env: Mapping[str, str]) -> Iterator[Finding]:
    repo = find_repo(prepared.ref, prepared.settings, env)
    spec = RunSpec(run="preflight", ref=prepared.ref, settings=prepared.settings, repo=repo)
    if not prepared.options.stash and not prepared.options.worktree:
        if unfinished := open_run(repo.root, env):
            yield warn(
                f"run {unfinished.run} has not ended: changed files may be its agent's",
                "leave them: the next `ralph run` keeps that work, or saves it under refs/ralph/rescue/ and undoes it",
            )
            return
        refuse_unless_ready(situation(repo), ours(spec, env), prepared.ref)
    yield ok(f"{repo.root}, no uncommitted changes in the way")


def _disk(prepared: Launched, env: Mapping[str, str]) -> Iterator[Finding]:
    yield from probes.disk(Patient(prepared.ref.root, prepared.ref.root, env))


def _proof(prepared: Launched, env: Mapping[str, str]) -> Iterator[Finding]:
    repo = find_repo(prepared.ref, prepared.settings, env)
    yield proof_finding(expected_place(request_for(prepared.ref, repo, prepared.settings.config, env)))


def _named_checks(prepared: Launched, env: Mapping[str, str]) -> Iterator[Finding]:
    chosen = choose(prepared.settings.config, prepared.plan, None, "final")
    if not chosen:
        yield warn(
            "no checks configured: a story is unproven unless a review approves it",
            "add the project's test command under `checks:` in .ralph/config.yaml",
        )
        return
    yield ok(f"{len(chosen)} configured; `ralph preflight --checks` runs them")


def _checks(prepared: Launched, env: Mapping[str, str]) -> Iterator[Finding]:
    """On the current tree: a check that fails now fails for every story."""
    config = prepared.settings.config
    chosen = choose(config, prepared.plan, None, "final")
    if not chosen:
        yield from _named_checks(prepared, env)
    elif not may_run(prepared.ref.root, _commands(prepared), env):
        yield warn("the checks were not run: the commands of the workspace are not trusted", _REVIEW)
        return
    child = child_environment(env, config.agent.env, everything=config.env == "caller")
    with StopSignal() as stop:
        for check in chosen:
            result = run_check(
                check.name,
                check.command,
                root=prepared.ref.root,
                env=child,
                timeout=check.timeout,
                cwd=check.cwd,
                required=check.required,
                stop=stop,
            )
            told = f"{check.name}: {check.command}"
            trouble = why_not_runnable(check.command, result.code, result.tail)
            if trouble and check.required:
                yield fail(f"{told} cannot run: {trouble.reason}", trouble.fix)
            elif result.passed:
                yield ok(f"{told} passes, {result.seconds:.1f} s")
            elif config.baseline == "no-worse" or not check.required:
                yield warn(f"{told} fails", "stories are not rejected because of it")
            else:
                last = one_line(result.tail.strip().rpartition("\n")[2], 120)
                yield fail(f"{told} fails{f': {last}' if last else ''}", "fix it, or set `baseline: no-worse`")
