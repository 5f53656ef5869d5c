"""The subcommands of the door, one module each. See README.md."""
