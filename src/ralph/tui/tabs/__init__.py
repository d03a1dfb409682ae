"""The tabs: each is a function from a scene to rows."""
