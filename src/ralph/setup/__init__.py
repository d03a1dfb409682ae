"""A new plan: its files, the checks of the project, and what git ignores."""
