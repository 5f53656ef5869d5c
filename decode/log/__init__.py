"""Record batches, and what the KRaft metadata log says in them."""
