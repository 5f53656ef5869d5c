"""What has to be learned from a capture while it is read, to find the messages that a filter selects.

Most messages since Kafka 3.1 name a topic by its ID, and other messages map the ID to the name. A frame number means
one packet, which belongs to one direction of one connection. An ID gets a name only if one row had both; a recreated
topic has several IDs.
"""

from __future__ import annotations

import base64
from collections import Counter, defaultdict
from contextlib import suppress
from functools import cache
from ipaddress import ip_address
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wirecheck.decode.columns import kinds, tables
from wirecheck.decode.connection.segments import FRAME
from wirecheck.decode.layouts.form import Kind
from wirecheck.decode.layouts.layout import SIDES
from wirecheck.decode.layouts.program import form
from wirecheck.decode.nested import id_text
from wirecheck.decode.peer import Peer
from wirecheck.decode.texts import id_codes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from wirecheck.decode.columns import Table
    from wirecheck.decode.connection.exchanges import Exchanges
    from wirecheck.decode.message import Decoded

CALLED = ("name", "topic_name", "topic")  # what Kafka calls the field that stands beside a topic_id
FIXED_IDS = {"__cluster_metadata": "AAAAAAAAAAAAAAAAAAAAAQ"}  # Uuid.METADATA_TOPIC_ID: no message contains its name
NO_ID = "A" * 22
MOST_LISTS = 1_000
MOST_CLUSTERS = 8  # of one server, or of one host
MOST_SERVERS = 64  # that give one address one ID
MOST_NAMES = 200_000  # of IDs besides Kafka's own, as hostile traffic can invent them; others stay without a name


METADATA, RESPONSE = 3, 1


class Packet(NamedTuple):
    """A frame that was asked for."""

    src: str
    dst: str
    payload_bytes: int


Places = dict[tuple[str, int], Packet]
"""By source and frame number."""


class Names:
    """The texts that mean a topic: as it was asked for, and the ids that messages give to this name."""

    def __init__(self, asked: frozenset[str]) -> None:
        self._asked = asked
        self.texts = asked | {FIXED_IDS[name] for name in asked & FIXED_IDS.keys()}

    def learn(self, decoded: Decoded) -> None:
        if not self._asked:
            return
        for ids_there, codes, texts, _ in named(decoded):
            mine = np.isin(codes, [code for code, text in enumerate(texts) if text in self._asked])
            self.texts |= ids(ids_there[mine])


class TopicNames(dict[bytes, str]):
    """Names of topic IDs (16 bytes), as messages stated them so far, and the one that Kafka reserves."""

    def __init__(self) -> None:
        super().__init__({base64.urlsafe_b64decode(f"{topic_id}=="): name for name, topic_id in FIXED_IDS.items()})

    def learn(self, decoded: Decoded) -> None:
        for ids_there, codes, texts, _ in named(decoded):
            by_id, unique = id_codes(ids_there)
            there = np.flatnonzero(codes >= 0)
            pairs = np.unique(np.stack([by_id[there], codes[there]], axis=1), axis=0)
            for topic_id, code in pairs.tolist():
                if texts[code] and len(self) <= MOST_NAMES:
                    self[unique[topic_id].tobytes()] = texts[code]


