"""The command guard: reads a shell command, follows it as far as it can without running it, and says yes or no."""
