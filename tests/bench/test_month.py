"""The month's traffic: every few hours other connections, every day other clients and a topic created again."""

import pyarrow.compute as pc
import pytest

from bench import month
from bench.month import ID, PORTS, STEP_S, STEPS_A_DAY, Traffic
from wirecheck.capture import frames_file


@pytest.fixture(scope="module")
def traffic(tmp_path_factory):
    return Traffic(tmp_path_factory.mktemp("month"))


def clients(table):
    pairs = zip(table["src_ip"].to_pylist(), table["src_port"].to_pylist(), strict=True)
    return {pair for pair in pairs if pair[1] >= PORTS}


def test_no_connection_of_one_file_is_there_in_another(traffic):
    seen = [clients(traffic.frames_of(step)) for step in (0, 1, STEPS_A_DAY, 29 * STEPS_A_DAY)]
    assert [len(some) for some in seen] == [month.CONNECTIONS] * 4
    assert len(set().union(*seen)) == 4 * month.CONNECTIONS


def test_frames_lie_within_their_time(traffic):
    for step in (0, 7, 230):
        found = pc.min_max(traffic.frames_of(step)["ts_ns"]).as_py()
        begin_ns = (month.BEGUN_S + step * STEP_S) * 10**9
        assert begin_ns <= found["min"] < found["max"] < begin_ns + STEP_S * 10**9


def test_clients_are_new_every_day_and_a_topic_has_another_id(traffic):
    today, tomorrow = (traffic.payload(day * STEPS_A_DAY, day) for day in (0, 2))
    assert len(today) == len(tomorrow)
    assert b"con02mer-" in tomorrow
    assert b"con02mer-" not in today
    for topic in (0, 1, 2):
        assert ID + bytes([topic]) not in tomorrow
    assert ID + bytes([3]) in tomorrow


def test_on_some_days_clients_keep_the_old_id_of_what_the_servers_have_anew(traffic):
    said = traffic.payload(STEPS_A_DAY + 5, 1)
    assert b"orders-1" + ID + bytes([1]) not in said
    assert ID + bytes([1]) in said


def test_both_agents_files_are_files_of_frames(traffic, tmp_path):
    files = traffic.publish(3, tmp_path)
    tables = [frames_file.read(file) for file in files]
    assert [file.name for file in files] == ["a-0000000004.parquet", "b-0000000004.parquet"]
    between_brokers = pc.and_(
        pc.is_in(traffic.table["src_ip"], pc.unique(traffic.table["dst_ip"])),
        pc.starts_with(traffic.table["src_ip"], "10.0.0."),
    )
    seen = sum(table.num_rows for table in tables) - 2
    assert traffic.table.num_rows <= seen < traffic.table.num_rows + pc.sum(between_brokers).as_py()
