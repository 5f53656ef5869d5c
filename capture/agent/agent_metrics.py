"""The agent's counts as Prometheus metrics.

Base units, one prefix; labels come from closed sets (interfaces, reasons), never from addresses or topics.
"""

from __future__ import annotations

import time
from contextlib import ExitStack, contextmanager
from functools import partial
from http import HTTPStatus
from importlib.metadata import version
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

from wirecheck import extension_modules
from wirecheck.capture.agent.counts import DISK, KERNEL, ROLL_SECONDS, Counts, TlsCounts
from wirecheck.http_server import Answer, Route, metrics, serving, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prometheus_client.metrics_core import Metric

    from wirecheck.capture.agent.spool_folder import Backlog

PREFIX = "wirecheck_agent_"
HANGS_S = 60.0
"""The loop that empties the rings runs several times a second."""


class AgentCollector:
    """One agent's metrics, computed for each scrape."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts

    def collect(self) -> Iterator[Metric]:
        counts = self._counts
        yield _counter("frames", "TCP segments seen.", ["interface"], _by_name(counts.frames))
        yield _counter("bytes", "Payload of the TCP segments seen.", ["interface"], _by_name(counts.payload_bytes))
        yield _counter("kept_frames", "TCP segments in files that readers can see.", [], [((), counts.kept_frames)])
        yield _counter(
            "left_out_bytes",
            "Payload bytes that were redacted, by reason.",
            ["reason"],
            _by_name(counts.left_out_bytes),
        )
        lost = {(name, who): 0 for name in dict(counts.frames) for who in (KERNEL, DISK)} | dict(counts.lost)
        yield _counter("lost_frames", "Packets lost, by reason.", ["interface", "reason"], list(lost.items()))
        skipped = _by_name(counts.skipped)
        yield _counter(
            "skipped_frames",
            "Packets that are not readable TCP segments, or copies before or after NAT.",
            ["reason"],
            skipped,
        )
        yield _counter("files", "Files written since the agent started.", [], [((), counts.files)])
        fill = _by_name(counts.ring_fill)
        yield _gauge("ring_fill_ratio", "Largest recent share of the ring buffer that was in use.", ["interface"], fill)
        yield _gauge("connections", "Connections followed to redact records.", [], [((), counts.connections)])
        yield _gauge("disk_bytes", "Size of all files of this agent.", [], [((), counts.disk_bytes)])
        if counts.tls is not None:
            yield from self._tls(counts.tls)
        if counts.backlog is not None:
            yield from self._shipping(counts.backlog())
        last = [((), counts.last_frame_ns / 1e9)]
        yield _gauge("last_frame_timestamp_seconds", "Time of the last TCP segment; 0 before the first.", [], last)
        yield _gauge("build_info", "1, labelled with the version.", ["version"], [((version("wirecheck"),), 1)])
        yield _gauge(
            "compiled",
            "1 if its code is compiled, 0 if it runs as plain Python.",
            [],
            [((), 0 if extension_modules.PLAIN else 1)],
        )
        yield self._rolls()

    def _tls(self, tls: TlsCounts) -> Iterator[Metric]:
        outcomes = {"decrypted": tls.decrypted, "without_keys": tls.without_keys, "failed": tls.failed}
        yield _counter("tls_connections", "TLS connections by outcome.", ["outcome"], _by_name(outcomes))
        lines = {"secret": tls.secrets, "strange": tls.strange}
        yield _counter("key_log_lines", "Lines of the key logs by kind.", ["kind"], _by_name(lines))
        yield _gauge("key_logs_unreadable", "Key logs that are unreadable now.", [], [((), tls.unreadable)])

    def _shipping(self, backlog: Backlog) -> Iterator[Metric]:
        counts = self._counts
        yield _counter("shipped_files", "Files shipped since the agent started.", [], [((), counts.shipped_files)])
        yield _counter("shipped_bytes", "Bytes shipped since the agent started.", [], [((), counts.shipped_bytes)])
        yield _counter("ship_failures", "Failed attempts to ship a file.", [], [((), counts.ship_failures)])
        yield _gauge("backlog_files", "Files that wait to be shipped.", [], [((), backlog.files)])
        oldest = "When the oldest file that waits to be shipped was written; 0 if none waits."
        yield _gauge("backlog_oldest_timestamp_seconds", oldest, [], [((), backlog.oldest_s)])

    def _rolls(self) -> Metric:
        counts, upto = list(self._counts.rolls.counts), 0
        buckets = []
        for bound, count in zip([*map(str, ROLL_SECONDS), "+Inf"], counts, strict=True):
            upto += count
            buckets.append((bound, upto))
        family = HistogramMetricFamily(f"{PREFIX}file_roll_seconds", "Time to write and publish a file.")
        family.add_metric([], buckets, self._counts.rolls.seconds)
        return family


Sample = tuple[tuple[str, ...], float]


def _by_name(counts: dict[str, int] | dict[str, float]) -> Sequence[Sample]:
    return [((name,), n) for name, n in dict(counts).items()]


def _family(
    kind: type[CounterMetricFamily | GaugeMetricFamily],
    name: str,
    text: str,
    labels: list[str],
    samples: Sequence[Sample],
) -> Metric:
    family = kind(PREFIX + name, text, labels=labels)
    for values, n in samples:
        family.add_metric(values, n)
    return family


_counter, _gauge = partial(_family, CounterMetricFamily), partial(_family, GaugeMetricFamily)


@contextmanager
def served(counts: Counts, address: str, port: int) -> Iterator[int]:
    """Answer /metrics and /-/healthy meanwhile; yields the port. Raises OSError where it cannot listen there."""
    registry = CollectorRegistry()
    registry.register(AgentCollector(counts))
    with ExitStack() as stack:
        try:
            listening = stack.enter_context(serving(routes(registry, counts), address, port))
        except OSError as error:
            raise OSError(error.errno, error.strerror, f"{address}:{port}") from error
        yield listening


def routes(registry: CollectorRegistry, counts: Counts) -> dict[str, Route]:
    return {"/metrics": metrics(registry), "/-/healthy": Route(lambda _: health(counts), slow=False)}


def health(counts: Counts) -> Answer:
    idle_s = time.monotonic() - counts.alive_s
    if idle_s > HANGS_S:
        return text(f"the capture loop has not run for {idle_s:.0f} s", HTTPStatus.SERVICE_UNAVAILABLE)
    return text("ok")
