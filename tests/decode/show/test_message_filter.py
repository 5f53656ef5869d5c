"""What people say when they ask for messages: APIs, addresses, topics."""

import pytest

from wirecheck.decode.show.message_filter import Filter, endpoint, key_of


@pytest.mark.parametrize("said", ["Fetch", "fetch", "FETCH", "1"])
def test_an_api_is_said_by_its_name_in_any_case_or_by_its_key(said):
    assert key_of(said) == 1


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Fetsch", "Fetsch: no such API; did you mean Fetch"),
        ("leaderandisr2", "did you mean LeaderAndIsr"),
        ("999", "999: no such API; Kafka calls them AddOffsetsToTxn, "),
        ("", ": no such API; Kafka calls them"),
    ],
)
def test_an_api_that_does_not_exist_is_said_with_those_that_do(said, told):
    with pytest.raises(ValueError, match=r"Kafka calls them .*, Fetch, ") as error:
        Filter(apis=("Metadata", said))
    assert told in str(error.value)


@pytest.mark.parametrize(
    ("said", "end"),
    [
        ("10.0.0.7:9092", ("10.0.0.7", 9092)),
        ("10.0.0.7", ("10.0.0.7", None)),
        ("[fd00::1]:9092", ("fd00::1", 9092)),
        ("[fd00::1]", ("fd00::1", None)),
        ("fd00::1", ("fd00::1", None)),
        ("FD00:0:0::1", ("fd00::1", None)),
    ],
)
def test_an_end_is_an_address_with_a_port_or_without(said, end):
    assert endpoint(said) == end


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("broker-1:9092", "broker-1:9092: not an address; give IP"),
        ("10.0.0:9092", "not an address"),
        ("", "not an address"),
        (":9092", "not an address"),
        ("10.0.0.1>", "not an address"),
        ("10.0.0.7:kafka", "10.0.0.7:kafka: kafka is not a port"),
        ("10.0.0.7:0", "0 is not a port"),
        ("10.0.0.7:70000", "70000 is not a port"),
        ("10.0.0.7:", "nothing is not a port"),
        ("10.0.0.1>10.0.0.2>10.0.0.3", "a connection has two ends"),
    ],
)
def test_what_no_connection_can_have_is_said_to_be_wrong(said, told):
    with pytest.raises(ValueError, match=r"not a|two ends") as error:
        Filter(connection=said)
    assert told in str(error.value)


def test_a_topic_without_name_is_none():
    with pytest.raises(ValueError, match="a topic has a name or an id"):
        Filter(topic="")
