"""What cannot be read, from bytes to verdict: unknown is undecoded, wrong is malformed, and neither is guessed."""

import json
import struct

import pytest

from tests import traffic
from tests.build import plain
from tests.scenarios.engines import frames
from tests.scenarios.engines import plain as by_the_plain_road
from wirecheck.streaming.steps.settings import Settings

SERVER = ("10.0.0.9", 9092)


def asked(number, names=()):
    body = {"topics": [{"name": name} for name in names]}
    return plain("Metadata", "request", 12, body, {"correlationId": number, "clientId": "app"})


def answered(number):
    return plain("Metadata", "response", 12, {"clusterId": "wirecheck-test-cluster"}, {"correlationId": number})


def strange(key, version, number):
    """A request with a header that any version could have, and bytes that no layout here has."""
    return traffic.size_prefixed(struct.pack(">hhih", key, version, number, 3) + b"app" + b"\0" + b"\x7f" * 9)


def verdict_on(tmp_path, request, response, *, settings=Settings()):
    """Verdict on a connection that is understood, then says this, and is understood again."""
    talk = traffic.Talk(server=SERVER).open()
    talk.request(asked(1)).response(answered(1))
    talk.request(request).response(response)
    talk.request(asked(3)).response(answered(3)).close()
    pcap = tmp_path / "odd.pcap"
    pcap.write_bytes(traffic.pcap(traffic.packets(talk.segments)))
    return by_the_plain_road([frames([pcap], tmp_path / "frames")], settings)


def codes(result, prefix="WIR"):
    return {finding["code"]: finding for finding in result["findings"] if finding["code"].startswith(prefix)}


@pytest.mark.parametrize(
    ("key", "version", "code", "said"),
    [(120, 0, "WIR004", "120"), (3, 19, "WIR005", "Metadata v19")],
)
def test_an_unknown_key_or_a_newer_version_is_undecoded_and_never_malformed(tmp_path, key, version, code, said):
    answer = traffic.size_prefixed(struct.pack(">i", 2) + b"\0" + b"\x7f" * 5)
    result = verdict_on(tmp_path, strange(key, version, 2), answer)
    assert set(codes(result)) == {code}
    assert said in codes(result)[code]["summary"]
    assert codes(result)[code]["kind"] == "visibility"
    coverage = result["coverage"]
    assert (coverage["messages"], coverage["decoded_messages"], coverage["undecoded_messages"]) == (6, 4, 2)


@pytest.mark.parametrize(
    ("tail", "reason", "kind", "decoded"),
    [(b"\x07", "leftover bytes", "information", 6), (b"", "truncated", "violation", 5)],
)
def test_a_malformed_message_is_a_finding_with_its_reason_and_its_client(tail, reason, kind, decoded, tmp_path):
    """What a broker reads is a note, and the message is judged as any other."""
    whole, error = asked(2, ["orders"]), plain("ListGroups", "response", 4, {"errorCode": 42}, {"correlationId": 2})
    if not tail:
        whole = plain("ListGroups", "request", 4, {}, {"correlationId": 2, "clientId": "app"})
    broken = traffic.size_prefixed(whole[4:] + tail if tail else whole[4:-1])
    result = verdict_on(tmp_path, broken, answered(2) if tail else error)
    assert set(codes(result)) == {"WIR003"}
    finding = codes(result)["WIR003"]
    assert (finding["kind"], finding["client_ids"]) == (kind, ["app"])
    assert reason in finding["summary"]
    assert [side["frame"]["first"] for side in finding["sides"]][:1] == [6]
    assert result["coverage"]["decoded_messages"] == decoded


@pytest.mark.parametrize("dialect", ["kafka", "kip516-draft", "kip4-draft"])
def test_shipped_bytes_are_no_draft_whatever_is_said_of_the_dialect(tmp_path, dialect):
    result = verdict_on(tmp_path, asked(2, ["orders"]), answered(2), settings=Settings(dialects=(dialect,)))
    assert json.dumps(codes(result, "DRF")) == "{}"
    assert codes(result) == {}


@pytest.mark.parametrize("snap", [96, 128])
def test_what_a_snap_length_cut_is_unseen_and_nobodys_foreign_protocol(tmp_path, snap):
    talk = traffic.Talk(server=SERVER).open()
    for number in range(1, 20):
        talk.request(asked(number, ["a-topic-with-a-long-name"] * 5)).response(answered(number) + bytes(300))
    packets = [traffic.cut(packet, snap) for packet in traffic.packets(talk.close().segments)]
    pcap = tmp_path / "cut.pcap"
    pcap.write_bytes(traffic.pcap(packets))
    result = by_the_plain_road([frames([pcap], tmp_path / "frames")], Settings())
    gone = sum(packet.wire_bytes - len(packet.data) for packet in packets)
    assert result["coverage"]["unseen_bytes"] == result["coverage"]["details"]["unseen_bytes"]["snap length"] == gone
    assert [finding["code"] for finding in result["findings"]] == ["VIS001"]
    assert f"the snap length cut {gone:,} of them" in result["findings"][0]["summary"]
