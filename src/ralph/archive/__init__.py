"""Archives of finished plans, and their return."""
