"""What becomes a claim, and what does not."""

import base64
import random
from itertools import pairwise

import pytest

from tests.decode.log.batches import batch, register_controller, remove_topic, topic, voters
from tests.judge.cases_control import id_bytes, log, log_batch
from tests.judge.lab import B1, B3, ID_1, ID_2, ID_3, NO_ID, Lab, exchanged, open_rows, written
from wirecheck.decode import releases
from wirecheck.decode.releases import read
from wirecheck.judge.claims.extract import log_entries
from wirecheck.judge.claims.extract.extraction import claims
from wirecheck.judge.claims.outcomes import SLOT_NS
from wirecheck.judge.revisions.judge import Judge


def claims_of(lab, kind):
    return [claim for claim in lab.claims() if claim.kind == kind]


def test_an_envelope_holds_the_clients_own_words():
    asked, _ = written("CreateTopics", "request", 7, {"topics": [{"name": "orders"}]}, {"clientId": "admin"})
    answer, _ = written("CreateTopics", "response", 7, {"topics": [{"name": "orders", "topicId": ID_1, "configs": []}]})
    lab = Lab()
    inside = {"requestData": base64.b64encode(asked).decode(), "requestPrincipal": None}
    lab.talk(B1, "1").ask(0, "Envelope", 0, inside, {"responseData": base64.b64encode(answer).decode()})
    (created,) = claims_of(lab, "creation")
    assert created.key == ("orders", ID_1, B1)
    assert [word for claim in claims_of(lab, "client") for word in claim.tally] == ["Envelope:0"]


def test_an_envelope_names_who_changes_a_topic():
    lab = Lab()
    asked, _ = written("DeleteTopics", "request", 6, {"topics": [{"name": "t"}]}, {"clientId": "admin"})
    answer, _ = written("DeleteTopics", "response", 6, {"responses": [{"name": "t", "topicId": ID_1}]})
    for principal in (b"\0\0\x05User\x06alice\0\0", b"other"):
        inside = {
            "requestData": base64.b64encode(asked).decode(),
            "requestPrincipal": base64.b64encode(principal).decode(),
            "clientHostAddress": base64.b64encode(bytes([10, 0, 0, 9])).decode(),
        }
        lab.talk(B1, "1").ask(0, "Envelope", 0, inside, {"responseData": base64.b64encode(answer).decode()})
    lab.deleted(1, "t", ID_1)
    assert {claim.key for claim in claims_of(lab, "changed")} == {
        ("t", ID_1, "DeleteTopics", "admin", "10.0.0.9", "User:alice", "forwarded", B1),
        ("t", ID_1, "DeleteTopics", "admin", "10.0.0.9", None, "forwarded", B1),
        ("t", ID_1, "DeleteTopics", "admin", "10.0.0.99", None, "sent", B1),
    }


def test_a_response_whose_request_was_not_seen_says_nothing():
    lab = Lab()
    talk = lab.metadata(0, [("orders", ID_1)])
    talk.messages, talk.exchanges = talk.messages[1:], [(-1, 0, 2)]
    assert claims_of(lab, "binding") == []


def test_a_forgotten_id_is_not_used():
    lab = Lab()
    lab.talk().ask(0, "Fetch", 13, {"forgottenTopicsData": [{"topicId": ID_1, "partitions": [0]}]}, {})
    assert claims_of(lab, "use") == []


def test_a_batch_of_nothing_is_no_claims_but_facts():
    lab = Lab()
    exchanges, decoded = exchanged(lab.metadata(0))
    assert {"connection", "server"} <= {claim.kind for claim in claims(exchanges, decoded)}


def log_read(lab, at):
    log(lab, at, topic("orders", id_bytes(ID_1)), remove_topic(id_bytes(ID_1)), topic("orders", id_bytes(ID_2)),
        high_watermark=50)  # fmt: skip


def test_the_metadata_log_alone_names_every_fetch_by_id():
    lab = Lab()
    lab.fetches([1, 2], ID_2)
    log_read(lab, 5)
    rows = {row["topic_id"]: (row["name"], row["state"]) for row in lab.judge()["topics"].values()}
    assert rows == {ID_1: ("orders", "replaced"), ID_2: ("orders", "current")}


C1, C2 = ("10.0.0.11", 9093), ("10.0.0.12", 9093)
NODES = [{"nodeId": 7, "listeners": [{"name": "CONTROLLER", "host": C1[0], "port": C1[1]}]}]
LEADER = [{"nodeId": 8, "host": C2[0], "port": C2[1]}]


