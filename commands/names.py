"""`--names`: names of hosts in addition to addresses, from a hosts file, a JSON object, or `kubectl get pods -o json`.

Text shows the name with its address, once; JSON and CSV keep addresses and add the name.
"""

import json
import os
import re
from ipaddress import ip_address
from pathlib import Path
from typing import IO, Any

import click

from wirecheck.commands.ending import Stop
from wirecheck.commands.screen import tell
from wirecheck.document import inner

NAMES = "wirecheck.names"
"""Where the context keeps what `--names` named."""
HOSTS = ("host", "address", "via_broker", "claimed_by")
"""Fields of rows that hold an address, with a port or without."""
COPIED = frozenset({"command", "commands", "connection", "frame", "frames", "id", "inputs", "keylogs"})
MOST_NAMES = 200_000
MOST_BYTES = 64 << 20
LONGEST = 253
"""Characters of a name, as DNS and Kubernetes have it."""
ADDRESS = re.compile(r"(?<![\w.:])(?:\d{1,3}(?:\.\d{1,3}){3}|\[?[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,7}\]?)(?![\w.])")


def _keep(ctx: click.Context, _param: click.Parameter, value: tuple[Path, ...]) -> None:
    found: dict[str, str] = {}
    for path in value:
        found |= read(path)
    ctx.meta[NAMES] = found


option = click.option(
    "--names",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    envvar="WIRECHECK_NAMES",
    expose_value=False,
    callback=_keep,
    help="Show host names for addresses: a hosts file, JSON {address: name}, or kubectl get pods -o json.",
)


def read(path: Path) -> dict[str, str]:
    """Names by address. Raises Stop if the file has none of the three formats."""
    try:
        with at_once(path) as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise Stop(f"{path}: {error.strerror}") from error
    if len(data) > MOST_BYTES:
        raise Stop(f"{path}: larger than {MOST_BYTES >> 20} MiB")
    text = data.decode("utf-8-sig", errors="replace")
    try:
        pairs = of_json(json.loads(text)) if text.lstrip()[:1] in {"{", "["} else of_hosts(text)
    except (ValueError, LookupError, RecursionError, TypeError, AttributeError) as error:
        raise Stop(f"{path}: neither a hosts file, nor JSON with addresses and names") from error
    if len(pairs) > MOST_NAMES:
        tell(f"wirecheck: {path}: {len(pairs) - MOST_NAMES:,} more names are not used; {MOST_NAMES:,} are kept")
    found = {address: name[:LONGEST] for each, name in pairs[:MOST_NAMES] if (address := plain(each)) and name}
    if not found:
        raise Stop(f"{path}: no address with a name; a line of a hosts file is 10.0.4.12 billing-7")
    return found


def at_once(path: Path) -> IO[bytes]:
    """A pipe that no process writes to is empty, and is not waited for."""
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(file, True)
    return os.fdopen(file, "rb")


def of_hosts(text: str) -> list[tuple[str, str]]:
    lines = [line.partition("#")[0].split() for line in text.splitlines()]
    return [(words[0], words[1]) for words in lines if len(words) > 1]


def of_json(found: Any) -> list[tuple[str, str]]:
    """Of an object {address: name}, or of pods."""
    if isinstance(found, dict) and "items" not in found and "status" not in found:
        if not all(isinstance(name, str) for name in found.values()):
            raise TypeError
        return [*found.items()]
    pods = found if isinstance(found, list) else found.get("items", [found])
    pairs = []
    for pod in pods:
        if pod["spec"].get("hostNetwork"):  # its address is the node's, which others share
            continue
        addresses = [pod.get("status", {}).get("podIP"), *(one.get("ip") for one in pod["status"].get("podIPs", ()))]
        pairs += [(address, pod["metadata"]["name"]) for address in addresses if address]
    return pairs


def plain(address: str) -> str | None:
    try:
        return str(ip_address(address))
    except ValueError:
        return None


def known() -> dict[str, str]:
    ctx = click.get_current_context(silent=True)
    found: dict[str, str] = ctx.meta.get(NAMES, {}) if ctx is not None else {}
    return found


def of(address: str) -> str | None:
    """The name of a host, or of what follows it a port."""
    from wirecheck.decode.peer import Peer

    bare = address if address in known() else Peer.of(address).host
    return known().get(bare)


def in_row(row: dict[str, Any]) -> dict[str, Any]:
    """The row, with the name behind each address that has one: `host_name` behind `host`."""
    if not known():
        return row
    return {
        key: value
        for field, cell in row.items()
        for key, value in (
            (field, cell),
            *(((f"{field}_name", of(cell) if isinstance(cell, str) else None),) if field in HOSTS else ()),
        )
    }


def in_text(text: str) -> str:
    """`billing-7 (10.0.4.12)` for each address that has a name."""
    if not known():
        return text
    return ADDRESS.sub(lambda found: f"{name} ({found[0]})" if (name := of(found[0])) else found[0], text)


def in_words(value: Any) -> Any:
    """A result for people, with names in its words; what is copied into a command line keeps its addresses."""
    if not known():
        return value
    match value:
        case str():
            return in_text(value)
        case dict():
            return {name: cell if name in COPIED else in_words(cell) for name, cell in value.items()}
    return inner(value, in_words, COPIED)
