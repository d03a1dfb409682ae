from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.core.evidence import Claim
from ralph.core.requests import Request, answer_at_the_end, read_request
from ralph.core.review import Answer, Finding, ReviewStatus


@pytest.mark.parametrize(
    ("data", "request_"),
    [
        (b'{"claim": "done"}', Request(Claim.DONE)),
        (b'{"claim": "Already Satisfied"}', Request(Claim.ALREADY)),
        (b'{"claim": "already_satisfied", "note": "x"}', Request(Claim.ALREADY)),
        (b'{"ask": " Which database? "}', Request(ask="Which database?")),
        (b'{"claim": "everything"}', Request()),
    ],
)
def test_requests_are_read_leniently(data: bytes, request_: Request) -> None:
    assert read_request(data) == request_


@pytest.mark.parametrize("data", [b'{"claim": 3}', b"", b"[]", b"\xff\xfe", b'{"review": "approved"}'])
def test_nonsense_is_no_request_and_says_why(data: bytes) -> None:
    found = read_request(data)
    assert found.problem.startswith("the request file could not be parsed: ")
    assert msgspec.structs.replace(found, problem="") == Request()


def test_a_review_is_read_with_its_findings() -> None:
    findings = b'[{"place": "a.py:3", "text": "wrong"}, {"text": " "}]'
    found = read_request(b'{"review": {"verdict": "Changes requested", "findings": ' + findings + b"}}").review
    assert found == Answer(ReviewStatus.CHANGES_REQUESTED, "", (Finding("wrong", "a.py:3"),))
    assert read_request(b'{"review": {"verdict": "fine by me"}}').review is None


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ('I looked at it.\n\n{"review": {"verdict": "approved"}}\n', ReviewStatus.APPROVED),
        ('```json\n{\n"review":\n{"verdict": "approved"}\n}\n```', ReviewStatus.APPROVED),
        ('{"review": {"verdict": "approved"}}\nwould be my answer, but nothing works.', None),
        ('I might say {"review": {"verdict": "approved"}}', None),
        ('{"verdict": "approved"}', None),
        ("approved", None),
        ("", None),
        ("{" * 5000 + "}", None),
    ],
)
def test_an_answer_may_be_the_end_of_the_last_words(text: str, verdict: ReviewStatus | None) -> None:
    found = answer_at_the_end(text).review
    assert (found.verdict if found else None) is verdict


@given(st.binary(max_size=200))
def test_no_bytes_can_break_the_reader(data: bytes) -> None:
    read_request(data)


def test_a_question_is_cleaned_and_bounded() -> None:
    asked = read_request(b'{"ask": "\\u001b[31mred' + b"x" * 10_000 + b'"}').ask
    assert asked.startswith("redx")
    assert len(asked) == 2000


@pytest.mark.parametrize(
    "data",
    [
        b'{"claim": "done", "learn": ["cut \\ud83d"]}',
        b'{"claim": "done", "learn": ["caf\xe9"]}',
        b'\xef\xbb\xbf{"claim": "done", "learn": ["caf\xe9"]}',
        '{"claim": "done", "learn": ["café"]}'.encode("utf-16"),
        b'{"claim": "done", "learn": ["two\nlines"]}',
    ],
)
def test_a_request_with_an_encoding_error_is_read_as_far_as_possible(data: bytes) -> None:
    request = read_request(data)
    assert (request.claim, request.problem, len(request.learned)) == (Claim.DONE, "", 1)
    request.learned[0].encode()


def test_the_reason_for_an_unreadable_request_is_the_syntax_and_not_the_encoding() -> None:
    problem = read_request(b'{"ask": "caf\xe9",\n "claim": done}').problem
    assert "line 2, column 11: Expecting value" in problem
