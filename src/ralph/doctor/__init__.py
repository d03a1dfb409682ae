"""What a run needs: `ralph doctor` and its preflight, from one set of probes."""
