"""A client of two clusters at one address, one after the other: each row has its own requests and times."""

import base64

import pytest

from tests.capture import canaries
from tests.judge.lab import B1, ID_1, ID_2, Lab, ns
from wirecheck.judge.results.client_rows import MOST_PRINCIPALS
from wirecheck.judge.thresholds import Settings

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


def login(lab, client_id, mechanism, token, *, error=0, granted=True):
    """A client that logs in, and asks for metadata if it may."""
    talk = lab.talk(B1, client_id, sasl=mechanism)
    coded = base64.b64encode(token).decode()
    talk.ask(1, "SaslHandshake", 1, {"mechanism": mechanism}, {})
    talk.ask(2, "SaslAuthenticate", 2, {"authBytes": coded}, {"errorCode": error})
    if granted:
        lab.metadata(3, [("orders", ID_1)], talk=talk)
    return lab


def principals(lab, **given):
    rows = lab.judge(**given)["clients"].values()
    return {row["client_id"]: row["principals"] for row in rows}


def test_the_principal_of_a_client_is_the_name_of_its_login():
    lab = Lab()
    login(lab, "plain", "PLAIN", b"\0alice\0secret")
    login(lab, "scram", "SCRAM-SHA-512", b"n,,n=bob,r=nonce")
    login(lab, "both", "SCRAM-SHA-256", b"n,,n=carol,r=nonce")
    login(lab, "both", "PLAIN", b"\0alice\0secret")
    login(lab, "bearer", "OAUTHBEARER", b"n,,\1auth=Bearer secret\1\1")
    login(lab, "token", "SCRAM-SHA-256", b"n,,n=tokenId,r=nonce,tokenauth=true")
    lab.metadata(3, [("orders", ID_1)], talk=lab.talk(B1, "open"))
    assert principals(lab) == {
        "plain": ["User:alice"], "scram": ["User:bob"], "both": ["User:alice", "User:carol"],
        "bearer": [], "token": [], "open": [],
    }  # fmt: skip


def test_a_login_that_was_refused_has_no_principal_and_neither_has_one_that_was_granted_nothing():
    lab = Lab()
    login(lab, "wrong-plain", "PLAIN", b"\0alice\0guess", error=58)
    login(lab, "wrong-scram", "SCRAM-SHA-256", b"n,,n=alice,r=nonce", granted=False)
    lab.metadata(3, [("orders", ID_1)], talk=lab.talk(B1, "open"))
    assert set(map(tuple, principals(lab).values())) == {()}


def test_of_any_number_of_principals_a_few_are_named():
    lab = Lab()
    for number in range(40):
        login(lab, "shared", "PLAIN", b"\0user-%d\0secret" % number)
    assert len(principals(lab)["shared"]) == MOST_PRINCIPALS


def test_without_principals_no_client_has_one(monkeypatch):
    monkeypatch.setattr("tests.judge.lab.Settings", lambda: Settings(principals=0))
    assert principals(login(Lab(), "plain", "PLAIN", b"\0alice\0secret")) == {"plain": []}


def forwarded(lab, answered=True):
    """Broker 2 forwards a creation of alice's client to the controller."""
    asked, answer = (
        base64.b64encode(data[4:]).decode()
        for data in (
            canaries.plain("CreateTopics", "request", 7, {"topics": [{"name": "orders"}]}, {"clientId": "maker"}),
            canaries.plain("CreateTopics", "response", 7, {"topics": [{"name": "orders", "topicId": ID_1}]}, {}),
        )
    )
    principal = base64.b64encode(b"\0\0" + b"\5User" + b"\6alice" + b"\0\0").decode()
    body = {
        "requestData": asked,
        "requestPrincipal": principal,
        "clientHostAddress": base64.b64encode(bytes([10, 0, 0, 99])).decode(),
    }
    lab.talk(B1, "2", "10.0.0.2").ask(2, "Envelope", 0, body, {"responseData": answer if answered else None})


@pytest.mark.parametrize("answered", [True, False])
def test_a_principal_in_an_envelope_is_that_of_the_client_whose_request_it_carries(answered):
    lab = Lab()
    lab.metadata(1, [("orders", ID_1)], talk=lab.talk(B1, "maker"))
    forwarded(lab, answered=answered)
    assert principals(lab)["maker"] == (["User:alice"] if answered else [])
