"""What the monitor measures: every metric's name, type, labels and sentence, and how time is put into bounds.

Knows: names and units by Prometheus' rules. Knows nothing of its client library (`metrics_page.py`) or of values.
Rule: a name, its labels and its meaning are final; labels come from closed sets, but for `finding_info`, which has few
series (`story/worst_findings.py`). docs/metrics.md is made from METRICS.
"""

from bisect import bisect_left
from dataclasses import dataclass, field

PREFIX = "wirecheck_"
SECONDS = (0.5, 1.0, 2.0, 3.0, 5.0, 7.5, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0)
TICK_NS = 100_000_000
"""Capture time is observed in tenths of a second."""
Labels = tuple[str, ...]


@dataclass(frozen=True)
class Named:
    """One metric: its name without prefix, as Prometheus shows it."""

    name: str
    kind: str
    labels: Labels
    meaning: str


CLUSTER = ("cluster",)
METRICS = (
    Named("frames_total", "counter", CLUSTER, "Frames (TCP segments) judged."),
    Named("dropped_frames_total", "counter", CLUSTER, "Packets that agents say were lost before they saw them."),
    Named("skipped_frames_total", "counter", CLUSTER, "Packets that are no TCP segments an agent can read."),
    Named("unseen_bytes_total", "counter", CLUSTER, "Bytes of connections that were on the wire and not captured."),
    Named("input_errors_total", "counter", CLUSTER, "Inputs that could not be read to their end."),
    Named("quarantined_files_total", "counter", CLUSTER, "Frames files set aside: not readable, or come too late."),
    Named(
        "late_frames_total",
        "counter",
        ("cluster", "agent"),
        "Frames that an agent brought when their connection had settled: counted, and not judged again.",
    ),
    Named(
        "connections_total",
        "counter",
        ("cluster", "transport"),
        "Connections by what they turned out to carry: plaintext (Kafka), encrypted (TLS), other.",
    ),
    Named("exchanges_total", "counter", ("cluster", "api", "version"), "Exchanges by api and request version."),
    Named("messages_total", "counter", ("cluster", "outcome"), "Messages by outcome: decoded, undecoded or malformed."),
    Named("undecoded_messages_total", "counter", ("cluster", "reason"), "Messages that were not decoded, by reason."),
    Named(
        "findings",
        "gauge",
        ("cluster", "code", "kind", "role"),
        "Open findings, by check and by their relation to others.",
    ),
    Named(
        "finding_info",
        "gauge",
        ("cluster", "code", "kind", "topic", "broker", "id", "sentence"),
        "1 for each of the worst open findings, 50 at most, with topic and brokers. For root causes, `sentence` "
        "describes the event and the affected topics.",
    ),
    Named("finding_revisions_total", "counter", ("cluster", "code", "kind"), "New and changed findings."),
    Named("check_failures_total", "counter", ("cluster", "check"), "Times a check, or a step, could not be judged."),
    Named("topics", "gauge", ("cluster", "state"), "Topics by state: current, replaced, deleted or unresolved."),
    Named("topics_recreated_total", "counter", CLUSTER, "Topic IDs that were replaced by another of the same name."),
    Named("clients", "gauge", CLUSTER, "Clients (client ID at an address) seen."),
    Named("clients_on_removed_versions", "gauge", CLUSTER, "Clients that send versions Kafka 4.0 has removed."),
    Named(
        "others",
        "gauge",
        ("cluster", "table"),
        "Topics, clients and findings that were seen beyond the bounds and are not kept, by table.",
    ),
    Named(
        "evicted_total",
        "counter",
        ("cluster", "space"),
        "Subjects, or claims about one, that were evicted from memory by its bounds: name and ID of topics, client, "
        "link (connections of an endpoint), follower (a broker that fetches), server, wire, agent.",
    ),
    Named("judged_lag_seconds", "gauge", CLUSTER, "From the capture time of the newest judged frame to now."),
    Named(
        "frame_to_judged_seconds",
        "histogram",
        CLUSTER,
        "From capture to judgement, once per tenth of a second of capture time and agent.",
    ),
    Named("agent_judged_timestamp_seconds", "gauge", ("cluster", "agent"), "Capture time up to which it is judged."),
    Named("batch_duration_seconds", "histogram", (), "Wall time of a batch."),
    Named("last_batch_timestamp_seconds", "gauge", (), "When the last batch was written."),
    Named("backlog_files", "gauge", (), "Frames files that are not judged yet."),
    Named("backlog_bytes", "gauge", (), "Size of these files."),
    Named(
        "disk_free_bytes", "gauge", ("place",), "Room where frames, tables (out) and checkpoint lie, if on local disks."
    ),
    Named("disk_size_bytes", "gauge", ("place",), "Size of these file systems."),
    Named("state_bytes", "gauge", ("step",), "Memory of the state stores, by step: follow or judge."),
    Named(
        "task_cpu_seconds",
        "gauge",
        ("step", "task"),
        "CPU seconds of Python in the last batch, by stateful step: of its most loaded task (`most_loaded`), and of "
        "all its tasks together (`all`).",
    ),
    Named(
        "compiled",
        "gauge",
        (),
        "1 where the driver's code is compiled, 0 where plain source runs, tens of times slower.",
    ),
    Named("build_info", "info", (), "The version at work."),
)


