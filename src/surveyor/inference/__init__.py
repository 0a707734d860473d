"""Posteriors, reference policies, and the empirical MDP with its solution and draws."""
