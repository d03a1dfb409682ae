"""The command line: takes argv, returns an exit code. The only package that prints."""
