"""Sinks: each writes one workspace file that a layout defines, from the journal records alone."""
