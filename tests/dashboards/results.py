"""Results of a replay for the tests of this room: objects in its form, and names that try to break out of them."""

import itertools
from dataclasses import replace

from wirecheck.frame import Frame
from wirecheck.session.local_check import checked
from wirecheck.session.session import Session
from wirecheck.session.verdict_document import for_programs, with_about
from wirecheck.story.card_context import CardContext
from wirecheck.story.cards import with_cards
from wirecheck.story.entries import entries
from wirecheck.story.seen import Client, Cluster, Coverage, Topic
from wirecheck.story.verdict import About, Finding, Grace, Mark, Marks, Side, Verdict
from wirecheck.streaming.steps.settings import Settings
from wirecheck.wording import ns_of

SIDE = Side(
    time_ns=ns_of("2026-11-20T22:13:23.131025Z"),
    claim="broker 3 refuses id da2uCyqPT-6vP4yDIMcDSw",
    connection="127.0.1.2:40112>127.0.1.3:19093",
    api="LeaderAndIsr",
    version=7,
    correlation_id=4,
    frame=Frame("capture.pcap", 8123, 8123),
)
FINDING = Finding(
    id="abcdefghij234567",
    label="default",
    code="TID002",
    name="leader-and-isr-inconsistent-topic-id",
    kind="violation",
    cluster="aqj98zPCSGyEHO5efX6mPg",
    topic="shipments",
    topic_ids=("da2uCyqPT-6vP4yDIMcDSw",),
    client_ids=(),
    brokers=(3,),
    summary="Broker 3 carries another id for shipments on disk.",
    words={"where": "3", "partitions": "partition 0", "earlier": ""},
    times={},
    first_ns=ns_of("2026-11-20T22:13:23.131025Z"),
    last_ns=ns_of("2026-11-20T22:13:30.264000Z"),
    count=2,
    sides=(SIDE,) * 6,
)
TIMES = {"time": "time_ns", "first_seen": "first_ns", "last_seen": "last_ns"}


def changed(value, fields):
    """The same value with other fields; times and frames are given as JSON has them."""
    found = {}
    for name, cell in fields.items():
        made = ns_of(cell) if name in TIMES else tuple(cell) if isinstance(cell, list) else cell
        found[TIMES.get(name, name)] = Frame(**made) if name == "frame" else made
    return replace(value, **found)


TOPIC = Topic(
    cluster="aqj98zPCSGyEHO5efX6mPg",
    name="shipments",
    topic_id="da2uCyqPT-6vP4yDIMcDSw",
    first_ns=ns_of("2026-11-20T22:13:08.994000Z"),
    last_ns=ns_of("2026-11-20T22:13:46.000000Z"),
    sources=("leader-and-isr",),
    state="current",
    earlier_ids=(),
)
RESULT = Verdict(
    coverage=Coverage(
        frames=9045,
        connections=61,
        messages=4200,
        exchanges=2100,
        decoded_messages=4199,
        encrypted_connections=2,
        undecoded_messages=1,
        input_errors=("b.pcap: truncated packet at byte offset 77",),
    ),
    clusters=(
        Cluster(
            label="default",
            cluster_id="aqj98zPCSGyEHO5efX6mPg",
            endpoints=("127.0.1.3:19093",),
            brokers=(),
            first_ns=TOPIC.first_ns,
            last_ns=TOPIC.last_ns,
        ),
    ),
    topics=(TOPIC,),
    findings=(
        changed(FINDING, {"id": "b" * 16, "code": "TID001", "kind": "information", "name": "topic-recreated"}),
        FINDING,
    ),
)
ABOUT = About(
    engine="local",
    captured=None,
    verdict="v",
    marks=Marks(Mark("clear", "1 topic and 1 broker agree"), Mark("visibility", "no client was read")),
    schema_version=1,
    wirecheck="9.8",
    inputs=("capture.pcap",),
    keylogs=(),
    grace_s=Grace(30, 300),
)


def read(result, every=()):
    """The same with its findings as entries and their cards."""
    findings = {finding.id: finding for finding in (*every, *result.findings)}
    context = CardContext(findings, 0)
    return replace(result, entries=tuple(with_cards(entries(result.findings, every), result.harms, context)))


def replayed(capture):
    """The verdict of a capture, as `replay` has it before it prints it."""
    inputs = (str(capture),)
    found = checked(Session(), inputs, "default", Settings()).run.result().verdict(inputs=inputs)
    return for_programs(with_about(found, inputs, (), {}), inputs)


RESULT = read(RESULT)
HOSTILE = (
    "<script>document.title='owned'</script>",
    '"><img src=x onerror="document.title=\'owned\'">',
    "' onmouseover='document.title=1' x='",
    "</style></svg></title><b>bold</b>",
    "{{ 7 * 7 }}{% raw %}",
    "\x1b]0;owned\x07\x1b[31mred\x1b[2J",
    "\u202egnp.exe\u2066",
    "javascript:document.title='owned'",
    "&lt;already&gt;&amp;",
)
CLIENT = Client(
    cluster="aqj98zPCSGyEHO5efX6mPg",
    client_id="billing",
    address="10.0.0.7",
    software_name="apache-kafka-java",
    software_version="3.9.1",
    apis={"Fetch": (4, 5, 12), "Metadata": (11, 12)},
    requests=1234,
    granted=True,
    through=(),
    first_ns=ns_of("2026-11-20T22:13:08.994000Z"),
    last_ns=ns_of("2026-11-20T22:13:46.000000Z"),
)
KINDS = (("TID002", "violation"), ("TID005", "anomaly"), ("TID001", "information"), ("VIS001", "visibility"))


def result(findings):
    """A replay's verdict with that many findings, over a tenth as many topics."""
    topics = [f"topic-{n:05}" for n in range(max(findings // 10, 1))]
    kinds = itertools.cycle(KINDS)
    about = {
        "coverage": replace(RESULT.coverage, details={"connections": {"kafka": 61}}),
        "clients": [CLIENT],
        "topics": [replace(TOPIC, name=name) for name in topics],
        "findings": [
            changed(FINDING, {"id": f"{n:016}", "topic": topics[n % len(topics)], "code": code, "kind": kind})
            for n, (code, kind) in zip(range(findings), kinds, strict=False)
        ],
    }
    return read(changed(RESULT, about))


def hostile():
    """Every place that a stranger's text can reach holds a name that tries to break out."""
    made = result(len(HOSTILE))
    findings = []
    for finding, name in zip(made.findings, HOSTILE, strict=True):
        frame = {"source": name, "first": 1, "last": 2}
        side = changed(SIDE, {"claim": name, "connection": name, "api": name, "frame": frame})
        about = {"topic": name, "summary": f"Topic {name} is wrong.", "client_ids": [name], "name": name}
        findings.append(changed(finding, about | {"sides": [side]}))
    clients = [
        replace(CLIENT, client_id=name, software_name=name, software_version=name, apis={name: (1,)})
        for name in HOSTILE
    ]
    details = {"undecoded_messages": dict.fromkeys(HOSTILE, 1)}
    about = {
        "findings": findings,
        "topics": [replace(TOPIC, name=name) for name in HOSTILE],
        "clients": clients,
        "coverage": replace(made.coverage, input_errors=HOSTILE, details=details),
        "clusters": [replace(made.clusters[0], label=HOSTILE[0], endpoints=HOSTILE, brokers=(1,))],
    }
    return read(changed(made, about))
