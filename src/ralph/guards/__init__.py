"""Guards: pure functions that make a run wait or stop. One guard per module."""
