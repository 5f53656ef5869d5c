"""Captures and frames checked in this process by the steps of the query, without Spark: `--engine local`.

One loop: rows, one follower of all connections, exchanges, claims, judge. Nothing goes through a file or a cell. The
rows are those of the query (`spark/pipeline.py`), whatever is checked together: claims are filed as they come, and
judged when a result is asked for, or before a bound or their age makes some of them leave. Memory grows with open
connections and with what is known of a cluster, not with the length of a capture.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from wirecheck.capture import frames
from wirecheck.decode.collector_pause import collector_paused
from wirecheck.decode.connection.exchanges import Exchanges, joined
from wirecheck.decode.connection.segments import segments
from wirecheck.streaming.spark.memory import give_back
from wirecheck.streaming.steps.decode_step import stated_by
from wirecheck.streaming.steps.follow_step import Bucket
from wirecheck.streaming.steps.frames_folder import agents_of, labelled_in
from wirecheck.streaming.steps.judge_step import LabelJudge, Opened
from wirecheck.streaming.steps.pack_step import FrameFile, chosen, deal_files, marks_of
from wirecheck.streaming.steps.settings import Settings
from wirecheck.streaming.steps.tagged import CLAIMS, Tagged
from wirecheck.streaming.store.result_tables import from_ipc
from wirecheck.streaming.store.run_result import LatestRows, Result

if TYPE_CHECKING:
    from wirecheck.decode.peer import Peer

BATCH_BYTES, BATCH_FILES = 4 << 20, 64
"""Frames files that are followed together, at most: they are held as a whole."""
MESSAGES_TOGETHER, BYTES_TOGETHER = 50_000, 10 << 20
"""Messages, and what is kept of them, that are decoded and judged together: each time has a price of its own, and all
of them are held. At least so many, at most MOST_TIMES as many.
"""
FEW_CONNECTIONS, BYTES_OF_FEW = 1_000, 16 << 20
"""Answers of so few take less memory than what is kept of many, and what they claim of a wide cluster is filed once for
more of them.
"""
MOST_TIMES = 2
CONNECTIONS_TOGETHER = 2_000
"""That claims are made of at a time, where they follow each other: what 18,000 messages of 4,400 connections claim
takes 15 MB, and making it took 119 MB.
"""


class Waiting(NamedTuple):
    """How much waits for its claims."""

    messages: int = 0
    kept_bytes: int = 0
    connections: int = 0

    def with_part(self, part: Exchanges) -> "Waiting":
        return Waiting(
            self.messages + len(part.messages),
            self.kept_bytes + part.messages.data.nbytes,
            self.connections + len(part.connections),
        )


class Label:
    """What is followed under one label."""

    def __init__(self, label: str, settings: Settings) -> None:
        self.label, self.settings = label, settings
        self.bucket = Bucket(label, 0, settings, without_records=True)
        self.parts: list[Exchanges] = []
        """That no claims were made of yet."""
        self.waiting = Waiting()
        """The same, counted."""
        self.reports: list[Opened] = []
        """How far that goes: the judge must not learn it before the claims."""
        self.rows: list[Opened] = []
        """That were not judged yet."""
        self.has_claims = False
        """Whether claims are among them."""
        self.messages = 0
        """That were followed."""

    def follow(self, files: Iterable[FrameFile]) -> None:
        batch = self.bucket.begun(files)
        for exchanges in self.bucket.learned(batch):
            if exchanges.connections:
                self.parts.append(exchanges)
                self.messages += len(exchanges.messages)
                self.waiting = self.waiting.with_part(exchanges)
                if self.fullness >= MOST_TIMES:
                    self.claim()
            del exchanges
        self.reports += [Opened(self.bucket.number, route, report) for route, report in self.bucket.reports(batch)]
        if self.fullness >= 1 or not self.parts:
            self.claim()

    @property
    def fullness(self) -> float:
        """How much waits for its claims, of what makes them worth their price."""
        waiting = self.waiting
        few = waiting.connections <= FEW_CONNECTIONS
        return max(waiting.messages / MESSAGES_TOGETHER, waiting.kept_bytes / (BYTES_OF_FEW if few else BYTES_TOGETHER))

    def claim(self) -> None:
        if self.parts:
            parts, self.parts, self.waiting, self.has_claims = self.parts, [], Waiting(), True
            for piece in pieces(parts):
                self.rows.append(Opened(self.bucket.number, CLAIMS, stated_by(joined(piece), self.settings)))
        self.rows += self.reports
        self.reports = []

    def taken(self) -> Iterator[Opened]:
        """What was not judged yet. None of it is held once it was taken."""
        rows, self.rows, self.has_claims = self.rows, [], False
        return (rows.pop(0) for _ in range(len(rows)))


def pieces(parts: Iterable[Exchanges]) -> Iterator[list[Exchanges]]:
    """In the same order, so that claims are made of few connections at a time; those that go on stay together."""
    piece: list[Exchanges] = []
    known: set[tuple[Peer, Peer, int]] = set()
    for part in parts:
        its = {(one.client, one.server, one.started_ns) for one in part.connections}
        if piece and len(known | its) > CONNECTIONS_TOGETHER and 2 * len(its - known) > len(its):
            yield piece
            piece, known = [], set()
        piece.append(part)
        known |= its
    yield piece


class Following:
    """Rows as they are read to what they claim: all that is done for each connection by itself."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.labels: dict[str, Label] = {}
        self.messages = 0
        """That were followed."""
        self._shown_ns: dict[str, int] = {}
        self._seq: dict[str, int] = {}

    def add(self, table: pa.Table) -> Label:
        """Rows of one agent, all of one label; its last ones end with ENDED."""
        is_frame = pc.equal(table["kind"], frames.FRAME)
        agent, label = (table[name][0].as_py() for name in ("agent", "cluster"))
        self._seq[agent] = self._seq.get(agent, 0) + 1
        self._shown_ns[agent] = max(self._shown_ns.get(agent, 0), pc.max(table["ts_ns"]).as_py())
        progress = frames.Mark(frames.PROGRESS, self._shown_ns[agent])
        rows = chosen(table, is_frame)
        marks = marks_of(table.filter(pc.invert(is_frame))) if rows.num_rows < table.num_rows else ()
        part = segments(rows) if rows.num_rows else None
        return self.follow(label, [FrameFile(agent, self._seq[agent], (*marks, progress), part)])

    def follow(self, name: str, files: Iterable[FrameFile]) -> Label:
        label = self.label(name)
        before = label.messages
        label.follow(files)
        self.messages += label.messages - before
        return label

    def label(self, name: str) -> Label:
        if name not in self.labels:
            self.labels[name] = Label(name, self.settings)
        return self.labels[name]


