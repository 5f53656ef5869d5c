"""Which Python Spark's workers run by: this one, with PySpark as it is installed.

Spark puts a zip of PySpark's source in front of what a Python imports (`PythonUtils.sparkPythonPath`). It has no
bytecode: each Python that Spark starts compiles it anew, 0.4 CPU s, three times before the first rows of a query pass
and twice for each query after it.

Knows: how to start this Python without that zip. Refuses to know who starts it, and with which words.
"""

import os
import shlex
import sys
import sysconfig
from pathlib import Path

import pyspark

from wirecheck.child_python import python_path


def worker_python(folder: Path) -> str:
    """A command without words (Spark takes no others) in that folder; this Python itself if it would not find PySpark
    on its own.
    """
    if not found_by_itself(Path(pyspark.__file__).parent.parent):
        return sys.executable
    script = folder / "python"
    path, python = shlex.quote(python_path()), shlex.quote(sys.executable)
    script.write_bytes(os.fsencode(f'#!/bin/sh\nPYTHONPATH={path} exec {python} "$@"\n'))
    script.chmod(0o700)
    return str(script)


def found_by_itself(packages: Path) -> bool:
    places = (sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *python_path().split(os.pathsep))
    return any(Path(place).resolve() == packages.resolve() for place in places if place)
