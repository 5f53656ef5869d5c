"""The PYTHONPATH of a Python that this process starts.

Knows: where this package is. Does not know who starts a process, or what runs in it.
Rule: the process imports the wirecheck that started it, whatever its working directory is.
"""

import os
from pathlib import Path

PACKAGES = Path(__file__).resolve().parent.parent


def python_path() -> str:
    """The folder of this package, then the folders that this process was given."""
    return os.pathsep.join([str(PACKAGES), *filter(None, [os.environ.get("PYTHONPATH")])])
