"""What the guard knows about programs, one module per family; `table` names the function that judges each."""
