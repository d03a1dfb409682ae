"""The planning dialogue: rounds of questions, an answer that is corrected once, a linted plan, the user's decision.

Every session is a fresh agent that gets everything so far. Only the draft is written here.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from ralph.core.errors import BadData
from ralph.core.problems import Problem
from ralph.core.text import one_line
from ralph.host.files import keep_aside, make_folder, read_bytes, write_bytes
from ralph.planning.answer import Answer, Form, read_answer, schema_for
from ralph.planning.proposal import (
    NO_CHECK,
    Decision,
    Examine,
    Person,
    Proposal,
    Word,
    problem_line,
    propose,
    refuse_findings,
)
from ralph.planning.target import Target
from ralph.prompts.planning import Exchange, PlanBriefing, build_plan_prompt
from ralph.session.json_answer import Unusable
from ralph.session.single import Sessions
from ralph.state.places import planning_folder

_KEPT_CALLS = 20


class Draft(Struct, frozen=True, kw_only=True):
    version: int = 1
    at: float = 0
    layout: str = ""
    name: str = ""
    ralph_dir: str = ""
    plan: str = ""
    """The plan that is added to: a draft for one plan is not used for another."""
    idea: str = ""
    source: str = ""
    """The file the requirements came from, as it was named."""
    requirements: str = ""
    dialogue: tuple[Exchange, ...] = ()
    answer: str = ""
    """The last usable answer, if there was one."""
    is_told: bool = False
    """The agent already got the problems found in the answer: on resume the user sees it as it was."""

    def about(self) -> str:
        """One line by which the user recognizes it."""
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(self.at))
        what = self.source or self.idea
        return f"{one_line(what, 60)!r} from {when}, {len(self.dialogue)} answered"


class Drafts:
    """One draft of each kind per workspace."""

    def __init__(self, root: Path, kind: str, env: Mapping[str, str]) -> None:
        self.path = planning_folder(root, env) / f"draft-{kind}.json"

    def read(self) -> Draft | None:
        """A damaged draft is kept aside and treated as missing."""
        if not self.path.exists():
            return None
        try:
            return msgspec.json.decode(read_bytes(self.path), type=Draft)
        except (msgspec.DecodeError, BadData):
            keep_aside(self.path)
            return None

    def keep(self, draft: Draft) -> None:
        make_folder(self.path.parent, private=True)
        data = msgspec.json.encode(msgspec.structs.replace(draft, at=time.time()))
        write_bytes(self.path, data + b"\n", mode=0o600)

    def drop(self) -> None:
        self.path.unlink(missing_ok=True)


def tidy(shelf: Path) -> None:
    """Keep the agents' output of the last planning calls only."""
    calls = [path for path in shelf.iterdir() if path.is_dir()] if shelf.is_dir() else []
    for path in sorted(calls, key=lambda path: path.stat().st_mtime)[:-_KEPT_CALLS]:
        shutil.rmtree(path, ignore_errors=True)


_NO_PREFERENCE = "No preference: decide yourself, and write down what you chose."
_ENOUGH = "Ask no more. Decide everything else yourself, and write down what you assumed."
_LONGEST_PREVIOUS = 100_000


class Task(Struct, frozen=True, kw_only=True):
    """What the agent is to plan, and how its answer is judged."""

    target: Target
    briefing: PlanBriefing
    form: Form
    draft: Draft
    taken: tuple[str, ...] = ()
    """IDs that must not be used again."""
    first: bool = False
    examine: Examine = lambda _: []


