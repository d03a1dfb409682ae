"""`python -I -m ralph.hooks EVENT`: answers one hook call, from stdin to stdout."""

from ralph.hooks.entry import main

main()
