"""What a run needs: `ralph doctor` and `ralph preflight`, from one set of probes."""
