"""Who is behind the addresses of controllers, and who leads the quorum, as far as a capture shows it.

Nodes: the receiver that Vote and BeginQuorumEpoch name (since version 1), and the listeners of DescribeQuorum and of
ControllerRegistration. Leaders: what BeginQuorumEpoch and DescribeQuorum state. The greatest epoch so far counts.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from wirecheck.decode.api_names import key_of, name_of
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

LISTED = {
    ("DescribeQuorum", "response"): ("nodes", "node_id", "nodes.listeners"),
    ("ControllerRegistration", "request"): ("", "controller_id", "listeners"),
}
"""By API and side the table and the column of the node, and the table of its listeners."""
LED = (("BeginQuorumEpoch", "request"), ("DescribeQuorum", "response"))
NAMED = ("Vote", "BeginQuorumEpoch")
GRANTED = ("Vote", "BeginQuorumEpoch", "DescribeQuorum", "ControllerRegistration")
PARTITIONS = "topics.partitions"
PROJECTION = only(
    {
        ("Vote", "request"): ["voter_id"],
        **{(api, "response"): ["error_code"] for api in GRANTED},
        ("BeginQuorumEpoch", "request"): ["voter_id", f"{PARTITIONS}.leader_id", f"{PARTITIONS}.leader_epoch"],
        ("DescribeQuorum", "response"): [
            *("error_code", *(f"{PARTITIONS}.{name}" for name in ("leader_id", "leader_epoch"))),
            *("nodes.node_id", "nodes.listeners.host", "nodes.listeners.port"),
        ],
        ("ControllerRegistration", "request"): ["controller_id", "listeners.host", "listeners.port"],
    }
)
APIS = [*map(key_of, GRANTED)]
MOST = 10_000
"""Addresses, and statements about leaders."""


class Quorum:
    """While a capture is read. Any host can send such requests, and any server can answer its own client: what counts
    was granted, and between hosts that granted something to each other, up to the node in question.
    """

    def __init__(self) -> None:
        self.names: dict[tuple[str, str], tuple[int, int]] = {}
        """By address and by the host that shows it: when last, and the node."""
        self.leaders: set[tuple[int, int, int, str]] = set()
        """Time of a statement, epoch, leader and the host that makes it; the first of each epoch, leader and host."""
        self.known: set[tuple[int, int, str]] = set()
        self.links: dict[str, set[str]] = defaultdict(set)
        """By host those to which it granted something, and that granted it something."""

    def learn(self, pairs: Exchanges, decoded: Decoded) -> None:
        there = {*kinds(decoded)}
        answers = dict(zip(pairs.request.tolist(), pairs.response.tolist(), strict=True))
        for api in sorted({api for api, side in there if side == REQUEST} & {*map(key_of, GRANTED)}):
            if (api, RESPONSE) in there:
                of_api = columns_of(decoded, name_of(api), "response")[""]
                granted = {*of_api.message[of_api["error_code"] == 0].tolist()}
                self.learn_granted(pairs, decoded, name_of(api), {q for q, a in answers.items() if a in granted})

    def learn_granted(self, pairs: Exchanges, decoded: Decoded, api: str, requests: set[int]) -> None:
        """`requests`: the messages that were answered without an error."""
        answers = dict(zip(pairs.request.tolist(), pairs.response.tolist(), strict=True))
        messages = {*requests, *(answers[request] for request in requests)}
        for side in ("request", "response"):
            if (api, side) in LISTED:
                path, column, listeners = LISTED[api, side]
                tables = columns_of(decoded, api, side)
                for message, address, node in listed(tables[path], column, tables[listeners], by_row=bool(path)):
                    if message in messages:
                        self.name(address, node, pairs, message)
            if (api, side) in LED:
                self.learn_leaders(pairs, columns_of(decoded, api, side)[PARTITIONS], messages)
        if api in NAMED:
            header = columns_of(decoded, api, "request")[""]
            given = np.flatnonzero(header.present("voter_id") & (header["voter_id"] >= 0))
            for message, node in zip(header.message[given].tolist(), header["voter_id"][given].tolist(), strict=True):
                if message in messages:
                    ends = pairs.connections[int(pairs.connection[message])]
                    self.link(ends.client.host, ends.server.host)
                    self.name(str(ends.server), node, pairs, message)

    def name(self, address: str, node: int, pairs: Exchanges, message: int) -> None:
        place = address, pairs.connections[int(pairs.connection[message])].server.host
        if place in self.names or len(self.names) < MOST:
            self.names[place] = max(self.names.get(place, (0, 0)), (int(pairs.ts_ns[message]), node))

    def link(self, one: str, other: str) -> None:
        if len(self.links) < MOST:
            self.links[one].add(other)
            self.links[other].add(one)

    def learn_leaders(self, pairs: Exchanges, rows: Table, messages: set[int]) -> None:
        columns = (rows.message, rows["leader_epoch"], rows["leader_id"])
        for message, epoch, leader in zip(*(column.tolist() for column in columns), strict=True):
            host = pairs.connections[int(pairs.connection[message])].server.host
            new = message in messages and (epoch, leader, host) not in self.known
            if new and leader >= 0 and len(self.known) < MOST:
                self.known.add((epoch, leader, host))
                self.leaders.add((int(pairs.ts_ns[message]), epoch, leader, host))

    def hosts(self, server: str) -> set[str]:
        """Those that a server's host is linked with, and itself."""
        found, new = set[str](), {Peer.of(server).host}
        while new:
            found |= new
            new = set[str]().union(*(self.links.get(host, ()) for host in new)) - found
        return found

    def node(self, server: str) -> int | None:
        """At an address, by what was shown last."""
        shown = (self.names.get((server, host)) for host in self.hosts(server))
        return max((one for one in shown if one is not None), default=(0, None))[1]

    def leader(self, server: str, time_ns: int) -> int | None:
        """Of the quorum that a server is of, at a time; None where none is known."""
        hosts = self.hosts(server)
        found = [(epoch, leader) for at_ns, epoch, leader, host in self.leaders if at_ns <= time_ns and host in hosts]
        return max(found)[1] if found else None


def listed(nodes: Table, column: str, listeners: Table, *, by_row: bool) -> Iterator[tuple[int, str, int]]:
    """Messages, addresses of listeners and their node, which is a row of the table around or of the message."""
    hosts, texts = listeners["host"].codes()
    of_message = {} if by_row else dict(zip(nodes.message.tolist(), nodes[column].tolist(), strict=True))
    rows = zip(hosts.tolist(), listeners["port"].tolist(), strict=True)
    for row, (host, port) in enumerate(rows):
        node = int(nodes[column][listeners.parent[row]]) if by_row else of_message[int(listeners.message[row])]
        if host >= 0:
            yield int(listeners.message[row]), str(Peer(texts[host], port)), node
