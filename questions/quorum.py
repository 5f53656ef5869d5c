"""Who is behind the addresses of controllers, and who leads the quorum, as far as a capture shows it.

Nodes: the receiver that Vote and BeginQuorumEpoch name (since version 1), and the listeners of DescribeQuorum and of
ControllerRegistration. Leaders: what BeginQuorumEpoch and DescribeQuorum state. The greatest epoch so far counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from wirecheck.decode.api_names import key_of
from wirecheck.decode.columns import kinds
from wirecheck.decode.columns import tables as columns_of
from wirecheck.decode.message import only
from wirecheck.decode.peer import Peer
from wirecheck.decode.wire import REQUEST, RESPONSE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wirecheck.decode.columns import Table
    from wirecheck.decode.connection.exchanges import Exchanges
    from wirecheck.decode.message import Decoded

LISTED = (
    ("DescribeQuorum", RESPONSE, "nodes", "node_id", "nodes.listeners"),
    ("ControllerRegistration", REQUEST, "", "controller_id", "listeners"),
)
"""API, side, the table and the column of the node, and the table of its listeners."""
LED = (("BeginQuorumEpoch", REQUEST), ("DescribeQuorum", RESPONSE))
NAMED = ("Vote", "BeginQuorumEpoch")
PARTITIONS = "topics.partitions"
PROJECTION = only(
    {
        ("Vote", "request"): ["voter_id"],
        ("BeginQuorumEpoch", "request"): ["voter_id", f"{PARTITIONS}.leader_id", f"{PARTITIONS}.leader_epoch"],
        ("DescribeQuorum", "response"): [
            *(f"{PARTITIONS}.{name}" for name in ("leader_id", "leader_epoch")),
            *("nodes.node_id", "nodes.listeners.host", "nodes.listeners.port"),
        ],
        ("ControllerRegistration", "request"): ["controller_id", "listeners.host", "listeners.port"],
    }
)
APIS = [key_of(api) for api in ("Vote", "BeginQuorumEpoch", "DescribeQuorum", "ControllerRegistration")]
MOST = 10_000
"""Addresses, and statements about leaders."""


class Quorum:
    """While a capture is read."""

    def __init__(self) -> None:
        self.nodes: dict[str, int] = {}
        """By address."""
        self.leaders: set[tuple[int, int, int]] = set()
        """Time of a statement, epoch and leader; the first of each epoch and leader."""
        self.known: set[tuple[int, int]] = set()

    def learn(self, pairs: Exchanges, decoded: Decoded) -> None:
        there = {*kinds(decoded)}
        for api, side, path, column, listeners in LISTED:
            if (key_of(api), side) in there:
                tables = columns_of(decoded, api, ("request", "response")[side])
                for address, node in listed(tables[path], column, tables[listeners], by_row=bool(path)):
                    self.name(address, node)
        for api in NAMED:
            if (key_of(api), REQUEST) in there:
                header = columns_of(decoded, api, "request")[""]
                given = np.flatnonzero(header.present("voter_id") & (header["voter_id"] >= 0))
                for message, node in zip(
                    header.message[given].tolist(), header["voter_id"][given].tolist(), strict=True
                ):
                    self.name(str(pairs.connections[int(pairs.connection[message])].server), node)
        for api, side in LED:
            if (key_of(api), side) in there:
                self.learn_leaders(pairs, columns_of(decoded, api, ("request", "response")[side])[PARTITIONS])

    def name(self, address: str, node: int) -> None:
        if address in self.nodes or len(self.nodes) < MOST:
            self.nodes[address] = node

    def learn_leaders(self, pairs: Exchanges, rows: Table) -> None:
        columns = (pairs.ts_ns[rows.message], rows["leader_epoch"], rows["leader_id"])
        for time_ns, epoch, leader in zip(*(column.tolist() for column in columns), strict=True):
            if leader >= 0 and (epoch, leader) not in self.known and len(self.known) < MOST:
                self.known.add((epoch, leader))
                self.leaders.add((time_ns, epoch, leader))

    def leader(self, time_ns: int) -> int | None:
        """At a time; None where none is known."""
        found = [(epoch, leader) for at_ns, epoch, leader in self.leaders if at_ns <= time_ns]
        return max(found)[1] if found else None


def listed(nodes: Table, column: str, listeners: Table, *, by_row: bool) -> Iterator[tuple[str, int]]:
    """Addresses of listeners with their node, which is a row of the table around or of the message."""
    hosts, texts = listeners["host"].codes()
    of_message = {} if by_row else dict(zip(nodes.message.tolist(), nodes[column].tolist(), strict=True))
    rows = zip(hosts.tolist(), listeners["port"].tolist(), strict=True)
    for row, (host, port) in enumerate(rows):
        node = int(nodes[column][listeners.parent[row]]) if by_row else of_message[int(listeners.message[row])]
        if host >= 0:
            yield str(Peer(texts[host], port)), node
