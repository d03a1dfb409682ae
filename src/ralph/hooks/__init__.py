"""Hooks for an agent's client. Self-contained: imports nothing else of Ralph, and little of the standard library."""
