"""What a command and its output say about tests. The entry point is `ralph.hooks.test_results`."""
