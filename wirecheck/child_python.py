"""The PYTHONPATH of a Python that this process starts: it must import the same wirecheck, whatever its directory.

It imports nothing but the package's own path, so that every child can be started by it.
"""

import os
from pathlib import Path

PACKAGES = Path(__file__).resolve().parent.parent


def python_path() -> str:
    """The folder of this package, then the folders that this process was given."""
    return os.pathsep.join([str(PACKAGES), *filter(None, [os.environ.get("PYTHONPATH")])])
