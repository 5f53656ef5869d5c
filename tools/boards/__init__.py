"""Grafana dashboards as Python: each answers one question."""