class Dialogue:
    def __init__(self, task: Task, sessions: Sessions, person: Person, drafts: Drafts, env: Mapping[str, str]) -> None:
        self._task = task
        self._sessions = sessions
        self._person = person
        self._drafts = drafts
        self._env = env
        self._draft = task.draft
        self._form = task.form

    def hold(self) -> Proposal | None:
        """Repeat until there is a plan that can be written. None: it was dropped."""
        answer, problems, feedback, was_told = None, tuple[str, ...](), "", False
        if self._draft.answer:
            answer = msgspec.json.decode(self._draft.answer, type=Answer)
            was_told = self._draft.is_told and self._person.can_be_asked  # otherwise it would always be refused
        while True:
            if answer is None or problems or feedback:
                answer = self._ask(answer, problems, feedback)
                problems, feedback = (), ""
                self._keep(answer=msgspec.json.encode(answer).decode(), is_told=was_told)
            proposal = self._propose(answer)
            if not was_told and (found := _for_the_agent(proposal)):
                was_told, problems = True, tuple(map(problem_line, found))
                for problem in problems:
                    self._person.tell(f"  {one_line(problem, 300)}")
                self._person.tell("asking the agent to fix this")
                continue
            if not self._person.can_be_asked:
                refuse_findings(proposal)
                return proposal
            decided, proposal = self._decide(proposal)
            if decided.word is not Word.REVISE:
                return proposal if decided.word is Word.ACCEPT else None
            answer, feedback, was_told = proposal.answer, decided.feedback, False

    def _ask(self, before: Answer | None, problems: tuple[str, ...], feedback: str) -> Answer:
        """One usable answer. Questions are passed on; an unusable answer is sent back to the agent once."""
        previous = msgspec.json.format(msgspec.json.encode(before)).decode() if before else ""
        is_repaired = False
        while True:
            said = self._sessions.ask(*self._prompt(previous, problems, feedback))
            if said.cost_usd:
                self._person.tell(f"  ${said.cost_usd:.2f}")
            if said.put_back:
                files = ", ".join(one_line(path, 60) for path in said.put_back[:5])
                self._person.tell(f"the agent changed {files}; restored", warning=True)
                if said.rescue:
                    self._person.tell(f"its version is in {said.rescue}; `git show {said.rescue}:PATH` shows a file")
            try:
                answer = read_answer(said.text, self._form)
            except Unusable as error:
                if is_repaired:
                    raise self._given_up(error) from None
                is_repaired = True
                self._person.tell(f"the answer is not usable ({error}): asking the agent again")
                previous, problems = said.text[:_LONGEST_PREVIOUS], tuple(map(problem_line, error.problems))
                continue
            if not answer.questions:
                # A page that was not requested would be shown but not written, because one exists.
                return answer if self._form.requirements else msgspec.structs.replace(answer, requirements="")
            self._pass_on(answer)
            is_repaired = False
            if before is None:
                previous, problems = "", ()

    def _prompt(self, previous: str, problems: tuple[str, ...], feedback: str) -> tuple[str, str]:
        schema = schema_for(self._form)
        briefing = msgspec.structs.replace(
            self._task.briefing,
            dialogue=self._draft.dialogue,
            may_ask=self._form.may_ask,
            schema=msgspec.json.format(msgspec.json.encode(schema)).decode(),
            previous=previous,
            problems=problems,
            feedback=feedback,
        )
        return build_plan_prompt(briefing), msgspec.json.encode(schema).decode()

    def _pass_on(self, answer: Answer) -> None:
        """Ask the user. Each answer is saved at once."""
        total = len(answer.questions)
        for number, question in enumerate(answer.questions, 1):
            given = self._person.answer(question, number, total)
            if given is None:
                self._form = msgspec.structs.replace(self._form, may_ask=False)
                self._keep(dialogue=(*self._draft.dialogue, Exchange(question.question, _ENOUGH)))
                return
            said = given.strip() or _NO_PREFERENCE
            self._keep(dialogue=(*self._draft.dialogue, Exchange(question.question, said)))

    def _keep(self, **changes: object) -> None:
        self._draft = msgspec.structs.replace(self._draft, **changes)
        self._drafts.keep(self._draft)

    def _propose(self, answer: Answer) -> Proposal:
        task = self._task
        return propose(task.target, answer, self._env, taken=task.taken, first=task.first, examine=task.examine)

    def _decide(self, proposal: Proposal) -> tuple[Decision, Proposal]:
        """Repeat until the user has decided. An edited plan is checked like an agent's answer."""
        kept = ""
        while True:
            decision = self._person.decide(proposal)
            match decision.word:
                case Word.ACCEPT if proposal.errors:
                    self._person.tell("the plan has errors: edit or revise it first", warning=True)
                    continue
                case Word.EDIT:
                    text = self._person.edit(kept or _editable(proposal.answer), "plan.json")
                    try:
                        edited = read_answer(
                            text, msgspec.structs.replace(self._form, may_ask=False, requirements=False)
                        )
                    except Unusable as error:
                        kept = text
                        for problem in error.problems:
                            self._person.tell(problem_line(problem), warning=True)
                        continue
                    kept = ""
                    answer = msgspec.structs.replace(edited, requirements=proposal.answer.requirements)
                case Word.EDIT_REQUIREMENTS:
                    page = self._person.edit(proposal.answer.requirements, "requirements.md")
                    answer = msgspec.structs.replace(proposal.answer, requirements=page)
                case _:
                    return decision, proposal
            self._keep(answer=msgspec.json.encode(answer).decode())
            proposal = self._propose(answer)

    def _given_up(self, error: Unusable) -> BadData:
        kept = " (your answers are kept; continue with --resume-draft)" if self._draft.dialogue else ""
        return BadData(
            f"the agent's answer is still not usable after one correction: {error}",
            hint=f"its output is in {self._sessions.raw}; try again{kept}",
        )


def _editable(answer: Answer) -> str:
    """What the user edits: everything except the requirements page."""
    document = msgspec.to_builtins(answer)
    for name in ("questions", "requirements"):
        document.pop(name)
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def _for_the_agent(proposal: Proposal) -> list[Problem]:
    """What the agent can fix. The checks of an existing plan are up to the user."""
    return [p for p in proposal.problems if not (p.code in NO_CHECK and proposal.target.exists)]
