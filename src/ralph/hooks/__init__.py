"""Hooks for an agent's client. Stands alone: nothing here imports the rest of Ralph, and little of the library."""
