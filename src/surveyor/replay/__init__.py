"""Replay: where transitions are stored and how batches are drawn from them."""
