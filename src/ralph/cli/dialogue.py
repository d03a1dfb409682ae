"""The dialogue with the user for the commands that plan: questions with choices, a plan to review, an editor."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from ralph.cli.output import ask, ask_line, note, paint, warn
from ralph.core.agent import Init, ToolUse
from ralph.core.errors import SetupError
from ralph.core.events import AgentSaid, AgentStarted, Record
from ralph.core.problems import Severity
from ralph.core.text import clean, one_line, plural
from ralph.planning.answer import Question
from ralph.planning.proposal import Decision, Proposal, Word

_KEYS = {
    "a": Word.ACCEPT,
    "e": Word.EDIT,
    "p": Word.EDIT_REQUIREMENTS,
    "r": Word.REVISE,
    "d": Word.DROP,
} | {word.value: word for word in Word}
_ENOUGH = "."


class Terminal:
    can_be_asked = True
    _shown: Proposal | None = None

    def answer(self, question: Question, number: int, total: int) -> str | None:
        note("")
        note(f"{number}/{total}  {one_line(question.question)}", "bold")
        if question.why:
            note(f"     {one_line(question.why)}", "dim")
        for at, choice in enumerate(question.choices, 1):
            note(f"  {at:>2}) {one_line(choice)}")
        given = ask_line(f"{_how(question)}\n> ")
        return None if given == _ENOUGH else chosen(question, clean(given))

    def decide(self, proposal: Proposal) -> Decision:
        if proposal is not self._shown:  # what an edit broke is said below it, and must not scroll away
            show(proposal)
            self._shown = proposal
        page = ", [p] edit the requirements" if proposal.answer.requirements else ""
        while True:
            given = ask_line(f"\n[a]ccept, [e]dit the stories{page}, [r]evise WHAT, [d]rop\n> ")
            first, _, rest = given.partition(" ")
            word = _KEYS.get(first.lower())
            if word is Word.REVISE:
                feedback = rest.strip() or ask_line("what should change?\n> ")
                if feedback:
                    return Decision(Word.REVISE, clean(feedback))
            elif word is None or rest:  # a sentence may begin with "a" or "drop", and is no decision
                note("type one letter, or `r` and what to change")
            elif word is Word.EDIT_REQUIREMENTS and not page:
                note("the plan has no new requirements")
            else:
                return Decision(word)

    def edit(self, text: str, name: str) -> str:
        """Edit in a temporary folder outside the workspace: an editor may leave other files beside it."""
        from ralph.host.process.programs import edit

        with tempfile.TemporaryDirectory(prefix="ralph-") as folder:
            path = Path(folder) / name
            path.write_text(text, encoding="utf-8")
            try:
                edit(path, os.environ)
                return path.read_text(encoding="utf-8")
            except (SetupError, OSError, UnicodeDecodeError) as error:
                warn(f"not changed: {error}")
                return text

    def may_run(self, command: str) -> bool:
        note("")
        note(f"This command should fail now and pass when the bug is fixed: {one_line(command)}")
        return ask("Run it now?")

    def tell(self, text: str, *, warning: bool = False) -> None:
        warn(text) if warning else note(text, "dim")


class Listening:
    """Shows that an agent is running, and what it reads."""

    def __call__(self, record: Record) -> None:
        match record.event:
            case AgentStarted():
                note("the agent is reading …", "dim")
            case AgentSaid(event=Init(model=model)) if model:
                note(f"  model {one_line(model, 60)}", "dim")
            case AgentSaid(event=ToolUse(name=name, summary=summary)) if name != "StructuredOutput":
                note(f"  {one_line(summary or name, 100)}", "dim")


def chosen(question: Question, given: str) -> str:
    """The choices that the numbers stand for; any other text is a free answer."""
    words = given.replace(",", " ").split()
    if not words or not all(word.isascii() and word.isdigit() for word in words):
        return given
    numbers = [int(word) for word in words]
    if not all(1 <= number <= len(question.choices) for number in numbers):
        return given
    if len(numbers) > 1 and not question.several:
        return given
    return ", ".join(question.choices[number - 1] for number in dict.fromkeys(numbers))


def _how(question: Question) -> str:
    if not question.choices:
        words = "your own words"
    elif question.several:
        words = "numbers, or your own words"
    else:
        words = "a number, or your own words"
    return f"({words}; empty: no preference; {_ENOUGH} to end the questions)"


def show(proposal: Proposal) -> None:
    """Print the proposed plan and its problems."""
    target = proposal.target
    note("")
    if page := proposal.answer.requirements.strip():
        note(clean(page))
        note("")
    where = target.ref.path.relative_to(target.ref.root).as_posix()
    note(f"{where}: {plural(len(proposal.composed.new), 'new story')}", "bold")
    for story_id in proposal.composed.new:
        story = proposal.after.plan.story(story_id)
        if story is None:
            continue
        note("")
        after = f"  (after {', '.join(story.depends_on)})" if story.depends_on else ""
        note(f"{one_line(story.id)}  {one_line(story.title)}{after}", "bold")
        for line in clean(story.description).splitlines():
            note(f"  {line}")
        for criterion in story.criteria:
            note(f"  - {one_line(criterion)}")
        for command in story.verify:
            note(f"  $ {one_line(command)}", "cyan")
    show_findings(proposal)


def show_findings(proposal: Proposal) -> None:
    for problem in proposal.problems:
        style = "red" if problem.severity is Severity.ERROR else "yellow"
        hint = f" ({one_line(problem.hint)})" if problem.hint else ""
        note(paint(f"{problem.severity.value}[{problem.code}]: {one_line(problem.message)}{hint}", style))
