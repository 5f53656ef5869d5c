"""Where a text points to: this machine's disk, or any file system Arrow knows.

Knows: paths and URIs, Hadoop's spelling of them included. Knows nothing of what lies there.
Rule: whatever is read or written outside Spark goes through here, so that the job needs no local disk to be shared.
"""

import re
from pathlib import Path
from urllib.parse import urlsplit

from pyarrow import fs

Place = tuple[fs.FileSystem, str]
DETAIL = re.compile(r"Detail: \[errno \d+\] (.+)", re.IGNORECASE)
"""Where Arrow's long sentence about a local file says what the system said."""


def at(where: str | Path) -> Place:
    """The file system and the path inside it. Raises OSError or ValueError for a scheme nobody knows."""
    text = str(where)
    scheme = urlsplit(text).scheme
    if not scheme:
        return fs.LocalFileSystem(), str(Path(text).absolute())
    if scheme == "file":  # Hadoop writes file:/a b%c, which is no URI
        return fs.LocalFileSystem(), "/" + text.partition(":")[2].lstrip("/")
    place: Place = fs.FileSystem.from_uri("s3:" + text.partition(":")[2] if scheme == "s3a" else text)
    return place


def is_local(where: str | Path) -> bool:
    return urlsplit(str(where)).scheme in {"", "file"}


def local(where: str | Path) -> Path:
    """A place on this machine's disk as a path."""
    return Path(at(where)[1])


def why(wrong: Exception) -> str:
    """What the system said, in a few words without the path."""
    said = str(getattr(wrong, "strerror", None) or wrong or type(wrong).__name__)
    detail = DETAIL.search(said)
    return detail[1] if detail else said.strip().splitlines()[0]
