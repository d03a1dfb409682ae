from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ralph.engine.steps import Circuit, Position


def test_a_circuit_opens_waits_tries_once_and_closes() -> None:
    circuit = Circuit(threshold=3, reset_after=60)
    for failures in range(1, 4):
        circuit = circuit.after(ok=False, now=100.0)
        assert (circuit.position(100.0) is Position.OPEN) is (failures == 3)
    assert circuit.position(159.9) is Position.OPEN
    assert circuit.position(160.0) is Position.HALF_OPEN
    assert circuit.after(ok=True, now=160.0).position(160.0) is Position.CLOSED
    reopened = circuit.after(ok=False, now=160.0)
    assert reopened.position(219.0) is Position.OPEN
    assert reopened.position(220.0) is Position.HALF_OPEN


def test_a_success_forgets_earlier_failures() -> None:
    circuit = Circuit(threshold=2, reset_after=1).after(ok=False, now=0).after(ok=True, now=0).after(ok=False, now=0)
    assert circuit.position(0) is Position.CLOSED


@given(st.lists(st.booleans()), st.integers(1, 5))
def test_it_is_open_exactly_after_so_many_failures_in_a_row(results: list[bool], threshold: int) -> None:
    circuit = Circuit(threshold, reset_after=1e9)
    streak = 0
    opened = False
    for ok in results:
        circuit = circuit.after(ok=ok, now=0)
        streak = 0 if ok else streak + 1
        opened = not ok and (streak >= threshold or opened)
    assert (circuit.position(0) is Position.OPEN) is opened
