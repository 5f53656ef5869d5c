"""The synthetic capture of the drafts: as it is written, and read without being told what it is."""

import gzip
import json

import numpy as np
import pytest

from tests.scenarios import make_draft
from wirecheck.capture.agent.offline_agent import read_frames
from wirecheck.decode.columns import tables
from wirecheck.decode.dialect import read
from wirecheck.decode.message import Status
from wirecheck.decode.show.message_lines import followed
from wirecheck.decode.wire import RESPONSE


@pytest.mark.parametrize("folder", make_draft.CAPTURES, ids=lambda folder: folder.name)
def test_a_capture_is_what_its_script_writes(folder):
    later, true = make_draft.CAPTURES[folder]
    written = make_draft.capture(make_draft.controlled(later))
    assert gzip.decompress((folder / "capture.pcap.gz").read_bytes()) == written
    assert json.loads((folder / "truth.json").read_text()) == true


def test_topics_and_ids_are_read_in_the_drafts_dialect():
    seen = set()
    for exchanges in followed(read_frames([make_draft.FOLDER / "capture.pcap.gz"])):
        decoded = read(exchanges.messages, ["kip516-draft"])
        assert (decoded.status == Status.OK).all()
        for api, side, path, name in (
            ("LeaderAndIsr", "request", "topic_states", "topic_name"),
            ("LeaderAndIsr", "response", "partition_errors", "topic_name"),
            ("UpdateMetadata", "request", "topic_states", "topic_name"),
            ("Metadata", "response", "topics", "name"),
            ("Fetch", "request", "topics", "topic"),
            ("Fetch", "response", "responses", "topic"),
        ):
            table = tables(decoded, api, side)[path]
            if len(table):
                ids = [make_draft.base64.urlsafe_b64encode(bytes(i)).decode()[:22] for i in table["topic_id"]]
                seen |= {(api, side, *pair) for pair in zip(table[name].strings(), ids, strict=True)}
    expected = {(n, i) for n, i in make_draft.TOPICS.items()}
    for kind in {entry[:2] for entry in seen}:
        assert {entry[2:] for entry in seen if entry[:2] == kind} == expected
    assert len({entry[:2] for entry in seen}) == 6


def test_answers_come_to_their_questions():
    found = list(followed(read_frames([make_draft.FOLDER / "capture.pcap.gz"])))
    assert sum(len(exchanges.request) for exchanges in found) == 3 + 4 + 1
    assert all((exchanges.request >= 0).all() for exchanges in found)
    assert sum(int(np.count_nonzero(exchanges.messages.side == RESPONSE)) for exchanges in found) == 8
