"""Builds the objects that commands work with."""
