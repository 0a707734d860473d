"""Posteriors, the empirical MDP and its solution, sampling."""
