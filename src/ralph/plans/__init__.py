"""The layouts, one module each, and the reading and editing of plan files that they share."""
