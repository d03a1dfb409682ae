from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.host.process.output import LineSplitter, Oversize

LIMIT, HEAD = 8, 5


def split(chunks: list[bytes], limit: int = LIMIT, head: int = HEAD) -> list[bytes | Oversize]:
    splitter = LineSplitter(limit, head)
    return [line for chunk in chunks for line in splitter.feed(chunk)] + splitter.flush()


def expected(data: bytes) -> list[bytes | Oversize]:
    pieces = data.split(b"\n")
    if not pieces[-1]:
        pieces.pop()
    return [Oversize(p[:HEAD], len(p)) if len(p) > LIMIT else p.removesuffix(b"\r") for p in pieces]


@given(st.lists(st.lists(st.sampled_from([b"a", b"\n", b"\r", b"\0", b"\xff", b"bcd"]), max_size=12).map(b"".join)))
def test_lines_do_not_depend_on_how_the_output_was_cut_into_chunks(chunks: list[bytes]) -> None:
    data = b"".join(chunks)
    assert split(chunks) == split([data]) == split([bytes([b]) for b in data]) == expected(data)


def test_bytes_stay_as_they_are() -> None:
    assert split([b"a\0b\n\xff\xfe\n\xe2\x82"]) == [b"a\0b", b"\xff\xfe", b"\xe2\x82"]


def test_windows_line_ends_are_removed_but_a_lone_carriage_return_stays() -> None:
    assert split([b"a\r", b"\nb\rc\n\r\n"]) == [b"a", b"b\rc", b""]


def test_the_last_line_needs_no_newline() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b"one\ntwo") == [b"one"]
    assert splitter.flush() == [b"two"]
    assert splitter.flush() == []


def test_a_line_over_the_limit_is_delivered_once_with_its_beginning_and_length() -> None:
    assert split([b"123456789", b"0" * 1000, b"\nnext\n"]) == [Oversize(b"12345", 1009), b"next"]


@pytest.mark.parametrize("chunk", [1, 100_000])
def test_memory_is_bounded_by_the_limit_and_not_by_the_line(chunk: int) -> None:
    splitter = LineSplitter(limit=200_000)
    data = b"x" * chunk
    tracemalloc.start()
    try:
        for _ in range((250_000 if chunk == 1 else 50_000_000) // chunk):
            splitter.feed(data)
        (line,) = splitter.feed(b"\n")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(line, Oversize)
    assert peak < 1_000_000
