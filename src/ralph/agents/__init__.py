"""Agents: how each client is started, and how its output is parsed into typed events."""
