"""What becomes a claim, and what does not."""

import base64

from streaming.judge.claims import claims
from tests.streaming.judge.lab import B1, ID_1, Lab, exchanged, written


def told(lab, kind):
    return [claim for claim in lab.claims() if claim.kind == kind]


def test_an_envelope_holds_the_clients_own_words():
    asked, _ = written("CreateTopics", "request", 7, {"topics": [{"name": "orders"}]}, {"clientId": "admin"})
    answer, _ = written("CreateTopics", "response", 7, {"topics": [{"name": "orders", "topicId": ID_1, "configs": []}]})
    lab = Lab()
    inside = {"requestData": base64.b64encode(asked).decode(), "requestPrincipal": None}
    lab.talk(B1, "1").ask(0, "Envelope", 0, inside, {"responseData": base64.b64encode(answer).decode()})
    (created,) = told(lab, "creation")
    assert created.key == ("orders", ID_1, B1)
    assert [word for claim in told(lab, "client") for word in claim.tally] == ["Envelope:0"]


def test_a_response_whose_request_was_not_seen_says_nothing():
    lab = Lab()
    talk = lab.metadata(0, [("orders", ID_1)])
    talk.messages, talk.exchanges = talk.messages[1:], [(-1, 0, 2)]
    assert told(lab, "binding") == []


def test_a_forgotten_id_is_not_used():
    lab = Lab()
    lab.talk().ask(0, "Fetch", 13, {"forgottenTopicsData": [{"topicId": ID_1, "partitions": [0]}]}, {})
    assert told(lab, "use") == []


def test_a_batch_of_nothing_is_no_claims_but_facts():
    lab = Lab()
    exchanges, decoded = exchanged(lab.metadata(0))
    assert {"connection", "server"} <= {claim.kind for claim in claims(exchanges, decoded)}
