"""Rows of the clients table and of the clusters table.

Rule: a client is a client ID at an address; one of two clusters has a row in each. Unauthenticated hosts are no
cluster.
"""

from collections.abc import Iterator
from itertools import groupby

from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.claims.claim import FIRST, LAST, Claim, Subject, every_run
from wirecheck.judge.results.result_table import ResultRow


def clients(subject: Subject, context: CheckContext) -> Iterator[ResultRow]:
    claims = context.believed(subject, "client", "software")
    by_cluster: dict[tuple[str, str | None], list[Claim]] = {}
    for claim in claims:
        for group, said in context.clusters.parts(claim):
            by_cluster.setdefault((group.key, group.cluster), []).append(said)
    for (key, cluster), told in sorted(by_cluster.items(), key=str):
        requests = [claim for claim in told if claim.kind == "client"]
        if not requests:
            continue
        software = max((claim for claim in told if claim.kind == "software"), key=lambda c: c.last, default=None)
        used: dict[str, set[int]] = {}
        for claim in requests:
            for word in claim.tally:
                api, _, version = word.rpartition(":")
                used.setdefault(api, set()).add(int(version))
        runs = [run for claim in requests for run in every_run(claim.runs)]
        times = [ts_ns for claim in requests for ts_ns in (claim.first.ts_ns, claim.last.ts_ns)]
        times += [ts_ns for run in runs for ts_ns in (run[FIRST], run[LAST])]
        body = {
            "withdrawn": False,
            "cluster": cluster,
            "client_id": subject[1] or None,
            "address": requests[0]["host"],
            "software_name": software["name"] if software else None,
            "software_version": software["version"] if software else None,
            "apis": [{"api": api, "versions": sorted(used[api])} for api in sorted(used)],
            "requests": sum(claim.count for claim in requests),
            "first_seen": min(times),
            "last_seen": max(times),
        }
        yield ResultRow("clients", "|".join((key, *subject[1:])), body)


def clusters(_servers: Subject, context: CheckContext) -> Iterator[ResultRow]:
    """One row per cluster; what could not be joined stands under the label's only one."""
    every = sorted((group for group in context.clusters.groups if not group.stranger), key=lambda group: group.key)
    for key, found in groupby(every, key=lambda group: group.key):
        groups = [*found]
        body = {
            "withdrawn": False,
            "cluster_id": next((group.cluster_id for group in groups if group.cluster_id), None),
            "endpoints": sorted({endpoint for group in groups for endpoint in group.endpoints}),
            "brokers": sorted({broker for group in groups for broker in group.brokers}),
            "first_seen": min(group.first_ns for group in groups),
            "last_seen": max(group.last_ns for group in groups),
        }
        yield ResultRow("clusters", key, body)
