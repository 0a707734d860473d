"""Many runs from one specification, on one machine or on a cluster, and what came of them."""
