"""Bounded sets inside claims: what a client keeps requesting, without one claim per client and partition.

Rule: which members are kept depends on the members alone, so sets merge in any order. Of a full set it is unknown
whether a member greater than its greatest one was in it.
"""

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wirecheck.decode.columns import Table
from wirecheck.decode.forwarding import mixed
from wirecheck.judge.claims.batch import numbered
from wirecheck.judge.claims.claim import LEAST, MOST_MEMBERS, Claim
from wirecheck.judge.claims.reduce import Column, Ints, Rows, Sightings, grouped, reduced, texts

Hashes = NDArray[np.uint64]
DIGITS = 16
Values = Callable[[Ints], list[Any]]
"""What a set keeps with its members, by row."""


def label_of(table: Table, name: str) -> Column:
    """Per topic its name, or its id in versions that carry no names; a draft may carry both, and on one side only."""
    by_id, by_name = numbered(table), texts(table[name])
    names, ids = list(by_name.values or ()), list(by_id.values or ())
    numbers = np.where(table.present(name), by_name.codes % len(names), by_id.codes % len(ids) + len(names))
    return Column(numbers, [*names, *ids])


def hashed(labels: Column) -> Hashes:
    """Of each label 64 bits that are the same everywhere and always."""
    unique = [hashlib.blake2b(str(v).encode(), digest_size=8).digest() for v in labels.values or ()]
    return np.frombuffer(b"".join(unique), ">u8").astype(np.uint64)[labels.codes]


def of_partition(topic: Hashes, partition: Ints) -> Hashes:
    return mixed(topic + mixed(partition.astype(np.uint64) + np.uint64(1)))


def named(hashes: Hashes, prefix: str = LEAST) -> list[str]:
    """One text for each member, in however many sets it is."""
    different, which = np.unique(hashes, return_inverse=True)
    names = [f"{prefix}{value:0{DIGITS}x}" for value in different.tolist()]
    return [names[number] for number in which.tolist()]


def sets(
    rows: Rows, members: Rows, hashes: Hashes, sightings: Sightings, values: Values, *, prefix: str = LEAST
) -> Iterator[Claim]:
    """One claim per key of `rows`, with the least members that `members` gives to the same key; of a member that comes
    again the latest row's value.
    """
    found = {claim.key: claim for claim in reduced(rows, sightings)}
    if len(members.message):
        group, sample = grouped(members.key)
        owners = [found.get(key) for key in zip(*(column.at(sample) for column in members.key), strict=True)]
        kept = least(group, hashes, sightings.rank[members.message])
        for owner, name, value in zip(group[kept].tolist(), named(hashes[kept], prefix), values(kept), strict=True):
            if (claim := owners[owner]) is not None:
                claim.peak[name] = value
    yield from found.values()


def least(group: Ints, hashes: Hashes, rank: Ints) -> Ints:
    """The latest rows of the least members of each group."""
    order = np.lexsort((-rank, hashes, group))
    sorted_group, sorted_hash = group[order], hashes[order]
    new = np.ones(len(order), np.bool_)
    new[1:] = (np.diff(sorted_group) != 0) | (sorted_hash[1:] != sorted_hash[:-1])
    number = np.cumsum(new)
    begins = np.flatnonzero(np.append(True, np.diff(sorted_group) != 0))
    within: Ints = number - np.repeat(number[begins], np.diff(np.append(begins, len(order))))
    rows: Ints = order[new & (within < MOST_MEMBERS)]
    return rows
