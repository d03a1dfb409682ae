"""A summary is used when it says something about everything, and is shorter."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.core.learning import Learning, in_log, in_notes, written
from ralph.memory.compact import as_log, as_notes, condensed, read_digest, without_duplicates
from ralph.session.json_answer import Unusable

NOTES = tuple(
    Learning(text=f"A fact about part {n} of the shop", story=f"US-{n}", date=f"2026-01-0{n}", accepted=n != 3)
    for n in range(1, 6)
)
GOOD = {
    "learnings": [{"text": "Parts 1 and 2", "from": [1, 2]}, {"text": "Parts 3 to 4", "from": [3, 4]}],
    "dropped": [{"number": 5, "why": "the code says it"}],
}
BROKEN: dict[str, Any] = {
    "a text over its length": {"learnings": [{"text": "x" * 700, "from": [1, 2, 3, 4, 5]}]},
    "from nothing": {"learnings": [{"text": "x", "from": []}, {"text": "y", "from": [1, 2, 3, 4, 5]}]},
    "one is forgotten": {"learnings": [{"text": "Prices are in cents", "from": [1, 2, 3, 4]}]},
    "one is made up": {"learnings": [{"text": "All", "from": [1, 2, 3, 4, 5, 6]}]},
    "longer than before": {"learnings": [{"text": "word " * 100, "from": [1, 2, 3, 4, 5]}]},
    "nothing stays": {"learnings": [], "dropped": [{"number": n, "why": "no"} for n in range(1, 6)]},
    "no reason": {"learnings": [{"text": "a", "from": [1, 2, 3, 4]}], "dropped": [{"number": 5, "why": " "}]},
    "another form": {"summary": "all fine"},
    "no JSON": "I have summarised everything.",
}


@pytest.mark.parametrize("broken", BROKEN)
def test_what_is_wrong_with_a_summary_is_said(broken: str) -> None:
    given = BROKEN[broken]
    with pytest.raises(Unusable) as caught:
        read_digest(given if isinstance(given, str) else json.dumps(given), NOTES)
    assert caught.value.problems


@pytest.mark.parametrize("around", ["{}", "Here it is:\n\n{}\n", "```json\n{}\n```", "\n\n{}\n\nDone."])
def test_a_word_before_or_after_is_no_reason_to_refuse(around: str) -> None:
    digest = read_digest(around.replace("{}", json.dumps(GOOD)), NOTES)
    first, second = condensed(digest, NOTES)
    assert (first.text, first.story, first.date, first.accepted) == ("Parts 1 and 2", "", "2026-01-02", True)
    assert not second.accepted, "a claim of a failed attempt is not accepted by being summarised"


@given(st.text())
def test_whatever_an_agent_says_there_is_an_answer_or_a_problem(said: str) -> None:
    with pytest.raises(Unusable):
        read_digest(said, NOTES)


lines = st.lists(st.text("abc xyz", min_size=1).map(str.strip).filter(bool), max_size=6, unique=True)


@given(lines, st.sampled_from(["", "# Notes of ours\n\ntext\n", "# Progress\nStarted: x\n\n---\n\n## 1\n- x\n"]))
def test_the_new_file_says_what_was_kept_and_nothing_else(kept: list[str], before: str) -> None:
    assert [one.text for one in in_notes(as_notes(before, kept, "a remark"))] == [" ".join(k.split()) for k in kept]
    log = as_log(before, kept, "a remark")
    assert [one.text for one in in_log(log)] == [" ".join(k.split()) for k in kept]
    assert all(one.curated for one in in_log(log))
    assert as_log(log, kept, "a remark") == log


@given(st.lists(st.sampled_from(["one", "two", "Two", "three. (2026-01-01)"]), max_size=8))
def test_only_exact_duplicates_go_and_each_stays_once(texts: list[str]) -> None:
    text = "# Notes\n\n" + "".join(f"- {one}\n" for one in texts)
    new, count = without_duplicates(text, in_notes(text))
    left = [written(one) for one in in_notes(new)]
    assert left == list(dict.fromkeys(texts))
    assert count == len(texts) - len(left)
