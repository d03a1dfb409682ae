"""What can be typed: one function per command, which adds its arguments to a parser.

The functions import no feature, so that `--help` is quick. A docstring is the text of `--help`.
"""
