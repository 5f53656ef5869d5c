"""Captures and frames of an object store, copied to this machine's disk once, for as long as this process runs.

Readers of captures go through a file from its beginning, some of them twice, and compiled loops need paths. An object
is copied as it comes, so that memory does not depend on its size; a prefix is a folder of all that is below it.
"""

import atexit
import shutil
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from wirecheck.session.session import InputError

if TYPE_CHECKING:
    from obstore.store import ObjectStore

SCHEMES = {"s3", "s3a", "gs", "az", "abfs", "abfss"}
EXTRA = "the extra [objectstore]"
CHUNK_BYTES = 8 << 20


@cache
def fetched(name: str) -> Path:
    """The copy of an object, or of all objects below a prefix. Raises InputError where there is nothing, and where the
    store cannot be asked.
    """
    try:
        from obstore.exceptions import BaseError
    except ModuleNotFoundError:
        raise InputError(f"{name}: an object store: install {EXTRA}, or copy it here and name the file") from None
    parts = urlsplit(name)
    folder, key = Path(tempfile.mkdtemp(prefix="wirecheck-fetched-")), parts.path.strip("/")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    try:
        store = opened(f"{parts.scheme.replace('s3a', 's3')}://{parts.netloc}")
        sizes = dict(objects(store, key))
        if not sizes:
            raise InputError(f"{name}: no such object, and none below it")
        for path in sizes:
            copy(store, path, folder / target(path, key))
    except (BaseError, OSError) as error:
        raise InputError(f"{name}: {' '.join(str(error).split())[:LONGEST]}") from error
    return folder / Path(key or "all").name


LONGEST = 200
"""Characters of what a store answers, which may be a page."""


def opened(bucket: str) -> "ObjectStore":
    """Credentials and endpoint come from where the stores' own tools have them."""
    from obstore.store import from_url

    return from_url(
        bucket,
        client_options={"connect_timeout": "4s", "timeout": "1h", "allow_http": True},
        retry_config={"max_retries": 2, "retry_timeout": timedelta(seconds=10)},
    )


def objects(store: "ObjectStore", key: str) -> Iterator[tuple[str, int]]:
    """(key, bytes) of the object, or of all below the prefix."""
    import obstore

    try:
        found = obstore.head(store, key) if key else None
    except FileNotFoundError:
        found = None
    if found is not None:
        yield found["path"], found["size"]
        return
    for some in obstore.list(store, prefix=key or None):
        for one in some:
            yield one["path"], one["size"]


def target(path: str, key: str) -> Path:
    """Where a copy lies: below the name of what was asked for. A key with .. in it stays inside."""
    inside = [part for part in path.removeprefix(key).split("/") if part not in {"", ".", ".."}]
    return Path(Path(key or "all").name, *inside)


def copy(store: "ObjectStore", path: str, to: Path) -> None:
    import obstore

    to.parent.mkdir(parents=True, exist_ok=True)
    with to.open("wb") as file:
        for some in obstore.get(store, path).stream(min_chunk_size=CHUNK_BYTES):
            file.write(some)
