"""TLS segments into plain ones, with the keys that somebody wrote down. See README.md."""
