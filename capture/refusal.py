"""Why an agent cannot listen, as exceptions whose one line of text ends with what to do. Imports no compiled code.

When they are raised is up to interface.py and spool_folder.py. This module imports nothing of its package, so that
catching one loads no compiled code.
"""


class ListenError(Exception):
    """An interface or a filter that cannot be listened to."""


class DestinationError(ValueError):
    """A place to ship to that is none."""


class AgentNameError(ValueError):
    """A name that cannot be part of a file's name."""
