"""The smallest set of connections that still proves something: few first, then more, then all.

A set is returned only after `proves` accepted it as a whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from wirecheck.capture.evidence.pcapng_export import Pair

TRIES = 16
"""So many times it is asked while the set is made smaller; finding a set that is enough is not bounded."""
Part = TypeVar("Part")


def enough(required: set[Pair], every: Mapping[Pair, int], proves: Callable[[set[Pair]], bool]) -> set[Pair] | None:
    """A small set of connections that proves it; None if not even all of them together do. `every`: all there are, with
    their bytes.
    """
    asked_for, *rings = around(required & set(every), every)
    taken = set(asked_for)  # shown in any case: they are what it is about
    if taken and proves(taken):
        return taken
    for ring in rings:
        if ring and proves(taken | set(ring)):
            return taken | smaller(taken, ring, proves)
        taken |= set(ring)
    return None


def around(required: set[Pair], every: Mapping[Pair, int]) -> list[list[Pair]]:
    """Connections in rings: those asked for, with the same server, with the same hosts, all; the small ones first."""
    ends = {end for pair in required for end in pair}
    hosts = {end.host for end in ends}
    rings: list[list[Pair]] = [[], [], [], []]
    for pair in sorted(every, key=lambda pair: (every[pair], pair)):
        near = [end.host in hosts for end in pair]
        ring = 0 if pair in required else 1 if ends & set(pair) else 2 if all(near) else 3
        rings[ring].append(pair)
    return rings


def smaller(
    kept: set[Part], extra: list[Part], proves: Callable[[set[Part]], bool], most_tries: int | None = None
) -> set[Part]:
    """What of `extra` is needed beside `kept`: parts are dropped, the last ones first, while it is still proven."""
    needed, part, tries = list(extra), -(-len(extra) // 2), 0
    while part:
        end = len(needed)
        while end > 0 and tries < (TRIES if most_tries is None else most_tries):
            without = needed[: max(0, end - part)] + needed[end:]
            tries += 1
            if (kept or without) and proves(kept | set(without)):
                needed = without
            end -= part
        part //= 2
    return set(needed)