@pytest.mark.parametrize(
    ("says", "nodes"),
    [
        (lambda lab: log(lab, 1, register_controller(7, *C1), high_watermark=9), {(7, C1)}),
        (lambda lab: log_batch(lab, 1, voters([(7, *C1), (8, *C2)]), 9), {(7, C1), (8, C2)}),
        (lambda lab: lab.talk(B3).ask(1, "DescribeQuorum", 2, {}, {"nodes": NODES}), {(7, C1)}),
        (lambda lab: lab.talk(B3).ask(1, "Fetch", 17, {}, {"nodeEndpoints": LEADER}), {(8, C2)}),
        (lambda lab: lab.talk(B3).ask(1, "Vote", 1, {}, {"nodeEndpoints": LEADER}), {(8, C2)}),
    ],
)
def test_voters_and_registrations_are_addresses_that_their_server_states(says, nodes):
    lab = Lab()
    says(lab)
    assert {claim.key for claim in claims_of(lab, "registered")} == {
        (B3, f"{host}:{port}", node) for node, (host, port) in nodes
    }


def test_records_sent_before_a_new_leader_knows_its_high_watermark_count():
    lab = Lab()
    lab.fetches([1, 2], ID_1)
    log(lab, 5, topic("orders", id_bytes(ID_1)), high_watermark=-1)
    log(lab, 6, topic("later", id_bytes(ID_2)), high_watermark=1, offset=1)
    rows = {row["topic_id"]: (row["name"], row["state"]) for row in lab.judge()["topics"].values()}
    assert rows[ID_1] == ("orders", "current")


def test_a_topic_may_be_named_like_an_id_that_nobody_has():
    lab = Lab()
    lab.metadata(1, [(NO_ID, ID_1), ("orders", ID_2)])
    rows = {row["name"]: (row["topic_id"], row["state"]) for row in lab.judge()["topics"].values()}
    assert rows == {NO_ID: (ID_1, "current"), "orders": (ID_2, "current")}


def test_a_node_that_reads_the_whole_log_again_hours_later_changes_nothing():
    once, again = Lab(), Lab()
    for lab in (once, again):
        log_read(lab, 5)
        lab.metadata(10, [("orders", ID_2)], server=B3)
    log_read(again, 4 * 3600)
    again.until = once.until = 5 * 3600
    results = [{route: lab.judge()[route] for route in ("topics", "findings")} for lab in (once, again)]
    assert results[0] == results[1]


def snapshot_read(lab, at, end, cuts):
    """A snapshot in as many answers as there are cuts, on as many connections."""
    data = batch(topic("orders", id_bytes(ID_2))) + batch(topic("calm", id_bytes(ID_3)))
    for number, (begin, stop) in enumerate(pairwise([0, *cuts, len(data)])):
        part = {"snapshotId": {"endOffset": end, "epoch": 4}, "size": len(data), "position": begin}
        part["unalignedRecords"] = base64.b64encode(data[begin:stop]).decode()
        body = {"topics": [{"name": "__cluster_metadata", "partitions": [part]}]}
        lab.talk(B3, "raft-client-1").ask(at + number / 10, "FetchSnapshot", 1, {}, body)
    lab.until = max(lab.until, at + 1)


@pytest.mark.parametrize("cuts", [(), (7,), (20, 30, 31, 140)], ids=len)
def test_a_snapshot_names_what_it_holds_and_is_no_second_creation(cuts):
    lab = Lab()
    log_read(lab, 5)
    lab.fetches([1, 2], ID_3)
    for at, end in ((6, 10), (7, 20)):
        snapshot_read(lab, at, end, cuts)
    names = {row["topic_id"]: (row["name"], row["state"]) for row in lab.judge()["topics"].values()}
    assert names == {ID_1: ("orders", "replaced"), ID_2: ("orders", "current"), ID_3: ("calm", "current")}
    assert lab.findings("LOG002") == []


def test_chunks_may_come_in_any_order_and_any_batches():
    lab = Lab()
    snapshot_read(lab, 6, 10, (20, 30, 31, 140))
    claims = lab.claims()
    learned = []
    for seed in range(6):
        shuffled, shards = [claim.copy() for claim in claims], {}
        random.Random(seed).shuffle(shuffled)
        rows = []
        for part in [shuffled[n : n + 4] for n in range(0, len(shuffled), 4)] if seed else [claims]:
            judge = Judge("lab", shards.get)
            judge.absorb(part)
            rows += judge.rows()
            shards |= judge.shards()
        learned.append(open_rows(rows)["topics"])
    assert {row["name"] for row in learned[0].values()} == {"orders", "calm"}
    assert all(found == learned[0] for found in learned)


def test_a_snapshot_of_which_a_piece_is_missing_names_what_comes_before_it_only():
    lab = Lab()
    snapshot_read(lab, 6, 10, (100, 110))
    del lab.talks[1]
    assert {row["name"] for row in lab.judge()["topics"].values()} == {"orders"}


