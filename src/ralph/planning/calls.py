"""`ralph plan`, `ralph add` and `ralph fix` without the terminal: what is asked of which agent, and what is written."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import msgspec
from msgspec import Struct

from ralph.config.checks import choose
from ralph.config.trust import Verdict
from ralph.core.errors import IllegalChange
from ralph.core.plan import State
from ralph.core.text import one_line, without_comments
from ralph.host.files import read_bytes
from ralph.host.git.repo import identify
from ralph.journal.records import Listener
from ralph.memory.compact import compact_when_large
from ralph.planning.add import Added, Addition, add, archived_ids, refuse_busy_tree
from ralph.planning.answer import Form, in_order, read_answer
from ralph.planning.dialogue import Dialogue, Draft, Drafts, Task, tidy
from ralph.planning.proposal import Examine, FaultCheck, Person, Proposal, propose, refuse_findings
from ralph.planning.target import Target
from ralph.prompts.planning import PlanBriefing
from ralph.session.single import Sessions
from ralph.setup.scaffold import NOT_SEEN, Started, fresh_files, start_plan
from ralph.state.locks import turn
from ralph.state.places import planning_folder
from ralph.state.runs import new_run_id
from ralph.workspace.find import repository_of
from ralph.workspace.trust import ensure_trusted, gather, is_trusted_by

_EXAMPLE_ROW = "| example | `docs/architecture.md` | how the parts fit together |"


def write_plan(proposal: Proposal, requirements: str, env: Mapping[str, str], *, agreed: bool) -> Started:
    """A new plan, or one that had only examples.

    `requirements`: the page for people and agents. A page with the user's own text is kept.
    """
    target = proposal.target
    ref = target.ref
    contents = {ref.path.relative_to(ref.root).as_posix(): proposal.after.source}
    page = target.requirements.relative_to(ref.root).as_posix()
    if requirements.strip() and not target.written:
        contents[page] = requirements.strip().encode() + b"\n"
        contents |= _lookup_table(target, page)
    unseen = not agreed and any(story.verify for story in proposal.after.plan.stories)
    request = msgspec.structs.replace(
        target.request,
        contents=contents,
        toolchain=target.toolchain,
        is_foreign=unseen,
        trust=agreed or not target.has_proposed_checks,
        force=False,
    )
    with turn(ref, env):
        _require_same(target)
        started = start_plan(request, env)
    return msgspec.structs.replace(started, warnings=(*started.warnings, NOT_SEEN)) if unseen else started


def _require_same(target: Target) -> None:
    path = target.ref.path
    now = read_bytes(path, within=target.ref.root) if path.exists() else b""
    if now != target.on_disk:
        raise IllegalChange(
            f"{path} was changed in the meantime",
            hint="review it, then try again; --resume-draft has the plan as you accepted it",
        )


def _lookup_table(target: Target, page: str) -> dict[str, bytes]:
    """A spec has a table of what to read; a new table gets a line for the page."""
    readme = target.store.layout.locations(target.ref).readme
    if readme is None or readme.exists():
        return {}
    name = readme.relative_to(target.ref.root).as_posix()
    files = fresh_files(target.ref, target.request, target.toolchain)
    return {file.path: naming(page, file.data) for file in files if file.path == name}


def naming(page: str, table: bytes) -> bytes:
    """A new lookup table with the page in place of the example."""
    return table.replace(_EXAMPLE_ROW.encode(), f"| requirements | `{page}` | what is wanted, and why |".encode())


_NOT_FOR_PLANNING = ("checks.", "quality_checks.", "steps[")
"""Commands of a workspace that a planning session does not run."""


class Caller(Struct, frozen=True, kw_only=True):
    """The calling command, and what it may do without asking."""

    person: Person
    env: Mapping[str, str]
    trust: bool = False
    """`--trust`: commands are trusted unseen."""
    ask: Callable[[Verdict], bool] | None = None
    """Shows commands to the user."""
    listeners: tuple[Listener, ...] = ()

    @property
    def agrees(self) -> bool:
        """Whether the commands of a written plan count as trusted."""
        return self.person.can_be_asked or self.trust or is_trusted_by(self.env)


class Planned(Struct, frozen=True):
    proposal: Proposal
    started: Started | None = None
    """A newly written plan."""
    added: Added | None = None
    """Stories added to an existing plan."""


def make_plan(target: Target, draft: Draft, drafts: Drafts, caller: Caller) -> Planned | None:
    """None: it was dropped. The draft is removed when the plan is written or dropped, not before."""
    requirements = draft.requirements or target.written
    asks_page = not requirements
    if requirements and draft.idea:
        requirements = f"{requirements.rstrip()}\n\nWhat is asked for now: {draft.idea}\n"
    briefing = _briefing(target, "plan", draft, requirements, writes_requirements=asks_page)
    form = _form(target, caller, requirements=asks_page)
    task = Task(target=target, briefing=briefing, form=form, draft=draft, taken=archived_ids(target.ref))
    proposal = _hold(task, drafts, caller)
    if proposal is None:
        drafts.drop()
        return None
    planned = _written(target, proposal, draft, caller)
    drafts.drop()
    return planned


def take_answer(target: Target, draft: Draft, text: str, caller: Caller) -> Planned:
    """A plan made elsewhere, in the form of a planner's answer. The same rules apply; no agent is called."""
    return _written(target, _from_answer(target, text, caller), draft, caller)


def add_answer(target: Target, text: str, caller: Caller, *, archive: bool) -> Planned:
    return _add(target, caller, _from_answer(target, text, caller), archive=archive)


