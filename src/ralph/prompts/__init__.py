"""Prompt templates and the library of built-in ones."""
