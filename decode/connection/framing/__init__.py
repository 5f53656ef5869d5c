"""Messages out of a stream: what their headers say, where they begin and end, and how that is found again."""
