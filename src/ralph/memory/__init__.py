"""What sessions learn: kept beside the plan, protected, recalled and summarised."""
