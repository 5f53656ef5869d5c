"""What may reach the disk: rows wait until it is known which of their bytes are kept."""
