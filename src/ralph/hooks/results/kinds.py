"""The roles a simple command can have."""

TEST, LOOK, TRIVIAL, OTHER, UNKNOWN, LISTING = "test", "look", "trivial", "other", "unknown", "listing"
"""LISTING: a test program that is asked for its version, its help or a list, and runs nothing."""

Kind = tuple[str, str]
"""Role and, for a test run, the framework; empty when only its output can tell."""

Again = list[str]
"""The words of another command, to be looked at instead."""
