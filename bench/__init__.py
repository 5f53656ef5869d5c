"""Measurements of us and the peer, side by side in one run."""
