"""What people ask of a capture: rows about clients, errors, changes and groups, each counted in one pass."""
