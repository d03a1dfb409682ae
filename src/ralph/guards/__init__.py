"""What makes a run wait or stop. Pure, one guard a module."""
