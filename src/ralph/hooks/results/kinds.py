"""The roles a simple command can have."""

TEST, LOOK, TRIVIAL, OTHER, UNKNOWN, LISTING = "test", "look", "trivial", "other", "unknown", "listing"
"""LISTING: a test program asked for its version, help or a list, which runs nothing."""

PERHAPS = "perhaps"
"""Named like something that often runs tests (`make check`, `npm run ci`): only its output tells, not its exit code."""

Kind = tuple[str, str]
"""Role and, for a test run, the framework; empty if only its output can tell."""

Again = list[str]
"""The words of another command, to be examined instead."""

TELLING = ("test", "Test", "passed", "failed", "failure", "FAIL", "not ok", "passing", "example", "pass", "scenario")
"""An output without any of these says nothing about tests."""
