"""A day of the agent, with a million connections, in minutes: clock and interface are not real, all else is."""

import os
import resource
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from tests.build import plain
from wirecheck.capture import frames
from wirecheck.capture.agent import live_agent, spool_folder, writer
from wirecheck.capture.agent.live_agent import Listening
from wirecheck.capture.agent.spool_folder import Limits
from wirecheck.capture.frames import FRAMES_CODED, Stamp

HOURS, STEP_S, ROLL_S, RETAIN_S = 24, 120.0, 600.0, 7200.0
BEGIN_NS = 1_700_000_000_000_000_000
STEPS = int(HOURS * 3600 / STEP_S)
TALKS = -(-1_000_000 // STEPS)  # new connections with each step
FRAMES_EACH = 6
PORTS, CLIENTS = 50_000, 1_100_000


class Clock:
    """Moves when the loop waits for packets."""

    def __init__(self):
        self.s = 0.0
        self.back_s = 0.0

    def time_ns(self):
        return BEGIN_NS + int((self.s - self.back_s) * 1e9)

    def monotonic(self):
        return self.s

    def monotonic_ns(self):
        return int(self.s * 1e9)

    def sleep(self, seconds):
        self.s += seconds


def said():
    request = plain("Metadata", "request", 9, {}, {"correlationId": 1, "clientId": "c"})
    return request, plain("Metadata", "response", 9, {}, {"correlationId": 1})


def replaced(rows, **columns):
    found = dict(zip(rows.schema.names, rows.columns, strict=True)) | columns
    return pa.RecordBatch.from_arrays(list(found.values()), schema=rows.schema)


class Wire:
    """An interface on which every step brings as many short connections, each from an end of its own."""

    def __init__(self, clock, name="eth0"):
        self.clock, self.name = clock, name
        self.rows = SimpleNamespace(skipped_marks=lambda *_: [], state=SimpleNamespace(skipped=np.zeros(1)))
        self.number = 0
        talks = [row for i in range(TALKS) for row in self.talk(i)]
        columns = {name: [row.get(name) for row in talks] for name in frames.FRAMES.names}
        columns |= {"cluster": ["c"] * len(talks), "agent": ["a"] * len(talks)}
        (self.step,) = pa.table(columns, frames.FRAMES).cast(FRAMES_CODED).combine_chunks().to_batches()
        self.up = self.step["dst_port"].to_numpy() == 9092
        self.ends = pa.array([*(f"10.0.{i}.1" for i in range(CLIENTS // PORTS)), "10.9.9.9"])

    def batches(self, _):
        number = self.number + np.arange(TALKS).repeat(FRAMES_EACH)
        self.number += TALKS
        client, port = (number // PORTS).astype(np.int32), (10_000 + number % PORTS).astype(np.int32)
        broker = len(self.ends) - 1
        columns = {
            "ts_ns": pa.array(self.clock.time_ns() - 10_000_000 + np.arange(len(number)) * 100),
            "src_ip": pa.DictionaryArray.from_arrays(np.where(self.up, client, broker).astype(np.int32), self.ends),
            "dst_ip": pa.DictionaryArray.from_arrays(np.where(self.up, broker, client).astype(np.int32), self.ends),
            "src_port": pa.array(np.where(self.up, port, 9092).astype(np.int32)),
            "dst_port": pa.array(np.where(self.up, 9092, port).astype(np.int32)),
        }
        yield replaced(self.step, **columns)

    def talk(self, i):
        up, down = said()
        sent, got = 1 + len(up), 1 + len(down)
        steps = [(0, 0, 0, 2, b""), (1, 0, 1, 18, b""), (0, 1, 1, 24, up), (1, 1, sent, 24, down)]
        steps += [(0, sent, got, 17, b""), (1, got, sent + 1, 17, b"")]
        for way, seq, ack, flags, payload in steps:
            yield {
                "kind": 0, "file_seq": 0, "source": self.name, "frame_no": i, "ts_ns": 0, "src_ip": "", "dst_ip": "",
                "src_port": 9092 * way, "dst_port": 9092 * (1 - way), "tcp_seq": seq, "tcp_ack": ack,
                "tcp_flags": flags, "payload": payload, "payload_len": len(payload), "left_out": [], "count": 0,
            }  # fmt: skip

    def fill(self):
        return 0.0

    def dropped(self):
        return 1 if self.number % 7 == 0 else 0

    def is_there(self):
        return True

    def close(self):
        pass


@pytest.fixture
def day(tmp_path, monkeypatch):
    """Runs the agent for so many hours; gives its counts, the most files there were, and memory by the hour."""
    clock = Clock()
    wire = Wire(clock)
    monkeypatch.setattr(live_agent, "time", clock)
    monkeypatch.setattr(writer, "time", clock)
    monkeypatch.setattr(spool_folder, "time", clock)
    monkeypatch.setattr(Listening, "open", lambda *_: wire)
    seen = SimpleNamespace(files=0, memory=[])
    appeared = writer.Writer._appeared

    def dated(self, path, seconds):
        os.utime(path, ns=(clock.time_ns(), clock.time_ns()))
        seen.files = max(seen.files, len(list(tmp_path.glob("*.parquet"))))
        appeared(self, path, seconds)

    def wait(self, _):
        while not self._writer._queue.empty():  # every step is written before the next one
            self._writer.check()
            time.sleep(0.001)
        clock.s += STEP_S
        self._asked_ns = clock.time_ns()
        for rows in wire.batches(self._stamp):
            self._counts.frames[wire.name] += rows.num_rows
            self._counts.payload_bytes[wire.name] += int(rows["payload_len"].to_numpy().sum())
            self._writer.put(rows)
        if clock.s % 3600 < STEP_S:
            seen.memory.append(resident_mb())

    monkeypatch.setattr(writer.Writer, "_appeared", dated)
    monkeypatch.setattr(live_agent._Loop, "_take_rows", wait)

    def run(hours):
        limits = Limits(retain_s=RETAIN_S)
        what = Listening(("eth0",), roll_s=ROLL_S, duration_s=hours * 3600, limits=limits)
        seen.counts = live_agent.listen(what, tmp_path, Stamp("c", "a"), lambda _: None)
        return seen

    return run


def resident_mb():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


def test_a_day_leaves_memory_and_folder_as_they_were_configured(day, tmp_path):
    threads = threading.active_count()
    begin_s = time.perf_counter()
    seen = day(HOURS)
    took_s = time.perf_counter() - begin_s
    assert seen.counts.kept_frames == seen.counts.frames["eth0"] >= 1_000_000 * FRAMES_EACH
    left_out = seen.counts.payload_bytes["eth0"] - seen.counts.kept_bytes
    assert (left_out, seen.counts.lost_by("disk")) == (0, 0)  # every one of them was recognised
    assert RETAIN_S / ROLL_S - 1 <= seen.files <= RETAIN_S / ROLL_S + 3
    assert seen.counts.connections <= 2 * TALKS
    assert seen.counts.files >= HOURS * 3600 / ROLL_S - 2
    early, late = seen.memory[len(seen.memory) // 3], seen.memory[-1]
    assert late - early < 20, seen.memory
    print(
        f"\n  a day of {seen.counts.kept_frames // FRAMES_EACH:,} connections in {took_s:.0f} s: {early:.0f} MB after "
        f"8 h, {late:.0f} MB after {HOURS} h, at most {seen.files} files"
    )
    assert threading.active_count() == threads
    names = sorted(path.name for path in tmp_path.glob("*.parquet"))
    assert names[-1] == f"a-{seen.counts.files:010d}.parquet"
