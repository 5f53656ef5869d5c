"""Laws of frames folders: no agent's file changes what another agent's files produce, and no file is lost unnamed.

The path is the plain loop over a folder, as `replay --engine local` runs it; Spark runs the same steps.
"""

import itertools
import shutil
from operator import itemgetter

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests import frame_files
from tests.build import plain
from tests.depth import examples
from tests.traffic import Packet, Talk, ethernet, ip, pcap
from wirecheck.capture import frames, frames_file
from wirecheck.capture.agent.offline_agent import write_frames
from wirecheck.streaming.steps.frames_folder import agents_of, labelled_in
from wirecheck.streaming.steps.plain_loop import Loop
from wirecheck.streaming.steps.settings import AgentFiles, Settings

RUNS = examples(15, deep=60)
FILES = 3
DAY_NS = 86_400_000_000_000
NUMBERS = itertools.count()
OTHERS = [f"{agent}-{number:010d}.parquet" for agent in ("honest", "broker1", "x") for number in (1, 2, 3, 12)]
OTHERS.append("notes.parquet")
UNSTABLE = {"id", "revision"}
TOPIC_ID = "1kItcVyISSW2qinBWMWing"


def traffic():
    """Five connections one after the other; the topic is fetched by an unknown ID for a minute."""
    segments = []
    for number in range(5):
        start_ns = 1_700_000_000_000_000_000 + number * 15_000_000_000
        talk = Talk(client=("10.0.0.1", 40000 + number), ts_ns=start_ns, step_ns=100_000_000).open()
        for k in range(30):
            answer = {
                "brokers": [{"nodeId": 1, "host": "10.0.0.9", "port": 9092}],
                "clusterId": "lab-cluster-id-22-char",
            }
            exchange(talk, 2 * k, "Metadata", 12, {"topics": None}, answer)
            wanted = {"sessionEpoch": -1, "topics": [{"topicId": TOPIC_ID, "partitions": [{"partition": 0}]}]}
            denied = [{"topicId": TOPIC_ID, "partitions": [{"partitionIndex": 0, "errorCode": 100}]}]
            exchange(talk, 2 * k + 1, "Fetch", 13, wanted, {"responses": denied})
        segments += talk.close().segments
    return [Packet(segment.ts_ns, ethernet(ip(segment))) for segment in segments]


def exchange(talk, number, api, version, request, response):
    talk.request(plain(api, "request", version, request, {"correlationId": number, "clientId": "app"}))
    talk.response(plain(api, "response", version, response, {"correlationId": number}))


class Folder:
    """The frames files of one agent and what they produce."""

    def __init__(self, files):
        self.files = files
        self.exchanges, self.verdict = judged(files)


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    folder = tmp_path_factory.mktemp("honest")
    (folder / "x.pcap").write_bytes(pcap(traffic()))
    files = write_frames([folder / "x.pcap"], folder / "frames", "default", agent="honest", roll_bytes=30_000).files
    assert len(files) == FILES
    return Folder(files)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("folders")


def judged(files):
    files = sorted(files)
    loop = Loop(Settings(exchanges=True, buckets=2, agents=labelled_in(agents_of(files), files)))
    for some in (files[at : at + 2] for at in range(0, len(files), 2)):
        loop.batch(some)
    shown = ({name: value for name, value in row.items() if name not in UNSTABLE} for row in loop.rows("exchanges"))
    return sorted(tuple(map(str, row.values())) for row in shown), loop.result().json()


def errors(verdict):
    return verdict["coverage"]["input_errors"]


def without_errors(verdict):
    named = {"input_errors", "quarantined_files", "missing_files", "details"}
    return verdict | {"coverage": {key: value for key, value in verdict["coverage"].items() if key not in named}}


