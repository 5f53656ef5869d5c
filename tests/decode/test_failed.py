"""What of a message that failed stands before its arrays."""

from tests.build import Still, build, case
from wirecheck.decode.failed import before_arrays
from wirecheck.decode.message import decode
from wirecheck.decode.wire import REQUEST, pack


def test_the_first_array_of_a_message_that_failed_can_be_asked_for():
    """A Produce of one topic, cut off within it, then before it; and what has no array ends where it failed."""
    data = build(case("Produce", "request", 3)[1], 3, Still(), {"topicData": [{"name": "t"}]}).data
    arrays = data.index(b"\0\0\0\1\0\1t")
    sasl = build(case("SaslAuthenticate", "request", 2)[1], 2, Still(), {}).data + b"\7"
    parts = [data[:-1], data[: arrays + 2], data[: arrays - 1], sasl]
    decoded = decode(pack(parts, [REQUEST] * 4, [0, 0, 0, 36], [3, 3, 3, 2]))
    found = [before_arrays(decoded, i) for i in range(4)]
    assert found[:2] == [arrays, arrays]
    assert found[2:] == decoded.error_at[2:].tolist()
    assert before_arrays(decoded, 0) == arrays  # again: the programs are as they were
