"""Decrypts TLS segments with the secrets of a key log. See README.md."""
