"""One module per plan layout, and what they share."""
