from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ralph.host.process.output import Excerpt, Tail

CHUNKS = st.lists(st.binary(max_size=120), max_size=20)


@given(CHUNKS, st.integers(0, 400))
def test_an_excerpt_never_exceeds_its_limit_and_is_exact_within_it(chunks: list[bytes], limit: int) -> None:
    excerpt = Excerpt(limit)
    for chunk in chunks:
        excerpt.feed(chunk)
    data = b"".join(chunks)
    value = excerpt.value()
    assert len(value) <= limit
    assert excerpt.total == len(data)
    assert excerpt.cut == (len(data) > limit)
    if not excerpt.cut:
        assert value == data
    elif limit > 100:
        head, _, rest = value.partition(b"\n[... ")
        number, _, tail = rest.partition(b" bytes left out ...]\n")
        assert data.startswith(head)
        assert data.endswith(tail)
        assert len(head) + int(number) + len(tail) == len(data)
        assert min(len(head), len(tail)) >= (limit - 64) // 2


@given(CHUNKS)
def test_a_tail_is_the_last_bytes(chunks: list[bytes]) -> None:
    tail = Tail(50)
    for chunk in chunks:
        tail.feed(chunk)
    assert tail.value() == b"".join(chunks)[-50:]
