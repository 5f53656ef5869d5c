"""Tables and results to people."""
