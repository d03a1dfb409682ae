"""Whatever words a planner uses, every layout either says exactly that or the plan is refused; never something else."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ralph.core.errors import BadData, IllegalChange
from ralph.planning.add import compose
from ralph.planning.answer import Answer, DraftStory, Form, in_order, read_answer
from ralph.plans.registry import layout
from ralph.plans.store import Loaded, PlanStore, Sidecar
from ralph.session.json_answer import Unusable
from ralph.setup.scaffold import Request, fresh_files, refer
from ralph.setup.toolchain import Toolchain

LAYOUTS = ("plan.md", "tasks.json", "steps", "feature", "spec.md")

ODD = st.sampled_from(
    [
        "- [ ] x",
        "# head",
        "Verify: `x`",
        "Depends on: 1.1",
        "**1.1** x",
        "`code`",
        "a | b",
        "[TASK-abc]",
        "```",
        "<b>",
        "*",
    ]
)
WORDS = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cf", "Zl", "Zp"]), min_size=1, max_size=20
)
LINES = st.one_of(WORDS, ODD, st.tuples(WORDS, ODD).map(" ".join), st.tuples(ODD, WORDS).map(" ".join))
PROSE = st.lists(LINES, max_size=3).map("\n".join)


@st.composite
def answers(draw: st.DrawFn) -> Answer:
    count = draw(st.integers(1, 4))
    stories = []
    for number in range(count):
        stories.append(
            DraftStory(
                id=f"s{number}",
                title=draw(LINES),
                description=draw(PROSE),
                acceptance_criteria=tuple(draw(st.lists(LINES, min_size=1, max_size=3))),
                depends_on=tuple(f"s{n}" for n in range(number) if draw(st.booleans())),
                verify=tuple(draw(st.lists(LINES, max_size=2))),
            )
        )
    return Answer(stories=tuple(stories))


def beginning(root: Path, name: str) -> tuple[PlanStore, Loaded]:
    request = Request(root=root, layout=name, now=0.0)
    ref = refer(request)
    path = ref.path.relative_to(root).as_posix()
    [source] = [file.data for file in fresh_files(ref, request, Toolchain()) if file.path == path]
    plan = layout(name).parse(source, "")
    return PlanStore(ref, layout(name), root / "beside.json"), Loaded(plan, plan, source, Sidecar())


@pytest.mark.parametrize("name", LAYOUTS)
@settings(max_examples=60)
@given(answer=answers())
@example(answer=Answer(stories=(DraftStory("a", "Title [TASK-abc]", "", ("x",)),)))
@example(answer=Answer(stories=(DraftStory("a", "x", "Verify: `rm`", ("Depends on: b",)),)))
def test_what_is_written_means_what_was_proposed(name: str, answer: Answer) -> None:
    import msgspec

    try:
        answer = read_answer(msgspec.json.encode(answer).decode(), Form())
    except Unusable:
        return
    with tempfile.TemporaryDirectory() as folder:
        store, base = beginning(Path(folder), name)
        ordered = in_order(answer.stories)
        composed = compose(base.plan, ordered)
        try:
            after = store.planned(base, composed.changes, {})
        except (IllegalChange, BadData):
            return  # said, and fed back to the planner
    written = {story.id: story for story in after.plan.stories}
    for draft in ordered:
        story = written[composed.ids[draft.id]]
        assert story.title == draft.title.strip()
        assert story.criteria == tuple(line.strip() for line in draft.acceptance_criteria)
        assert story.verify == tuple(line.strip() for line in draft.verify)
        assert story.depends_on == tuple(composed.ids[label] for label in draft.depends_on)
    assert sum(not story.is_review_step for story in after.plan.stories) == len(ordered)


def test_plain_words_are_never_refused() -> None:
    stories = tuple(
        DraftStory(f"s{n}", f"Build part {n}", "It does this. And that.", ("`x` prints y",)) for n in range(9)
    )
    with tempfile.TemporaryDirectory() as folder:
        for name in LAYOUTS:
            store, base = beginning(Path(folder), name)
            after = store.planned(base, compose(base.plan, stories).changes, {})
            assert sum(not story.is_review_step for story in after.plan.stories) == 9
