"""Record batches, and the messages of the KRaft metadata log in them."""
