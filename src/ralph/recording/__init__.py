"""Animated pictures of a run, from its journal: asciicast, SVG and GIF."""
