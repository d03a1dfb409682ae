"""Git: commands, checkpoints, commits, rollbacks, rescue, refs and the proof checkout."""
