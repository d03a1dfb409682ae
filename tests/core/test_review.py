"""The ledger of findings: nothing is lost, nothing comes back for nothing, and two who go in circles are noticed."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from ralph.core.review import Fate, Finding, Ledger, Reply, answer, close, findings_in, hear, rejects_all

LEAK = Finding("the file is never closed", "src/io.py:12", "high", "no leaks")
NAME = Finding("the name says nothing", "src/io.py:3", "low")


def after_review(*findings: Finding, ledger: Ledger | None = None, review: int = 1) -> Ledger:
    heard = hear(ledger or Ledger(), findings, "", review)
    return Ledger(heard.ledger.entries)


def fates(ledger: Ledger) -> dict[str, Fate]:
    return {entry.id: entry.fate for entry in ledger.entries}


def test_findings_get_ids_in_the_order_they_come() -> None:
    ledger = after_review(LEAK, NAME)
    assert [str(entry) for entry in ledger.entries] == [
        "F1 [high] src/io.py:12: the file is never closed (criterion: no leaks)",
        "F2 [low] src/io.py:3: the name says nothing",
    ]


def test_a_fix_answers_each_finding() -> None:
    ledger, silent = answer(
        after_review(LEAK, NAME),
        [Reply("f1", Fate.FIXED), Reply("F2", Fate.REJECTED, "it is the name of the standard")],
    )
    assert (fates(ledger), silent) == ({"F1": Fate.FIXED, "F2": Fate.REJECTED}, ())


def test_a_rejection_without_a_reason_is_no_answer() -> None:
    ledger, silent = answer(after_review(LEAK, NAME), [Reply("F1", Fate.FIXED), Reply("F2", Fate.REJECTED, " ")])
    assert (fates(ledger)["F2"], silent) == (Fate.OPEN, ("F2",))


def test_a_fix_that_names_no_finding_says_that_all_are_fixed() -> None:
    assert set(fates(answer(after_review(LEAK, NAME), [])[0]).values()) == {Fate.FIXED}


def test_what_the_next_review_does_not_ask_for_is_closed() -> None:
    ledger = answer(after_review(LEAK, NAME), [])[0]
    assert fates(after_review(NAME, ledger=ledger, review=2)) == {"F1": Fate.CLOSED, "F2": Fate.OPEN}


def test_a_finding_is_known_by_its_words_whatever_the_line_is_now() -> None:
    again = Finding("The file is  never closed", "src/io.py:40")
    assert fates(after_review(again, ledger=after_review(LEAK), review=2)) == {"F1": Fate.OPEN}


def test_what_was_turned_down_does_not_come_back_in_other_words() -> None:
    ledger, _ = answer(after_review(LEAK), [Reply("F1", Fate.REJECTED, "the caller closes it")])
    for again in (
        LEAK,
        Finding("I still think that it is wrong", id="F1"),
        Finding("", id="F1", evidence="never closed"),
    ):
        heard = hear(ledger, [again], "", 2)
        assert (heard.refused, heard.asked, fates(heard.ledger)) == (("F1",), (), {"F1": Fate.REJECTED})


def test_what_was_turned_down_comes_back_with_new_evidence() -> None:
    ledger, _ = answer(after_review(LEAK), [Reply("F1", Fate.REJECTED, "the caller closes it")])
    shown = Finding("", id="F1", evidence="`lsof` shows 200 handles after the loop in main.py")
    heard = hear(ledger, [shown], "", 2)
    assert (heard.asked, heard.refused, heard.ledger.has_moved) == (("F1",), (), True)
    assert "lsof" in str(heard.ledger.entries[0])
    assert "never closed" in str(heard.ledger.entries[0])


def test_two_reviews_that_ask_for_the_same_have_not_moved() -> None:
    ledger = answer(after_review(LEAK, NAME), [])[0]
    assert not hear(ledger, [NAME, LEAK], "", 2).ledger.has_moved
    assert hear(ledger, [NAME], "", 2).ledger.has_moved
    assert hear(ledger, [NAME, LEAK, Finding("something new")], "", 2).ledger.has_moved
    assert hear(ledger, [NAME, Finding("it leaks on the error path too", id="F1")], "", 2).ledger.has_moved


def test_each_reviewer_closes_only_its_own() -> None:
    first = hear(Ledger(), [LEAK], "quality", 1)
    second = hear(first.ledger, [], "tests", 1)
    assert (fates(second.ledger), second.ledger.heard) == ({"F1": Fate.OPEN}, ("quality", "tests"))


def test_turning_everything_down_needs_a_reason_for_each() -> None:
    ledger = after_review(LEAK, NAME)
    both = [Reply("F1", Fate.REJECTED, "no"), Reply("F2", Fate.REJECTED, "no")]
    assert rejects_all(ledger, both)
    assert not rejects_all(ledger, both[:1])
    assert not rejects_all(ledger, [both[0], Reply("F2", Fate.FIXED)])
    assert not rejects_all(Ledger(), [])


def test_an_approval_closes_everything_but_what_was_turned_down() -> None:
    ledger, _ = answer(after_review(LEAK, NAME), [Reply("F1", Fate.REJECTED, "no"), Reply("F2", Fate.FIXED)])
    assert fates(close(ledger)) == {"F1": Fate.REJECTED, "F2": Fate.CLOSED}


def test_a_review_that_is_only_text_has_a_finding_for_each_point() -> None:
    text = "Two things:\n- F2: the name\n  over two lines\n2) no test for nothing\n   - a detail of it\n"
    assert [(f.id, f.text) for f in findings_in(text)] == [
        ("F2", "the name over two lines"),
        ("", "no test for nothing - a detail of it"),
    ]
    assert [f.text for f in findings_in("just wrong")] == ["just wrong"]
    assert findings_in(" \n") == ()


_FINDINGS = st.lists(
    st.builds(
        Finding,
        st.sampled_from(["leak", "name", "test", ""]),
        st.sampled_from(["", "a.py:1", "b.py"]),
        id=st.sampled_from(["", "F1", "F2", "F9"]),
        evidence=st.sampled_from(["", "seen it", "leak"]),
    ),
    max_size=6,
)
_REPLIES = st.lists(
    st.builds(
        Reply,
        st.sampled_from(["F1", "F2", "F3", "x"]),
        st.sampled_from([Fate.FIXED, Fate.REJECTED]),
        st.sampled_from(["", "r"]),
    ),
    max_size=4,
)


@given(st.lists(st.tuples(_FINDINGS, _REPLIES), max_size=6))
def test_whatever_is_said_entries_stay_and_ids_are_unique(rounds: list[tuple[list[Finding], list[Reply]]]) -> None:
    ledger = Ledger()
    for number, (findings, replies) in enumerate(rounds, 1):
        heard = hear(ledger, findings, "", number)
        ids = [entry.id for entry in heard.ledger.entries]
        assert ids[: len(ledger.entries)] == [entry.id for entry in ledger.entries]
        assert len(set(ids)) == len(ids)
        assert {entry.id for entry in heard.ledger.open} == set(heard.asked)
        assert not set(heard.asked) & set(heard.refused)
        ledger, silent = answer(Ledger(heard.ledger.entries), replies)
        assert {entry.id for entry in ledger.open} == set(silent)


@given(_FINDINGS)
def test_saying_the_same_twice_never_moves_anything(findings: list[Finding]) -> None:
    first = hear(Ledger(), findings, "", 1)
    ledger = answer(Ledger(first.ledger.entries), [])[0]
    same = [msgspec.structs.replace(entry.finding, id=entry.id) for entry in first.ledger.open]
    assert not hear(ledger, same, "", 2).ledger.has_moved


def test_findings_that_differ_in_a_number_are_two() -> None:
    """ "answers 500, not 400" and "answers 404, not 401" are two: no false stalemate, no merged findings."""
    first = Finding("POST /login answers 500, not 400", "src/api.py:10")
    second = Finding("POST /login answers 404, not 401", "src/api.py:10")
    heard = hear(after_review(first), [second], "", 2)
    assert heard.asked == ("F2",)
    assert heard.ledger.has_moved, "no stalemate: this is not the same request again"
    assert len(after_review(first, second).entries) == 2


def test_a_line_number_in_the_text_may_move() -> None:
    first = Finding("src/api.py:10 returns 500, see line 12")
    again = Finding("src/api.py:44 returns 500, see line 46")
    assert fates(after_review(again, ledger=after_review(first), review=2)) == {"F1": Fate.OPEN}
