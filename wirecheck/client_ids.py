"""Client IDs of brokers' and controllers' own requests.

Rule: a client ID proves nothing. Whether a host is the broker that it names is asked elsewhere (`acts_as`).
"""

import re
from functools import lru_cache

HIGHEST_ID = (1 << 31) - 1
OWN = re.compile(r"(?:broker-(?=\d+-fetcher-))?(\d{1,10})(?:-fetcher-\d+)?", re.ASCII)
"""ReplicaFetcherManager, NodeToControllerChannelManager."""
NODES = r"(?:raft|Persister|AddPartitionsManager|NetworkPartitionMetadataClient)-client-\d+"
"""KafkaRaftManager; as in captures of Kafka 4.3 also the clients by which coordinators ask other brokers."""
RAFT = re.compile(NODES, re.ASCII)
TO_BROKERS = re.compile(rf"broker-\d+-.*|{NODES}", re.DOTALL)
"""Of connections to other brokers: fetchers, transaction markers, raft."""


def broker_of(client_id: str | None) -> int | None:
    match = OWN.fullmatch(client_id or "")
    return int(match[1]) if match and int(match[1]) <= HIGHEST_ID else None


@lru_cache(maxsize=1 << 10)
def is_internal(client_id: str | None) -> bool:
    return broker_of(client_id) is not None or RAFT.fullmatch(client_id or "") is not None


@lru_cache(maxsize=1 << 10)
def is_of_node(client_id: str | None) -> bool:
    """Also of connections to other brokers for transactions and controllers."""
    return is_internal(client_id) or TO_BROKERS.fullmatch(client_id or "") is not None
