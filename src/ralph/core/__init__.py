"""Values, events, errors and interfaces. No I/O."""