class Brokers(dict[str, int]):
    """Broker IDs by address, as Metadata answers named them so far: the ID that its own server states, else the one
    that servers on most hosts state. Any server can name any address.
    """

    def __init__(self) -> None:
        super().__init__()
        self.stated: dict[str, dict[int, set[str]]] = {}
        """By address the IDs that answers give it, and the servers that do."""
        self.lists: set[frozenset[tuple[str, int]]] = set()
        """Different lists of brokers, each with addresses and IDs."""
        self.shared: set[str] = set()
        """Addresses that one list gives to several brokers: a proxy's."""
        self.clusters: dict[str, set[str]] = {}
        """By server the cluster IDs that it states."""
        self.clusters_at: dict[str, set[str]] = {}
        """By host the cluster IDs of its servers, and of those that list it as a broker's."""

    def learn(self, exchanges: Exchanges, decoded: Decoded) -> None:
        """Of their messages, decoded."""
        if (METADATA, RESPONSE) in kinds(decoded):
            self.learn_answers(exchanges, tables(decoded, METADATA, SIDES[RESPONSE]))

    def learn_answers(self, exchanges: Exchanges, tables: Mapping[str, Table]) -> None:
        """Metadata answers, with whose they are."""
        header, brokers = tables[""], tables["brokers"]
        of = {at: str(exchanges.connections[exchanges.connection[at]].server) for at in set(brokers.message.tolist())}
        self.learn_rows(brokers, of)
        codes, texts = header["cluster_id"].codes()
        known = codes >= 0
        pairs = np.stack([exchanges.connection[header.message[known]], codes[known]], axis=1)
        for connection, code in np.unique(pairs, axis=0).tolist():
            server = exchanges.connections[connection].server
            if texts[code]:
                self.learn_cluster(texts[code], [str(server)], [server.host])
        stated = dict(zip(header.message[known].tolist(), codes[known].tolist(), strict=True))
        hosts, names = brokers["host"].codes()
        rows = zip(brokers.message.tolist(), hosts.tolist(), strict=True)
        for code, host in {(stated.get(message, -1), host) for message, host in rows}:
            if code >= 0 and host >= 0 and texts[code]:
                self.learn_cluster(texts[code], (), [names[host]])

    def learn_cluster(self, cluster_id: str, servers: Iterable[str], hosts: Iterable[str]) -> None:
        """What servers state, and what is on hosts."""
        for known, ends in ((self.clusters, servers), (self.clusters_at, hosts)):
            for end in ends:
                if (end in known or len(known) < MOST_NAMES) and len(known.get(end, ())) < MOST_CLUSTERS:
                    known.setdefault(end, set()).add(cluster_id)

    def cluster_of(self, servers: Iterable[str]) -> str | None:
        """The cluster ID that all of these servers state, or that is stated of their hosts; None where that is not
        known of one of them, or where they differ.
        """
        known = (self.clusters.get(one) or self.clusters_at.get(Peer.of(one).host) or () for one in servers)
        found = {frozenset(ids) for ids in known}
        each = [*found.pop()] if len(found) == 1 else []
        return each[0] if len(each) == 1 else None

    def learn_rows(self, brokers: Table, servers: Mapping[int, str]) -> None:
        """`brokers` of Metadata answers, and which server gave each."""
        hosts, texts = brokers["host"].codes()
        listed: dict[int, list[tuple[str, int]]] = defaultdict(list)
        columns = brokers.message, brokers["node_id"], hosts, brokers["port"]
        for message, node, host, port in zip(*(column.tolist() for column in columns), strict=True):
            if host < 0:  # not captured whole
                continue
            address = str(Peer(texts[host], port))
            listed[message].append((address, node))
            self.learn_address(address, node, servers.get(message, ""))
        for one in {*map(frozenset, listed.values())} - self.lists if len(self.lists) < MOST_LISTS else ():
            self.lists.add(one)
            counts = Counter(address for address, _ in one)
            self.shared |= {address for address, count in counts.items() if count > 1}

    def learn_address(self, address: str, node: int, server: str) -> None:
        if address not in self.stated and len(self.stated) >= MOST_NAMES:
            return
        stated = self.stated.setdefault(address, {})
        if node not in stated and len(stated) >= MOST_CLUSTERS and server != address:
            return
        by = stated.setdefault(node, set())
        if server not in by and (len(by) < MOST_SERVERS or server == address):
            by.add(server)
            hosts = {each: len({Peer.of(one).host for one in found if one}) for each, found in stated.items()}
            self[address] = max(stated, key=lambda each: (address in stated[each], hosts[each], -each))

    def member_hosts(self) -> set[str]:
        """Hosts of brokers: of those that servers on most other hosts name, or that one named first, and of all whom
        these name in turn. Empty where none is known, or one by its name alone, which may be at any address.
        """
        naming: dict[str, set[str]] = defaultdict(set)
        others: dict[str, set[str]] = defaultdict(set)
        for address, stated in self.stated.items():
            host = Peer.of(address).host
            for server in set().union(*stated.values()):
                naming[Peer.of(server).host].add(host)
                others[host] |= {Peer.of(server).host} - {host}
        most = max(map(len, others.values()), default=0)
        found, members = {host for host, by in others.items() if len(by) == most}, set[str]()
        found |= {*islice((host for host, by in others.items() if by), 1)}
        while found:
            members |= found
            found = set().union(*(naming[host] for host in found)) - members
        return members if all(map(is_address, members)) else set()

    def apart(self, one: str, other: str) -> bool:
        """Whether a list has two addresses as those of different brokers, or they state different clusters."""
        if are_different(self.clusters.get(one), self.clusters.get(other)):
            return True
        found = ([{node for address, node in each if address == end} for end in (one, other)] for each in self.lists)
        return any(mine and others and mine.isdisjoint(others) for mine, others in found)

    def named(self, server: str) -> str:
        """ID of the broker at an address, or the address where nothing named it. An address that one list gives to
        several brokers is a proxy's.
        """
        return str(self[server]) if server in self and server not in self.shared else server

    def at_host(self, host: str) -> str:
        """ID of the only broker on a host, or the host."""
        nodes = {node for address, node in self.items() if Peer.of(address).host == host and address not in self.shared}
        return str(*nodes) if len(nodes) == 1 else host


