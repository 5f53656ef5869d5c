"""What docs/recreated-topic.md says of five clients, two of them twice, on captures of the rig with their own counts.

Truths were written before the tool ran: which offsets a client never read, and from where it went on.
"""

import gzip
import json
import random
from pathlib import Path

import pytest

import wirecheck
from tests.scenarios.test_work import HEAD_BYTES, RECORD_BYTES

FOLDER = Path(__file__).parent / "recreations"
ROWS = {
    "franz-go-short": ("rejected since", "FET001"),
    "kafka-go-grown": ("records never read", "GRP010"),
    "kafka-go-long": ("records never read", "GRP010"),
    "librdkafka-long": ("records never read", "GRP010"),
    "streams-848-long": ("first record", None),
    "streams-848-long-lost": ("records never read", "GRP010"),
    "streams-short": ("nothing since", "GRP015"),
}
"""By capture what its client's row says, and the check that names it: Streams was once lucky, and once not."""


def truth(name):
    (one,) = json.loads((FOLDER / name / "truth.json").read_text())["clients"].values()
    return one


def rows_of(name, path):
    """The only reader of the client's topic, its writer, and all that was found."""
    found = wirecheck.replay(path).json
    mine = [one for one in found["recreations"] if one["topic"] == truth(name)["topic"]]
    (reader, writer) = sorted(mine, key=lambda one: one["does"])
    return reader, writer, found


def never_read(row):
    return {
        str(one["partition"]): [one["never_read_from"], one["never_read_to"], one["never_read"]]
        for one in row["partitions"]
        if one["never_read"]
    }


@pytest.mark.parametrize("name", ROWS)
def test_what_a_client_counted_is_in_its_row(name):
    counted, (row, writer, found) = truth(name), rows_of(name, FOLDER / name / "capture.pcap.gz")
    assert (row["state"], row["never_read"]) == (ROWS[name][0], sum(one[2] for one in counted["never_read"].values()))
    assert never_read(row) == counted["never_read"]
    assert {str(one["partition"]): one["offset"] for one in row["partitions"]} == counted["first_offset"]
    named = {one["code"] for one in found["findings"] if row["client_id"] in one["client_ids"]}
    assert named & {"GRP010", "GRP015", "FET001", "CLI004"} == {ROWS[name][1]} - {None}
    assert (writer["client_id"], writer["state"], writer["deleted_by"]) == ("ops-writer", "goes on", "ops-admin")


def test_partitions_that_nobody_reads_have_what_was_written_and_neither_read_nor_left_out():
    counted, (_, _, found) = (
        truth("kafka-go-grown"),
        rows_of("kafka-go-grown", FOLDER / "kafka-go-grown/capture.pcap.gz"),
    )
    (unread,) = [one for one in found["findings"] if one["code"] == "GRP017"]
    left_out = sum(one[2] for one in counted["never_read"].values())
    assert unread["words"]["partitions"] == "2 partitions"
    assert int(unread["words"]["records"]) == counted["written_to_the_new"] - counted["read_of_the_new"] - left_out


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.filterwarnings("ignore::UserWarning")  # what could not be read of a damaged capture
def test_loss_adds_no_record_to_what_a_client_never_read(name, tmp_path):
    dice, at = random.Random(1), HEAD_BYTES
    data = gzip.decompress((FOLDER / name / "capture.pcap.gz").read_bytes())
    kept = [data[:at]]
    while at < len(data):
        size = RECORD_BYTES + int.from_bytes(data[at + 8 : at + 12], "little")
        kept += [data[at : at + size]] if dice.random() >= 0.02 else []
        at += size
    (tmp_path / "damaged.pcap").write_bytes(b"".join(kept))
    rows = [one for one in wirecheck.replay(tmp_path / "damaged.pcap").json["recreations"] if one["does"] == "reads"]
    assert all(never_read(one) in ({}, truth(name)["never_read"]) for one in rows)
