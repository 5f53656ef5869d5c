"""What to do about a client that a release rejects: by stated software, by versions, by configuration, or unknown."""

from dataclasses import replace
from itertools import pairwise
from types import MappingProxyType

import pytest

from tests.story.values import client as client_value
from wirecheck.dashboards import client_upgrades
from wirecheck.dashboards.client_upgrades import (
    advice,
    group_of,
    groups,
    is_below_baseline,
    looks_like,
    numbers,
    page,
    upgrades,
)
from wirecheck.wording import ns_of

APIS = MappingProxyType({"Produce": (2,), "Metadata": (2,)})


def client(name=None, version=None, refused=(("Produce", 2),), missing=(), apis=APIS, **more):
    return client_value(
        client_id="billing-7", address="10.0.4.12", software_name=name, software_version=version, apis=apis, requests=3,
        first_ns=ns_of("2026-11-21T00:35:12Z"), last_ns=ns_of("2026-11-21T00:35:46Z"), rejected_by_target=refused,
        not_in_target=missing, **more,
    )  # fmt: skip


@pytest.mark.parametrize(("name", "version", "first", "words"), [
    ("librdkafka", "1.4.2", "1.8.2", "upgrade to 1.8.2 or newer"),
    ("confluent-kafka-python", "1.6.0-rdkafka-1.6.1", "1.8.2", "upgrade to 1.8.2 or newer"),
    ("sarama", "v1.24.1", "1.30.1", "upgrade to 1.30.1 or newer, and set Config.Version"),
    ("sarama", "v1.61.1", None, "set Config.Version"),
    ("apache-kafka-java", "3.9.1", None, "check which protocol version it is configured for"),
    ("kafka-go", "0.4.38", "0.4.48", "upgrade to 0.4.48"),
    (None, None, "2.1.0", "if it is the Java client"),
    ("afkak", "21.5.0", None, "is not known"),
])  # fmt: skip
def test_what_to_do(name, version, first, words):
    found, text = advice(client(name, version), "4.0")
    assert (found, words in text) == (first, True)


def test_an_older_target_needs_only_what_it_rejects():
    assert advice(client("apache-kafka-java", "0.10.0", [("ListOffsets", 0)]), "3.9")[0] == "0.10.1"


def test_an_api_that_an_older_release_does_not_have_is_no_upgrade():
    first, text = advice(client("librdkafka", "2.16.0", (), [("ConsumerGroupHeartbeat", 0)]), "2.8")
    assert (first, text) == (None, "uses APIs that this release does not have")


@pytest.mark.parametrize(("apis", "release"), [
    ({"Produce": [1], "Metadata": [0]}, "0.9"), ({"Fetch": [6], "Metadata": [5]}, "1.0"),
    ({"Fetch": [3], "ListOffsets": [1], "Metadata": [2]}, "0.10.1 or 0.10.2"), ({"Metadata": [5]}, "1.0 to 1.1"),
    ({"Produce": [7], "Metadata": [7]}, "2.1 to 2.2"),
])  # fmt: skip
def test_old_java_clients_by_their_versions(apis, release):
    assert looks_like(client(apis=apis)) == f"Java {release}"


@pytest.mark.parametrize("apis", [{"Produce": [2]}, {"Produce": [3], "Metadata": [2]}, {"Metadata": [12]}, {}])
def test_what_fits_no_release_is_not_guessed(apis):
    assert looks_like(client(apis=apis)) is None


@pytest.mark.parametrize(
    ("name", "version", "apis", "target", "below"),
    [
        (None, None, {"Produce": [5], "Metadata": [5]}, "4.0", True),
        (None, None, {"Produce": [7], "Metadata": [7]}, "4.0", False),
        (None, None, {"Produce": [5], "Metadata": [5]}, "3.9", False),
        (None, None, {"Metadata": [12]}, "4.0", False),
        ("apache-kafka-java", "2.4.0", {}, "4.0", False),
        ("kafka-python", "2.0.1", {}, "4.0", True),
        ("kafka-python", "2.0.2", {}, "4.0", False),
        ("afkak", "0.1", {}, "4.0", False),
    ],
)
def test_a_client_below_the_baseline_is_known_by_its_software_or_its_versions(name, version, apis, target, below):
    one = client(name, version, apis=apis)
    assert is_below_baseline(replace(one, looks_like=looks_like(one)), target) is below


def test_software_that_is_stated_is_not_guessed():
    assert looks_like(client("kgo", "v1.0.0")) is None


@pytest.mark.parametrize(
    ("by", "name"), [("prefix", "billing"), ("software", "unknown software"), ("host", "10.0.4.12")]
)
def test_groups(by, name):
    assert group_of(client(), by) == name
    (row,) = groups([client(upgrade_to="2.1.0"), client(refused=(), upgrade_to=None)], by)
    assert (row.clients, row.rejected, row.upgrade_to, row.rejected_versions) == (2, 1, ("2.1.0",), ("Produce v2",))


def test_a_page_loads_nothing_and_escapes():
    text = page([replace(client(advice="upgrade"), client_id="<script>")], [client()], "4.0")
    assert "&lt;script&gt;" in text
    assert "<script" not in text
    assert "http" not in text
    assert "1 of 1 clients are rejected by Kafka 4.0; seen from 2026-11-21T00:35:12Z" in text


def test_every_row_of_the_table_has_a_version_and_a_source():
    assert all(numbers(row.first) and row.source for row in upgrades().values())
    assert {software for software, _ in upgrades()} == {software for software, api in upgrades() if api == "*"}


def test_releases_do_not_overlap():
    """Each line of Java is told from the one before by at least one API."""
    known = list(client_upgrades.OLD_JAVA.values())
    assert all(now != before for before, now in pairwise(known))
