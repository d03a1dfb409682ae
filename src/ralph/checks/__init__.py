"""Commands the loop runs itself to prove a story."""
