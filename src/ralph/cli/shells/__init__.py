"""Completion scripts, one module per shell."""
