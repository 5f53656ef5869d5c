"""The laws of `wirecheck anonymize`: nothing that names someone gets out, and what a capture proves it still proves.

Every text of every API and of every record of the metadata log is a word of its own, and so are clients, records and
secrets. The results of a capture and of its copy are compared with each word of the one as the key file maps it.
"""

import base64
import json
import random
import re
from functools import cache
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.build import Still, build, filled, plain
from tests.capture import canaries
from tests.decode.log.batches import batch, entry
from tests.depth import examples, some
from tests.laws.test_principals import KINDS, RECORDS, layout_of
from tests.scenarios.engines import NAMES, Scenario
from tests.traffic import Talk, packets, pcap
from wirecheck.capture.agent.offline_agent import read_frames
from wirecheck.capture.anonymize.names import Names
from wirecheck.document import document as written
from wirecheck.session.anonymize import anonymize
from wirecheck.session.local_check import checked
from wirecheck.session.session import Session
from wirecheck.session.verdict_document import for_programs
from wirecheck.streaming.steps.settings import Settings

CANARY = re.compile(rb"zq\d{5}vk")
SERIAL = {}
KEY = bytes(range(32))
ADDRESS = "198.51.100.77"
INSIDE_TLS = {"zk28-sasl-tls", "zk28-tls13-sasl-recreate", "zk39-tls12-mutual-inconsistent-id"}
"""Refused, or decrypted: then their clients use another security protocol."""


def word(path):
    return f"zq{SERIAL.setdefault(path, len(SERIAL)):05d}vk"


def content(path, kind):
    return word(path) if kind == "string" else base64.b64encode(word(path).encode()).decode()


def sent(api, side, version, number):
    layout = layout_of(api, side, version)
    header = {"correlationId": number, **({"clientId": word("client")} if side == "request" else {})}
    return plain(api, side, version, filled(layout.fields, version, content, api), header)


def log():
    entries = []
    for api, version in RECORDS:
        layout = layout_of(api, "record", version)
        body = build(layout, version, Still(), filled(layout.fields, version, content, api)).data
        entries.append(entry(layout.key, body, version=version))
    return base64.b64encode(batch(*entries)).decode()


def copied(data, tmp_path, names=None):
    source, target = tmp_path / "in.pcap", tmp_path / "out.pcapng"
    source.write_bytes(data)
    found = anonymize(Session(), str(source), target, names or Names(KEY))
    return target, found


@cache
def document(path, dialects=()):
    result = checked(Session(), [path], "default", Settings(dialects=dialects)).run.result()
    return json.loads(json.dumps(written(for_programs(result.verdict(), ["capture"]))))


def messages(path):
    return document(str(path))["coverage"]


@pytest.mark.parametrize("part", range(4))
def test_no_text_of_any_message_gets_out(part, tmp_path):
    talk = Talk(client=(ADDRESS, 40000), server=("203.0.113.9", 9092)).open()
    kinds = sorted({(api, version) for api, _, version in KINDS})[part::4]
    for number, (api, version) in enumerate([("ApiVersions", 3), ("Metadata", 12), *kinds], 1):
        for side in ("request", "response"):
            if (api, side, version) in KINDS:
                getattr(talk, side)(sent(api, side, version, number))
    given = pcap(packets(talk.segments))
    target, _ = copied(given, tmp_path)
    written = target.read_bytes()
    assert len(set(CANARY.findall(given))) > 100
    assert CANARY.findall(written) == []
    assert base64.urlsafe_b64decode("JMxDMvfeRaOyTjPWGqDRbA==") in given
    assert base64.urlsafe_b64decode("JMxDMvfeRaOyTjPWGqDRbA==") not in written
    assert bytes(map(int, ADDRESS.split("."))) not in written
    before, after = messages(tmp_path / "in.pcap"), messages(target)
    assert (before["messages"], before["decoded_messages"]) == (after["messages"], after["decoded_messages"])
    assert before["messages"] > len(kinds)


def test_no_text_of_the_metadata_log_gets_out(tmp_path):
    body = {"responses": [{"topic": "__cluster_metadata", "partitions": [{"records": log()}]}]}
    snapshot = {"snapshotId": {"endOffset": 7, "epoch": 1}, "size": 1 << 20, "unalignedRecords": log()}
    chunks = {"topics": [{"name": "__cluster_metadata", "partitions": [snapshot]}]}
    talk = Talk(client=("10.0.0.1", 40000)).open()
    for number, (api, version, answer) in enumerate(
        (("ApiVersions", 3, {}), ("Fetch", 12, body), ("FetchSnapshot", 0, chunks))
    ):
        talk.request(plain(api, "request", version, {}, {"clientId": "raft-client-1", "correlationId": number}))
        talk.response(plain(api, "response", version, answer, {"correlationId": number}))
    given = pcap(packets(talk.segments))
    target, _ = copied(given, tmp_path)
    assert len(set(CANARY.findall(given))) > 20
    assert CANARY.findall(target.read_bytes()) == []
    assert b"raft-client-1" in target.read_bytes()