def fix_answer(target: Target, text: str, caller: Caller) -> Planned:
    return _add(target, caller, _from_answer(target, text, caller, fixes=True), first=True)


def _from_answer(target: Target, text: str, caller: Caller, *, fixes: bool = False) -> Proposal:
    answer = read_answer(text, Form(may_ask=False, known=known_ids(target), only_one=fixes))
    examine: Examine = FaultCheck(caller.person, caller.env) if fixes else lambda _: []
    proposal = propose(target, answer, caller.env, taken=archived_ids(target.ref), first=fixes, examine=examine)
    refuse_findings(proposal)
    return proposal


def _written(target: Target, proposal: Proposal, draft: Draft, caller: Caller) -> Planned:
    refuse_busy_tree(target.ref, caller.env)
    if target.has_stories:
        addition = Addition(tuple(in_order(proposal.answer.stories)), agreed=caller.agrees)
        return Planned(proposal, added=add(target.ref, addition, caller.env))
    page = draft.requirements or proposal.answer.requirements
    return Planned(proposal, started=write_plan(proposal, page, caller.env, agreed=caller.agrees))


def add_work(target: Target, draft: Draft, drafts: Drafts, caller: Caller, *, archive: bool) -> Planned | None:
    briefing = _briefing(target, "add", draft, target.written)
    form = _form(target, caller)
    task = Task(target=target, briefing=briefing, form=form, draft=draft, taken=archived_ids(target.ref))
    proposal = _hold(task, drafts, caller)
    planned = _add(target, caller, proposal, archive=archive) if proposal else None
    drafts.drop()
    if planned is not None:
        compact_when_large(target.ref, target.settings, caller.env, caller.person.tell, caller.listeners)
    return planned


def fix_fault(target: Target, draft: Draft, drafts: Drafts, caller: Caller) -> Planned | None:
    briefing = _briefing(target, "fix", draft, "")
    form = _form(target, caller, only_one=True)
    task = Task(
        target=target,
        briefing=briefing,
        form=form,
        draft=draft,
        taken=archived_ids(target.ref),
        first=True,
        examine=FaultCheck(caller.person, caller.env),
    )
    proposal = _hold(task, drafts, caller)
    planned = _add(target, caller, proposal, first=True) if proposal else None
    drafts.drop()
    return planned


def _add(target: Target, caller: Caller, proposal: Proposal, *, archive: bool = False, first: bool = False) -> Planned:
    refuse_busy_tree(target.ref, caller.env)
    stories = tuple(in_order(proposal.answer.stories))
    done = tuple(story.id for story in target.plan.stories if story.is_done) if archive else ()
    return Planned(proposal, added=add(target.ref, Addition(stories, done, first, caller.agrees), caller.env))


def _form(target: Target, caller: Caller, *, requirements: bool = False, only_one: bool = False) -> Form:
    return Form(caller.person.can_be_asked, requirements, known_ids(target), only_one)


def known_ids(target: Target) -> frozenset[str]:
    """Stories that new ones may depend on."""
    own = [story.id for story in target.plan.stories] if target.has_stories else []
    return frozenset((*own, *archived_ids(target.ref)))


def _briefing(
    target: Target, kind: str, draft: Draft, requirements: str, *, writes_requirements: bool = False
) -> PlanBriefing:
    checks = [check.command for check in choose(target.settings.config, target.plan, None, "story")]
    checks += [check.line for check in target.toolchain.checks]
    return PlanBriefing(
        kind=kind,
        name=target.plan.name or target.ref.name or target.ref.root.name,
        idea=draft.idea,
        requirements=without_comments(requirements),
        requirements_path=target.requirements.relative_to(target.ref.root).as_posix(),
        writes_requirements=writes_requirements,
        checks=tuple(dict.fromkeys(checks)),
        stories=_listed(target) if target.has_stories else (),
    )


def _listed(target: Target) -> tuple[str, ...]:
    words = {State.DONE: "done", State.FAILED: "failed", State.BLOCKED: "blocked"}
    return tuple(
        f"{one_line(story.id, 40)} ({words.get(story.state, 'open')}): {one_line(story.title, 120)}"
        for story in target.plan.stories
    )


def _hold(task: Task, drafts: Drafts, caller: Caller) -> Proposal | None:
    """The workspace names the program that plans and its permissions, so they must be trusted before it starts."""
    root, env = task.target.ref.root, caller.env
    commands = gather(root, task.target.settings, [])
    if any(not command.name.startswith(_NOT_FOR_PLANNING) for command in commands):
        ensure_trusted(root, commands, env, flag=caller.trust, ask=caller.ask, report=caller.person.tell)
    drafts.keep(task.draft)
    sessions = _sessions(task.target, task.briefing.kind, caller)
    return Dialogue(task, sessions, caller.person, drafts, env).hold()


def _sessions(target: Target, kind: str, caller: Caller) -> Sessions:
    found = repository_of(target.ref.root, caller.env)
    if found is None:
        caller.person.tell("not a git repository: changes made by the agent would not be noticed", warning=True)
    shelf = planning_folder(target.ref.root, caller.env)
    tidy(shelf)
    folder = shelf / f"{kind}-{new_run_id(time.time())}"
    return Sessions(
        root=target.ref.root,
        repo=identify(found) if found else None,
        config=target.settings.config,
        env=caller.env,
        folder=folder,
        kind=kind,
        listeners=caller.listeners,
    )
