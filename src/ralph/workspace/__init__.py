"""The workspace a command is about: its plans, runs, locks, trust, and the files people and agents leave in it."""
