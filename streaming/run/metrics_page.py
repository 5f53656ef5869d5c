"""The monitor's metrics: rows of result tables as Prometheus samples.

Counters are totals committed with a batch, so that a repeated batch or a restart changes nothing.
"""

import math
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from itertools import accumulate
from shutil import disk_usage
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from wirecheck import extension_modules
from wirecheck.judge.checks.catalogue import CHECKS
from wirecheck.judge.results import open_lags, open_rows
from wirecheck.judge.results.result_table import rows_of
from wirecheck.story import worst_findings
from wirecheck.story.expectations import Expectation
from wirecheck.story.worst_findings import ALONE
from wirecheck.streaming.run.metric_catalogue import METRICS, PREFIX, Histogram, Labels, Named
from wirecheck.streaming.run.open_cards import OpenCards
from wirecheck.streaming.run.plan import Line
from wirecheck.streaming.steps.request_counts import BOUNDS_US, MOST_BROKERS, OTHER, SERVER_ERRORS, SERVERS
from wirecheck.streaming.store.result_tables import BROKER_AT
from wirecheck.streaming.store.run_result import is_withdrawn

if TYPE_CHECKING:
    from pathlib import Path

Samples = dict[Labels, float]
COUNTED = ("findings", "topics", "clients", "activities")
"""Tables whose rows are counted."""
SHOWN = (*COUNTED, "harms", "lags", "totals")
"""Tables that a page is made of, `Page.take`: after a restart they are read back."""
SLOW_S = 60.0
"""A batch that runs for so long is said, and again when it has run twice as long."""
HANGS_S = 900
"""A batch that runs for longer hangs: the largest there are take a minute, a first start that compiles three."""


@dataclass(frozen=True)
class Query:
    """Measures of the query, after a batch or between two."""

    state_bytes: Mapping[str, int]
    backlog_files: int = 0
    backlog_bytes: int = 0


class JudgedAgent(NamedTuple):
    """An agent, and the capture time up to which its frames are judged."""

    cluster: str
    name: str
    judged_ns: int


