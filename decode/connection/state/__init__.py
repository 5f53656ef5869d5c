"""What a follower remembers between calls: its connections and their bytes, and both as a checkpoint."""
