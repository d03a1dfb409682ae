"""What the scripted agent can do, good and bad: one class an action, by theme."""
