"""`python -m wirecheck`: the same as the command."""

from wirecheck.cli import main

main(prog_name="wirecheck")