class LocalReplay:
    """One run: give it rows, or files of frames, as they come, and ask it for the result behind the last."""

    def __init__(self, settings: Settings) -> None:
        self.settings = replace(settings, buckets=1)
        self._following = Following(self.settings)
        self._judges: dict[str, LabelJudge] = {}
        """By label. All of them judge when a result is asked for; before, what rows would not come out the same."""
        self._latest = LatestRows()

    @property
    def messages(self) -> int:
        """Of Kafka's, that were followed."""
        return self._following.messages

    @collector_paused()
    def add(self, table: pa.Table) -> None:
        """Rows of one agent as they are read, all of one label; its last ones end with ENDED."""
        self._file_if_full(self._following.add(table))

    @collector_paused()
    def judge(self, files: Iterable[Path]) -> None:
        """Files of frames that are followed together."""
        by_label: dict[str, list[FrameFile]] = {}
        for every in deal_files(map(str, files), self.settings):
            for dealt in every:
                by_label.setdefault(dealt.label, []).append(dealt.file)
        for name, of_label in sorted(by_label.items()):
            self._file_if_full(self._following.follow(name, of_label))

    def judge_all(self, batches: Iterable[Iterable[Path]]) -> None:
        for files in batches:
            self.judge(files)

    def _file_if_full(self, label: Label) -> None:
        """To file what was claimed has a price of its own."""
        if label.has_claims:
            judge = self._judge(label)
            self._emit(judge.judged(label.taken(), waiting=True))
            give_back_of(judge)

    def _judge(self, label: Label) -> LabelJudge:
        if label.label not in self._judges:
            self._judges[label.label] = LabelJudge(label.label, label.settings)
        return self._judges[label.label]

    def _emit(self, emitted: Iterable[Tagged]) -> None:
        for row in emitted:
            self._latest.add(row.route, from_ipc(row.cell))

    @collector_paused()
    def finish(self) -> None:
        """Judge what waits: nothing more comes. What is known of clusters is given up."""
        for name in [*self._following.labels]:
            label = self._following.labels.pop(name)
            label.claim()
            judge, rows = self._judge(label), label.taken()
            del self._judges[name], label  # nothing more is followed: what that took is not held beside all rows
            give_back_of(judge)
            self._emit(judge.judged(rows, last=True))
            del judge, rows
        give_back()

    @collector_paused()
    def catch_up(self) -> None:
        """Judge what waits: more may come."""
        for label in self._following.labels.values():
            label.claim()
            self._emit(self._judge(label).judged(label.taken()))

    def result(self) -> Result:
        self.catch_up()
        return self._latest.result()

    def write(self, out: Path) -> None:
        """The result tables, as a replay leaves them."""
        self.catch_up()
        self._latest.write(out)


def give_back_of(judge: LabelJudge) -> None:
    """Where there is much: else it takes time for memory that is not needed."""
    if judge.judge.has_many_connections:
        give_back()


def of_files(files: list[Path], settings: Settings) -> LocalReplay:
    """A run over files that are all there: so it is known whose they are, and which are missing."""
    return LocalReplay(replace(settings, agents=labelled_in(agents_of(files), files)))


def batches_of(files: list[Path]) -> Iterator[list[Path]]:
    """As the query takes them: oldest first, small ones together."""
    batch: list[Path] = []
    size = 0
    for (_, _, added), file in sorted((age_name_size(file), file) for file in files):
        if batch and (size + added > BATCH_BYTES or len(batch) >= BATCH_FILES):
            yield batch
            batch, size = [], 0
        batch.append(file)
        size += added
    if batch:
        yield batch


def age_name_size(file: Path) -> tuple[int, str, int]:
    try:
        there = file.stat()
    except OSError:  # gone meanwhile: reading it reports that
        return 0, file.name, 0
    return there.st_mtime_ns, file.name, there.st_size
