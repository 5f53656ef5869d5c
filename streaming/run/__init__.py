"""A run from start to end: replay, monitor, what each holds, counts and says when it fails."""