class Page(Collector):
    """All of it, from batches (`take`) and what the query reports (`update`). Threads may scrape meanwhile."""

    def __init__(self, url: str = "", *, principals: bool = True, expect: Sequence[Expectation] = ()) -> None:
        self.lock = Lock()
        self.url = url
        """Under which address others reach the monitor."""
        self.cards = OpenCards(principals=principals, expect=expect)
        self.totals: dict[tuple[str, str, str], int] = {}
        """(label, measure, detail) to count."""
        self.open: dict[str, dict[str, tuple[str, ...]]] = {table: {} for table in COUNTED}
        """Per table the rows that stand, by label and id: what they count as."""
        self.shown: dict[str, worst_findings.Open] = {}
        """Of findings that stand what names them, by label and id."""
        self.lags: dict[str, open_lags.OpenLag] = {}
        """Of groups, by label and id."""
        self.others: dict[str, tuple[Labels, int]] = {}
        """By label and id the rows `others`: label and table, and how many more each counts."""
        self.once: dict[str, set[Labels]] = {table: set() for table in COUNTED}
        """What was counted once stays on the page, at 0."""
        self.recreated: dict[str, float] = {}
        """By label the most ids that were replaced at a time: a row may be withdrawn, a counter does not go back."""
        self.judged: dict[str, Histogram] = {}
        self.batches = Histogram()
        self.query = Query({"follow": 0, "judge": 0})
        self.loads: Samples = {}
        """Of the last batch, by step and by what it is of."""
        self.last_batch_s = 0.0
        self.places: Mapping[str, Path] = {}
        """What is read and written, where it lies on local disks."""
        self.ready = False
        self.alive_s = time.monotonic()
        """When the query was last seen to end a batch or to wait for one."""

    def alive(self) -> None:
        self.alive_s = time.monotonic()

    def runs_s(self) -> float:
        """How long a batch, or Spark's start, has run."""
        return time.monotonic() - self.alive_s

    def hangs_s(self) -> float:
        """The same; 0 where that is within reason."""
        running_s = self.runs_s()
        return running_s if running_s > HANGS_S else 0.0

    def take(self, tables: Mapping[str, pa.Table], now_ns: int | None = None) -> None:
        """The tables of one batch; without a time, of an earlier one, read back."""
        with self.lock:
            self.cards.take(tables)
            for table, counted_rows in self.open.items():
                for row in open_rows.rows(table, tables[table]) if table in tables else ():
                    self.count_row(table, counted_rows, row)
            for row in rows_of(tables["lags"]) if "lags" in tables else ():
                self.take_lag(row)
            for row in tables["totals"].to_pylist() if "totals" in tables else ():
                key = (row["label"], row["measure"], row["detail"] or "")
                if key[1] == "judged_ns" and now_ns is not None and key in self.totals:
                    histogram = self.judged.setdefault(key[0], Histogram())
                    histogram.observe_ticks(self.totals[key], row["count"], now_ns)
                self.totals[key] = row["count"]
            self.last_batch_s = now_ns / 1e9 if now_ns else self.last_batch_s

    def forget(self) -> None:
        """What batches brought; what was counted once stays on the page."""
        with self.lock:
            self.cards.forget()
            self.totals.clear()
            self.others.clear()
            self.lags.clear()
            self.shown.clear()
            for known in self.open.values():
                known.clear()

    def count_row(self, table: str, counted_rows: dict[str, tuple[str, ...]], row: Mapping[str, Any]) -> None:
        if row.get("others") is not None:
            self.others[f"{row['label']}|{row['id']}"] = ((row["label"], table), row["others"])
            return
        name, counted = f"{row['label']}|{row['id']}", open_rows.counts_as(table, row)
        self.once[table].add((*counted, ALONE) if table == "findings" else counted)
        if is_withdrawn(row):
            counted_rows.pop(name, None)
        else:
            counted_rows[name] = counted
        if table == "findings":
            self.shown.pop(name, None)
            if name in counted_rows:
                self.shown[name] = worst_findings.kept(row)

    def take_lag(self, row: Mapping[str, Any]) -> None:
        name = f"{row['label']}|{row['id']}"
        self.lags.pop(name, None)
        if (lag := open_lags.kept(row)) is not None:
            self.lags[name] = lag

    def findings(self, roles: Mapping[str, str]) -> Samples:
        """By check and role."""
        unexplained = {name: open_rows.counts_as("findings", row) for name, row in self.cards.unexplained.items()}
        every = {**self.open["findings"], **unexplained}
        counted = Counter((*labels, roles.get(name, ALONE)) for name, labels in every.items())
        self.once["findings"] |= set(counted)
        return {**dict.fromkeys(self.once["findings"], 0.0), **counted}

    def update(self, query: Query, batch_s: float | None = None) -> None:
        with self.lock:
            self.query = query
            if batch_s is not None:
                self.alive()
                self.batches.observe(batch_s)

    def news(self, *, last: bool = False) -> list[Line]:
        """Lines about findings: what opened, got worse, ended or was withdrawn. The last ones wait for no pace."""
        if last:
            self.cards.due_s = -math.inf
        return list(self.cards.news())

    def starting(self) -> str:
        """The state before the first batch is written."""
        running_s, files = time.monotonic() - self.alive_s, self.query.backlog_files
        what = "the first batch has run" if self.ready else "Spark has been starting"
        return f"Starting: {what} for {running_s:.0f} s, {files:,} file{' waits' if files == 1 else 's wait'}"

    def followed(self) -> dict[str, int]:
        """The last file followed of each agent."""
        with self.lock:
            return {detail: count for (_, measure, detail), count in self.totals.items() if measure == "followed_files"}

    def agents(self) -> list[JudgedAgent]:
        """Whom it judges, and how far."""
        with self.lock:
            judged = self.total("judged_ns")
        return [JudgedAgent(label, name, int(ns)) for (label, name), ns in sorted(judged.items()) if ns]

    def collect(self) -> Iterable[Metric]:
        self.cards.refresh()
        with self.lock:
            samples = self.samples()
            for named in METRICS:
                if named.kind == "histogram":
                    yield self.durations(named) if named.measure else self.histogram(named)
                elif named.kind == "info":
                    yield InfoMetricFamily(PREFIX + "build", named.meaning, {"version": installed(), "url": self.url})
                else:
                    yield family(named, samples[named.name])

    def samples(self) -> dict[str, Samples]:
        samples = {named.name: self.total(named.measure, len(named.labels)) for named in METRICS}
        samples["broker_errors_total"] = self.by_broker(SERVER_ERRORS)
        samples["finding_revisions_total"] = {
            (label, code, CHECKS[code].kind): count for (label, code), count in self.total("finding_revisions").items()
        }
        cards = self.cards.findings
        roles = {name: card.role for name, card in cards.items()}
        samples["findings"] = self.findings(roles)
        shown = {**self.shown, **{name: worst_findings.kept(row) for name, row in self.cards.unexplained.items()}}
        worst = worst_findings.worst(shown, roles, {name: card.follow for name, card in cards.items()})
        samples["check_failures_total"] |= {
            (label, "cards"): float(n) for label, n in list(self.cards.failures.items())
        }
        samples["clients_affected"] = self.cards.affected
        for named in worst:
            key, name = (named.cluster, named.id), f"{named.cluster}|{named.id}"
            card = cards.get(name)
            shown_as = worst_findings.under(named, card.sentence, card.clients) if card and card.sentence else named
            samples["finding_info"][tuple(shown_as)] = 1.0
            samples["finding_first_seen_timestamp_seconds"][key] = shown[name].first_seen_s
            samples["finding_affected_clients"][key] = float(card.affected if card else 0)
        samples["topics"] = {**dict.fromkeys(self.once["topics"], 0.0), **Counter(self.open["topics"].values())}
        activities = Counter(self.open["activities"].values())
        samples["activities"] = {**dict.fromkeys(self.once["activities"], 0.0), **activities}
        lags = open_lags.by_group(self.lags.values())
        samples["group_lag_records"], samples["group_waiting_since_timestamp_seconds"] = lags
        clients = Counter(self.open["clients"].values())
        for label in {label for label, _ in self.once["clients"]}:
            samples["clients"][label,] = clients[label, "kept"] + clients[label, "removed"]
            samples["clients_on_removed_versions"][label,] = clients[label, "removed"]
        for label in {label for label, _ in self.once["topics"]}:
            replaced = max(samples["topics"].get((label, "replaced"), 0), self.recreated.get(label, 0))
            samples["topics_recreated_total"][label,] = self.recreated[label] = replaced
        for labels, count in self.others.values():
            samples["others"][labels] = samples["others"].get(labels, 0.0) + count
        return samples | self.times() | self.disks()

    def disks(self) -> dict[str, Samples]:
        free, size = Samples(), Samples()
        for place, folder in self.places.items():
            with suppress(OSError):  # not there yet, or gone: what needs it reports that
                used = disk_usage(folder)
                free[place,], size[place,] = used.free, used.total
        return {"disk_free_bytes": free, "disk_size_bytes": size}

    def total(self, measure: str, labels: int = 2) -> Samples:
        """By label and detail, or the parts of it where there are more labels."""
        return {
            (label, *detail.rsplit(":", labels - 2))[:labels]: float(count)
            for (label, name, detail), count in self.totals.items()
            if name == measure
        }

    def by_broker(self, measure: str) -> Samples:
        """(label, broker and what follows the address) of addresses at which a broker is."""
        at = self.total(BROKER_AT)
        own = set(sorted({(label, number) for (label, _), number in at.items()})[:MOST_BROKERS])
        counts: Samples = {}
        for (label, detail), count in self.total(measure).items():
            server, bar, rest = detail.partition("|")
            if (number := at.get((label, server))) is not None:
                broker = f"{number - 1:.0f}" if (label, number) in own else OTHER
                key = label, f"{broker}{bar}{rest}"
                counts[key] = counts.get(key, 0.0) + count
        return counts

    def durations(self, named: Named) -> Metric:
        """A histogram whose counts are totals."""
        measure = named.measure
        shown = HistogramMetricFamily(PREFIX + named.name, named.meaning, labels=named.labels)
        of = self.by_broker if measure == SERVERS else self.total
        sums, bounds, cells = of(f"{measure}_us"), BOUNDS_US[measure], dict[Labels, list[float]]()
        for (label, detail), count in sorted(of(measure).items()):
            name, _, bucket = detail.partition("|")
            cells.setdefault((label, name), [0.0] * (len(bounds) + 1))[int(bucket)] += count
        texts = [*(str(bound / 1e6) for bound in bounds), "+Inf"]
        for labels, counts in cells.items():
            buckets = list(zip(texts, accumulate(counts), strict=True))
            shown.add_metric(labels[: len(named.labels)], buckets, sums.get(labels, 0.0) / 1e6)
        return shown

    def times(self) -> dict[str, Samples]:
        agents = {labels: ns / 1e9 for labels, ns in self.total("judged_ns").items() if ns}
        newest: dict[str, float] = {}
        for (label, _), judged_s in agents.items():
            newest[label] = max(judged_s, newest.get(label, 0.0))
        now_s = time.time_ns() / 1e9
        return {
            "agent_judged_timestamp_seconds": agents,
            "judged_lag_seconds": {(label,): now_s - judged_s for label, judged_s in newest.items()},
            "last_batch_timestamp_seconds": {(): self.last_batch_s} if self.last_batch_s else {},
            "backlog_files": {(): self.query.backlog_files},
            "backlog_bytes": {(): self.query.backlog_bytes},
            "compiled": {(): 0.0 if extension_modules.PLAIN else 1.0},
            "task_cpu_seconds": self.loads,
            "state_bytes": {(step,): size for step, size in self.query.state_bytes.items()},
        }

    def histogram(self, named: Named) -> Metric:
        shown = HistogramMetricFamily(PREFIX + named.name, named.meaning, labels=named.labels)
        by_labels = {(label,): h for label, h in self.judged.items()} if named.labels else {(): self.batches}
        for labels, histogram in by_labels.items():
            shown.add_metric(labels, histogram.buckets(), histogram.seconds)
        return shown


def family(named: Named, samples: Samples) -> Metric:
    kind = CounterMetricFamily if named.kind == "counter" else GaugeMetricFamily
    shown = kind(PREFIX + named.name, named.meaning, labels=named.labels)
    for labels, value in sorted(samples.items()):
        shown.add_metric(labels, value)
    return shown


def installed() -> str:
    try:
        return version("wirecheck")
    except PackageNotFoundError:
        return "unknown"
