"""Bytes of one direction in order: what came, what is missing, and when it stays missing."""
