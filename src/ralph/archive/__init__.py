"""Archives of finished plans, and how one comes back."""
