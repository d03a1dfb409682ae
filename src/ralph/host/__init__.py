"""Processes, git, files and locks. Standard library only."""
