"""Walking bytes by programs: typed Python, compiled as one where that can be done."""
