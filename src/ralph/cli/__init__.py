"""argv in, exit code out; the only place that prints."""
