"""What is stated on the wire: the kinds of claims, and how they are read out of exchanges."""
