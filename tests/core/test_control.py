"""What people's wishes add up to."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ralph.core.control import Note, Verb, Wish


def add_up(verbs: list[Verb]) -> Wish:
    wish = Wish()
    for verb in verbs:
        wish = wish.after(verb)
    return wish


@given(st.lists(st.sampled_from(Verb)))
def test_the_last_word_on_pausing_counts_and_a_stop_is_never_taken_back(verbs: list[Verb]) -> None:
    wish = add_up(verbs)
    about_pausing = [verb for verb in verbs if verb in (Verb.PAUSE, Verb.RESUME)]
    assert wish.pause == (about_pausing[-1:] == [Verb.PAUSE])
    assert wish.stop == (Verb.STOP in verbs or Verb.STOP_NOW in verbs)
    assert wish.now == (Verb.STOP_NOW in verbs)
    assert not (wish.is_pause and wish.stop), "who wants it to stop does not want it to rest"
    assert wish.is_any == (wish.pause or wish.stop)


def test_a_note_without_a_story_is_for_everybody() -> None:
    assert Note(text="t", at=0).is_for("US-001")
    assert Note(text="t", at=0).is_for("")
    assert Note(text="t", at=0, story="US-001").is_for("US-001")
    assert not Note(text="t", at=0, story="US-001").is_for("US-002")
