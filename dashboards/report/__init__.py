"""A replay's result as one page for a browser."""
