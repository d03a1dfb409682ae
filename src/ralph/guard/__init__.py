"""The command guard: parses a shell command, follows it without running it, and allows or denies it."""
