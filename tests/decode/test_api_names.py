"""API keys and names as Kafka's ApiKeys has them; what it does not have keeps its number."""

import pytest

from wirecheck.decode.api_names import key_of, keys, name_of, names, newest


def test_names_are_those_of_kafka():
    assert [name_of(key) for key in (0, 1, 3, 18, 58)] == ["Produce", "Fetch", "Metadata", "ApiVersions", "Envelope"]


def test_every_name_leads_back_to_its_key():
    assert [key_of(name_of(key)) for key in names()] == list(names())
    assert len(keys()) == len(names())


def test_an_unknown_key_keeps_its_number_as_its_name():
    assert (name_of(9999), name_of(-1)) == ("9999", "-1")
    assert key_of(name_of(9999)) == 9999


def test_a_name_that_is_none_of_kafkas_is_refused():
    with pytest.raises(ValueError, match="Fetsch"):
        key_of("Fetsch")


def test_the_newest_version_is_known_of_known_apis_only():
    assert newest(key_of("Heartbeat")) == 4  # the last before KIP-848 took its place
    assert newest(9999) == -1
