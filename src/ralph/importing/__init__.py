"""Stories from other tools, and plans in another layout."""
