"""Grafana boards as Python: each board answers one question."""
