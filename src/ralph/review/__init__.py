"""What a reviewer is given."""
