"""The state folder: every name in it, where it is, which runs it holds, and who holds their locks."""
