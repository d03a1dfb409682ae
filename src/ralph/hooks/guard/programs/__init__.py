"""What the guard knows of programs, one module per family; `table` names the function that judges each of them."""
