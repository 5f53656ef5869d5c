"""A finding's frames as a capture of their own: the fewest that show it, and of TLS as they were on the wire."""
