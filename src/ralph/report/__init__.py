"""What a run did, why it ended and what to do next, from its journal."""
