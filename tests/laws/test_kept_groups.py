"""What is kept of groups comes to what one pass over the capture shows, but for what rests on points in between."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.depth import some
from wirecheck.questions.group_rows import Groups
from wirecheck.questions.subject import Subject
from wirecheck.questions.subject_facts import kinds_of, sections
from wirecheck.session.cluster_readings import Reading, group_rows, read, servers_of, subjects
from wirecheck.session.frame_tables import capture_frames
from wirecheck.session.kept_subjects import groups_of, kept_subjects, subject_of
from wirecheck.session.local_check import checked
from wirecheck.session.session import Session
from wirecheck.streaming.steps.settings import Settings

CAPTURES = sorted(
    path
    for path in (Path(__file__).parents[1] / "scenarios/captures").glob("*/capture.pcap*")
    if "draft" not in path.parent.name
)
OF_ONE_CLUSTER = [path for path in CAPTURES if path.parent.name != "two-clusters-one-wire"]
TWO = next(path for path in CAPTURES if path not in OF_ONE_CLUSTER)
NEEDS_CAPTURE = {"Connections", "Connections without a request, of the same hosts", "Registrations"}
DESCRIBED = "Partitions, as brokers describe them"


def checked_into(capture, folder):
    settings = Settings(by_minute=True)
    checked(
        Session(), [str(capture)], "lab", replace(settings, judge=replace(settings.judge, agreement_rows=1))
    ).run.write(folder)


@pytest.mark.parametrize("capture", some(CAPTURES, each=5), ids=lambda path: path.parent.name)
def test_groups_of_results_are_those_of_the_capture(capture, tmp_path):
    reading, frames_of = Reading(Session(), [str(capture)]), capture_frames(Session(), [str(capture)], strict=False)
    with frames_of as frames:
        whole = Groups().read(frames, ())
    checked_into(capture, tmp_path)
    assert [*map(kept, groups_of(Session(), tmp_path).rows)] == [*map(kept, group_rows(reading, whole))]


def kept(row):
    """In microseconds, as tables have times; without what points of every ten seconds are too few for."""
    times = {
        name: None if (ns := getattr(row, name)) is None else ns // 1000 for name in ("committed_ns", "watermark_ns")
    }
    return replace(row, lag_seconds=None, lag_per_second=None, **times)


@pytest.mark.parametrize("capture", some(OF_ONE_CLUSTER, each=5), ids=lambda path: path.parent.name)
def test_a_name_is_in_results_what_it_is_in_the_capture(capture, tmp_path):
    checked_into(capture, tmp_path)
    with capture_frames(Session(), [str(capture)], strict=False) as frames:
        traffic = Groups().read(frames, ())
    names = {*traffic.groups, *traffic.traffic.topics(), *filter(None, traffic.traffic.client_ids()), "1"}
    for name in some(sorted(names), each=7):
        with capture_frames(Session(), [str(capture)], strict=False) as frames:
            whole = Subject(name).read(frames, ())
        found, result = subject_of(Session(), tmp_path, name)
        assert kinds_of(found) == kinds_of(whole), name
        for kind in kinds_of(whole):
            if len(servers_of(result)) > 1:
                same_in_each(tmp_path, Reading(Session(), [str(capture)]), found, whole, result, kind)
            else:
                assert shown(sections(found, kind)) == shown(sections(whole, kind)), name


def shown(found):
    return {
        title: [
            (fact.what, fact.who, count(title, fact), us(fact.first_ns), us(fact.last_ns), words(title, fact.details))
            for fact in facts
        ]
        for title, facts in found.items()
        if title not in NEEDS_CAPTURE | {DESCRIBED}
    }


def count(title, fact):
    """How many responses state an ID is not kept."""
    return None if title == "Topic IDs" else fact.count


def us(time_ns):
    return None if time_ns is None else time_ns // 1000


def words(title, details):
    """Without since when records wait, and without which brokers still state an ID."""
    return details.partition(" for ")[0] if title == "Offsets" else details.partition(", still stated")[0]


def test_a_name_of_several_clusters_is_in_results_what_it_is_in_the_capture_of_each(tmp_path):
    checked_into(TWO, tmp_path)
    for name, clusters in (("orders", 2), ("stock", 2), ("mirror", 2), ("1", 2), ("c-east", 1)):
        reading, whole = Reading(Session(), [str(TWO)]), Subject(name)
        with capture_frames(Session(), [str(TWO)], strict=False) as frames:
            result = read(reading, whole, frames)
        kept_whole, _ = subject_of(Session(), tmp_path, name)
        for kind in kinds_of(whole):
            found = same_in_each(tmp_path, reading, kept_whole, whole, result, kind)
            assert len(found) == clusters or kind not in kinds_of(whole)[:1]


def same_in_each(folder, reading, kept_whole, whole, result, kind):
    """What is shown of a name where there are several clusters."""
    expected, found = subjects(reading, whole, result, kind), kept_subjects(folder, kept_whole, result, kind)
    assert [cluster for cluster, _ in found] == [cluster for cluster, _ in expected]
    for (_, mine), (_, its) in zip(found, expected, strict=True):
        assert timeless(sections(mine, kind)) == timeless(sections(its, kind)), (whole.name, kind)
    return found


def timeless(found):
    """Who uses a topic of one name in both clusters within one minute: the times are those of all its requests then."""
    uses = {"Written by", "Read by", "Topics"}
    return {title: [(one[:3] if title in uses else one) for one in facts] for title, facts in shown(found).items()}
