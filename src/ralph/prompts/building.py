"""What an agent is told in one iteration: the template, the story, the checks, what went wrong last time. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from ralph.core.findings import NO_LEDGER
from ralph.core.learning import Learning
from ralph.core.plan import Mode, Story
from ralph.core.ports import Prompt
from ralph.core.recall import Cue
from ralph.core.text import clean
from ralph.prompts.memory import section, short_list
from ralph.prompts.review_matter import Matter, for_fix, for_review, how_to_fix, how_to_review
from ralph.prompts.templates import library, render

LIBRARY = {
    "plan.md": "plan-prompt",
    "tasks.json": "tasks-prompt",
    "steps": "steps-loop",
    "feature": "feature-prompt",
    "spec.md": "spec-prompt",
}
"""The built-in template of each layout, used when the workspace has none of its own."""

SETUP = "steps-setup"
_MOST_FEEDBACK = 6000
_MOST_SYSTEM = 2500
_MOST_LEARNINGS = 1200


class Briefing(Struct, frozen=True, kw_only=True):
    """Everything a prompt is made of."""

    layout: str
    mode: Mode
    story: Story | None
    story_block: str = ""
    """The story as the plan file words it, where that is more than the fields say."""
    template: str = ""
    """The user's own; empty: the built-in one."""
    template_name: str = ""
    iteration: int = 1
    max_iterations: int = 1
    attempt: int = 1
    done: int = 0
    total: int = 0
    plan_path: str = ""
    progress_path: str = ""
    prd_path: str = ""
    name: str = ""
    """The PRD number, or the feature's name."""
    attachments: tuple[str, ...] = ()
    """Files the client reads in by `@path`."""
    checks: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    """What else the settings ask of a change."""
    learnings: tuple[Learning, ...] = ()
    """What earlier sessions have learned, all of it; the prompt has room for some."""
    learnings_place: str = ""
    learnings_tokens: int = 0
    cue: Cue = Cue()
    lasting: str = ""
    """The file for rules that outlast the plan, if agents may add to it."""
    feedback: str = ""
    guidance: tuple[str, ...] = ()
    """What a person wants the agent to know, this time only."""
    answers: tuple[str, ...] = ()
    matter: Matter | None = None
    """For a review: the change, and what is known about it."""
    review: bool = False
    review_cap: int = 5
    promise: str = ""


def build(briefing: Briefing) -> Prompt:
    parts = ["\n".join(f"@{path}" for path in briefing.attachments), instructions(briefing)]
    in_system = briefing.layout == "steps"
    parts += _sections(briefing, with_story=not in_system or bool(briefing.feedback))
    text = "\n\n".join(part for part in parts if part.strip()) + "\n"
    return Prompt(text, system_context(briefing) if in_system else "")


def instructions(briefing: Briefing) -> str:
    """The template, filled in."""
    name = briefing.template_name
    template = briefing.template
    if not template:
        name = built_in(briefing.layout, briefing.mode)
        template = library(name)
    return render(template, variables(briefing), name).strip()


