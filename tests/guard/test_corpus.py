"""The guard's own corpus: what agents really run, and what must never run. Both sides count the same."""

from __future__ import annotations

from collections import Counter

from ralph.guard.categories import BY_ID
from support.guard_corpus import judge, load

DANGEROUS = load("dangerous")
HARMLESS = load("harmless")


def test_the_corpus_is_large_and_has_no_line_twice() -> None:
    assert len(DANGEROUS) >= 500
    assert len(HARMLESS) >= 400
    for lines in (DANGEROUS, HARMLESS):
        assert [line for line, count in Counter((line.command, line.cwd) for line in lines).items() if count > 1] == []


def test_every_dangerous_command_is_denied_in_its_category() -> None:
    answers = [(line, judge(line.command, line.cwd)) for line in DANGEROUS]
    assert [line.command for line, answer in answers if not answer.denied] == []
    assert [(line.command, answer.category) for line, answer in answers if answer.category != line.category] == []


def test_every_harmless_command_is_allowed() -> None:
    answers = [(line, judge(line.command, line.cwd)) for line in HARMLESS]
    assert [(line.command, answer.reason) for line, answer in answers if answer.denied] == []


def test_every_category_but_the_projects_own_has_an_example() -> None:
    assert set(BY_ID) - {line.category for line in DANGEROUS} == {"project", "unreadable"}


def test_a_denial_says_what_was_seen_and_what_to_do_instead() -> None:
    for line in DANGEROUS:
        reason = judge(line.command, line.cwd).reason
        assert reason.endswith(BY_ID[line.category].advice), line.command
        assert "`" in reason
        assert not any("\ue000" <= letter <= "\uf8ff" for letter in reason), line.command
