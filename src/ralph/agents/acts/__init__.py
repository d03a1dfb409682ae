"""What the scripted agent can do, good and bad: one class per action, grouped by theme."""
