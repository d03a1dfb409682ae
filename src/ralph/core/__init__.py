"""Values, errors and ports. No I/O."""
