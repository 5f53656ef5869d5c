"""The commands that show what a finding rests on, ready to paste into a shell.

`wirecheck decode` finds a message by its frame in a capture, and in an agent's frames by connection and time. A command
is given only where it shows something: tshark's neither for a version that it prints as bytes (tshark_versions.tsv:
the releases that distributions carry) nor with several key logs, of which it takes one.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from wirecheck.decode.peer import NO_PORT, Conversation

Row = Mapping[str, Any]
CAPTURE = re.compile(r"\.\w*(?:cap|dmp|trc)\w*(?:\.\w+)?$", re.IGNORECASE)
"""Sources that Wireshark opens: frames of an agent name its interface."""
CONNECTIONS_SHOWN = 2


def commands(sides: Sequence[Row], inputs: Sequence[str] = (), options: str = "") -> Iterator[str]:
    """`inputs`: what was judged, where that is known; `options`: how it was read (`reading_options`), which tshark
    cannot do.
    """
    yield from (command + options for command in decoding(sides, inputs))
    if not options:
        yield from dissections(side for side in sides if read_by_tshark(side))


def every_command(finding: Row, inputs: Sequence[str], options: str = "", tables_in: str = "") -> Iterator[str]:
    """These, the one that writes its frames, and the one that explains its check. `tables_in`: where the finding can be
    read.
    """
    yield from commands(finding["sides"], inputs, options)
    if inputs and finding["sides"]:
        found_in = f" --from {shlex.quote(tables_in)}" if tables_in else ""
        evidence = f"wirecheck evidence {finding['id']} {shlex.join(inputs)}{found_in} -o {finding['id']}.pcapng"
        yield evidence + options
    yield f"wirecheck explain {finding['code']}"


def decoding(sides: Sequence[Row], inputs: Sequence[str]) -> Iterator[str]:
    """These sides as `wirecheck decode` shows them: of captures by frame, else by connection and time."""
    frames: dict[str, set[int]] = {}
    others: dict[str, list[Row]] = {}
    for side in sides:
        if is_in_capture(side):
            frames.setdefault(side["frame"]["source"], set()).add(side["frame"]["first"])
        elif side.get("connection") and side.get("time"):
            others.setdefault(side["connection"], []).append(side)
    for source, numbers in frames.items():
        options = " ".join(f"--frame {number}" for number in sorted(numbers))
        yield f"wirecheck decode {shlex.quote(source)} {options}"
    if not inputs:
        return
    for connection, found in list(others.items())[:CONNECTIONS_SHOWN]:
        times = sorted(side["time"] for side in found)
        apis = "".join(f" --api {api}" for api in sorted({side["api"] for side in found if side.get("api")}))
        yield (
            f"wirecheck decode {shlex.join(inputs)} --connection {shlex.quote(connection)}{apis}"
            f" --since {times[0]} --until {times[-1]}"
        )


def is_in_capture(side: Row) -> bool:
    frame = side.get("frame") or {}
    return bool(frame.get("first") and CAPTURE.search(frame["source"]))


def dissections(sides: Iterable[Row]) -> Iterator[str]:
    """Commands that show these sides' frames in tshark, one per capture file; Wireshark takes the part behind -Y."""
    frames: dict[str, set[int]] = {}
    ports: dict[str, set[str]] = {}
    for side in sides:
        if is_in_capture(side):
            frame = side["frame"]
            frames.setdefault(frame["source"], set()).update((frame["first"], frame["last"]))
            port = Conversation.of(side["connection"]).server.port
            ports.setdefault(frame["source"], set()).update({str(port)} if port != NO_PORT else ())
    for source, numbers in frames.items():
        kafka = " ".join(f"-d tcp.port=={port},kafka" for port in sorted(ports[source]))
        numbers_text = ",".join(map(str, sorted(numbers)))
        yield f"tshark -r {shlex.quote(source)} {kafka} -Y 'frame.number in {{{numbers_text}}}'"


def read_by_tshark(side: Row) -> bool:
    version = side.get("version")
    return version is not None and 0 <= version <= last_versions().get(str(side.get("api")), -1)


@cache
def last_versions() -> dict[str, int]:
    text = Path(__file__).with_name("tshark_versions.tsv").read_text("ascii")
    return {api: int(last) for api, last in (line.split("\t") for line in text.splitlines()[1:])}
