"""Captures into folders: order, overlap, marks, rolling, and what a crash leaves."""

import gc
import itertools
import random
import stat
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests import traffic as t
from tests.capture.reading import as_segments, expected, frames_of, rows
from tests.depth import examples
from wirecheck.capture import frames, frames_file
from wirecheck.capture.agent import offline_agent
from wirecheck.capture.agent.offline_agent import NothingReadableError, write_frames
from wirecheck.capture.agent.spool import Spool
from wirecheck.capture.agent.spool_folder import FolderInUseError

STAMP = frames.Stamp("prod", "replay")


def talk(number, start_ms=0, step_ms=1, mss=500):
    client = (f"10.0.0.{number}", 40000 + number)
    begin = 1_700_000_000_000_000_000 + start_ms * 1_000_000
    conversation = t.Talk(client=client, ts_ns=begin, step_ns=step_ms * 1_000_000, mss=mss)
    return conversation.open().request(bytes(3000)).response(bytes(5000)).close().segments


def table_of(folder, agent="replay"):
    return pa.concat_tables(frames_file.read(path) for path in sorted(folder.glob(f"{agent}-*.parquet")))


def kinds(folder):
    return table_of(folder)["kind"].to_pylist()


def test_a_capture_has_one_start_one_end_and_progress_in_every_file(written, tmp_path):
    path = written(t.pcap(t.packets(talk(1))))
    out = tmp_path / "out"
    summary = write_frames([path], out, "prod", roll_bytes=2000, keep_records=True)
    tables = [frames_file.read(file) for file in summary.files]
    assert len(tables) > 3
    assert [set(table["file_seq"].to_pylist()) for table in tables] == [{i} for i in range(1, len(tables) + 1)]
    assert [table["kind"].to_pylist()[-1] for table in tables] == [frames.PROGRESS] * len(tables)
    assert kinds(out).count(frames.PROGRESS) == len(tables)
    assert (kinds(out)[0], kinds(out)[-2:]) == (frames.STARTED, [frames.ENDED, frames.PROGRESS])
    assert set(table_of(out)["cluster"].to_pylist()) == {"prod"}
    assert summary.frames == len(talk(1)) == kinds(out).count(frames.FRAME)
    assert summary.payload_bytes == 8000


def test_progress_is_the_newest_time_so_far_and_the_start_the_first(written, tmp_path):
    segments = talk(1)
    segments[3], segments[5] = segments[5], segments[3]  # a clock that goes back
    write_frames([written(t.pcap(t.packets(segments)))], tmp_path / "out", "prod", roll_bytes=1500)
    newest, first = 0, segments[0].ts_ns
    for row in table_of(tmp_path / "out").to_pylist():
        if row["kind"] == frames.STARTED:
            assert row["ts_ns"] == first
        if row["kind"] == frames.PROGRESS:
            assert row["ts_ns"] == newest
        newest = max(newest, row["ts_ns"])


def test_rows_on_disk_are_the_rows_read_without_files(written, tmp_path):
    path = written(t.pcap(t.packets(talk(1) + talk(2))))
    write_frames([path], tmp_path / "out", "prod", keep_records=True)
    on_disk = [row for row in table_of(tmp_path / "out").to_pylist() if row["kind"] != frames.PROGRESS]
    assert [row | {"file_seq": 0} for row in on_disk] == rows(path, cluster="prod", agent="replay")


def test_files_cut_in_the_middle_and_given_in_any_order_are_one_capture(written):
    packets = t.packets(sorted(talk(1) + talk(2, 3) + talk(3, 40), key=lambda s: s.ts_ns))
    pieces = [written(t.pcap(packets[i : i + 9]), f"{i:03d}.pcap") for i in range(0, len(packets), 9)]
    whole = as_segments(frames_of(written(t.pcap(packets), "whole.pcap")))
    shuffled = random.Random(1).sample(pieces, len(pieces))
    assert as_segments(frames_of(*shuffled)) == whole
    assert rows(*shuffled) == rows(*pieces) == rows(*pieces, pieces[0])


