"""Endpoints in clusters, the broker of each endpoint, and unauthenticated hosts."""
