"""Prove a story: the commit that will be made, in a clean checkout, with the tests as they were, and a witness."""
