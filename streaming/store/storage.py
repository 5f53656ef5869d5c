"""Paths and URIs: this machine's disk, or any file system that Arrow knows. All I/O outside Spark goes through here.

So the job needs no shared local disk. What lies at a path is not known here.
"""

from pathlib import Path
from urllib.parse import urlsplit

from pyarrow import fs

S3 = {"s3", "s3a"}
STORES = {"s3", "gcs", "abfs"}
"""By Arrow's names for them. A name is there only once all of its bytes are: nothing needs to be hidden and moved."""
Place = tuple[fs.FileSystem, str]


def at(where: str | Path) -> Place:
    """The file system and the path inside it. Raises OSError or ValueError for an unknown scheme."""
    text = str(where)
    scheme = urlsplit(text).scheme
    if not scheme:
        return fs.LocalFileSystem(), str(Path(text).absolute())
    if scheme == "file":  # Hadoop writes file:/a b%c, which is no URI
        return fs.LocalFileSystem(), "/" + text.partition(":")[2].lstrip("/")
    place: Place = fs.FileSystem.from_uri(small_in_one("s3:" + text.partition(":")[2]) if scheme in S3 else text)
    return place


def small_in_one(uri: str) -> str:
    """Objects of up to 5 MB with one request, where Arrow would take three (S3Options, allow_delayed_open)."""
    if "allow_delayed_open=" in uri:
        return uri
    return f"{uri}{'&' if '?' in uri else '?'}allow_delayed_open=true"


def is_local(where: str | Path) -> bool:
    return urlsplit(str(where)).scheme in {"", "file"}


def local(where: str | Path) -> Path:
    """A place on this machine's disk as a path."""
    return Path(at(where)[1])


def spelled(where: str | Path) -> str:
    """A place for those who take no file: URI, and put a name behind a folder."""
    return str(local(where)) if is_local(where) else str(where).rstrip("/")


def put(system: fs.FileSystem, path: str, content: bytes) -> None:
    """A file under its name only when it is whole: stores show no other, elsewhere a leading dot hides it till then."""
    if system.type_name in STORES:
        with system.open_output_stream(path) as file:
            file.write(content)
        return
    folder, _, name = path.rpartition("/")
    hidden = f"{folder}/.{name}.tmp"
    system.create_dir(folder, recursive=True)
    with system.open_output_stream(hidden) as file:
        file.write(content)
    system.move(hidden, path)


def names(system: fs.FileSystem, folder: str) -> set[str]:
    return {info.base_name for info in system.get_file_info(fs.FileSelector(folder, allow_not_found=True))}
