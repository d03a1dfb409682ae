"""`python -m ralph`."""

from ralph.cli.main import entry

entry()
