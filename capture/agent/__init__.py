"""The agent, offline and live: rows into files of a folder, and what it counts meanwhile."""
