"""What a command or a program asks for, carried out: inputs are opened, either engine runs, and its result is there.

Knows: which module of which package reads, checks and answers. Refuses to know options, terminals and exit codes
(`commands`), and what the values of the library look like. What cannot be done is an InputError.
"""
