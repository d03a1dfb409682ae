"""`python -I -m ralph.hooks EVENT`: answers one hook call, from stdin to stdout. Always exits with code 0."""

from ralph.hooks.entry import main

main()
