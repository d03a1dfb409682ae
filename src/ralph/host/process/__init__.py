"""Processes: start, supervise, watch and end them, with everything they started."""
