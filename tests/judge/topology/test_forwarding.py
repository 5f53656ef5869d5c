"""What passes a proxy counts once, whatever the order in which the judge gets it."""

import random

import pytest

from tests.judge.cases_forwarding import (
    SECONDS,
    clu005_fires__a_balancer,
    clu005_fires__beside_an_application,
    clu005_fires__on_one_host,
    clu005_fires__that_renames_topics,
    fetched,
    through,
    times,
)
from tests.judge.cases_transactions import grows, reads
from tests.judge.lab import B1, Lab, exchanged, ns, open_rows
from wirecheck.judge.claims.extract.extraction import claims
from wirecheck.judge.claims.kinds import KINDS
from wirecheck.judge.revisions.judge import Judge
from wirecheck.judge.topology.forwarding import PLACES

REQUESTS = len(times())


def rows_of(story):
    lab = Lab()
    story(lab)
    return lab.judge()


def requests_of(rows):
    return {(row["client_id"], row["address"]): row["requests"] for row in rows["clients"].values()}


def test_a_client_behind_a_proxy_is_one_client():
    rows = rows_of(clu005_fires__a_balancer)
    assert requests_of(rows) == {(f"app-{n}", f"10.0.8.{n}"): REQUESTS for n in range(3)}
    assert {tuple(row["through"]) for row in rows["clients"].values()} == {("10.0.9.1:9092",)}


def test_behind_a_proxy_that_renames_topics_requests_count_once():
    rows = rows_of(clu005_fires__that_renames_topics)
    assert requests_of(rows) == {(f"app-{n}", f"10.0.8.{n}"): 2 * REQUESTS for n in range(3)}


def test_on_one_host_its_requests_count_once():
    counts = requests_of(rows_of(clu005_fires__on_one_host))
    assert {count for (client, _), count in counts.items() if client != "app"} == {REQUESTS}


def test_what_the_proxys_host_sends_by_itself_counts_too():
    rows = rows_of(clu005_fires__beside_an_application)
    assert requests_of(rows)["beside", "10.0.9.1"] == REQUESTS
    (own,) = [row for row in rows["clients"].values() if row["client_id"] == "beside"]
    assert own["through"] == []


def refused(lab):
    """A client whose fetches by a deleted ID are refused on both legs."""
    through(lab)
    for server, host, late in (("10.0.9.1:9092", "10.0.8.9", 0.0), (B1, "10.0.9.1", 0.002)):
        talk = lab.talk(server, "hurt", host)
        for number, at in times(SECONDS, late):
            answer = {"responses": [], "errorCode": 0, "sessionId": 3}
            row = {"partitionIndex": 0, "errorCode": 100, "highWatermark": -1, "records": None}
            row["abortedTransactions"] = None
            answer["responses"] = [{"topicId": "1kItcVyISSW2qinBWMWing", "partitions": [row]}]
            asked = {"sessionId": 3, "sessionEpoch": number, "replicaId": -1, "topics": []}
            talk.ask(at, "Fetch", 13, asked, answer, answered_in=0.02 - late * 5)


def test_harm_names_the_client_in_front_and_counts_once():
    rows = rows_of(refused)
    harmed = {(row["client_id"], row["address"], row["count"]) for row in rows["harms"].values()}
    assert harmed == {("hurt", "10.0.8.9", REQUESTS)}


def test_every_claim_about_a_client_names_the_server():
    """Without it nothing distinguishes a back leg's from its own."""
    of_clients = {name for name, kind in KINDS.items() if "client" in {space for space, *_ in kind.subjects}}
    assert of_clients - PLACES.keys() == set()


def test_a_reader_behind_a_transaction_and_a_proxy_is_found_once():
    lab = Lab()
    through(lab, seconds=200)
    reads(lab, range(1, 200, 3), lambda at: 100, grows, server="10.0.9.1:9092", host="10.0.8.9")
    reads(lab, [at + 0.002 for at in range(1, 200, 3)], lambda at: 100, grows, host="10.0.9.1")
    (found,) = lab.findings("FET008")
    assert (found["client_ids"], "10.0.8.9" in str(found["sides"])) == (["app"], True)


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_batches_does_not_matter(seed):
    lab = Lab()
    clu005_fires__beside_an_application(lab)
    expected = lab.judge()
    parts = [claims(*exchanged(talk)) for talk in lab.talks]
    random.Random(seed).shuffle(parts)
    judge = Judge("lab")
    for part in parts:
        judge.absorb(part)
    judge.progress("agent", ns(lab.until), ended=True)
    rows = open_rows(judge.rows())
    assert rows["findings"].keys() == expected["findings"].keys()
    assert requests_of(rows) == requests_of(expected)


def test_what_is_kept_is_bounded_and_only_of_hosts_that_serve():
    lab = Lab()
    through(lab, seconds=200)
    stray = lab.talk(B1, "app", "10.0.7.7")
    for number, at in times():
        fetched(stray, at, number)
    lab.judge()
    ledger = lab.judged.ledger
    kept = {kind: ledger.claims(kind, "host", "10.0.9.1") for kind in ("received", "sent_on")}
    assert {kind: len(found) for kind, found in kept.items()} == {"received": 1, "sent_on": 3}
    assert all(len(claim.peak) <= 128 for found in kept.values() for claim in found)
    assert ledger.claims("sent_on", "host", "10.0.7.7") == []
