"""The roles a simple command can have."""

TEST, LOOK, TRIVIAL, OTHER, UNKNOWN, LISTING = "test", "look", "trivial", "other", "unknown", "listing"
"""LISTING: a test program that is asked for its version, its help or a list, and runs nothing."""

PERHAPS = "perhaps"
"""Named like something that often runs tests (`make check`, `npm run ci`): its output tells, its exit code does not."""

Kind = tuple[str, str]
"""Role and, for a test run, the framework; empty when only its output can tell."""

Again = list[str]
"""The words of another command, to be looked at instead."""

TELLING = ("test", "Test", "passed", "failed", "failure", "FAIL", "not ok", "passing", "example", "pass", "scenario")
"""An output without any of these says nothing about tests."""
