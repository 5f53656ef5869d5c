"""`python -m wirecheck`: the same as the command.

Knows: the door. Refuses to know what lies behind it.
Rule: nothing is decided here.
"""

from wirecheck.door import main

main(prog_name="wirecheck")
