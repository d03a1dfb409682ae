"""One agent session: who works, with which limits, steps and hooks."""
