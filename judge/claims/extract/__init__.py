"""Exchanges and decoded columns to claims, one module per family of messages; `judge.claims.extraction` calls them."""
