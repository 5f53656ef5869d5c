"""Why an agent does not listen, as exceptions whose text is one line that says what to do.

Knows: nothing but their names, so that who only wants to catch them imports no compiled code.
Refuses to know: when they are raised (interface.py, spool_folder.py). Rule: this module imports nothing of the room.
"""


class ListenError(Exception):
    """An interface or a filter that cannot be listened to."""


class DestinationError(ValueError):
    """A place to ship to that is none."""


class AgentNameError(ValueError):
    """A name that cannot be part of a file's name."""
