"""The subcommands, one module each. See README.md."""