@pytest.mark.parametrize("most", ["MOST_WAITING_CHUNKS", "MOST_WAITING_BYTES"])
def test_a_snapshot_whose_chunks_wait_for_too_much_is_given_up(most, monkeypatch):
    lab = Lab()
    snapshot_read(lab, 6, 10, (20, 30, 31, 140))
    chunks = sorted((c for c in lab.claims() if c.kind == log_entries.CHUNK), key=lambda c: c["position"])
    allowed = {"MOST_WAITING_CHUNKS": 2, "MOST_WAITING_BYTES": sum(len(c.peak["kept"]) for c in chunks[1:3])}
    monkeypatch.setattr(log_entries, most, allowed[most])
    snapshots = log_entries.Snapshots()
    for chunk in chunks[1:3]:
        assert list(snapshots.receive(chunk)) == []
    assert len(snapshots.under_way) == 1
    assert list(snapshots.receive(chunks[3])) == []
    assert snapshots.under_way == {}


def test_an_envelope_in_an_envelope_holds_them_too():
    asked, _ = written("CreateTopics", "request", 7, {"topics": [{"name": "orders"}]}, {"clientId": "admin"})
    answer, _ = written("CreateTopics", "response", 7, {"topics": [{"name": "orders", "topicId": ID_1, "configs": []}]})
    carried = []
    for name, data in (("requestData", asked), ("responseData", answer)):
        once, _ = written("Envelope", name.removesuffix("Data"), 0, {name: base64.b64encode(data).decode()})
        carried.append({name: base64.b64encode(once).decode()})
    lab = Lab()
    lab.talk(B1, "1").ask(0, "Envelope", 0, *carried)
    (created,) = claims_of(lab, "creation")
    assert created.key == ("orders", ID_1, B1)


def test_ranges_below_zero_are_read_as_they_were_told():
    """No release says so; a corrupted or hostile answer does, and what is judged goes on."""
    ranges = {-7: (-3, -1), 1: (-32_768, 32_767), 3: (0, 12)}
    assert read(releases.written(ranges)) == ranges
    lab = Lab()
    keys = [{"apiKey": key, "minVersion": low, "maxVersion": high} for key, (low, high) in ranges.items()]
    for host in (B3.rpartition(":")[0], "10.0.0.99"):
        talk = lab.talk(B1, "3", host=host)
        talk.ask(0, "ApiVersions", 3, {}, {"apiKeys": keys}).ask(1, "Metadata", 12, {}, {}).ask(2, "Fetch", 12, {}, {})
    (told_by,) = {claim["ranges"] for claim in lab.claims() if claim.kind == "advertised"}
    assert read(told_by) == ranges
    assert lab.judge()["clients"]


def test_a_listener_without_host_is_no_address_and_leaves_the_others():
    lab = Lab()
    listeners = [{"name": "A", "host": "", "port": 1}, {"name": "B", "host": "broker-1", "port": 9092}]
    lab.talk(B1, "1").ask(0, "BrokerRegistration", 1, {"brokerId": 1, "listeners": listeners}, {"errorCode": 0})
    assert [claim.key[1:] for claim in claims_of(lab, "address")] == [("broker-1:9092", 1)]


def follow(lab, broker, leaders, times):
    """A broker's fetches as a follower."""
    for leader in leaders:
        talk = lab.talk(leader, f"broker-{broker}-fetcher-0", f"10.0.0.{broker}")
        for at in times:
            talk.ask(at, "Fetch", 17, {"replicaState": {"replicaId": broker}, "sessionEpoch": 1}, {"responses": []})


def test_the_versions_of_followers_are_counted_by_broker_whoever_leads():
    lab = Lab()
    follow(lab, 2, [B1, B3], [0, 11, 12])
    assert {claim.key[:2]: (claim.tally, claim.peak) for claim in claims_of(lab, "follower")} == {
        (2, leader): ({}, {"full": -1, "granted": 0}) for leader in (B1, B3)
    }
    found = Judge("lab")
    found.absorb(claims_of(lab, "fetch_versions"))
    (versions,) = found.ledger.claims("fetch_versions", "server")
    slot = versions.first.ts_ns // SLOT_NS
    assert versions.key == (2, "10.0.0.2", 9092)
    assert versions.tally == {f"{slot}:17": 2, f"{slot + 1}:17": 4}


def test_what_followers_leave_behind_grows_with_brokers_and_time_not_with_the_square_of_brokers():
    leaders = [f"10.0.0.{number}:9092" for number in range(1, 21)]

    def size(slots):
        lab = Lab()
        for broker, leader in enumerate(leaders, 1):
            follow(lab, broker, {*leaders} - {leader}, range(0, 10 * slots, 10))
        judge = Judge("lab")
        judge.absorb(claim for kind in ("follower", "fetch_versions") for claim in claims_of(lab, kind))
        return sum(len(blob) for name, blob in judge.shards().items() if name.startswith(("server", "follower")))

    brief, long = size(2), size(12)
    assert long - brief < 20 * 10 * 32  # brokers, slots, bytes of a count; 380 pairs would be ten times as much
