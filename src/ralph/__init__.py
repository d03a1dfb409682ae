"""Ralph runs a coding agent over a list of stories and proves what it did."""

__version__ = "0.1.0"
