"""`python -m wirecheck`: the same as the command.

Knows: the command line (cli.py). Does not know the subcommands.
Rule: nothing is decided here.
"""

from wirecheck.cli import main

main(prog_name="wirecheck")
