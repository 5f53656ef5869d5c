"""The commands that show what a finding rests on, ready to paste into a shell.

`wirecheck decode` finds a message by its frame in a capture, and in an agent's frames by connection and time. A command
is given only where it shows something: tshark's neither for a version that it prints as bytes (tshark_versions.tsv:
the releases that distributions carry) nor with several key logs, of which it takes one.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from wirecheck.decode.peer import NO_PORT, Conversation
from wirecheck.frame import Frame
from wirecheck.story.verdict import Finding, Side
from wirecheck.wording import rfc3339

CAPTURE = re.compile(r"\.\w*(?:cap|dmp|trc)\w*(?:\.\w+)?$", re.IGNORECASE)
"""Sources that Wireshark opens: frames of an agent name its interface."""
CONNECTIONS_SHOWN = 2


def commands(sides: Sequence[Side], inputs: Sequence[str] = (), options: str = "") -> Iterator[str]:
    """`inputs`: what was judged, where that is known; `options`: how it was read (`reading_options`), which tshark
    cannot do.
    """
    yield from (command + options for command in decoding(sides, inputs))
    if not options:
        yield from dissections(side for side in sides if read_by_tshark(side))


def every_command(finding: Finding, inputs: Sequence[str], options: str = "", tables_in: str = "") -> Iterator[str]:
    """These, the one that writes its frames, and the one that explains its check. `tables_in`: where the finding can be
    read.
    """
    yield from commands(finding.sides, inputs, options)
    if inputs and finding.sides:
        found_in = f" --from {shlex.quote(tables_in)}" if tables_in else ""
        evidence = f"wirecheck evidence {finding.id} {shlex.join(inputs)}{found_in} -o {finding.id}.pcapng"
        yield evidence + options
    yield f"wirecheck explain {finding.code}"


def decoding(sides: Sequence[Side], inputs: Sequence[str]) -> Iterator[str]:
    """These sides as `wirecheck decode` shows them: of captures by frame, else by connection and time."""
    frames: dict[str, set[int]] = {}
    others: dict[str, list[Side]] = {}
    for side in sides:
        if frame := in_capture(side):
            frames.setdefault(frame.source, set()).add(frame.first)
        elif side.connection:
            others.setdefault(side.connection, []).append(side)
    for source, numbers in frames.items():
        options = " ".join(f"--frame {number}" for number in sorted(numbers))
        yield f"wirecheck decode {shlex.quote(source)} {options}"
    if not inputs:
        return
    for connection, found in list(others.items())[:CONNECTIONS_SHOWN]:
        times = [rfc3339(time_ns) for time_ns in sorted(side.time_ns for side in found)]
        apis = "".join(f" --api {api}" for api in sorted({side.api for side in found if side.api}))
        yield (
            f"wirecheck decode {shlex.join(inputs)} --connection {shlex.quote(connection)}{apis}"
            f" --since {times[0]} --until {times[-1]}"
        )


def in_capture(side: Side) -> Frame | None:
    """The packets of a side, where a capture has them."""
    return side.frame if side.frame and side.frame.first and CAPTURE.search(side.frame.source) else None


def dissections(sides: Iterable[Side]) -> Iterator[str]:
    """Commands that show these sides' frames in tshark, one per capture file; Wireshark takes the part behind -Y."""
    frames: dict[str, set[int]] = {}
    ports: dict[str, set[str]] = {}
    for side in sides:
        if frame := in_capture(side):
            frames.setdefault(frame.source, set()).update((frame.first, frame.last))
            port = Conversation.of(side.connection or "").server.port
            ports.setdefault(frame.source, set()).update({str(port)} if port != NO_PORT else ())
    for source, numbers in frames.items():
        kafka = " ".join(f"-d tcp.port=={port},kafka" for port in sorted(ports[source]))
        numbers_text = ",".join(map(str, sorted(numbers)))
        yield f"tshark -r {shlex.quote(source)} {kafka} -Y 'frame.number in {{{numbers_text}}}'"


def read_by_tshark(side: Side) -> bool:
    return side.version is not None and 0 <= side.version <= last_versions().get(str(side.api), -1)


@cache
def last_versions() -> dict[str, int]:
    text = Path(__file__).with_name("tshark_versions.tsv").read_text("ascii")
    return {api: int(last) for api, last in (line.split("\t") for line in text.splitlines()[1:])}
