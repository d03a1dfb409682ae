"""Walls around agents and checks: the backends, the network behind them, and what is visible inside."""
