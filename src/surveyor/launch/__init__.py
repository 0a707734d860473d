"""Many runs at once: a local pool of processes, or a Ray cluster."""
