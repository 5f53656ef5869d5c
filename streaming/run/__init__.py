"""A run from start to end: replay, monitor, what each holds and counts, and its error messages."""
