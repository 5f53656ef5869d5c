"""What compressed blocks of the metadata log may cost in a second of capture, of all connections: raft has none."""

import base64
import gzip

import numpy as np

from tests.build import plain
from tests.decode.log.batches import Batch, record, topic
from wirecheck.capture.trim.redaction_policy import FETCH, LogCuts
from wirecheck.decode.log.compression import MOST_RECORDS
from wirecheck.decode.message import pack
from wirecheck.decode.wire import RESPONSE

SECOND_NS = 1_000_000_000
METADATA_LOG = "AAAAAAAAAAAAAAAAAAAAAQ"


def answer(count):
    """A Fetch answer with one compressed block of so many records, all harmless."""
    block = gzip.compress(b"".join(record(topic(), offset=number) for number in range(count)))
    records = base64.b64encode(Batch(block=block, attributes=1, count=count).bytes()).decode()
    topics = [{"topicId": METADATA_LOG, "partitions": [{"partitionIndex": 0, "records": records}]}]
    return plain("Fetch", "response", 13, {"responses": topics}, {"correlationId": 1})[4:]


def hidden(cuts, message, ts_ns):
    found = cuts.cuts(pack([message], [RESPONSE], [FETCH], [13]), np.array([7]), np.array([ts_ns]))
    return [bool(spans) for _, _, spans in found]


def test_blocks_of_one_second_share_what_they_may_cost_and_the_next_second_begins_with_all_of_it():
    cuts, half = LogCuts(), answer(MOST_RECORDS // 2)
    assert hidden(cuts, half, SECOND_NS) == [False]
    assert hidden(cuts, half, SECOND_NS + 1) == [False]
    assert hidden(cuts, half, SECOND_NS + 2) == [True]
    assert hidden(cuts, half, 2 * SECOND_NS) == [False]
