"""Large messages without their records say the same about records, and what may not be left away is not."""

import base64

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.build import plain
from tests.decode.connection.conversations import segments, sized
from tests.traffic import Talk
from wirecheck.decode.connection.follower import Follower
from wirecheck.decode.connection.framing.without_records import LARGE, MOST_FIELDS
from wirecheck.decode.secrecy import confidential

SIZES = st.lists(st.sampled_from([0, 1, 250, 320, 5_000, 40_000]), min_size=1, max_size=90)


def records(size: int) -> str:
    return base64.b64encode(bytes([0xEE]) * size).decode()


def fetched(sizes: list[int], version: int = 12, topic: str = "orders") -> bytes:
    far = dict.fromkeys(("highWatermark", "lastStableOffset"), 1 << 40)
    partitions = [{"partitionIndex": i, "records": records(size)} | far for i, size in enumerate(sizes)]
    body = {"responses": [{"topic": topic, "partitions": partitions}]}
    return plain("Fetch", "response", version, body, {"correlationId": 1})


def produced(sizes: list[int], version: int = 9) -> bytes:
    partitions = [{"index": i, "records": records(size)} for i, size in enumerate(sizes)]
    body = {"acks": -1, "topicData": [{"name": "orders", "partitionData": partitions}]}
    return plain("Produce", "request", version, body, {"clientId": "c", "correlationId": 2})


def followed(answer: bytes, more: bytes, mss: int, version: int = 12, *, early: bool):
    asked = plain("Fetch", "request", version, {}, {"clientId": "c", "correlationId": 1})
    talk = Talk(mss=mss).open().request(asked).response(answer).request(more)
    follower = Follower(early=early)
    cut = len(talk.segments) // 2  # some of the bytes wait for a later call
    found = [follower.receive(segments(talk.segments[:cut])), follower.receive(segments(talk.segments[cut:]))]
    return [result.messages for result in [*found, follower.drain()]]


def said(batches) -> set:
    """Kind, status and confidential spans of every message."""
    found = set()
    for messages in batches:
        spans, status = confidential(messages, np.full(len(messages), -1, np.int64))
        for i in range(len(messages)):
            places = [(int(spans.offset[k]), int(spans.length[k])) for k in np.flatnonzero(spans.message == i)]
            kind = int(messages.side[i]), int(messages.key[i]), int(messages.size[i])
            found.add((*kind, int(status[i]), tuple(places)))
    return found


def kept(batches, side: int) -> int:
    """Bytes handed out of the messages of one side."""
    lengths = [np.diff(messages.at)[messages.side == side].sum() for messages in batches]
    return int(sum(lengths))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(SIZES, SIZES, st.sampled_from([4, 11, 12, 13]), st.sampled_from([1448, 60_000]))
def test_it_says_the_same_of_records(answered, asked, version, mss):
    answer, more = fetched(answered, version), produced(asked)
    early = followed(answer, more, mss, version, early=True)
    assert said(early) == said(followed(answer, more, mss, version, early=False))


@pytest.mark.parametrize("size", [10_000, 1_000_000])
def test_records_are_not_copied(size):
    batches = followed(fetched([size] * 3), produced([size] * 2), 1448, early=True)
    assert max(kept(batches, 0), kept(batches, 1)) < 3000


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(fetched([10_000] * 2, topic="__cluster_metadata"), id="the metadata log"),
        pytest.param(fetched([10_000]) + bytes(9), id="malformed"),
        pytest.param(fetched([4_000] * 70), id="more partitions than it is worth"),
    ],
)
def test_the_rest_is_handed_out_whole(answer):
    assert kept(followed(sized(answer[4:]), produced([0]), 1448, early=True), 1) == len(answer) - 4


def whole_answer(answer: bytes, version: int, api: str, mss: int = 1448) -> int:
    """Bytes handed out of an answer."""
    asked = plain(api, "request", version, {}, {"clientId": "c", "correlationId": 1})
    follower = Follower(early=True)
    talk = Talk(mss=mss).open().request(asked).response(answer)
    return kept([follower.receive(segments(talk.segments)).messages, follower.drain().messages], 1)


def test_a_large_message_that_holds_no_records_is_handed_out_whole():
    topics = [{"name": f"topic-{i}", "topicId": "A" * 22} for i in range(300)]
    answer = plain("Metadata", "response", 12, {"topics": topics}, {"correlationId": 1})
    assert len(answer) > 2 * LARGE
    assert whole_answer(answer, 12, "Metadata") == len(answer) - 4


def test_a_message_of_more_records_fields_than_it_is_worth_is_handed_out_whole():
    few, many = (fetched([0] * count + [10_000]) for count in (MOST_FIELDS - 1, MOST_FIELDS))
    assert whole_answer(few, 12, "Fetch") < len(few) - 9_000
    assert whole_answer(many, 12, "Fetch") == len(many) - 4


@pytest.mark.parametrize("cut", [1, 100, 319, 320, 321, 19_990])
def test_it_does_not_matter_where_a_call_ends(cut):
    answer = fetched([10_000] * 2)
    talk = Talk(mss=1 << 20).open()
    talk.request(plain("Fetch", "request", 12, {}, {"clientId": "c", "correlationId": 1}))
    first = [*talk.response(answer[:cut]).segments]
    talk.segments = []
    rest = talk.response(answer[cut:]).request(produced([0])).segments
    follower = Follower(early=True)
    batches = [follower.receive(segments(frames)).messages for frames in (first, rest)] + [follower.drain().messages]
    assert said(batches) == said(followed(answer, produced([0]), 1448, early=False))
    assert kept(batches, 1) < 2000