def is_address(host: str) -> bool:
    with suppress(ValueError):
        return bool(ip_address(host))
    return False


def are_different(one: set[str] | None, other: set[str] | None) -> bool:
    """Whether two sets of cluster IDs are known, and have none in common."""
    return bool(one and other and one.isdisjoint(other))


def named(decoded: Decoded) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.int32], list[str], NDArray[np.int64]]]:
    """Of every table whose rows say an id and a name: the ids, codes of the names (-1 for null), the names, and in
    which message each row is.
    """
    for key, side in kinds(decoded):
        for path, name in naming(key, side):
            table = tables(decoded, key, SIDES[side])[path]
            yield table["topic_id"], *table[name].codes(), table.message


@cache
def naming(key: int, side: int) -> tuple[tuple[str, str], ...]:
    """Tables of a message kind that say a topic's name and id in one row, each with the name of its name."""
    slots = {path: slot.children for path, slot in form(key, SIDES[side]).tables.items()}
    return tuple(
        (path, name)
        for path, children in slots.items()
        for name in CALLED
        if any(child.kind == Kind.UUID and child.path.endswith("topic_id") for child in children.values())
        and any(child.kind == Kind.TEXT and child.path == f"{path}.{name}" for child in children.values())
    )


def ids(rows: NDArray[np.uint8]) -> frozenset[str]:
    """Ids as Kafka prints them; the one that means none is none."""
    texts = {id_text(row.tobytes()) for row in np.unique(rows, axis=0)}
    return frozenset(texts - {NO_ID})


def noting(frames: Iterable[pa.Table], numbers: tuple[int, ...], places: Places) -> Iterator[pa.Table]:
    """The same tables; which way the frames of these numbers went is noted in `places`."""
    for table in frames:
        if numbers:
            is_asked = pc.is_in(table["frame_no"], pa.array(numbers, pa.int64()))
            for row in table.filter(pc.and_(is_asked, pc.equal(table["kind"], FRAME))).to_pylist():
                ends = str(Peer(row["src_ip"], row["src_port"])), str(Peer(row["dst_ip"], row["dst_port"]))
                places[row["source"], row["frame_no"]] = Packet(*ends, row["payload_len"])
        yield table
