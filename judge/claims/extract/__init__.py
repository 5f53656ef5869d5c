"""Exchanges and decoded columns to claims, one module per family of messages; `streaming.judge.claims` calls them."""
