"""Frames of connections that have settled are counted, by their agent, and change no row."""

import numpy as np
import pyarrow as pa
import pytest

from tests import frame_files
from wirecheck.capture import frames, frames_file
from wirecheck.decode.connection.exchanges import Connection
from wirecheck.decode.connection.segments import bucket_of
from wirecheck.decode.peer import Peer
from wirecheck.judge.connections import AFTER_NS, IDLE_NS
from wirecheck.streaming.run.metrics_page import Page
from wirecheck.streaming.steps import settled_connections
from wirecheck.streaming.steps.plain_loop import Loop
from wirecheck.streaming.steps.settings import AgentFiles, Settings
from wirecheck.streaming.steps.settled_connections import KEPT_NS, SECOND_NS, SettledConnections
from wirecheck.streaming.store.result_tables import from_ipc

AWAY_NS = IDLE_NS + 300 * SECOND_NS


@pytest.fixture(scope="module")
def shown(frames_files):
    """What one agent saw, and does not end."""
    whole = pa.concat_tables([frames_file.read(file) for file in frames_files]).cast(frames.FRAMES)
    shown = pa.compute.is_in(whole["kind"], pa.array([frames.FRAME, frames.SKIPPED], pa.int8()))
    return pa.concat_tables([whole.filter(shown), whole.slice(whole.num_rows - 1)])  # its last row says how far


def written(folder, shown, agent, number, *, later_ns=0, only=None):
    """The same by an agent, so much later and then between other ports; or only some of its frames."""
    table = frames.with_file_seq(shown, number)
    for port in ("src_port", "dst_port") if later_ns else ():
        moved = pa.compute.multiply(table[port], 2)
        moved = pa.compute.if_else(pa.compute.greater(moved, 65535), pa.compute.subtract(moved, 65535), moved)
        table = table.set_column(table.schema.get_field_index(port), port, moved.cast(pa.int32()))
    times = pa.array(table["ts_ns"].to_numpy() + later_ns)
    table = table.set_column(table.schema.get_field_index("ts_ns"), "ts_ns", times)
    table = table.set_column(table.schema.get_field_index("agent"), "agent", pa.array([agent] * table.num_rows))
    if only is not None:
        marks = pa.compute.not_equal(table["kind"], frames.FRAME)
        table = table.filter(pa.compute.or_(marks, only(table)))
    file = folder / f"{agent}-{number:010d}.parquet"
    return frame_files.write(table, file)


def rows_of(emitted_count):
    return {
        (row.route, line["id"]): line
        for row in emitted_count
        if row.route != "load"
        for line in from_ipc(row.cell).to_pylist()
    }


def counted(rows):
    return sum(line["count"] for (table, _), line in rows.items() if table == "totals" and line["measure"] == "frames")


def test_frames_of_settled_connections_are_counted_by_agent_and_change_no_row(tmp_path, shown):
    """Two agents saw the same; the second is away for 25 minutes and brings it then."""
    loop = Loop(Settings())
    loop.batch([written(tmp_path, shown, "a", 1)])
    assert counted(rows_of(loop.emitted)) > 100
    loop.batch([written(tmp_path, shown, "a", 2, later_ns=AWAY_NS)])
    loop.batch([written(tmp_path, shown, "a", 3, later_ns=AWAY_NS + 2 * AFTER_NS)])
    before, emitted_count = loop.result().json(), len(loop.emitted)
    loop.batch([written(tmp_path, shown, "b", 1)])
    news = rows_of(loop.emitted[emitted_count:])
    frames_of_b = pa.compute.sum(pa.compute.equal(shown["kind"], frames.FRAME)).as_py()
    late = {key: line for key, line in news.items() if "late_frames" in key[1]}
    assert {(table, line["measure"]) for (table, _), line in late.items()} == {
        ("coverage", "late_frames"), ("totals", "late_frames"),
    }  # fmt: skip
    assert {line["count"] for line in late.values()} == {frames_of_b}
    assert next(line["detail"] for (table, _), line in late.items() if table == "totals") == "b"
    assert next(line["detail"] for (table, _), line in late.items() if table == "coverage").startswith("b: ")
    about_b = {"judged_ns", "followed_files", "finding_revisions"}
    others = {key: line for key, line in news.items() if key not in late and line.get("measure") not in about_b}
    assert {line["code"] for line in others.values()} == {"VIS005"}, "that b is behind, and nothing else"
    after = loop.result().json()
    after["findings"] = [finding for finding in after["findings"] if finding["code"] != "VIS005"]
    assert after["coverage"].pop("late_frames") == frames_of_b
    after["coverage"]["details"].pop("late_frames")
    marks = {"dropped_frames", "skipped_frames", "input_errors"}  # of b's own files: they are told whenever they come
    assert {k: v for k, v in after["coverage"].items() if k not in marks} == {
        k: v for k, v in before["coverage"].items() if k not in marks
    }
    assert {**after, "coverage": None, "entries": None} == {**before, "coverage": None, "entries": None}
    page = Page()
    page.take({"totals": from_ipc(next(row.cell for row in loop.emitted[emitted_count:] if row.route == "totals"))})
    assert page.samples()["late_frames_total"] == {("L", "b"): float(frames_of_b)}