@examples(15, deep=400)
@given(
    seed=st.integers(0, 1 << 32),
    mss=st.sampled_from([60, 300, 1448]),
    what=st.sets(st.sampled_from(["loss", "repeat", "reorder", "middle"])),
)
def test_no_record_no_secret_and_no_user_gets_out(tmp_path_factory, seed, mss, what):
    rng = random.Random(seed)
    names = rng.sample(sorted(canaries.EXCHANGES), 8)
    segments = canaries.mutated(canaries.traffic(names, mss), rng, what)
    target, _ = copied(pcap(packets(segments)), tmp_path_factory.mktemp("out"))
    written = target.read_bytes()
    payloads = b"".join(bytes(each) for each in frames_of(target))
    assert [part for part in canaries.PARTS if part in written or part in payloads] == []
    assert b"alice" not in written  # who logs in, by PLAIN and SCRAM


def frames_of(path):
    for rows in read_frames([path]):
        yield from rows.column("payload").to_pylist()


@examples(15, deep=400)
@given(seed=st.integers(0, 1 << 32), what=st.sampled_from(["bytes", "ends", "zeros"]))
def test_no_text_of_a_damaged_message_gets_out(tmp_path_factory, seed, what):
    rng = random.Random(seed)
    talk = Talk(client=(ADDRESS, 40000)).open()
    kinds = rng.sample(sorted({(api, version) for api, _, version in KINDS}), 30)
    for number, (api, version) in enumerate([("ApiVersions", 3), ("Metadata", 12), *kinds], 1):
        for side in ("request", "response"):
            if (api, side, version) in KINDS:
                message = sent(api, side, version, number)
                getattr(talk, side)(damaged(message, rng, what) if number > 2 else message)
    target, _ = copied(pcap(packets(talk.segments)), tmp_path_factory.mktemp("out"))
    assert CANARY.findall(target.read_bytes()) == []


def damaged(message, rng, what):
    """Its size and IDs stay."""
    data = bytearray(message[12:])
    for _ in range(rng.randint(0, 4)):
        at = rng.randrange(len(data) + 1)
        data[at : at + 1] = {"bytes": rng.randbytes(1), "ends": b"", "zeros": b"\0"}[what]
    return (8 + len(data)).to_bytes(4) + message[4:12] + bytes(data)


# --- what is found in it


UNLIKE = {"id", "inputs", "evidence", "look", "command", "commands", "frame", "frames"}
WORDS_OF_OURS = {"state"}  # a client may be called "working"
FINDING_ID = re.compile(r"\b[a-z2-7]{16}\b")  # a hash of what the finding is about
WORDS = re.compile(r"[0-9A-Za-z\x80-\xff]+|[^0-9A-Za-z\s]")


class Renamed:
    """Two documents that are the same but for names. A value that is a name is compared as it is mapped. A sentence is
    compared without its names: of several equal ones it has the first by name.
    """

    def __init__(self, names):
        self.exact = {old.decode(errors="replace"): new.decode(errors="replace") for old, new in names.texts.items()}
        self.exact |= {id_text(old): id_text(new) for old, new in names.ids.items()}
        self.exact |= {str(ip_address(old)): str(ip_address(new)) for old, new in names.addresses.items()}
        every = sorted({*self.exact, *self.exact.values()} - {""}, key=len, reverse=True)
        self.name = re.compile("|".join(rf"(?<!\w){re.escape(each)}(?!\w)" for each in every))
        self.part = re.compile("|".join(rf"(?<![\w-]){re.escape(each)}(?![\w-])" for each in every))

    def of(self, value, *, old):
        if isinstance(value, dict):
            kept = (key for key in sorted(value) if key not in UNLIKE)
            return {key: value[key] if key in WORDS_OF_OURS else self.of(value[key], old=old) for key in kept}
        if isinstance(value, list):
            return sorted((self.of(each, old=old) for each in value), key=json.dumps)
        return self.text(value, old=old) if isinstance(value, str) else value

    def text(self, text, *, old):
        if " " in text:
            text = FINDING_ID.sub("ID", re.sub(r"frames? [\d, ]+", "frame", self.name.sub("NAME", text)))
            return sorted(WORDS.findall(text))
        if not old:
            return FINDING_ID.sub("ID", text)
        return self.exact.get(text) or FINDING_ID.sub(
            "ID", self.part.sub(lambda found: self.exact.get(found[0], found[0]), text)
        )


def id_text(value):
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


@pytest.mark.parametrize("name", some([name for name in NAMES if name not in INSIDE_TLS], each=4))
def test_a_capture_gives_the_same_under_other_names(name, tmp_path):
    scenario, names, target = Scenario(name), Names(KEY), tmp_path / "out.pcapng"
    anonymize(Session(), str(scenario.pcap), target, names)
    before, after = (document(str(path), scenario.settings.dialects) for path in (scenario.pcap, target))
    renamed = Renamed(names)
    assert renamed.of(before, old=True) == renamed.of(after, old=False)
    assert sorted(each["code"] for each in before["findings"]) == sorted(each["code"] for each in after["findings"])


ALIKE = st.text("abcxyz", min_size=3, max_size=4)
"""As many of one length as names have, that are as near to each other."""


@given(st.lists(st.one_of(ALIKE, st.text(min_size=3, max_size=40)), max_size=30))
def test_names_differ_as_before_and_are_as_long(texts):
    names, every_text = Names(KEY), {text.encode() for text in texts}
    mapped = [names.text(text) for text in every_text]
    assert [len(text) for text in every_text] == [len(text) for text in mapped]
    assert len(every_text) == len(set(mapped))
