"""The steps of an iteration, one per module."""
