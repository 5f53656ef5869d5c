"""Which hosts are unauthenticated depends on the claims alone, whatever their order and batches."""

import random

import pytest

from tests.judge import cases_unauthenticated_hosts as cases
from tests.judge.lab import Lab, exchanged, ns, open_rows
from wirecheck.judge.claims.extract.extraction import claims
from wirecheck.judge.revisions.judge import Judge

STORIES = sorted(name for name in vars(cases) if name.startswith("clu002_"))
TABLES = ("findings", "topics", "clients", "clusters", "coverage")


def standing(batches, until=100):
    """What stands after batches of claims, with the judge's state stored in between."""
    kept, rows = {}, []
    for number, batch in enumerate(batches):
        judge = Judge("lab", kept.get)
        judge.absorb(claim.copy() for claim in batch)
        judge.progress("agent", ns(until), ended=number == len(batches) - 1)
        rows += judge.rows()
        kept.update(judge.shards())
    return {table: open_rows(rows)[table] for table in TABLES}


def codes(stands):
    return sorted(finding["code"] for finding in stands["findings"].values())


@pytest.mark.parametrize("name", STORIES)
def test_batches_and_order_change_nothing(name):
    """Connections one by one, in any order: what one message says always comes together."""
    lab = Lab()
    getattr(cases, name)(lab)
    parts = [list(claims(*exchanged(talk))) for talk in lab.talks]
    random.Random(1).shuffle(parts)
    assert standing(parts) == standing([lab.claims()])


def test_a_host_that_is_granted_something_later_is_heard_after_all():
    lab, later = Lab(), Lab()
    cases.cluster(lab)
    cases.stale(cases.outsider(lab), count=60)
    cases.malformed(cases.outsider(lab))
    later.metadata(80, talk=cases.outsider(later))
    first = standing([lab.claims()])
    assert codes(first) == ["CLU002"]
    assert codes(standing([lab.claims(), later.claims()])) == ["FET001", "TID014", "WIR003"]


def test_what_a_host_did_before_it_was_odd_is_not_said_twice():
    early, late = Lab(), Lab()
    cases.cluster(early)
    cases.outsider(early).ask(10, "Fetch", 2, {}, {"responses": []})
    cases.malformed(cases.outsider(late), at=50)
    assert codes(standing([early.claims()])) == ["VER005"]
    assert codes(standing([early.claims(), late.claims()])) == ["CLU002"]


def test_the_cluster_is_the_same_with_and_without_unauthenticated_hosts():
    lab, alone = Lab(), Lab()
    cases.cluster(alone)
    cases.cluster(lab)
    for use in (cases.newer, cases.malformed, cases.foreign_id, cases.stale, cases.outside):
        use(cases.outsider(lab))
    with_it, without = standing([lab.claims()]), standing([alone.claims()])
    assert {table: with_it[table] for table in ("topics", "clients")} == {
        table: without[table] for table in ("topics", "clients")
    }
    (finding,) = (found for found in with_it["findings"].values() if found not in without["findings"].values())
    assert (finding["code"], finding["kind"], finding["client_ids"]) == ("CLU002", "anomaly", ["evil"])
    for said in ("versions of no release 1 time (Metadata)", "unknown topic IDs in requests of brokers 1 time (Fetch)"):
        assert said in finding["summary"]


def test_bytes_that_are_no_kafka_are_information_and_nothing_else():
    lab = Lab()
    cases.clu002_fires__no_kafka(lab)
    (finding,) = standing([lab.claims()])["findings"].values()
    assert (finding["code"], finding["kind"]) == ("CLU002", "information")
