"""What sessions cost: reserved before, settled after, counted across runs, and forecast."""
