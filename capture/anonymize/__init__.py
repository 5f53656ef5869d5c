"""A capture under other names: what may be shared with a report."""
