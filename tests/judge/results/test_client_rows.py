"""A client of two clusters at one address, one after the other: each row has its own requests and times."""

from tests.judge.lab import B1, ID_1, ID_2, Lab, ns

OTHER = "other-cluster-id-22-ch"


def test_requests_and_times_of_both_lives_are_kept():
    lab = Lab()
    for at in (0, 55):
        lab.metadata(at, [("orders", ID_1)], brokers={B1: 1})
    for first in (1, 30):
        lab.fetches(range(first, first + 20), ID_1, client_id="reader")
    for at in (100, 150):
        lab.metadata(at, [("orders", ID_2)], brokers={B1: 1}, cluster_id=OTHER)
    lab.fetches(range(101, 131), ID_2, client_id="reader")
    rows = [row for row in lab.judge()["clients"].values() if row["client_id"] == "reader"]
    former, latter = sorted(rows, key=lambda row: row["first_seen"])
    assert (former["requests"], former["first_seen"], former["last_seen"]) == (40, ns(1), ns(49))
    assert (latter["requests"], latter["first_seen"], latter["last_seen"]) == (30, ns(101), ns(130))
    both, of_requests = former["request_bytes"] + latter["request_bytes"], former["request_bytes"]
    assert of_requests == both * 40 // 70 > 0
    assert former["response_bytes"] > latter["response_bytes"] > 0


def test_the_security_protocols_of_a_client_are_those_of_its_connections():
    lab = Lab()
    for client_id, first, tls in (
        ("plain", "ApiVersions", False), ("login", "SaslHandshake", True), ("both", "ApiVersions", True),
        ("both", "ApiVersions", False), ("midway", "Metadata", True),
    ):  # fmt: skip
        talk = lab.talk(B1, client_id, decrypted=tls)
        if first != "Metadata":
            talk.ask(1, first, 1, {}, {})
        lab.metadata(2, [("orders", ID_1)], talk=talk)
    rows = {row["client_id"]: row["security_protocols"] for row in lab.judge()["clients"].values()}
    assert {name: rows[name] for name in ("plain", "login", "both", "midway")} == {
        "plain": ["PLAINTEXT"], "login": ["SASL_SSL"], "both": ["PLAINTEXT", "SSL"], "midway": [],
    }  # fmt: skip
