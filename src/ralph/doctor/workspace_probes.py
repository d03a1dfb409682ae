"""What `ralph doctor` checks in a workspace: repository, settings, plans, trust, locks."""

from __future__ import annotations

from collections.abc import Iterator

from ralph.agents.registry import agent as find_agent
from ralph.config.layers import Settings, load
from ralph.config.trust import Status, check_trust
from ralph.core.errors import NotARepository, PlanError
from ralph.core.ports import PlanRef, Session
from ralph.core.problems import Severity
from ralph.doctor import probes, sandbox
from ralph.doctor.agent_state import login
from ralph.doctor.doctor import Finding, Patient, Probe, fail, ok, warn
from ralph.host.git.repo import find_repository, identify
from ralph.host.git.situation import abort_command, phrase, situation
from ralph.host.process.programs import which
from ralph.plans.registry import traits
from ralph.proof.place import expected_place, request_for
from ralph.state.locks import describe, held_locks
from ralph.state.places import home, workspace_state
from ralph.workspace.find import Choice, find_plans, store_for
from ralph.workspace.lint import lint_plan
from ralph.workspace.trust import gather, read_record


def repository(patient: Patient) -> Iterator[Finding]:
    try:
        repo = identify(find_repository(patient.folder, home=home(patient.env)))
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


def workspace(patient: Patient) -> Iterator[Finding]:
    if patient.root is None:
        yield warn(f"no plan here or above ({patient.here})", "ralph init NAME")
        return
    refs = _refs(patient)
    if not refs:
        yield warn(f"{patient.root} has no plan yet", "ralph init NAME")
    for ref in refs:
        problems = lint_plan(ref, _settings(patient, ref.layout), patient.env).problems
        errors = [p for p in problems if p.severity is Severity.ERROR]
        name = ref.path.relative_to(ref.root)
        if errors:
            more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
            yield fail(f"{errors[0]}{more}", errors[0].hint or "ralph check")
        elif problems:
            yield warn(f"{name} ({ref.layout}): warnings ({len(problems)})", f"ralph check {name}")
        else:
            yield ok(f"{name} ({ref.layout})")


def config(patient: Patient) -> Iterator[Finding]:
    settings = _settings(patient, "")
    for problem in settings.warnings:
        yield warn(str(problem), problem.hint or "ralph config show")
    files = [layer.file for layer in settings.layers if layer.file and layer.values]
    yield ok(f"settings from {', '.join(files)}" if files else "settings: the defaults")


def agent(patient: Patient) -> Iterator[Finding]:
    """The agent a run would use, found the same way, and whether it is logged in."""
    config = _settings(patient, "").config.agent
    script = patient.folder / config.script if config.script else None
    session = Session(prompt="", cwd=patient.folder, command=config.command, script=script)
    yield ok(f"{config.name}: {find_agent(config.name).find(session, patient.env.get('PATH', ''))}")
    yield from login(config.name, patient.env)


def sandboxed(patient: Patient) -> Iterator[Finding]:
    yield sandbox.finding(_settings(patient, "").config.permissions, patient.env)


def proof(patient: Patient) -> Iterator[Finding]:
    """Where the checks of each plan will run."""
    try:
        repo = identify(find_repository(patient.folder, home=home(patient.env)))
    except NotARepository:
        return  # reported by `repository`
    requests = (request_for(r, repo, _settings(patient, r.layout).config, patient.env) for r in _refs(patient))
    for sentence in dict.fromkeys(map(expected_place, requests)):
        yield proof_finding(sentence)


def proof_finding(sentence: str) -> Finding:
    if "in the workspace: " not in sentence:
        return ok(sentence)
    return warn(sentence, "set proof.setup or proof.files, see docs/proof-checkout.md")


def trust(patient: Patient) -> Iterator[Finding]:
    if patient.root is None:
        return
    plans = []
    for ref in _refs(patient):
        try:
            plans.append((ref.path, store_for(ref, patient.env).load().plan))
        except PlanError:
            continue  # reported by `workspace`
    commands = gather(patient.root, _settings(patient, ""), plans)
    verdict = check_trust(read_record(patient.root, patient.env), commands)
    if not commands:
        yield ok("the workspace defines no commands")
    elif verdict.status is Status.TRUSTED:
        yield ok(f"every command of the workspace is trusted ({len(commands)})")
    else:
        yield warn(f"commands of the workspace are not trusted ({verdict.status.value})", "ralph trust")


def beads(patient: Patient) -> Iterator[Finding]:
    for tool in ("br", "bd"):
        if found := which(tool, patient.env.get("PATH", ""), outside=patient.folder):
            yield ok(f"{tool} {probes.version_of(found, patient.env)}")
            return
    if any(traits(ref.layout).has_tracker for ref in _refs(patient)):
        yield warn(
            "neither br nor bd is installed; spec.md is used on its own", "install beads_rust (br), or ignore this"
        )
    else:
        yield ok("not installed and not needed here")


def locks(patient: Patient) -> Iterator[Finding]:
    held = list(held_locks(workspace_state(patient.folder, patient.env)))
    for path, owner in held:
        yield warn(
            f"{path} is held by {describe(owner)}",
            ("wait until it ends, or stop it with `ralph stop`; only one run works on a plan at a time"),
        )
    if not held:
        yield ok("no run is active here")


def _refs(patient: Patient) -> list[PlanRef]:
    return find_plans(patient.root, Choice()) if patient.root else []


def _settings(patient: Patient, layout: str) -> Settings:
    return load(root=patient.root, layout=layout, name=None, env=patient.env, flags={})


PROBES: dict[str, Probe] = {
    "python": probes.python,
    "git": probes.git,
    "identity": probes.identity,
    "repository": repository,
    "workspace": workspace,
    "config": config,
    "proof": proof,
    "trust": trust,
    "agent": agent,
    "clients": probes.clients,
    "sandbox": sandboxed,
    "beads": beads,
    "disk": probes.disk,
    "locks": locks,
    "terminal": probes.terminal,
}
"""Topic → probe."""
