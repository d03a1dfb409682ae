"""The questions of `ralph init` other than the checks: permissions, the cost of a run, the first story."""

from __future__ import annotations

import os
from argparse import Namespace
from pathlib import Path

from ralph.cli.output import note, warn
from ralph.cli.questions import Questions
from ralph.core.errors import BadData, RalphError, UsageError
from ralph.core.plan import Story
from ralph.core.ports import PlanRef
from ralph.core.text import one_line
from ralph.host.files import read_bytes
from ralph.plans.registry import layout

REQUIREMENTS = "requirements.md"
PERMISSIONS = {
    "guard": "edit inside the project and run commands that Ralph's guard allows",
    "skip": "everything, without asking; only for a container or a sandbox",
}


def show_agent(root: Path) -> None:
    from ralph.config.layers import load
    from ralph.core.ports import Session
    from ralph.doctor.agent_state import client, login
    from ralph.doctor.doctor import Level
    from ralph.workspace.trust import gather, may_run

    settings = load(root=root, layout="", name=None, env=os.environ, flags={})
    agent = settings.config.agent
    trusted = may_run(root, gather(root, settings, []), os.environ)
    session = Session(prompt="", cwd=root, command=agent.command)
    try:
        findings = [client(agent.name, session, os.environ, trusted=trusted)]
        findings += login(agent.name, os.environ)
    except RalphError as error:
        warn(f"agent: {error}" + (f" ({error.hint})" if error.hint else ""))
        return
    for word, finding in zip(("agent", "login"), findings, strict=False):
        text = f"{word}: {finding.text}" + (f" ({finding.fix})" if finding.fix else "")
        note(text) if finding.level is Level.OK else warn(text)


def ask_cost(questions: Questions, flag: str | None) -> str:
    """An amount in dollars, or None for no limit."""
    while True:
        text = questions.line("Maximum cost of one run, in US dollars (Enter: no limit)?", flag).lstrip("$").strip()
        try:
            number = float(text or 0)
            if 0 <= number < 1_000_000:
                return f"{number:g}" if number else ""
        except ValueError:
            pass
        problem = f"{one_line(text, 40)!r} is not an amount in dollars"
        if flag is not None:
            raise UsageError(problem, hint="e.g. --max-cost 20")
        note(problem)


def ask_first_story(args: Namespace, questions: Questions, *, has_page: bool) -> tuple[bool, Story | None]:
    if args.plan:
        return True, None
    if args.story is None and questions.asks:
        if has_page and questions.yes(f"Let the agent write the stories from {REQUIREMENTS} now?", None):
            return True, None
        title = questions.line(
            "First story: a title, `plan` to write stories with the agent, Enter to do it later:", None
        )
        if title.lower() == "plan":
            return True, None
    else:
        title = args.story or ""
    if not title.strip():
        return False, None
    criteria = questions.lines(
        "Acceptance criteria (one per line, an empty line ends):",
        "next criterion (Enter ends):",
        args.criterion if args.story else None,
    )
    story = Story(id="first", title=one_line(title.strip()), criteria=tuple(map(one_line, criteria)), priority=1)
    return False, story


def requirements_file(ref: PlanRef) -> dict[str, bytes]:
    """Seed 002: the requirements in the project's folder become those of the plan."""
    where = layout(ref.layout).locations(ref)
    page = where.requirements or (where.specs or ref.folder) / REQUIREMENTS
    source = ref.root / REQUIREMENTS
    if not source.is_file() or page.exists() or page == source:
        return {}
    try:
        return {page.relative_to(ref.root).as_posix(): read_bytes(source, within=ref.root, limit=1024 * 1024)}
    except BadData as error:
        warn(f"{REQUIREMENTS} was not read: {error}")
        return {}
