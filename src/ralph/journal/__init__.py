"""The append-only record of a run, and what is computed from it."""
