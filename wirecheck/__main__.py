"""`python -m wirecheck`: the same as the command.

Nothing is decided here; cli.py has the commands.
"""

from wirecheck.cli import main

main(prog_name="wirecheck")
