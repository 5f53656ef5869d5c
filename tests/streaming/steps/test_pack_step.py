"""Frames files are dealt to buckets whole, and joined again."""

import os

import numpy as np
import pyarrow as pa
import pytest

from tests import frame_files
from wirecheck.capture import frames, frames_file
from wirecheck.decode.connection.segments import segments
from wirecheck.streaming.steps import pack_step
from wirecheck.streaming.steps.frames_folder import agents_of, labelled_in
from wirecheck.streaming.steps.quarantine import label_of
from wirecheck.streaming.steps.settings import AgentFiles, Settings


@pytest.fixture(scope="module")
def table(frames_files):
    return pack_step.read(str(frames_files[0]))


def facts(part):
    """Every row as a tuple, names and addresses spelled out."""
    return [
        (
            part.names[part.source[i]], int(part.frame_no[i]), part.endpoints[part.src[i]], part.endpoints[part.dst[i]],
            int(part.seq[i]), bytes(part.payload[part.payload_at[i] : part.payload_at[i + 1]]),
            part.left_offset[part.left_at[i] : part.left_at[i + 1]].tolist(),
        )
        for i in range(len(part))
    ]  # fmt: skip


def test_every_frame_is_in_one_bucket_and_both_directions_are_in_the_same(table):
    whole = segments(table)
    dealt = [part for part in pack_step.deal(whole, 4) if part is not None]
    assert sorted(row for part in dealt for row in facts(part)) == sorted(facts(whole))
    pairs = [{frozenset((row[2], row[3])) for row in facts(part)} for part in dealt]
    assert len(set().union(*pairs)) == sum(map(len, pairs))


def test_a_bucket_knows_only_its_own_endpoints(table):
    dealt = [part for part in pack_step.deal(segments(table), 4) if part is not None]
    assert len(dealt) > 1
    for part in dealt:
        assert set(np.concatenate([part.src, part.dst]).tolist()) == set(range(len(part.endpoints)))


def test_parts_joined_are_the_rows_in_order(frames_files):
    parts = [segments(pack_step.read(str(path))) for path in frames_files[:3]]
    assert facts(pack_step.together(parts)) == [row for part in parts for row in facts(part)]


def test_every_bucket_hears_the_marks(frames_files):
    rows = list(next(pack_step.pack_files([str(frames_files[0])], Settings(buckets=5))))
    files = [pack_step.read_file(row.cell) for row in rows]
    assert [(row.label, row.bucket) for row in rows] == [("L", number) for number in range(5)]
    assert {file.file_seq for file in files} == {1}
    assert all(file.marks[0].kind == frames.STARTED and file.marks[-1].kind == frames.PROGRESS for file in files)


@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
def test_a_path_is_read_however_spark_spells_it(frames_files, tmp_path, scheme):
    strange = tmp_path / "a %20b+c.parquet"
    strange.symlink_to(frames_files[0])
    assert pack_step.read(f"{scheme}{strange}").num_rows == pack_step.read(str(frames_files[0])).num_rows


def test_a_damaged_file_is_named(frames_files, tmp_path):
    damaged = tmp_path / "a-0000000001.parquet"
    damaged.write_bytes(frames_files[0].read_bytes()[:-9])
    with pytest.raises(pack_step.NotFramesError, match="Parquet"):
        pack_step.read(str(damaged))


