"""What goes into a prompt: never more than fits, the most relevant first, the same for the same input."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ralph.core.learning import Learning, written
from ralph.core.plan import Story
from ralph.core.text import estimate_tokens
from ralph.prompts.memory import Cue, cost, cue_for, ranked, recall, relevant, section, short_list, terms

STORY = Story(
    id="US-007",
    title="Export orders as CSV",
    description="A button in the order list.",
    criteria=("`src/orders/export.py` writes the file",),
    depends_on=("US-002",),
)
WORDS = "orders export csv button redis login cents price list cache src/orders/export.py"
words = st.sampled_from(WORDS.split())
sentences = st.lists(words, min_size=1, max_size=12).map(" ".join)
learnings = st.lists(
    st.builds(
        Learning,
        text=sentences,
        story=st.sampled_from(["", "US-002", "US-007", "US-009"]),
        date=st.sampled_from(["", "2026-01-01", "2026-03-01"]),
        accepted=st.booleans(),
        curated=st.booleans(),
    ),
    max_size=15,
)


@given(learnings, st.integers(0, 400))
def test_never_over_the_budget_and_nothing_is_lost(given: list[Learning], budget: int) -> None:
    found = recall(given, cue_for(STORY), budget)
    assert sum(map(cost, found.chosen)) <= budget
    assert len(found.chosen) + found.left == len(given)


@given(learnings, st.integers(0, 400))
def test_the_section_of_a_prompt_keeps_its_budget_and_tells_of_the_rest(given: list[Learning], budget: int) -> None:
    text = section(given, cue_for(STORY), budget)
    assert estimate_tokens(text) <= budget
    shown = sum(line.startswith("- ") for line in text.splitlines())
    if text and shown < len(given):
        assert f"{len(given) - shown} more, not about this story: `ralph memory --search WORDS`" in text
    assert estimate_tokens(short_list(given, cue_for(STORY), budget)) <= budget


@given(learnings, st.integers(0, 400))
def test_the_most_relevant_come_first_and_one_is_left_out_only_for_its_length(
    given: list[Learning], budget: int
) -> None:
    order = ranked(given, cue_for(STORY))
    assert sorted(map(written, order)) == sorted(map(written, given))
    left = budget
    expected = []
    good = [id(one) for one in relevant(given, cue_for(STORY))]
    for one in order:
        if id(one) in good and cost(one) <= left:
            expected.append(one)
            left -= cost(one)
    assert list(recall(given, cue_for(STORY), budget).chosen) == expected
    assert ranked(given, cue_for(STORY)) == order


def test_words_files_stories_and_age_decide() -> None:
    old = Learning(text="The login form has a timeout", date="2026-01-01")
    new = Learning(text="The login page has a timeout", date="2026-03-01")
    words = Learning(text="Orders are exported in pages", date="2026-01-01")
    file = Learning(text="src/orders/export.py is generated", date="2026-01-01")
    own = Learning(text="The theme is dark", story="US-007", date="2026-01-01")
    doubted = Learning(text="Orders are exported in chunks", date="2026-01-01", accepted=False)
    order = [one.text for one in ranked([old, new, words, file, own, doubted], cue_for(STORY))]
    assert order[0] == file.text
    assert order[-1] == old.text or order[-1] == doubted.text
    assert order.index(words.text) < order.index(doubted.text)
    assert order.index(new.text) < order.index(old.text)
    assert order.index(own.text) < order.index(new.text)


def test_files_that_attempts_have_touched_count() -> None:
    plain = Learning(text="cart.ts keeps the prices")
    other = Learning(text="The wallet keeps the prices")
    cue = cue_for(STORY, ["web/src/cart.ts"])
    assert ranked([other, plain], cue)[0] == plain
    assert ranked([plain, other], Cue())[0] == other, "the later one, when nothing else is known"


def test_words_are_compared_in_their_parts() -> None:
    assert terms("readOrderLines in order_lines.py") >= {"read", "order", "line", "py"}
    assert "the" not in terms("the orders")


def test_lines_about_something_else_are_not_offered() -> None:
    """Nearly all lines that were offered for "add mul" had nothing to do with it."""
    story = Story(
        id="US-001", title="Add mul", description="Add a function mul(a, b) to calc.py", criteria=("mul(2, 3) is 6",)
    )
    related = Learning(text="calc.py keeps one function per operation, like div", story="US-008", date="2026-01-01")
    own = Learning(text="The theme is dark", story="US-001", date="2026-01-01")
    person = Learning(text="Use bun, not npm", date="2026-01-01", curated=True)
    others = [
        Learning(text="Add tests for new functions in the same file", story="US-008", date="2026-01-01"),
        Learning(text="The importer needs a running Redis", story="US-008", date="2026-01-01"),
        Learning(text="Sessions are stored in cookies", story="US-008", date="2026-01-01"),
        Learning(text="Prices are integers, in cents", story="US-009", date="2026-01-01", curated=True),
    ]
    found = recall([*others, person, own, related], cue_for(story), 1500)
    assert {one.text for one in found.chosen} == {related.text, own.text, person.text}
    assert found.left == len(others)
