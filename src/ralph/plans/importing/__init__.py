"""Reads work that was written down for other tools: one module for each kind of source."""
