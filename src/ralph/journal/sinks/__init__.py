"""Files in the workspace that a layout describes, each written by one sink that reads nothing but the records."""
