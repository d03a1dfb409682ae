"""What a reviewer gets: the change, the check results, and the story's history."""
