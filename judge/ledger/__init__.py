"""Every claim of one cluster label, merged; what leaves it, and which rows rested on it."""
