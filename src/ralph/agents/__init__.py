"""Agents: how each client is started, and how its output is read into typed events."""