def memory_part(briefing: Briefing) -> str:
    """What earlier sessions learned, as far as there is room for it."""
    if briefing.layout == "steps":  # in the system prompt
        room = min(briefing.learnings_tokens, _MOST_LEARNINGS // 4)
        told = short_list(briefing.learnings, briefing.cue, room, briefing.learnings_place)
        return f"Learnings of earlier sessions, claims that nobody has proven:\n{told}" if told else ""
    return section(briefing.learnings, briefing.cue, briefing.learnings_tokens, briefing.learnings_place)


def built_in(layout: str, mode: Mode) -> str:
    """The name of the built-in template. The one of `tasks.json` knows all modes by itself."""
    if mode is Mode.SETUP:
        return SETUP
    if layout != "tasks.json" and mode in (Mode.REVIEW, Mode.FIX):
        return mode.value
    return LIBRARY.get(layout, LIBRARY["tasks.json"])


def variables(briefing: Briefing) -> dict[str, Any]:
    return {
        "STORY_ID": briefing.story.id if briefing.story else "",
        "STORY_TITLE": briefing.story.title if briefing.story else "",
        "MODE": briefing.mode.value,
        "PLAN_PATH": briefing.plan_path,
        "PROGRESS_PATH": briefing.progress_path,
        "PRD_PATH": briefing.prd_path,
        "PRD_NUMBER": briefing.name,
        "RALPH_ITERATION": briefing.iteration,
        "RALPH_MAX_ITERATIONS": briefing.max_iterations,
        "REVIEW_CAP": briefing.review_cap,
        "SKIP_REVIEW": not briefing.review,
    }


def _sections(briefing: Briefing, with_story: bool) -> Iterator[str]:
    story = briefing.story
    if story is not None and with_story:
        yield f"## Your story: {story.id} {story.title}\n\n{_story_text(briefing, story)}".rstrip()
    if story is not None and briefing.mode is Mode.REVIEW:
        yield from for_review(briefing.matter or Matter(), story.ledger)
    if story is not None and briefing.mode is Mode.FIX:
        yield from for_fix(story.ledger)
    if briefing.checks:
        yield "## What the loop runs when you have stopped\n\n" + _bullets([f"`{check}`" for check in briefing.checks])
    if briefing.rules:
        yield "## What your change is held to\n\n" + _bullets(briefing.rules)
    if briefing.layout != "steps":
        yield memory_part(briefing)
    if briefing.answers:
        yield "## A person answered\n\n" + _bullets(briefing.answers)
    if briefing.guidance:
        yield "## A person says, for this session\n\n" + "\n\n".join(note.strip() for note in briefing.guidance)
    if briefing.feedback:
        yield (
            "## What the loop has to say about the last session\n\n"
            f"This is attempt {briefing.attempt}.\n\n{bounded(briefing.feedback)}"
        )
    if story is not None:
        yield _how_to_answer(briefing)


def _story_text(briefing: Briefing, story: Story) -> str:
    if briefing.story_block.strip():
        return briefing.story_block.strip()
    parts = [story.description.strip()]
    if story.criteria:
        parts.append("Acceptance criteria:\n\n" + _bullets(story.criteria))
    if story.verify:
        parts.append("Proven by:\n\n" + _bullets([f"`{command}`" for command in story.verify]))
    if story.notes.strip():
        parts.append(f"Notes so far:\n\n{story.notes.strip()}")
    if story.review.feedback.strip():
        parts.append(f"What the review asked for:\n\n{story.review.feedback.strip()}")
    return "\n\n".join(part for part in parts if part)


def _how_to_answer(briefing: Briefing) -> str:
    asks = '`{"ask": "your question"}` when only a person can decide'
    claims = '`{"claim": "done"}` when the story is done, `{"claim": "already-satisfied"}` when it was before, '
    ledger = briefing.story.ledger if briefing.story else NO_LEDGER
    if briefing.mode is Mode.REVIEW:
        claims = how_to_review(ledger)
    elif briefing.mode is Mode.FIX:
        claims = how_to_fix(ledger)
    told = f"Write one JSON object to the file named by `$RALPH_REQUEST_FILE`: {claims}{asks}."
    learn = (
        'Put `"learn": ["…"]` into the same object for what later sessions would otherwise have to find out again: one '
        "sentence each, no diary."
    )
    lasting = (
        f" A rule that holds for the whole repository, beyond this plan, goes into `{briefing.lasting}` instead."
        if briefing.lasting and briefing.mode is not Mode.REVIEW
        else ""
    )
    return f"## How to tell the loop\n\n{told}\n\n{learn}{lasting}"


def system_context(briefing: Briefing) -> str:
    """About 2,500 characters: loop number, progress, the current task, recent learnings."""
    story = briefing.story
    loops = f"Loop {briefing.iteration} of at most {briefing.max_iterations}."
    parts = [f"{loops} Tasks done: {briefing.done} of {briefing.total}."]
    if story is not None:
        task = f"Current task: {story.id} {story.title}\n{_story_text(briefing, story)}"
        parts.append(_cut(task, _MOST_SYSTEM - _MOST_LEARNINGS - 200))
    parts.append(memory_part(briefing))
    parts = [part for part in parts if part]
    return _cut("\n\n".join(parts), _MOST_SYSTEM)


def bounded(feedback: str) -> str:
    """The end of an output says most; its beginning says what was run. The middle goes first."""
    text = clean(feedback).strip()
    if len(text) <= _MOST_FEEDBACK:
        return text
    head, tail = text[: _MOST_FEEDBACK // 4], text[-(_MOST_FEEDBACK * 3 // 4) :]
    return f"{head}\n… ({len(text) - _MOST_FEEDBACK} characters left out) …\n{tail}"


def _bullets(items: Sequence[str]) -> str:
    return "\n".join(f"- {item.strip()}" for item in items)


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"
