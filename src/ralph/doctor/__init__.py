"""What a run needs, checked before it starts."""
