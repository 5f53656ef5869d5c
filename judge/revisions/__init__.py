"""What one batch does to a cluster label: which subjects are judged again and when, and which leave."""
