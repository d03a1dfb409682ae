"""One module per plan layout, and the code they share."""
