"""The hook calls of other clients: each module translates them into the form that Ralph's rules read, and back."""