@dataclass
class Histogram:
    """Counts by upper bound in seconds; of this process, as batches are told to it."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(SECONDS) + 1))
    seconds: float = 0.0

    def observe(self, seconds: float) -> None:
        self.counts[bisect_left(SECONDS, seconds)] += 1
        self.seconds += seconds

    def observe_ticks(self, from_ns: int, to_ns: int, now_ns: int) -> None:
        """Each tick of capture time in (from, to], as old as it is now; as many per bound as fit, not one by one."""
        first, last = from_ns // TICK_NS + 1, to_ns // TICK_NS
        if last < first:
            return
        ages = [now_ns - round(bound * 1e9) for bound in SECONDS]  # a tick not before this is within the bound
        within = [max(0, last - max(first, -(-edge // TICK_NS)) + 1) for edge in ages]
        edges = [0, *within, last - first + 1]
        for index in range(len(self.counts)):
            self.counts[index] += edges[index + 1] - edges[index]
        middle_ns = (first + last) * TICK_NS / 2
        self.seconds += (now_ns - middle_ns) / 1e9 * (last - first + 1)

    def buckets(self) -> list[tuple[str, float]]:
        shown, sum_so_far = [], 0
        for bound, count in zip([*map(str, SECONDS), "+Inf"], self.counts, strict=True):
            sum_so_far += count
            shown.append((bound, float(sum_so_far)))
        return shown


def document() -> str:
    """docs/metrics.md: what the monitor exports."""
    rows = [
        f"| `{PREFIX}{one.name}` | {one.kind} | {', '.join(f'`{label}`' for label in one.labels)} | {one.meaning} |"
        for one in METRICS
    ]
    return "\n".join([HEAD, "| name | type | labels | meaning |", "|---|---|---|---|", *rows, TAIL])


HEAD = """# Metrics of the monitor

`make docs` generates this page from `streaming/run/metric_catalogue.py`. `wirecheck monitor
--metrics-port P` serves the metrics at `/metrics`. For the agent's metrics, see
[agent-reference.md](agent-reference.md#metrics).
"""
TAIL = """
| label | values |
|---|---|
| `cluster` | the agent's cluster label |
| `api`, `version` | as in Kafka's layouts; `other` if unknown |
| `code`, `kind` | as in [CHECKS.md](../CHECKS.md) |
| `check` | a code, or a step: `filing`, `snapshots`, `clusters`, `strangers`, `ageing`, `sorting`, a table, `rows` |
| `role` | `cause`, `consequence`, `after_event` (follows from a milder finding) or `alone` |

Alerts exclude consequences. No label contains a client ID, a topic or an address, except those of
`wirecheck_finding_info`.

Counters are totals that the checkpoint stores and each batch writes (table `totals`). They continue
across restarts, and a repeated batch counts once. The two histograms restart with the process.
"""
