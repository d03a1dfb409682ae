"""Traces of runs: spans computed from a journal, and the process that sends them by OpenTelemetry's protocol."""