POISON = {
    "truncated": lambda good: good[: len(good) // 2],
    "empty": lambda _: b"",
    "noise": lambda good: bytes(reversed(good)),
    "broken pages": lambda good: good[:200] + bytes(len(good) - 20_200) + good[-20_000:],
}


@pytest.mark.parametrize("spoil", POISON.values(), ids=POISON)
def test_a_file_that_cannot_be_read_keeps_its_number_and_its_neighbours_label(frames_files, tmp_path, spoil):
    (tmp_path / frames_files[0].name).symlink_to(frames_files[0])
    bad = tmp_path / "a-0000000002.parquet"
    bad.write_bytes(spoil(frames_files[1].read_bytes()))
    (rows,) = map(list, pack_step.pack_files([f"file:{bad}"], Settings(buckets=2)))
    files = [pack_step.read_file(row.cell) for row in rows]
    assert [(row.label, row.bucket, file.agent, file.file_seq) for row, file in zip(rows, files, strict=True)] == [
        ("L", 0, "a", 2), ("L", 1, "a", 2),
    ]  # fmt: skip
    said = [(mark.kind, mark.source) for mark in files[0].marks]
    assert said == [(frames.INPUT_ERROR, bad.name), (frames.QUARANTINED, bad.name)]
    assert files[0].segments is None
    assert files[0].marks[0].reason


def test_a_file_of_another_name_is_an_agent_of_its_own_that_has_ended(tmp_path):
    (tmp_path / "notes.parquet").write_bytes(b"hello")
    (rows,) = map(list, pack_step.pack_files([str(tmp_path / "notes.parquet")], Settings(buckets=1)))
    file = pack_step.read_file(rows[0].cell)
    assert (rows[0].label, file.agent, file.file_seq, file.marks[-1].kind) == (
        "unknown", "notes.parquet", 1, frames.ENDED,
    )  # fmt: skip


def test_a_file_that_lies_about_its_payloads_is_set_aside(frames_files, tmp_path):
    table = pack_step.read(str(frames_files[0])).cast(frames.FRAMES)
    place = table.schema.get_field_index("payload_len")
    lies = table.set_column(place, "payload_len", pa.array([1 << 20] * len(table), pa.int32()))
    frame_files.write(lies, tmp_path / "a-0000000001.parquet")
    (rows,) = map(list, pack_step.pack_files([str(tmp_path / "a-0000000001.parquet")], Settings(buckets=1)))
    file = pack_step.read_file(rows[0].cell)
    assert [mark.kind for mark in file.marks] == [frames.INPUT_ERROR, frames.QUARANTINED]
    assert "bytes kept" in file.marks[0].reason
    assert file.segments is None


def test_a_file_that_is_gone_is_told_and_a_disk_that_fails_is_not_its_fault(tmp_path, monkeypatch):
    (rows,) = map(list, pack_step.pack_files([str(tmp_path / "a-0000000001.parquet")], Settings(buckets=1)))
    assert pack_step.read_file(rows[0].cell).marks[0].reason == "it was gone before it was read"

    def refused(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(frames_file, "read", refused)
    with pytest.raises(PermissionError):
        pack_step.read(str(tmp_path / "a-0000000001.parquet"))


@pytest.mark.parametrize(
    ("columns", "words"), [(["ts_ns"], "^not a file of frames: no cluster$"), (None, "no progress row")]
)
def test_a_table_of_something_else_is_named(frames_files, tmp_path, columns, words):
    table = pack_step.read(str(frames_files[0])).slice(0, 5)
    frame_files.write(table.select(columns) if columns else table, tmp_path / "x.parquet")
    with pytest.raises(pack_step.NotFramesError, match=words):
        pack_step.read(str(tmp_path / "x.parquet"))


def stamped(table, path, agent, number, cluster):
    """The same rows as the file of another agent, number or cluster."""
    table = table.cast(frames.FRAMES)
    for name, value in (("agent", agent), ("file_seq", number), ("cluster", cluster)):
        place = table.schema.get_field_index(name)
        field = table.schema.field(name)
        table = table.set_column(place, field, pa.array([value] * len(table), field.type))
    frame_files.write(table, path)
    return path


def packed(path, settings=Settings(buckets=1)):
    (rows,) = map(list, pack_step.pack_files([str(path)], settings))
    (row,) = rows
    return row.label, pack_step.read_file(row.cell)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("evil-0000000001.parquet", "its name does not match its rows, which are file 1 of agent 'a'"),
        ("a-0000000002.parquet", "its name does not match its rows, which are file 1 of agent 'a'"),
        ("a-" + "\u0660" * 9 + "\u0661.parquet", "its name does not match its rows, which are file 1 of agent 'a'"),
        ("notes.parquet", "its name does not match its rows, which are file 1 of agent 'a'"),
    ],
)
def test_a_file_whose_rows_belong_to_another_agent_or_number_is_set_aside_under_its_own_name(
    table, tmp_path, name, reason
):
    label, file = packed(stamped(table, tmp_path / name, "a", 1, "L"))
    agent, _, number = name.removesuffix(".parquet").rpartition("-")
    own = (agent, int(number)) if number.isascii() and number.isdecimal() else (name, 1)
    assert (label, (file.agent, file.file_seq), file.segments) == ("L", own, None)
    assert [(mark.kind, mark.source, mark.reason) for mark in file.marks][:2] == [
        (frames.INPUT_ERROR, name, reason), (frames.QUARANTINED, name, reason),
    ]  # fmt: skip


def test_where_all_files_are_known_an_agent_has_one_cluster(table, tmp_path):
    """Its number is awaited under the cluster of its first file: there it is set aside."""
    path = stamped(table, tmp_path / "a-0000000002.parquet", "a", 2, "other")
    known = Settings(buckets=1, agents={"a": AgentFiles(1, (), 2, "L")})
    label, file = packed(path, known)
    assert (label, file.agent, file.file_seq, file.segments) == ("L", "a", 2, None)
    assert file.marks[0].reason == "its cluster is 'other', and that of its agent's first file is 'L'"
    assert packed(path)[0] == "other"


def link_to_itself(path):
    path.symlink_to(path)


def link_to_nothing(path):
    path.symlink_to(path.with_name("nothing"))


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (os.mkfifo, "not a regular file"),
        (link_to_itself, "a link to a file that does not exist"),
        (link_to_nothing, "a link to a file that does not exist"),
    ],
)
def test_what_is_no_file_is_named_and_not_opened(table, tmp_path, alone, make, reason):
    """Opening a FIFO would wait until another process writes to it."""
    if not alone:
        stamped(table, tmp_path / "a-0000000002.parquet", "a", 2, "L")
    make(tmp_path / "a-0000000001.parquet")
    label, file = packed(tmp_path / "a-0000000001.parquet")
    assert (label, file.marks[0].reason) == ("unknown" if alone else "L", reason)
    known = labelled_in(agents_of([tmp_path / "a-0000000001.parquet"]), [tmp_path / "a-0000000001.parquet"])
    assert known["a"].label == label


def test_a_name_that_is_no_text_is_written_out(table, tmp_path):
    stamped(table, tmp_path / "a-0000000002.parquet", "a", 2, "L")
    path = tmp_path / "b\udcff-0000000001.parquet"
    path.write_bytes(b"PAR1")
    label, file = packed(path)
    assert (label, file.agent, file.marks[0].source) == ("L", "b\\xff", "b\\xff-0000000001.parquet")
    assert list(agents_of([path])) == ["b\\xff"]


def test_the_label_of_an_unreadable_file_is_that_of_its_agents_nearest_file(table, tmp_path):
    """Whatever else the folder lists before and after it."""
    for agent, number, label in (("a", 5, "far"), ("m", 4, "near"), ("m", 9, "later"), ("z", 5, "other")):
        stamped(table, tmp_path / f"{agent}-{number:010d}.parquet", agent, number, label)
    (tmp_path / "m-0000000005.parquet").write_bytes(b"no Parquet")
    assert label_of(str(tmp_path / "m-0000000005.parquet")) == "near"
