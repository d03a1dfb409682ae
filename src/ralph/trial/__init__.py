"""Agents on trial: real clients on a scripted model, in a project made for it, without a network."""
