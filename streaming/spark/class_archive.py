"""A class-data sharing archive: Java's classes laid out once, so that Spark starts in half the time.

Knows: where the archive of this Java and this Spark lies. How one is made is `streaming/run/make_class_archive.py`'s
affair.
Rule: it is never needed and changes no result. Java itself refuses an archive that does not fit and starts without.
"""

import os
from pathlib import Path
from zlib import crc32

import pyspark

from wirecheck.streaming.spark.java import Java


def archive_of(java: Java) -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "wirecheck"
    key = crc32(f"{java.home} {Path(pyspark.__file__).parent}".encode())
    return cache / f"spark-{pyspark.__version__}-java-{java.version}-{key:08x}.jsa"


def sharing(java: Java) -> str:
    """What Java is told about the archive, if there is one."""
    archive = archive_of(java)
    return f"-Xshare:auto -XX:SharedArchiveFile={archive}" if archive.exists() else "-Xshare:auto"
