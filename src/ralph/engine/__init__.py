"""The loop: decide, prepare, act, judge, settle."""
