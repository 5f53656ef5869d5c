"""The frames table as arrays: columns, endpoints, spans, buckets."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from wirecheck.decode.connection.segments import CLASSES, bucket_of, class_of, distinct, segments

SPAN = pa.struct([("offset", pa.int32()), ("length", pa.int32())])


def table(rows, coded=False, chunks=1):
    columns = ("kind", "cluster", "agent", "source", "frame_no", "ts_ns", "src_ip", "src_port", "dst_ip", "dst_port",
               "tcp_seq", "tcp_ack", "tcp_flags", "payload", "payload_len", "left_out")  # fmt: skip
    types = (pa.int8(), pa.string(), pa.string(), pa.string(), pa.int64(), pa.int64(), pa.string(), pa.int32(),
             pa.string(), pa.int32(), pa.int64(), pa.int64(), pa.int32(), pa.binary(), pa.int32(),
             pa.list_(SPAN))  # fmt: skip
    made = pa.table({n: pa.array([r[i] for r in rows], t) for i, (n, t) in enumerate(zip(columns, types, strict=True))})
    if coded:
        for name in ("cluster", "agent", "source", "src_ip", "dst_ip"):
            made = made.set_column(made.schema.get_field_index(name), name, made[name].dictionary_encode())
    step = -(-len(rows) // chunks)
    return pa.concat_tables([made.slice(i, step) for i in range(0, len(rows), step)])


def row(number, payload=b"", left_out=(), client=40000, kind=0):
    spans = [{"offset": o, "length": n} for o, n in left_out]
    length = len(payload) + sum(n for _, n in left_out)
    ends = ("10.0.0.2", client, "10.0.0.1", 9092) if kind == 0 else (None, 0, None, 0)
    return (kind, "blue", "agent-1", "a.pcap", number, number * 1000, *ends, 7, 8, 24, payload, length, spans)


@pytest.mark.parametrize("coded", [False, True])
@pytest.mark.parametrize("chunks", [1, 2, 3])
def test_columns_become_arrays_whatever_their_encoding_and_chunks(coded, chunks):
    made = segments(table([row(1, b"abc"), row(2, b"de", [(1, 5)]), row(3)], coded, chunks))
    assert made.label == "blue"
    assert [made.names[i] for i in made.agent] == ["agent-1"] * 3
    assert [made.names[i] for i in made.source] == ["a.pcap"] * 3
    assert [made.endpoints[i] for i in made.src] == [("10.0.0.2", 40000)] * 3
    assert [made.endpoints[i] for i in made.dst] == [("10.0.0.1", 9092)] * 3
    assert made.payload.tobytes() == b"abcde"
    assert made.payload_at.tolist() == [0, 3, 5, 5]
    assert made.payload_len.tolist() == [3, 7, 0]
    assert made.left_at.tolist() == [0, 0, 1, 1]
    assert (made.left_offset.tolist(), made.left_length.tolist()) == ([1], [5])


def test_marks_are_left_aside():
    made = segments(table([row(1, kind=1), row(2, b"x"), row(3, kind=4)]))
    assert made.frame_no.tolist() == [2]


def test_a_table_without_frames_gives_no_segments():
    assert len(segments(table([row(1, kind=1)]))) == 0


def test_taking_rows_takes_their_bytes_and_spans():
    made = segments(table([row(1, b"abc"), row(2, b"de", [(1, 5)]), row(3, b"f")]))
    taken = made.take(np.array([2, 1]))
    assert (taken.payload.tobytes(), taken.payload_at.tolist()) == (b"fde", [0, 1, 3])
    assert (taken.left_at.tolist(), taken.left_length.tolist()) == ([0, 0, 1], [5])
    assert made.take(np.array([True, False, True])).frame_no.tolist() == [1, 3]


def test_parts_are_the_rows_in_their_order_without_a_copy():
    made = segments(table([row(1, b"abc"), row(2, b"de", [(1, 5)]), row(3, b"f")]))
    first, second = made.parts(2)
    assert (first.frame_no.tolist(), second.frame_no.tolist()) == ([1, 2], [3])
    assert second.payload[second.payload_at[0] : second.payload_at[1]].tobytes() == b"f"
    assert (first.left_at.tolist(), second.left_at.tolist()) == ([0, 0, 1], [1, 1])
    assert second.payload is made.payload


def test_both_directions_share_a_bucket_and_it_never_changes():
    assert bucket_of("10.0.0.2", 40000, "10.0.0.1", 9092) == bucket_of("10.0.0.1", 9092, "10.0.0.2", 40000)
    assert bucket_of("10.0.0.2", 40000, "10.0.0.1", 9092) == 3255911903
    made = segments(table([row(i, client=40000 + i) for i in range(50)]))
    buckets = made.buckets(8)
    assert buckets.tolist() == [
        bucket_of(*made.endpoints[s], *made.endpoints[d]) % 8 for s, d in zip(made.src, made.dst, strict=True)
    ]
    assert len(set(buckets.tolist())) == 8
    classes = [class_of(*made.endpoints[s], *made.endpoints[d]) for s, d in zip(made.src, made.dst, strict=True)]
    assert made.buckets(3).tolist() == [kind % 3 for kind in classes]
    assert made.buckets(CLASSES).tolist() == classes


def test_distinct_numbers_keys_by_first_appearance_however_many():
    keys = np.random.default_rng(1).integers(0, 1 << 60, 5000)
    found, index = distinct(np.concatenate([keys, keys[::-1]]))
    assert found.tolist() == list(dict.fromkeys(keys.tolist()))
    assert (found[index[:5000]] == keys).all()


def test_rows_whose_numbers_are_their_agents_own_are_known_by_their_column():
    made = table([row(1, b"a"), row(2, b"b")])
    assert segments(made).run.tolist() == [0, 0]
    assert segments(made.append_column("decrypted", pa.array([0, 7]))).run.tolist() == [0, 7]


def test_payload_within_other_bytes_is_not_copied():
    made = segments(table([row(1, b"abc"), row(2, b"de")]))
    around = b"head" + made.payload.tobytes() + b"tail"
    inside = replace(made, payload=np.frombuffer(memoryview(around), np.uint8)[4:-4])
    begin, data = list(inside.parts(1))[1].kept_bytes()
    assert data is around
    assert data[3 - begin : 5 - begin] == b"de"
    begin, data = list(made.parts(1))[1].kept_bytes()
    assert data[3 - begin : 5 - begin] == b"de"