def test_overlapping_files_are_merged_by_time_in_any_order(written):
    talks = [talk(1), talk(2, start_ms=3, step_ms=2), talk(3, start_ms=9), talk(4, start_ms=500)]
    paths = [written(t.pcap(t.packets(s)), f"{i}.pcap") for i, s in enumerate(talks)]
    merged = sorted(itertools.chain(*talks), key=lambda s: s.ts_ns)
    expected_rows = rows(*paths)
    assert as_segments([r for r in expected_rows if r["kind"] == frames.FRAME]) == expected(merged)
    for order in itertools.permutations(paths):
        assert rows(*order) == expected_rows


@settings(examples(15, deep=40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    times=st.lists(st.lists(st.integers(0, 12), min_size=1, max_size=20), min_size=1, max_size=4),
    window=st.integers(1, 400),
    data=st.data(),
)
def test_a_merge_keeps_each_file_s_order_and_does_not_depend_on_windows(times, window, data, written):
    paths = []
    for i, ticks in enumerate(times):
        segments = [
            t.Segment(("10.0.0.1", i), ("10.0.0.2", 2), n, 0, 0, b"", tick * 1000) for n, tick in enumerate(ticks)
        ]
        paths.append(written(t.pcap(t.packets(segments)), f"{i}.pcap"))
    found = frames_of(*paths)
    for i, ticks in enumerate(times):
        assert [r["tcp_seq"] for r in found if r["src_port"] == i] == list(range(len(ticks)))
    clocks = [list(itertools.accumulate(ticks, max)) for ticks in times]
    clock = [clocks[r["src_port"]][r["tcp_seq"]] for r in found]
    assert clock == sorted(clock)
    assert rows(*data.draw(st.permutations(paths)), batch_bytes=window) == rows(*paths)


def test_a_bad_input_beside_a_good_one_is_a_mark_and_a_line(written, tmp_path):
    good, text = written(t.pcap(t.packets(talk(1)))), written(b"text", "b.txt")
    cut = written(t.pcap(t.packets(talk(2)))[:-3], "cut.pcap")
    summary = write_frames([text, good, tmp_path / "missing", cut], tmp_path / "out", "prod")
    at = len(t.pcap(t.packets(talk(2)[:-1])))
    assert summary.input_errors == [
        f"{text}: not a pcap or pcapng file",
        f"{tmp_path / 'missing'}: no such file",
        f"{cut}: truncated packet at byte offset {at}",
    ]
    marks = [row for row in table_of(tmp_path / "out").to_pylist() if row["kind"] == frames.INPUT_ERROR]
    assert [f"{row['source']}: {row['reason']}" for row in marks] == summary.input_errors
    assert summary.frames == len(talk(1)) + len(talk(2)) - 1


def test_nothing_readable_leaves_no_folder_behind(written, tmp_path):
    with pytest.raises(NothingReadableError):
        write_frames([written(b"")], tmp_path / "out", "prod")
    assert not (tmp_path / "out").exists()


def test_the_summary_counts_what_is_no_frame(written, tmp_path):
    noise = [t.Packet(0, t.ethernet(bytes(28), kind=0x0806)), t.Packet(9, t.ethernet(b""))]
    path = written(t.pcap(noise + t.packets(talk(1)) + noise))
    summary = write_frames([path], tmp_path / "out", "prod")
    assert summary.skipped == {"not-ip": 2, "bad-header": 2}
    assert (summary.dropped, summary.bytes) == (0, path.stat().st_size)


def test_progress_is_reported_up_to_all_bytes(written, tmp_path):
    paths = [written(t.pcap(t.packets(talk(i))), f"{i}.pcap") for i in (1, 2)]
    seen = []
    write_frames(paths, tmp_path / "out", "prod", on_progress=lambda *at: seen.append(at), batch_bytes=600)
    size = sum(path.stat().st_size for path in paths)
    assert seen == sorted(seen)
    assert (seen[-1], len(seen) > 10) == ((size, size), True)


def test_a_second_capture_goes_on_counting_files(written, tmp_path):
    path = written(t.pcap(t.packets(talk(1))))
    out = tmp_path / "out"
    first = write_frames([path], out, "prod", "a", roll_bytes=4000)
    other = write_frames([path], out, "prod", "b")
    second = write_frames([path], out, "prod", "a", roll_bytes=4000)
    names = [file.name for file in first.files + second.files]
    assert names == [f"a-{i:010d}.parquet" for i in range(1, len(names) + 1)]
    assert [file.name for file in other.files] == ["b-0000000001.parquet"]


def test_files_are_for_their_owner_only_and_nothing_unfinished_stays(written, tmp_path):
    summary = write_frames([written(t.pcap(t.packets(talk(1))))], tmp_path / "out", "prod")
    assert [stat.S_IMODE(file.stat().st_mode) for file in summary.files] == [0o600]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [".replay.lock", "replay-0000000001.parquet"]


def test_an_agent_s_name_is_its_own_in_a_folder(tmp_path):
    spool = Spool(tmp_path, STAMP)
    with pytest.raises(FolderInUseError):
        Spool(tmp_path, STAMP)
    spool.close()
    Spool(tmp_path, STAMP).close()


@pytest.mark.parametrize("name", ["", ".hidden", "_hidden", "a/b", "a b", "-x"])
def test_a_name_that_would_hide_or_move_its_files_is_refused(name, tmp_path):
    with pytest.raises(ValueError, match="agent name"):
        Spool(tmp_path, frames.Stamp("prod", name))


def test_what_a_crash_left_is_hidden_and_the_next_start_clears_it(tmp_path):
    started = frames.mark_rows([frames.Mark(frames.STARTED, 1)], STAMP)
    spool = Spool(tmp_path, STAMP, roll_bytes=1)
    spool.append(started)
    (tmp_path / ".replay-0000000002.parquet.tmp").write_bytes(b"half a file")
    spool.abandon()
    assert [path.name for path in tmp_path.glob("*.parquet")] == ["replay-0000000001.parquet"]
    again = Spool(tmp_path, STAMP)
    again.append(started)
    again.close()
    assert sorted(path.name for path in tmp_path.glob("*")) == [
        ".replay.lock",
        "replay-0000000001.parquet",
        "replay-0000000002.parquet",
    ]


def test_a_file_that_fails_half_way_leaves_nothing(written, tmp_path):
    path = written(t.pcap(t.packets(talk(1))))

    def fail(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_frames([path], tmp_path / "out", "prod", on_progress=fail)
    assert [entry.name for entry in (tmp_path / "out").iterdir()] == [".replay.lock"]


def test_the_offline_agent_needs_neither_scapy_nor_spark_nor_pandas():
    code = "import sys, capture.agent.offline_agent; print(sorted({'scapy', 'pyspark', 'pandas'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_where_a_file_ends_depends_on_its_rows_alone(written, tmp_path):
    path = written(t.pcap(t.packets(talk(1) + talk(2))))
    for name, window in (("a", 100), ("b", 1 << 20)):
        write_frames([path], tmp_path / name, "prod", roll_bytes=3000, batch_bytes=window)
    sizes = [[pq.read_metadata(f).num_rows for f in sorted((tmp_path / n).glob("*.parquet"))] for n in "ab"]
    assert sizes[0] == sizes[1]


def test_the_collector_of_cycles_is_paused_while_a_capture_is_read(tmp_path):
    seen, example = [], Path(__file__).resolve().parents[3] / "examples/zk39-inconsistent-id/capture.pcap.gz"
    write_frames([example], tmp_path / "frames", "prod", on_progress=lambda *_: seen.append(gc.isenabled()))
    assert (set(seen), gc.isenabled()) == ({False}, True)


def test_where_nothing_comes_a_mark_says_how_far_time_went_on(tmp_path, monkeypatch):
    monkeypatch.setattr(offline_agent, "IDLE_S", 0.0)
    path = tmp_path / "growing.pcap"
    path.write_bytes(t.pcap(t.packets(t.Talk().open().segments)))
    found = offline_agent.read_growing(path, lambda: None)
    packets, first, second = (next(found).to_pylist() for _ in range(3))
    assert [row["kind"] for row in (*packets, *first, *second)] == [frames.FRAME] * 3 + [frames.PROGRESS] * 2
    assert packets[-1]["ts_ns"] <= first[0]["ts_ns"] <= second[0]["ts_ns"]