@st.composite
def intruders(draw):
    """Agent and number in the name; agent, number and cluster in the rows; has it frames; its clock ahead."""
    agents = st.sampled_from(["evil", "honest", "a-honest"])
    name = draw(st.sampled_from(["evil", "zz"])), draw(st.sampled_from([1, 2, 3, 2_000_000_000, 9_999_999_999]))
    rows = draw(agents), draw(st.sampled_from([1, 2, 3, 2_000_000_000])), draw(st.sampled_from(["default", "other"]))
    return name, rows, draw(st.booleans()), draw(st.sampled_from([0, 0, -DAY_NS, DAY_NS // 2, 4_000 * DAY_NS]))


def write(path, source, rows, *, with_frames, ahead_ns):
    agent, number, cluster = rows
    table = frames_file.read(source).cast(frames.FRAMES)
    if not with_frames:
        table = table.filter(pc.not_equal(table["kind"], frames.FRAME))
    place = table.schema.get_field_index("ts_ns")
    table = table.set_column(place, "ts_ns", pc.add(table["ts_ns"], ahead_ns))
    for column, value in (("agent", agent), ("file_seq", number), ("cluster", cluster)):
        place = table.schema.get_field_index(column)
        field = table.schema.field(column)
        table = table.set_column(place, field, pa.array([value] * len(table), field.type))
    frame_files.write(table, path)


UNREADABLE = [(("zz", 1), ("evil", 1, "default"), False, 0), (("zz", 2_000_000_000), ("evil", 1, "default"), False, 0)]
"""An agent that is expected, and of which no file can be read: the capture ends all the same."""


@RUNS
@example(UNREADABLE)
@given(given_files=st.lists(intruders(), min_size=1, max_size=3, unique_by=itemgetter(0)))
def test_a_file_of_one_agent_changes_nothing_of_what_anothers_files_produce(honest, scratch, given_files):
    folder = scratch / str(next(NUMBERS))
    folder.mkdir()
    for file in honest.files:
        (folder / file.name).symlink_to(file)
    named = set()
    for (agent, number), rows, with_frames, ahead_ns in given_files:
        path = folder / f"{agent}-{number:010d}.parquet"
        honest_rows = rows[:2] == (agent, number)
        write(path, honest.files[0], rows, with_frames=with_frames and not honest_rows, ahead_ns=ahead_ns)
        named |= set() if honest_rows else {path.name}
    found, reports = judged(folder.glob("*.parquet"))
    assert found == honest.exchanges
    assert [row for row in without_errors(reports)["findings"] if not row["code"].startswith("VIS")] == [
        row for row in honest.verdict["findings"] if not row["code"].startswith("VIS")
    ]
    assert reports["coverage"]["frames"] == honest.verdict["coverage"]["frames"]
    assert all(any(name in line for line in errors(reports)) for name in named)


def test_an_agent_that_was_expected_and_never_came_is_a_line_of_coverage(honest):
    loop = Loop(Settings(agents={"honest": AgentFiles(1, (), FILES), "ghost": AgentFiles(1, (), 3)}))
    loop.batch(honest.files[:-1])
    assert errors(loop.result().json()) == []
    loop.batch(honest.files[-1:])
    assert errors(loop.result().json()) == ["ghost: its files were expected and none arrived"]


@RUNS
@given(new=st.lists(st.sampled_from(OTHERS), min_size=FILES, max_size=FILES, unique=True))
def test_a_folder_with_renamed_files_gives_the_same_or_names_each_of_them(honest, scratch, new):
    folder = scratch / str(next(NUMBERS))
    folder.mkdir()
    names = [file.name for file in honest.files]
    for file, name in zip(honest.files, new, strict=True):
        shutil.copy(file, folder / name)
    found, reports = judged(folder.glob("*.parquet"))
    renamed = [name for name, before in zip(new, names, strict=True) if name != before]
    assert all(any(name in line for line in errors(reports)) for name in renamed)
    if not renamed:
        assert (found, reports) == (honest.exchanges, honest.verdict)
