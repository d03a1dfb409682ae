"""What every view of a run shows: its lines, its stories and attempts, and what a person can do, from the journal."""
