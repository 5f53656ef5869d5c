"""What findings mean together: causes, entries, harm, and the cards that people see first."""
