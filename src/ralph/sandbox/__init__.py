"""Walls around agents and checks: what each backend can do, the network behind it, and how a command is started inside."""
