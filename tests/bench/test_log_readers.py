"""A log that six nodes read is decoded once, and what is not found in it is an error of the bench."""

import pytest

from bench import log_readers


@pytest.fixture
def log(tmp_path):
    pcap = tmp_path / "log.pcap"
    pcap.write_bytes(b"".join(log_readers.packets(20)))
    return pcap


def test_every_batch_is_decoded_once(log):
    _, decodings = log_readers.replayed(log, 20)
    assert decodings == 20


def test_a_topic_that_is_not_found_is_an_error(log):
    with pytest.raises(RuntimeError, match="20 of 21 topics"):
        log_readers.replayed(log, 21)
