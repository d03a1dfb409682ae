"""Recognises test results and usage limits in what programs print. It imports nothing of Ralph but the shell parser."""
