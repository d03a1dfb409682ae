"""Which criteria can be checked, and how many sentences there are."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.plans.prose import count_sentences, vague_words

CHECKABLE = """
GET /health answers 200 with {"ok": true}
`report export 3` writes report-3.csv
The filter has the options All, Active and Done
Adding a todo shows it at the end of the list
The TODO list is empty after a restart
A name field left empty is marked as required
Reads its settings from /etc/app.conf and from /etc
The first line of the file names the columns
An unknown report number ends with exit code 64
The progress bar reads 100% when the upload is complete
The submit button is disabled until the form is complete
The checkbox is ticked when the item is done
Search answers in under 200 ms for 10,000 rows
A wrong password shows "Invalid credentials" and keeps the e-mail address
Dates are formatted correctly as `YYYY-MM-DD`
Errors are handled: a failed upload shows a retry button
Deleting a user asks for confirmation first
The session cookie has the Secure and HttpOnly flags
npm run build exits without warnings
Typecheck passes
Tests pass
The migration adds a nullable column `deleted_at`
Logging out removes the token from local storage
The list is sorted by date, newest first
The page works without JavaScript
The endpoint works with page=2
Only admins see the delete button
The old API keeps working for one release
Priority column added to the tasks table, with default medium
Unit tests cover expired and revoked tokens
Response time is logged for every request
A retry happens at most three times
The browser console shows no errors
An invalid e-mail address is rejected with status 422
Verify in browser using dev-browser skill
""".strip().splitlines()

VAGUE = """
Login works correctly
It works as expected
It works as expected on iOS 17
Everything works
The feature works properly on mobile
Works well on all devices
Errors are handled gracefully
Handles all edge cases
Handles errors properly.
Invalid input is handled
The UI is user-friendly
The interface is intuitive
The page looks good
The code is clean
The code follows best practices
Search is fast
Performance is improved
The API is robust
The solution is production-ready
Supports PNG, JPEG, etc.
Supports login, logout and so on
Validation rules TBD
Error texts to be defined
TODO: write this
The app responds quickly
The feature is fully implemented
Add proper error handling
Good test coverage
Dates are displayed correctly
Output is properly formatted
The migration is done
Improve the code quality
It is easy to use
Users can easily find their orders
The design is responsive
Add validation as needed
All relevant tests are updated
The module is well documented
There are no bugs
The system is scalable and secure
""".strip().splitlines()


@pytest.mark.parametrize("criterion", CHECKABLE)
def test_what_can_be_looked_at_is_no_false_alarm(criterion: str) -> None:
    assert vague_words(criterion) == ""


@pytest.mark.parametrize("criterion", VAGUE)
def test_what_cannot_be_looked_at_is_found_and_quoted(criterion: str) -> None:
    words = vague_words(criterion)
    assert words
    assert words in criterion


def test_a_measure_makes_a_matter_of_taste_checkable() -> None:
    assert vague_words("Search is fast")
    assert not vague_words("Search is fast: 95 % of the answers come within 200 ms")


SENTENCES = {
    "": 0,
    "…": 0,
    "As a user, I want X so that Y": 1,
    "As a user,\nI want X\nso that Y.": 1,
    "One. Two! Three? Four": 4,
    "Use e.g. a list, i.e. an array. Done.": 2,
    "Version 1.5 is used. It is in app.py. See https://example.test/z?a=b. End.": 4,
    "Costs 3.50 or 1,000.00 in total.": 1,
    "Reads a, b, etc. and writes c.": 1,
    "Reads a, b, etc. Then writes.": 2,
    "It stops at 5 p.m. every day.": 1,
    "Max. 5 of them, min. 2, approx. 3.": 1,
    "J. Smith wrote it.": 1,
    "Run `a. b. c. d.` first.": 1,
    "Wait... what? Yes!": 3,
    'He said "stop." Then he left.': 2,
    "First paragraph\n\nSecond paragraph": 2,
    "- a\n- b\n* c\n1. d\n2) e": 5,
    "Like this:\n```\nA. B. C. D. E.\n```\nmore": 1,
    "Users add tags.\n\nImplementation Plan:\n\n1. Add a table\n2. Add a page\n\nPart of: Phase 1. Setup": 3,
    "日本語です。これは二つ目。": 2,
    "Look at node.js, app.py and README.md.": 1,
}


@pytest.mark.parametrize(("text", "count"), SENTENCES.items())
def test_sentences_are_counted_as_people_do(text: str, count: int) -> None:
    assert count_sentences(text) == count


@given(st.text(max_size=300))
def test_any_text_can_be_looked_at(text: str) -> None:
    assert count_sentences(text) <= len(text)
    vague_words(text)


@pytest.mark.parametrize("piece", ["`", "a. ", "``` \n", "x", " and", ".'", "etc. ", "\n", "1. ", "…"])
def test_long_text_takes_no_longer_than_it_should(piece: str) -> None:
    """Looking at the same text again and again would take minutes for these."""
    started = time.monotonic()
    vague_words(piece * 50_000)
    count_sentences(piece * 50_000)
    assert time.monotonic() - started < 20
