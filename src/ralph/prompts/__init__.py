"""Prompts: the built-in templates, and how the parts of one are put together."""
