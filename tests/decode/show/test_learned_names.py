"""Names that messages gave to topic ids."""

import base64

from tests.decode.show.test_message_lines import ORDERS, PAYMENTS, answered
from wirecheck.decode.api_names import key_of
from wirecheck.decode.dialect import read
from wirecheck.decode.show import learned_names
from wirecheck.decode.show.learned_names import TopicNames
from wirecheck.decode.wire import RESPONSE, pack


def learned(*answers):
    """What is known after these answers to Metadata, each a list of (name, id)."""
    names = TopicNames()
    assert {names.pop(bytes(15) + b"\1")} == {"__cluster_metadata"}  # which no message has to say
    names[bytes(15) + b"\1"] = ""
    for topics in answers:
        said = [{"name": name, "topicId": topic_id} for name, topic_id in topics]
        data = answered("Metadata", 12, {"topics": said})[4:]
        names.learn(read(pack([data], [RESPONSE], [key_of("Metadata")], [12])))
    return {base64.urlsafe_b64encode(topic_id).rstrip(b"=").decode(): name for topic_id, name in names.items() if name}


def test_an_id_has_the_name_that_a_message_said_beside_it():
    found = learned([("orders", ORDERS)], [("payments", PAYMENTS)], [])
    assert found == {ORDERS: "orders", PAYMENTS: "payments"}


def test_a_recreated_topic_gives_its_name_to_both_ids():
    assert learned([("orders", ORDERS)], [("orders", PAYMENTS)]) == {ORDERS: "orders", PAYMENTS: "orders"}


def test_no_name_is_none():
    assert learned([(None, ORDERS), ("", PAYMENTS)]) == {}


def test_whoever_invents_ids_is_not_followed_for_ever(monkeypatch):
    monkeypatch.setattr(learned_names, "MOST_NAMES", 1)
    assert learned([("orders", ORDERS)], [("payments", PAYMENTS)]) == {ORDERS: "orders"}