def test_what_nobody_else_has_shown_is_judged_however_late(tmp_path, shown):
    """The connections of one port are the second agent's alone."""
    ports = pa.compute.unique(pa.compute.max_element_wise(shown["src_port"], shown["dst_port"]).filter(
        pa.compute.equal(shown["kind"], frames.FRAME)
    )).to_pylist()  # fmt: skip
    mine = pa.array(sorted(ports)[: len(ports) // 2], pa.int32())

    def of_mine(table):
        return pa.compute.or_(pa.compute.is_in(table["src_port"], mine), pa.compute.is_in(table["dst_port"], mine))

    loop, alone = Loop(Settings()), Loop(Settings())
    loop.batch([written(tmp_path, shown, "a", 1, only=lambda table: pa.compute.invert(of_mine(table)))])
    loop.batch([written(tmp_path, shown, "a", 2, later_ns=AWAY_NS)])
    emitted_count = len(loop.emitted)
    (tmp_path / "b").mkdir()
    loop.batch([written(tmp_path / "b", shown, "b", 1)])
    alone.batch([written(tmp_path / "b", shown, "b", 1, only=of_mine)])
    nothing = written(
        tmp_path / "b", shown, "b", 2, later_ns=AWAY_NS, only=lambda table: pa.compute.less(table["ts_ns"], 0)
    )
    alone.batch([nothing])  # all of its connections have settled
    news = rows_of(loop.emitted[emitted_count:])
    late = next(
        line["count"] for (table, _), line in news.items() if table == "coverage" and line["measure"] == "late_frames"
    )
    all_frames = pa.compute.sum(pa.compute.equal(shown["kind"], frames.FRAME)).as_py()
    names = {
        line["connection"] for (table, _), line in rows_of(alone.emitted).items()
        if table == "coverage" and line["connection"]
    }  # fmt: skip
    assert names
    assert late < all_frames
    assert names <= {line["connection"] for (table, _), line in news.items() if table == "coverage"}


def test_a_replay_waits_for_all_and_knows_no_late_frames(tmp_path, shown):
    files = [
        written(tmp_path, shown, "a", 1), written(tmp_path, shown, "a", 2, later_ns=AWAY_NS),
        written(tmp_path, shown, "b", 1),
    ]  # fmt: skip
    loop = Loop(Settings(agents={"a": AgentFiles(1, (), 2), "b": AgentFiles(1, (), 1)}))
    for file in files:
        loop.batch([file])
    assert not any("late_frames" in name for _, name in rows_of(loop.emitted))


def connection(number, last_s, over=True):
    ends = Peer("10.0.0.1", 1000 + number), Peer("10.0.0.2", 9092)
    facts = dict.fromkeys(Connection.__dataclass_fields__, 0)
    return Connection(**facts | {"client": ends[0], "server": ends[1], "last_ns": last_s * SECOND_NS - 1, "over": over})


class Few:
    """Frames between the ends of these connections."""

    def __init__(self, *frames_):
        self.endpoints = (("10.0.0.2", 9092), *((("10.0.0.1", 1000 + number)) for number, _ in frames_))
        self.ts_ns = np.array([round(s * SECOND_NS) for _, s in frames_], np.int64)
        self.src = np.arange(1, len(frames_) + 1, dtype=np.int32)
        self.dst = np.zeros(len(frames_), np.int32)

    def __len__(self):
        return len(self.ts_ns)


def late(settled, passed_s, *frames_):
    found = settled.late(Few(*frames_), passed_s * SECOND_NS)
    return None if found is None else found.tolist()


def test_frames_are_late_that_all_have_passed_by_a_minute_and_ports_may_be_used_again():
    settled = SettledConnections()
    settled.let_go([connection(1, 100), connection(2, 100, over=False)])
    assert late(settled, 110, (1, 50)) is None, "no agent that is waited for is so late"
    assert late(settled, 300, (1, 50), (1, 160), (1, 160.1), (2, 50)) == [True, True, False, False]
    assert late(settled, 165, (1, 110)) is None
    settled.let_go([connection(1, 50)])
    assert late(settled, 300, (1, 150)) == [True]


def test_what_is_remembered_is_bounded_and_stored():
    settled = SettledConnections()
    settled.let_go(connection(number, 1000 + number) for number in range(100))
    settled.forget(KEPT_NS + 1050 * SECOND_NS)
    again = SettledConnections(*settled.stored())
    assert len(again.stored()[0]) == 50
    assert late(again, 5000, (49, 900), (50, 900), (99, 900)) == [False, True, True]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settled_connections, "MOST", 3)
        again.forget(0)
    assert sorted(again.stored()[1].tolist()) == [1097, 1098, 1099]
    assert again.stored()[0].tolist()[-1] == bucket_of("10.0.0.1", 1099, "10.0.0.2", 9092)
