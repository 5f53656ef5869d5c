"""Names of the same length: what stays, what goes together, and how addresses and IDs are written."""

import base64
from ipaddress import ip_address

import pytest

from wirecheck.capture.anonymize.names import Names, public_words

KEY = bytes(range(32))


@pytest.mark.parametrize(
    "text",
    [
        "__consumer_offsets", "__transaction_state", "__cluster_metadata", "__share_group_state", "rdkafka", "sarama",
        "producer-1", "adminclient-12", "raft-client-1", "1001", "broker-1001-fetcher-0", "kafka-python-2.0.2",
        "aiokafka-0.8.1", "127.0.0.1", "0.0.0.0", "min.insync.replicas", "User:ANONYMOUS", "SCRAM-SHA-256",
        "java-0.10.2.1", "cooperative-sticky", "AddPartitionsManager-client-3",
    ],
)  # fmt: skip
def test_what_carries_meaning_stays(text):
    assert text == Names(KEY).text(text.encode()).decode()


def test_words_are_the_same_wherever_they_are():
    names = Names(KEY)
    group = names.text(b"billing").decode()
    assert (group != "billing", len(group)) == (True, 7)
    assert f"consumer-{group}-1" == names.text(b"consumer-billing-1").decode()
    assert f"{group}-store-changelog" == names.text(b"billing-store-changelog").decode()
    assert f"{group}-repartition" == names.text(b"billing-repartition").decode()
    assert f"User:{group}" == names.text(b"User:billing").decode()
    assert group.upper() == names.text(b"BILLING").decode()


def test_a_member_id_has_its_client_id_and_another_uuid():
    names = Names(KEY)
    uuid = "7f3b0e1c-97b4-4b60-9d0b-3a1f1f6a2c55"
    member = names.text(f"rdkafka-{uuid}".encode()).decode()
    assert member.startswith("rdkafka-")
    assert (len(uuid), [8, 4, 4, 4, 12]) == (len(member) - 8, [len(part) for part in member[8:].split("-")])
    assert uuid not in member


@pytest.mark.parametrize(
    "address", ["10.1.2.3", "172.18.0.11", "192.168.100.100", "203.0.113.200", "8.8.8.8", "2001:db8::17", "fe80::1:2"]
)
def test_an_address_is_as_long_and_the_same_in_text_and_headers(address):
    names = Names(KEY)
    packed = names.address(ip_address(address).packed)
    written = names.text(f"host {address}:9092".encode() if ":" not in address else address.encode()).decode()
    assert str(ip_address(packed)) in written
    assert len(address) == len(str(ip_address(packed)))
    assert address not in written
    assert ip_address(packed).is_private or address == "8.8.8.8"


def test_an_id_is_the_same_in_text_and_in_bytes():
    names, value = Names(KEY), base64.urlsafe_b64decode("iEn4ipplSQa8Dqx8Q4P36A==")
    new = names.topic_id(value)
    assert base64.urlsafe_b64encode(new).rstrip(b"=") == names.text(b"iEn4ipplSQa8Dqx8Q4P36A")
    assert (new != value, 4, 2) == (True, new[6] >> 4, new[8] >> 6)
    assert bytes(15) + b"\1" == names.topic_id(bytes(15) + b"\1")


def test_another_key_gives_other_names_and_the_same_key_the_same():
    assert Names(KEY).text(b"orders-payments") == Names(KEY).text(b"orders-payments")
    assert Names(KEY).text(b"orders-payments") != Names(bytes(32)).text(b"orders-payments")
    assert Names().text(b"orders-payments") != Names().text(b"orders-payments")


def test_a_name_is_no_public_word_and_no_name_is_given_twice():
    names = Names(KEY)
    words = [names.word(f"w{number:03}".encode()) for number in range(900)]
    assert len(set(words)) == 900
    assert set() == set(words) & public_words()
