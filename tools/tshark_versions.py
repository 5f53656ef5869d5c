"""The last version of each API that a tshark reads, measured: `python -m tools.tshark_versions 4.0=tshark 4.6="..."`.

    python -m tools.tshark_versions 4.0=tshark 4.6="chroot /trixie tshark" >dashboards/tshark_versions.tsv

Each command reads two exchanges of every API and version that Kafka has, each on a connection of its own: with one of
everything, and with empty lists. A version is read where at least one of them has no mark of tshark: an unsupported
version, a malformed message, an API without a name. The column has the last version that is; nothing where none is.

Knows: tshark's fields. Does not know which findings need them (`dashboards/evidence_commands.py`).
"""

import base64
import shlex
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from wirecheck.decode.layouts.layout import Layout, layouts

FIELDS = ("tcp.stream", "kafka.api_key", "kafka.unsupported_api_version", "_ws.malformed", "_ws.expert.message")
BATCHES_SINCE = 3
"""The first version of Produce whose records are batches."""
Case = tuple[str, int]
"""An API and a version."""


def cases() -> Iterator[tuple[Case, Layout, Layout]]:
    every = {(one.api, one.side): one for one in layouts("kafka")}
    for (api, side), asked in sorted(every.items(), key=lambda item: item[1].key or 0):
        if side == "request" and (answered := every.get((api, "response"))) is not None:
            for version in asked.versions:
                yield (api, version), asked, answered


def capture() -> tuple[bytes, list[Case]]:
    """Two connections for each case, in order."""
    from tests import traffic
    from tests.build import filled, plain
    from tests.decode.log.batches import batch, message

    def text(_path: str, kind: str) -> str:
        return "" if kind == "bytes" else "t"

    segments: list[Any] = []
    found: list[Case] = []
    for (api, version), *both in cases():
        whole = [filled(one.fields, version, text) for one in both]
        if api == "Produce":
            records = batch(b"v") if version >= BATCHES_SINCE else message(magic=min(version, 1))
            whole[0]["topicData"][0]["partitionData"][0]["records"] = base64.b64encode(records).decode()
        for request, response in (whole, ({}, {})):
            number = len(found)
            talk = traffic.Talk(client=(f"10.1.{number // 250}.{number % 250 + 1}", 40_000)).open()
            talk.request(plain(api, "request", version, request, {"correlationId": 7}))
            talk.response(plain(api, "response", version, response, {"correlationId": 7}))
            segments += talk.close().segments
            found.append((api, version))
    return traffic.pcap(traffic.packets(segments)), found


def last_read(command: str, data: bytes, every: list[Case]) -> dict[str, int]:
    words = [*shlex.split(command), "-r", "-", "-Y", "kafka", "-T", "fields", *(w for f in FIELDS for w in ("-e", f))]
    text = subprocess.run(words, input=data, capture_output=True, check=True).stdout.decode()
    marks: dict[int, list[str]] = {}
    for line in text.splitlines():
        stream, _, *found = line.split("\t")
        marks.setdefault(int(stream), []).extend(filter(None, found))
    read = {every[stream] for stream, found in marks.items() if not found}
    return dict(one for one in every if one in read)  # the last version of each


def main(named: list[str]) -> None:
    columns = dict(one.split("=", 1) for one in named)
    data, every = capture()
    found = {name: last_read(command, data, every) for name, command in columns.items()}
    print("\t".join(["api", *columns]))
    for api in dict.fromkeys(api for api, _ in every):
        row = [str(found[name].get(api, "")) for name in columns]
        if any(row):
            print("\t".join([api, *row]))


if __name__ == "__main__":
    main(sys.argv[1:])
