"""What a command and its output say about tests. `ralph.hooks.test_results` is the door."""
