"""Records that a group reads a second time, because it was set back: by a tool, or as its commits were lost.

Rule: only what the group had committed counts, since what was fetched alone may not have been handled; and only if a
member gets the lower offset and reads on. What it had never read is not read again.
"""

from wirecheck.judge.checks.progress import Log, Reader, by_slot, shared_by


def read_again(mine: list[Reader], partition: int, log: Log) -> range:
    """The offsets of a partition that the groups of a reader had committed, and that it reads again."""
    found = [again for one in mine if log.is_now(one) for reads in groups_of(one, log)
             if (again := of_group(one, reads, partition, log))]  # fmt: skip
    return max(found, key=len, default=range(0))


def groups_of(one: Reader, log: Log) -> list[str]:
    return sorted(str(name) for kind, name in shared_by(one, log) if kind == "group")


def of_group(one: Reader, reads: str, partition: int, log: Log) -> range:
    """From where the group was set back to, or from the first record that any of its members had read."""
    done = log.since_born(log.current_of("committed", partition, reads))
    given = log.current_of("restored", partition, reads)
    for slot, offset in by_slot(claim for claim in given if (claim["client_id"], claim["host"]) == one.who):
        before = max((committed for at, committed in done if at < slot), default=0)
        if offset >= before or all(at < slot for at, _ in one.times):
            continue
        every = (other for other in log.readers_now(partition) if log.is_now(other))
        began = min(other.first[1] for other in every if reads in groups_of(other, log))
        return range(max(offset, began), min(before, one.last[1]))
    return range(0)
