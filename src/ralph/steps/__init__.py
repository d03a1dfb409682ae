"""Steps of an iteration, one a module."""
