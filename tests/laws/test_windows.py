"""What is counted by the minute and kept comes to what one pass over the capture counts."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.depth import some
from wirecheck.questions.error_rows import error_rows
from wirecheck.questions.latency_rows import latency_rows
from wirecheck.questions.traffic import Traffic
from wirecheck.session.frame_tables import capture_frames
from wirecheck.session.local_check import checked
from wirecheck.session.results import traffic_of
from wirecheck.session.session import Session
from wirecheck.streaming.steps.settings import Settings

CAPTURES = sorted((Path(__file__).parents[1] / "scenarios/captures").glob("*/capture.pcap*"))


@pytest.mark.parametrize("capture", some(CAPTURES, each=5), ids=lambda path: path.parent.name)
def test_minutes_add_up_to_the_whole(capture, tmp_path):
    dialects = ("kip516-draft",) if "draft" in capture.parent.name else ()
    session = Session(dialects=dialects)
    with capture_frames(session, (str(capture),), strict=False) as frames:
        whole = Traffic(dialects=dialects).read(frames, ())
    checked(session, [str(capture)], "lab", Settings(dialects=dialects, by_minute=True)).run.write(tmp_path)
    kept, _ = traffic_of(session, tmp_path, (), (None, None))
    latencies, errors = ([make(one) for one in (kept, whole)] for make in (latency_rows, error_rows))
    assert [*map(of_no_cluster, latencies[0])] == [*map(of_no_cluster, latencies[1])]
    assert [*map(named, errors[0])] == [*map(named, errors[1])]
    for rows in (latencies, errors):  # the checks know controllers, too, which state no cluster ID
        assert all(seen.cluster in {None, row.cluster} for row, seen in zip(*rows, strict=True))
    assert whole.calls


def of_no_cluster(row):
    return replace(row, cluster=None)


def named(row):
    """In microseconds, as tables have times."""
    return (*row_of(row), row.first_ns // 1000, row.last_ns // 1000)


def row_of(row):
    return row.effect, row.status, row.error, row.client_id, row.host, row.api, row.topic, row.count, row.requests
