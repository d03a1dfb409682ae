"""The probes of a workspace and of a run, and the table of all of them: what `doctor` and `preflight` print.

`ralph doctor` looks at the machine and at every plan of the workspace. `ralph doctor preflight` looks at the run
that would start. A run that can start does not pay for this: its first steps refuse what they must, and only then is
the rest checked, so that all problems are reported at once, each with its fix.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from ralph.agents.registry import AGENTS
from ralph.agents.registry import agent as find_agent
from ralph.budget.settings import prices_of
from ralph.config.checks import choose
from ralph.config.layers import Settings, load
from ralph.config.schema import Config
from ralph.config.trust import Commands, check_trust
from ralph.core.environment import child_environment, secret_names
from ralph.core.errors import NotARepository, NotTrusted, PlanError, RalphError
from ralph.core.permissions import may_line
from ralph.core.ports import PlanRef, Session
from ralph.core.problems import Severity
from ralph.core.text import one_line
from ralph.doctor import machine
from ralph.doctor.findings import Finding, Level, Line, Probe, Subject, examine, fail, listed, ok, warn
from ralph.engine.steps import STEPS
from ralph.host.git.repo import find_repository, identify
from ralph.host.git.situation import abort_command, phrase, situation
from ralph.host.process.programs import which
from ralph.host.process.signals import StopSignal
from ralph.notify.channels import channels
from ralph.plans.registry import LAYOUTS, traits
from ralph.proof.check_run import run_check
from ralph.proof.check_trouble import why_not_runnable
from ralph.proof.place import expected_place, request_for
from ralph.review.material import lens
from ralph.run.confinement import inside, sandbox_line
from ralph.run.launch import probe, wants_clone
from ralph.run.repository import ours, refuse_unless_ready
from ralph.run.sandbox_status import decide_sandbox
from ralph.run.spec import Launched, RunSpec
from ralph.sandbox.choice import Chosen
from ralph.session.choice import named_agents, reviewer_of
from ralph.session.hook_policy import rights_of
from ralph.session.steps import plan_steps
from ralph.state.clones import users_own
from ralph.state.locks import describe, held_locks
from ralph.state.places import home, workspace_state
from ralph.state.runs import open_run
from ralph.workspace.find import Choice, find_plans, find_repo, store_for
from ralph.workspace.lint import lint_plan
from ralph.workspace.prompt_files import prompt_problems
from ralph.workspace.settings_check import parallel_misfits, sandbox_misfits, unknown_names
from ralph.workspace.trust import gather, may_run, read_record

_MOST_ERRORS = 5
_MOST_SECRETS = 12
_REVIEW = "review them with `ralph trust`"
_SETTINGS = "`ralph config` shows the settings"


def preflight(prepared: Launched, env: Mapping[str, str], *, checks: bool = False) -> list[Line]:
    """The findings of every probe, in the order a run meets them. `checks`: also run the checks, as a baseline does."""
    root = prepared.ref.root
    probes = PREFLIGHT | ({"checks": run_checks} if checks else {})
    return list(_once(examine(Subject(root, root, env, prepared), probes, patience=None)))


def _once(lines: Iterable[Line]) -> Iterator[Line]:
    """A misspelt agent keeps several probes from their work: each failure is reported by the first of them."""
    failures: list[str] = []
    for line in lines:
        if line.level is Level.FAIL:
            if any(line.text in text for text in failures):
                continue
            failures.append(line.text)
        yield line


def with_the_rest(error: RalphError, prepared: Launched, env: Mapping[str, str]) -> RalphError:
    """The error that kept a run from starting, with everything else that would have."""
    rest = [
        line
        for line in preflight(prepared, env)
        if line.level is Level.FAIL and line.text[:60] not in one_line(listed(error), 2000)
        if line.topic != "trust" or not isinstance(error, NotTrusted)
    ]
    if not rest:
        return error
    lines = "\n".join(f"  {line.topic}: {line.text}" + (f"\n    fix: {line.fix}" if line.fix else "") for line in rest)
    error.message = f"{error.message}\nalso fix before a run can start:\n{lines}"
    error.args = (error.message,)
    return error


def _run(subject: Subject) -> Launched:
    assert subject.prepared is not None, "a probe of PREFLIGHT"
    return subject.prepared


def _settings(subject: Subject, layout: str = "") -> Settings:
    if subject.prepared:
        return subject.prepared.settings
    return load(root=subject.root, layout=layout, name=None, env=subject.env, flags={})


def _refs(subject: Subject) -> list[PlanRef]:
    if subject.prepared:
        return [subject.prepared.ref]
    return find_plans(subject.root, Choice()) if subject.root else []


def plans(subject: Subject) -> Iterator[Finding]:
    if subject.root is None:
        yield warn(f"no plan here or above ({subject.here})", "ralph init NAME")
        return
    refs = _refs(subject)
    if not refs:
        yield warn(f"{subject.root} has no plan yet", "ralph init NAME")
    for ref in refs:
        problems = lint_plan(ref, _settings(subject, ref.layout), subject.env).problems
        errors = [problem for problem in problems if problem.severity is Severity.ERROR]
        name = ref.path.relative_to(ref.root)
        for problem in errors[:_MOST_ERRORS]:
            yield fail(str(problem), problem.hint or "ralph check")
        if len(errors) > _MOST_ERRORS:
            yield fail(f"{name}: {len(errors) - _MOST_ERRORS} more problems", f"ralph check {name}")
        elif problems and not errors:
            yield warn(f"{name} ({ref.layout}): warnings ({len(problems)})", f"ralph check {name}")
        elif not errors:
            count = f", stories: {len(subject.prepared.plan.stories)}" if subject.prepared else ""
            yield ok(f"{name} ({ref.layout}){count}")


def config(subject: Subject) -> Iterator[Finding]:
    settings = _settings(subject)
    for problem in settings.warnings:
        yield warn(str(problem), problem.hint or _SETTINGS)
    files = [layer.file for layer in settings.layers if layer.file and layer.values]
    yield ok(f"settings from {', '.join(files)}" if files else "settings: the defaults")


def settings_of_run(subject: Subject) -> Iterator[Finding]:
    settings, root = _settings(subject), _run(subject).ref.root
    unknown = list(unknown_names(settings))
    for problem in unknown:
        yield fail(str(problem), problem.hint or _SETTINGS)
    if not unknown:  # an unknown step type cannot be checked
        plan_steps(settings, root)
    try:
        prices_of(settings.config, root)
    except RalphError as error:
        yield fail(f"budget.prices: {error}", error.hint or "set it to a price file, or remove it; see docs/cost.md")
    misfits = [*sandbox_misfits(settings), *parallel_misfits(settings)]
    for problem in (*settings.warnings, *misfits):
        level = fail if problem.severity is Severity.ERROR else warn
        yield level(str(problem), problem.hint or _SETTINGS)
    for channel in channels(settings.config.notify, root, subject.env):
        if why := channel.problem():
            hint = "fix or remove it; `ralph doctor notify` sends a test message"
            yield warn(f"no notification by {channel.name}: {why}", hint)
    if not unknown and all(problem.severity is not Severity.ERROR for problem in misfits):
        yield ok("valid")


def trust(subject: Subject) -> Iterator[Finding]:
    """A warning from `doctor`; a run would not start."""
    if subject.root is None:
        return
    commands = _commands(subject)
    if not commands:
        yield ok("the workspace defines no commands")
    elif may_run(subject.root, commands, subject.env):
        yield ok(f"every command of the workspace is trusted ({len(commands)})")
    else:
        status = check_trust(read_record(subject.root, subject.env), commands).status
        told = fail if subject.prepared else warn
        yield told(f"commands of the workspace are not trusted ({status.value})", _REVIEW)


def _commands(subject: Subject) -> Commands:
    assert subject.root is not None
    if subject.prepared:
        own = users_own(subject.prepared.ref, subject.env)
        return gather(own.root, subject.prepared.settings, [(own.path, subject.prepared.plan)])
    readable = []
    for ref in _refs(subject):
        try:
            readable.append((ref.path, store_for(ref, subject.env).load().plan))
        except PlanError:
            continue  # reported by `plans`
    return gather(subject.root, _settings(subject), readable)


def agent(subject: Subject) -> Iterator[Finding]:
    """The agent a run would use, found the same way, and whether it is logged in."""
    config = _settings(subject).config.agent
    script = subject.folder / config.script if config.script else None
    session = Session(prompt="", cwd=subject.folder, command=config.command, script=script)
    yield ok(f"{config.name}: {find_agent(config.name).find(session, subject.env.get('PATH', ''))}")
    yield from login(subject)
    yield from _other_agents(_settings(subject).config, session, subject.env)


def login(subject: Subject) -> Iterator[Finding]:
    return machine.login(_settings(subject).config.agent.name, subject.env)


def agents_of_run(subject: Subject) -> Iterator[Finding]:
    """The agent, which is started once, and every other one that a run may start."""
    prepared = _run(subject)
    config, session = prepared.settings.config, probe(prepared)
    trusted = may_run(prepared.ref.root, _commands(subject), subject.env)
    yield machine.client(config.agent.name, session, subject.env, trusted=trusted)
    yield from _other_agents(config, session, subject.env)


def _other_agents(config: Config, session: Session, env: Mapping[str, str]) -> Iterator[Finding]:
    path = env.get("PATH", "")
    if config.review.enabled:
        reviewer_of(config)  # raises if `other` has nobody to choose from
    for name, key in named_agents(config).items():
        if key == "agent.name":
            continue
        role = {"review.agent": "reviewer", "review.reviewers": "reviewer"}.get(key, key)
        bare = msgspec.structs.replace(session, command=config.review.command if key == "review.agent" else ())
        try:
            yield ok(f"{role} {name}: {find_agent(name).find(bare, path)}")
            yield from (each for each in machine.login(name, env) if each.level is not Level.OK)
        except RalphError as error:
            if key != "fallback":
                raise
            # A missing fallback does not keep a run from starting.
            yield warn(f"fallback {name} is not usable: {error}", error.hint or "remove it from fallback")


def rights(subject: Subject) -> Iterator[Finding]:
    settings, chosen = _sandboxed(subject)
    known = msgspec.structs.replace(rights_of(settings.config), sandbox=sandbox_line(settings, chosen))
    line = f"the agent {may_line(known)}"
    if known.mode == "client" and known.own_rules:
        yield warn(line, "ralph config set permissions guard")
    else:
        yield ok(line)


def _sandboxed(subject: Subject) -> tuple[Settings, Chosen]:
    """The settings as a run has them, which depend on its sandbox."""
    chosen = decide_sandbox(_settings(subject), subject.env).chosen
    return inside(_settings(subject), chosen), chosen


def sandbox(subject: Subject) -> Iterator[Finding]:
    """The same decision as that of a run: a sandbox is started, and escapes are tried."""
    settings = _settings(subject)
    where = machine.container(subject.env)
    decided = decide_sandbox(settings, subject.env)
    config, hint = settings.config, decided.hint or "see `ralph sandbox status` and docs/sandbox.md"
    if decided.stops:
        yield fail(decided.why, hint)
    elif decided.chosen.backend is not None:
        yield ok(f"{sandbox_line(settings, decided.chosen)}; {decided.why}")
        if config.sandbox.network == "open":
            yield warn("the network is open inside the sandbox", "set sandbox.network to listed")
    elif config.sandbox.use != "none":
        yield warn(decided.why, hint)
    elif config.permissions == "skip" and not where:
        yield warn("no sandbox, and `permissions: skip`: the agent can do everything you can", "remove `sandbox: none`")
    else:
        yield ok(f"none, as the settings say: the agent runs as you, limited by `permissions: {config.permissions}`")
    if where:
        yield ok(f"Ralph itself is inside a container ({where})")


def environment(subject: Subject) -> Iterator[Finding]:
    """Shows names only. The tests may need a variable that looks like a secret, so it is not refused."""
    config = _sandboxed(subject)[0].config
    wanted = (*(key for name in named_agents(config) for key in find_agent(name).ENV), *config.agent.env)
    secrets = secret_names(child_environment(subject.env, wanted, everything=config.env == "caller"))
    if not secrets:
        yield ok("no variable passed to the agent and the checks looks like a secret")
        return
    shown = ", ".join(secrets[:_MOST_SECRETS]) + (" …" if len(secrets) > _MOST_SECRETS else "")
    less = "; `env: minimal` passes fewer" if config.env == "caller" else ""
    yield ok(f"variables passed to the agent and the checks that look like secrets ({len(secrets)}): {shown}{less}")


def prompts(subject: Subject) -> Iterator[Finding]:
    ref, config, root = _run(subject).ref, _settings(subject).config, subject.folder
    is_well = True
    for step in config.steps:
        named = str(step.config.get("prompt_file") or "")
        if step.enabled and named and not (root / named).is_file():
            is_well = False
            yield warn(f"step {step.name or step.type}: {named} does not exist", "the built-in prompt is used instead")
    for problem in prompt_problems(ref, config):
        is_well = False
        yield fail(str(problem), problem.hint)
    for name in config.review.reviewers if config.review.enabled else ():
        lens(name, root)
    if is_well:
        yield ok("all found, no unknown variables")


def repository(subject: Subject) -> Iterator[Finding]:
    try:
        repo = identify(find_repository(subject.folder, home=home(subject.env)))
    except NotARepository as error:
        yield fail(error.message, error.hint)
        return
    now = situation(repo)
    if now.in_progress:
        yield fail(
            f"{phrase(now.in_progress)} is in progress in {repo.root}",
            f"finish it, or end it with `{abort_command(now.in_progress)}`",
        )
    if now.detached:
        yield warn(f"{repo.root} is not on a branch (detached HEAD)", "git switch -c NAME")
    if now.unborn:
        yield warn(f"{repo.root} has no commit yet", "git commit: a run starts from a commit")
    if now.dirty:
        yield warn(f"uncommitted changes ({len(now.dirty)})", "commit or stash them before a run")
    if not (now.in_progress or now.detached or now.unborn or now.dirty):
        yield ok(f"{repo.root} on {now.branch}, no uncommitted changes")


def repository_of_run(subject: Subject) -> Iterator[Finding]:
    prepared = _run(subject)
    ref = users_own(prepared.ref, subject.env)
    repo = find_repo(ref, prepared.settings, subject.env)
    spec = RunSpec(run="preflight", ref=ref, settings=prepared.settings, repo=repo)
    if not prepared.options.worktree and wants_clone(spec, _sandboxed(subject)[1], subject.env, lambda text: None):
        yield ok(f"{repo.root}; the agent works in a clone of what is committed")
        return
    if not prepared.options.stash and not prepared.options.worktree:
        if unfinished := open_run(repo.root, subject.env):
            yield warn(
                f"run {unfinished.run} has not ended: changed files may be its agent's",
                "leave them: the next `ralph run` keeps that work, or saves it under refs/ralph/rescue/ and undoes it",
            )
            return
        refuse_unless_ready(situation(repo), ours(spec, subject.env), ref)
    yield ok(f"{repo.root}, no uncommitted changes in the way")


def proof(subject: Subject) -> Iterator[Finding]:
    """Where the checks of each plan will run."""
    sentences: dict[str, None] = {}
    for ref in _refs(subject):
        settings = _settings(subject, ref.layout)
        try:
            repo = find_repo(ref, settings, subject.env)
        except NotARepository:
            return  # reported by `repository`
        sentences[expected_place(request_for(ref, repo, settings.config, subject.env))] = None
    for sentence in sentences:
        if "in the workspace: " in sentence:
            yield warn(sentence, "set proof.setup or proof.files, see docs/proof-checkout.md")
        else:
            yield ok(sentence)


def checks(subject: Subject) -> Iterator[Finding]:
    prepared = _run(subject)
    if chosen := choose(prepared.settings.config, prepared.plan, None, "final"):
        yield ok(f"{len(chosen)} configured; `ralph doctor preflight --checks` runs them")
    else:
        yield warn(
            "no checks configured: a story is unproven unless a review approves it",
            "add the project's test command under `checks:` in .ralph/config.yaml",
        )


def run_checks(subject: Subject) -> Iterator[Finding]:
    """On the current tree: a check that fails now fails for every story."""
    prepared = _run(subject)
    config, root = prepared.settings.config, prepared.ref.root
    chosen = choose(config, prepared.plan, None, "final")
    if not chosen:
        yield from checks(subject)
    elif not may_run(root, _commands(subject), subject.env):
        yield warn("the checks were not run: the commands of the workspace are not trusted", _REVIEW)
        return
    child = child_environment(subject.env, config.agent.env, everything=config.env == "caller")
    with StopSignal() as stop:
        for check in chosen:
            result = run_check(
                check.name,
                check.command,
                root=root,
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


def beads(subject: Subject) -> Iterator[Finding]:
    for tool in ("br", "bd"):
        if program := which(tool, subject.env.get("PATH", ""), outside=subject.folder):
            yield ok(f"{tool} {machine.version_of(program, subject.env)}")
            return
    if any(traits(ref.layout).has_tracker for ref in _refs(subject)):
        yield warn(
            "neither br nor bd is installed; spec.md is used on its own", "install beads_rust (br), or ignore this"
        )
    else:
        yield ok("not installed and not needed here")


def locks(subject: Subject) -> Iterator[Finding]:
    held = list(held_locks(workspace_state(subject.folder, subject.env)))
    for path, owner in held:
        yield warn(
            f"{path} is held by {describe(owner)}",
            "wait until it ends, or stop it with `ralph stop`; only one run works on a plan at a time",
        )
    if not held:
        yield ok("no run is active here")


def packages(_subject: Subject) -> Iterator[Finding]:
    """Third-party layouts, agents and step types."""
    for registry in (LAYOUTS, AGENTS, STEPS):
        for name, error in registry.third_party().items():
            yield warn(error.message, error.hint) if error else ok(f"{registry.kind} {name}")


DOCTOR: dict[str, Probe] = {
    # the machine
    "python": machine.python,
    "git": machine.git,
    "identity": machine.identity,
    # the workspace
    "repository": repository,
    "workspace": plans,
    "config": config,
    "proof": proof,
    "trust": trust,
    "agent": agent,
    # what may be needed
    "clients": machine.clients,
    "packages": packages,
    "sandbox": sandbox,
    "beads": beads,
    "disk": machine.disk,
    "locks": locks,
    "terminal": machine.terminal,
}
"""Topic → probe of `ralph doctor`."""
PREFLIGHT: dict[str, Probe] = {
    "plan": plans,
    "settings": settings_of_run,
    "trust": trust,
    "agent": agents_of_run,
    "rights": rights,
    "login": login,
    "sandbox": sandbox,
    "environment": environment,
    "prompts": prompts,
    "repository": repository_of_run,
    "disk": machine.disk,
    "checks": checks,
    "proof": proof,
}
"""Topic → probe of `ralph doctor preflight`."""
