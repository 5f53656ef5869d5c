"""A day of the agent in a minute: a clock and an interface that are not real, everything else is."""

import os
import resource
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from capture import folder, frames, listen, writer
from capture.folder import Limits
from capture.frames import FRAMES_CODED, Stamp
from capture.listen import Listening
from tests.build import plain

HOURS, STEP_S, ROLL_S, RETAIN_S = 24, 120.0, 600.0, 7200.0
BEGIN_NS = 1_700_000_000_000_000_000
TALKS = 40  # new connections with each step


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


class Wire:
    """An interface on which every step brings as many short connections."""

    def __init__(self, clock, name="eth0"):
        self.clock, self.name = clock, name
        self.rows = SimpleNamespace(skipped_marks=lambda *_: [], state=SimpleNamespace(skipped=np.zeros(1)))
        self.number = 0
        self.up, self.down = said()

    def batches(self, stamp):
        now_ns = self.clock.time_ns()
        found = [row for i in range(TALKS) for row in self.talk(now_ns - 10_000_000 + i * 1000, i)]
        columns = {name: [row.get(name) for row in found] for name in frames.FRAMES.names}
        columns |= {"cluster": [stamp.cluster] * len(found), "agent": [stamp.agent] * len(found)}
        yield pa.table(columns, frames.FRAMES).cast(FRAMES_CODED).combine_chunks().to_batches()[0]

    def talk(self, ts_ns, i):
        self.number += 1
        ends = (f"10.0.{self.number // 50000 % 250}.1", 10000 + self.number % 50000), ("10.9.9.9", 9092)
        sent, got = 1 + len(self.up), 1 + len(self.down)
        steps = [(0, 0, 0, 2, b""), (1, 0, 1, 18, b""), (0, 1, 1, 24, self.up), (1, 1, sent, 24, self.down)]
        steps += [(0, sent, got, 17, b""), (1, got, sent + 1, 17, b"")]
        for k, (way, seq, ack, flags, payload) in enumerate(steps):
            (src, sport), (dst, dport) = ends if way == 0 else ends[::-1]
            yield {
                "kind": 0, "file_seq": 0, "source": self.name, "frame_no": i, "ts_ns": ts_ns + k * 100, "src_ip": src,
                "src_port": sport, "dst_ip": dst, "dst_port": dport, "tcp_seq": seq, "tcp_ack": ack, "tcp_flags": flags,
                "payload": payload, "payload_len": len(payload), "left_out": [], "count": 0,
            }  # fmt: skip

    def fill(self):
        return 0.0

    def dropped(self):
        return 1 if self.number % 997 == 0 else 0

    def is_there(self):
        return True

    def close(self):
        pass


@pytest.fixture
def day(tmp_path, monkeypatch):
    """Runs the agent for so many hours; gives its counts, the most files there were, and memory by the hour."""
    clock = Clock()
    wire = Wire(clock)
    monkeypatch.setattr(listen, "time", clock)
    monkeypatch.setattr(writer, "time", clock)
    monkeypatch.setattr(folder, "time", clock)
    monkeypatch.setattr(Listening, "open", lambda *_: wire)
    seen = SimpleNamespace(files=0, memory=[])
    appeared = writer.Writer._appeared

    def dated(self, path, seconds):
        os.utime(path, ns=(clock.time_ns(), clock.time_ns()))
        seen.files = max(seen.files, len(list(tmp_path.glob("*.parquet"))))
        appeared(self, path, seconds)

    def wait(self, _):
        while not self._writer._queue.empty():  # every step is written before the next one
            time.sleep(0.001)
        clock.s += STEP_S
        self._asked_ns = clock.time_ns()
        for rows in wire.batches(self._stamp):
            self._counts.frames[wire.name] += rows.num_rows
            self._writer.put(rows)
        if clock.s % 3600 < STEP_S:
            seen.memory.append(resident_mb())

    monkeypatch.setattr(writer.Writer, "_appeared", dated)
    monkeypatch.setattr(listen._Loop, "_take_rows", wait)

    def run(hours):
        limits = Limits(retain_s=RETAIN_S)
        what = Listening(("eth0",), roll_s=ROLL_S, duration_s=hours * 3600, limits=limits)
        seen.counts = listen.listen(what, tmp_path, Stamp("c", "a"), lambda _: None)
        return seen

    return run


def resident_mb():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


def test_a_day_leaves_memory_and_folder_as_they_were_configured(day, tmp_path):
    threads = threading.active_count()
    seen = day(HOURS)
    assert seen.counts.kept_frames == seen.counts.frames["eth0"] >= HOURS * 3600 / STEP_S * TALKS * 6
    assert RETAIN_S / ROLL_S - 1 <= seen.files <= RETAIN_S / ROLL_S + 3
    assert seen.counts.connections <= 2 * TALKS
    assert seen.counts.files >= HOURS * 3600 / ROLL_S - 2
    early, late = seen.memory[len(seen.memory) // 3], seen.memory[-1]
    assert late - early < 20, seen.memory
    print(f"\n  a day: {early:.0f} MB after 8 h, {late:.0f} MB after {HOURS} h, at most {seen.files} files")
    assert threading.active_count() == threads
    names = sorted(path.name for path in tmp_path.glob("*.parquet"))
    assert names[-1] == f"a-{seen.counts.files:010d}.parquet"
