"""The commands that show what a finding rests on, ready to paste into a shell.

`wirecheck decode` finds a message by its frame in a capture, and in an agent's frames by connection and time. A command
is given only where it shows something: tshark's neither for a version that it prints as bytes (tshark_versions.tsv:
the releases that distributions carry, measured by `tools/tshark_versions.py`) nor with several key logs, of which it
takes one. A comment behind it names the release that it needs, if that is not the oldest.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from wirecheck.decode.peer import NO_PORT, Conversation
from wirecheck.frame import Frame
from wirecheck.story.verdict import Finding, Side
from wirecheck.wording import hex_id, rfc3339

CAPTURE = re.compile(r"\.\w*(?:cap|dmp|trc)\w*(?:\.\w+)?$", re.IGNORECASE)
"""Sources that Wireshark opens: frames of an agent name its interface."""
CONNECTIONS_SHOWN = 2


def commands(sides: Sequence[Side], inputs: Sequence[str] = (), options: str = "") -> Iterator[str]:
    """`inputs`: what was judged, where that is known; `options`: how it was read (`reading_options`), which tshark
    cannot do.
    """
    yield from (command + options for command in decoding(sides, inputs))
    if not options:
        yield from dissections(sides)


def every_command(finding: Finding, inputs: Sequence[str], options: str = "", tables_in: str = "") -> Iterator[str]:
    """These, the one that writes its frames, and the one that explains its check. `tables_in`: where the finding can be
    read.
    """
    yield from commands(finding.sides, inputs, options)
    if not options:
        yield from by_topic_id(finding)
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


class InFile:
    """What tshark is to show of one capture."""

    def __init__(self) -> None:
        self.frames: set[int] = set()
        self.ports: set[str] = set()
        self.needs = OLDEST

    def add(self, side: Side, frame: Frame, needs: str) -> None:
        self.frames.update((frame.first, frame.last))
        port = Conversation.of(side.connection or "").server.port
        self.ports.update({str(port)} if port != NO_PORT else ())
        self.needs = max(self.needs, needs, key=[*last_versions()].index)

    def command(self, source: str, display_filter: str, needs: str) -> str:
        kafka = " ".join(f"-d tcp.port=={port},kafka" for port in sorted(self.ports))
        newer = f"  # needs tshark {needs}" if needs != OLDEST else ""
        return f"tshark -r {shlex.quote(source)} {kafka} -Y {shlex.quote(display_filter)}{newer}"


def dissections(sides: Iterable[Side]) -> Iterator[str]:
    """Commands that show these sides' frames in tshark, one per capture file; Wireshark takes the part behind -Y."""
    for source, found in in_files(sides).items():
        numbers = ",".join(map(str, sorted(found.frames)))
        yield found.command(source, f"frame.number in {{{numbers}}}", found.needs)


def by_topic_id(finding: Finding) -> Iterator[str]:
    """Commands that show the messages with the IDs of a finding: tshark has them as GUIDs."""
    if guids := ",".join(map(hex_id, finding.topic_ids)):
        for source, found in in_files(finding.sides).items():
            yield found.command(source, f"kafka.topic_id in {{{guids}}}", WITH_TOPIC_IDS)


def in_files(sides: Iterable[Side]) -> dict[str, InFile]:
    """By capture file, of the sides whose version a tshark reads."""
    files: dict[str, InFile] = {}
    for side in sides:
        frame, needs = in_capture(side), needed_tshark(side)
        if frame and needs is not None:
            files.setdefault(frame.source, InFile()).add(side, frame, needs)
    return files


def needed_tshark(side: Side) -> str | None:
    """The oldest release that reads a side's message; None where none does."""
    if side.version is None:
        return None
    return next(
        (one for one, last in last_versions().items() if 0 <= side.version <= last.get(str(side.api), -1)), None
    )


OLDEST, WITH_TOPIC_IDS = "4.0", "4.6"
"""Releases of tshark: the columns of the table, and the first that has the field kafka.topic_id."""


@cache
def last_versions() -> dict[str, dict[str, int]]:
    """By release of tshark, the oldest first, the last version of each API that it reads."""
    text = Path(__file__).with_name("tshark_versions.tsv").read_text("ascii")
    (_, *releases), *rows = (line.split("\t") for line in text.splitlines())
    return {
        release: {api: int(last[column]) for api, *last in rows if last[column]}
        for column, release in enumerate(releases)
    }
