"""The judge of one cluster label in parts that tell each other what they read of each other."""
