"""What a follower remembers between calls: its heap, its bytes, and both as a checkpoint."""
