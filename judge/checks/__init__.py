"""One module per family of checks; a check is the function that bears its name in the catalogue."""
