"""Values of a verdict for tests: each with what matters to a test, the rest plain."""

import datetime as dt

from wirecheck.document import of_row
from wirecheck.judge.checks.catalogue import CHECKS
from wirecheck.judge.results.finding import Time
from wirecheck.story import causes
from wirecheck.story.seen import Activity, Client
from wirecheck.story.verdict import (
    Card,
    CardAction,
    CardCause,
    CardEntry,
    CardEvidence,
    CardHarm,
    Entry,
    Finding,
    Harm,
    HurtClient,
)
from wirecheck.wording import NS_PER_S, TimeSpan, ns_of

NOON_NS = ns_of("2026-11-21T12:00:00Z")
NO_SIDE = {"time": NOON_NS, "claim": "", "connection": None, "api": None}
NO_SIDE |= {"version": None, "correlation_id": None, "frame": None}


def in_ns(row):
    """Tests write some times as Python has them."""
    return {name: TimeSpan.of(cell).ns if isinstance(cell, dt.datetime) else cell for name, cell in row.items()}


def finding(row, **more):
    """Of a row of the table of findings that may lack columns, and has its words as a mapping; an integer is a time."""
    row = {"summary": f"{row['code']} of {row['topic']}.", "count": 1, "name": CHECKS[row["code"]].name, **row, **more}
    sides = [in_ns({**NO_SIDE, **side}) for side in row["sides"]]
    times = {name: word for name, word in row["words"].items() if type(word) is int}
    words = row["words"] | {name: str(Time(time_ns)) for name, time_ns in times.items()}
    lists = {"words": [{"name": name, "value": word} for name, word in words.items()]}
    lists |= {"times": [{"name": name, "time": time_ns} for name, time_ns in times.items()]}
    return Finding.of({**in_ns(row), "sides": sides, **lists})


def findings(rows):
    """Linked, in the order of the rows."""
    return causes.linked(list(map(finding, rows)))


def linked(rows):
    """The same by ID."""
    return {one.id: one for one in findings(rows)}


def harm(**row):
    """Of a row of the table of harms, with times as JSON has them."""
    times = {name: ns_of(row[name]) for name in ("first_seen", "last_seen")}
    return of_row(Harm, {"granted_before": False, "others": None, **row, **times})


def client(**more):
    """One that sent a request at noon."""
    plain = {"cluster": "C", "client_id": "app", "address": "10.0.0.7", "requests": 1, "granted": True, "through": ()}
    plain |= {"software_name": None, "software_version": None, "apis": {"Fetch": (3,)}}
    return Client(**{**plain, "first_ns": NOON_NS, "last_ns": NOON_NS, **more})


def activity(api, step, granted, rejected, **more):
    """Of one client's requests."""
    who = {"cluster": "C", "client_id": "app-0", "address": "127.0.0.1"}
    return Activity(
        **{**who, **more}, api=api, step=step, state="working", since_ns=None,
        until_ns=None, requests=granted + rejected, granted=granted, late=0, unasked=0, rejected=rejected, closed=0,
        given_up=0, in_flight=0, unknown=0, errors=(), first_ns=7, last_ns=9,
    )  # fmt: skip


def hurt(client_id="teller", count=10, **more):
    """A client that is refused since noon."""
    about = {"topic": "orders", "partitions": (), "api": "Produce", "error": "TOPIC_AUTHORIZATION_FAILED"}
    times = {"first_ns": NOON_NS, "last_ns": NOON_NS + (10 + count % 40) * 60 * NS_PER_S, "blocked_ms": 600_000}
    rest = {"address": "10.0.0.7", "granted_before": False, "ongoing": True}
    return HurtClient(client_id=client_id, count=count, **{**about, **times, **rest, **more})


def card(*clients, headline="Topic t was recreated", **harm):
    none = {"requests": (), "briefly": (), "partitions": (), "possibly": (), "others": 0}
    of = CardHarm(sentence="", clients=clients, **{**none, **harm})
    return Card(headline, of, CardCause(headline, NOON_NS, None), CardAction("", ()), CardEvidence((), ""))


def entry(findings=("a",), code="TID001", kind="information", **more):
    """Without a card."""
    lists = dict.fromkeys(("topics", "client_ids", "brokers", "consequences"), ())
    rest = {"sentence": "", "name": "", "cluster": None, "role": "alone", "own_next": True, "follows_from": None}
    return Entry(findings=findings, code=code, kind=kind, count=len(findings), **{**lists, **rest, **more})


def card_entry(made, **about):
    """An entry with this card."""
    plain = entry(**about)
    return CardEntry(**{name: getattr(plain, name) for name in Entry.__dataclass_fields__}, card=made)
