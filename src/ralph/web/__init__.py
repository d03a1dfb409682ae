"""`ralph serve`: the page in a browser, and the HTTP API behind it. It reads journals and never writes to a run."""
