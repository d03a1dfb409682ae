"""One run, from the command line to the end: settings and ports are put together for the engine."""
