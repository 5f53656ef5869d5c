"""Names as long as the protocol allows, and very many of one thing: sentences stay sentences, values stay whole."""

import pytest

from tests.judge.lab import B1, Lab
from wirecheck import library

LONGEST = "x" * 32_000
"""A client ID may have 32,767 bytes; Kafka bounds no other name but the topic's (249)."""
MOST = 4_000
"""Characters of a sentence: a few values of 1,000 each."""
ID = "PxyOUnqbTWCeH1KnwNQAAw"


def refused_client(lab):
    lab.metadata(0, [("orders", "PxyOUnqbTWCeH1KnwNQAAQ")])
    lab.fetches(range(1, 61), ID, 100, client_id=LONGEST)


def client_without_permission(lab):
    lab.metadata(0, [("orders", "PxyOUnqbTWCeH1KnwNQAAQ")])
    talk = lab.talk(B1, LONGEST)
    for at in range(1, 61):
        asked = {"topics": [{"topic": "orders", "partitions": [{"partition": 0}]}], "replicaId": -1}
        row = {"partitionIndex": 0, "errorCode": 29, "records": None, "abortedTransactions": None}
        talk.ask(at, "Fetch", 11, asked, {"responses": [{"topic": "orders", "partitions": [row]}]})


def one_id_for_many_names(lab):
    for at in (0, 60):
        lab.metadata(at, [(f"name-{number}", ID) for number in range(2_000)])


@pytest.mark.parametrize(
    ("code", "made"),
    [("FET001", refused_client), ("CLI006", client_without_permission), ("TID008", one_id_for_many_names)],
)
def test_sentences_are_bounded_and_values_are_whole(code, made, tmp_path):
    lab = Lab()
    made(lab)
    (tmp_path / "lab.pcap").write_bytes(lab.pcap())
    verdict = library.replay(tmp_path / "lab.pcap")
    assert code in {finding.code for finding in verdict.findings}
    cards = [entry["card"] for entry in verdict.json["entries"]]
    sentences = [verdict.sentence, *(finding.summary for finding in verdict.findings)]
    sentences += [text for card in cards for text in (card["headline"], card["cause"]["sentence"])]
    sentences += [card["action"]["sentence"] for card in cards]
    assert max(map(len, sentences)) < MOST
    clients = {client for finding in verdict.findings for client in finding.client_ids}
    assert clients <= {LONGEST}
