"""Messages for people: which ones were asked for, and how they read."""
