"""`ralph ui`: a run on the terminal, with everything that is known about it, and its plan. Needs the extra `tui`."""
