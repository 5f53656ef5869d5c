"""What of a client's requests is known while bytes are missing."""

import pytest

from tests.judge.cases_progress import keeps_its_offset
from tests.judge.lab import Lab, lacks, ns
from wirecheck.decode.connection.exchanges import REQUEST_UNSEEN


@pytest.mark.parametrize(("at", "known"), [(37, True), (40.95, False), (50, True)])
def test_a_response_without_its_request_counts_when_it_comes(at, known):
    lab = Lab()
    keeps_its_offset(lab, gaps=(lacks(ns(at), 0, 60),), unseen_request_bytes=60)
    (talk,) = [one for one in lab.talks if one.client_id == "reader"]
    talk.ask(at, "Fetch", 13, {}, {})
    asked, answer, _ = talk.exchanges.pop()
    talk.messages[asked:] = talk.messages[answer:]
    talk.exchanges.append((-1, asked, REQUEST_UNSEEN))
    assert bool(lab.findings("GRP010")) == known
