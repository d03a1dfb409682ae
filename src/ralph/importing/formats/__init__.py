"""One module for each format: `recognise` says whether a file is one, `read` makes stories of it."""
