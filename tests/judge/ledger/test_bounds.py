"""What is evicted at the bounds: unanswered clients first, newest first; what is omitted is counted, at no cost."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.depth import examples
from tests.judge.lab import B1, Lab, open_rows
from tests.judge.made import EAST, ID_1, S, bound, carries, claim, cluster, outcomes
from wirecheck.judge.checks.shapes import seen_whole
from wirecheck.judge.claims.claim import MOST_MEMBERS
from wirecheck.judge.revisions.judge import Judge
from wirecheck.judge.revisions.subject_eviction import CLIENT_IDS, FOLLOWERS, Distinct, K
from wirecheck.judge.thresholds import Settings

SMALL = Settings(most_topics=10, most_clients=10, most_connections=10, most_claims=50, most_findings=10)
HOST = "10.0.0.9"


def client(name, at, *, answered=True, api="Fetch", version=13):
    peak = {"answered": int(answered)}
    return claim("client", name, HOST, EAST, at=at, tally={f"{api}:{version}": 1}, peak=peak)


def old_version(name, at):
    """A client of an old version, as its requests state it: VER005."""
    return [client(name, at, answered=False, version=1), claim("request_version", name, HOST, EAST, "Fetch", 1, at=at)]


def numbered(number):
    return f"{number:05d}" + "u" * 16 + "A"


def unknown_id(number, at):
    return claim("use", numbered(number), "Fetch", "c", HOST, EAST, at=at, tally={"asked": 1})


def absent(name, at):
    return claim("absence", name, "metadata", EAST, 3, at=at)


def judged(batches, settings=SMALL, *, restarts=False):
    """All rows over batches of claims, by one judge, or by a new one per batch; and the last judge."""
    judge, rows, store = Judge("lab", settings=settings), [], {}
    for number, batch in enumerate(batches):
        if restarts and number:
            judge = Judge("lab", store.get, settings)
        judge.absorb(part.copy() for part in batch)
        judge.progress("agent", (number + 1) * 100 * S, ended=False)
        rows += judge.rows()
        store.update(judge.shards())
    return rows, judge


def standing(rows, table):
    """The rows that stand, and the count of the row `others`."""
    every = open_rows(rows)[table].values()
    return [row for row in every if row.get("others") is None], sum(row.get("others") or 0 for row in every)


def names(rows, table, column):
    return {row[column] for row in standing(rows, table)[0]}


@pytest.mark.parametrize("restarts", [False, True])
def test_clients_that_were_never_answered_leave_first_and_newest_first(restarts):
    known = [client(f"app-{n}", 50 + n) for n in range(5)]
    unanswered = [client(f"evil-{n}", n, answered=False) for n in range(20)]
    rows, _ = judged([[cluster(), *unanswered[:6]], known, unanswered[6:]], restarts=restarts)
    kept = names(rows, "clients", "client_id")
    assert kept == {*(f"app-{n}" for n in range(5)), *(f"evil-{n}" for n in range(5))}
    assert standing(rows, "clients")[1] == 15


def test_of_clients_that_were_answered_those_with_a_finding_stay_and_of_the_others_those_seen_last():
    bad = claim("zero_use", "app-0", HOST, EAST, "Fetch", at=0)
    apps = [client(f"app-{n}", n) for n in range(15)]
    rows, judge = judged([[cluster(), bound("t", ID_1, 1), apps[0], bad], apps[1:]])
    assert judge.emitted.has_finding(("client", "app-0", HOST))
    assert names(rows, "clients", "client_id") == {"app-0", *(f"app-{n}" for n in range(6, 15))}


def test_what_is_only_told_for_information_keeps_no_client_and_no_new_one_away():
    apps = [[*old_version(f"app-{n}", n), client(f"app-{n}", n)] for n in range(30)]
    rows, _ = judged([[cluster()], *apps])
    assert {f"app-{n}" for n in range(20, 30)} <= names(rows, "clients", "client_id")


def test_topics_by_name_and_by_id_leave_and_their_rows_are_withdrawn():
    ours = [bound(f"ours-{n}", numbered(900 + n), 90) for n in range(8)]
    rows, judge = judged([[cluster(), *(unknown_id(n, n) for n in range(10))], ours])
    assert names(rows, "topics", "name") == {*(f"ours-{n}" for n in range(8)), None}
    unresolved = {row["topic_id"] for row in standing(rows, "topics")[0] if row["name"] is None}
    assert unresolved == {numbered(0), numbered(1)}
    assert standing(rows, "topics")[1] == 8
    assert judge.evictor.evicted == {"id": 8}
    (others,) = [row for row in open_rows(rows)["topics"].values() if row.get("others")]
    assert (others["state"], others["name"], others["topic_id"], others["last_seen"]) == ("others", None, None, 9 * S)


def test_what_leaves_waits_for_nothing_and_comes_back_as_a_later_revision():
    rows, judge = judged(
        [
            [cluster(), *(unknown_id(n, n) for n in range(10))],
            [bound(f"o-{n}", numbered(90 + n), 90) for n in range(10)],
        ]
    )
    gone = ("id", numbered(9))
    assert gone not in judge.schedule.due_ns
    assert gone not in judge.watching
    assert not judge.emitted.rows(gone)
    before = max(row.revision for row in rows if row.body.get("topic_id") == numbered(9))
    judge.absorb([claim("use", numbered(9), "Fetch", "c", HOST, EAST, at=300, outcomes=outcomes((300, 0)))])
    back = [row for row in judge.rows() if row.table == "topics" and row.body["topic_id"] == numbered(9)]
    assert all(row.revision > before for row in back)


def test_findings_of_a_check_beyond_its_bound_are_one_row():
    batches = [[cluster()], *([*old_version(f"c-{n}", n), client(f"c-{n}", n)] for n in range(30))]
    rows, judge = judged(batches, Settings(most_findings=10))
    found, more = standing(rows, "findings")
    assert [row["code"] for row in found] == ["VER005"] * 10
    assert more == 20
    (others,) = [row for row in open_rows(rows)["findings"].values() if row.get("others")]
    assert (others["code"], others["kind"], others["count"], others["sides"]) == ("VER005", "information", 20, [])
    assert "20 more" in others["summary"]
    assert judge.evictor.open["VER005"] == [10, 0]


def test_unanswered_clients_leave_half_of_the_bound_for_findings_to_those_who_were_answered():
    unanswered = [part for n in range(30) for part in old_version(f"evil-{n}", n)]
    ours = [part for n in range(5) for part in [*old_version(f"app-{n}", 50), client(f"app-{n}", 51)]]
    rows, _ = judged([[cluster(), *unanswered], ours], Settings(most_findings=10))
    found, more = standing(rows, "findings")
    assert {f"app-{n}" for n in range(5)} < {row["client_ids"][0] for row in found}
    assert (len(found), more) == (10, 25)


def test_a_finding_that_is_withdrawn_makes_room():
    first = [unknown_id(n, n) for n in range(10)]
    settings = Settings(most_findings=20)
    _, judge = judged([[cluster(), *first]], settings)
    judge.progress("agent", 2000 * S, ended=False)
    judge.rows()
    assert judge.evictor.open["TID014"] == [10, 10]
    judge.absorb(bound(f"o-{n}", numbered(n), 1999) for n in range(10))
    judge.rows()
    assert judge.evictor.open["TID014"] == [0, 0]


def connection(number, at, *, responses=1, closed=""):
    peak = {"requests": 1, "responses": responses, "frames": 9, "payload_bytes": 90, "from_start": 1}
    peak["closed_by"] = [at, 1, closed]
    return claim("connection", HOST, EAST, f"{HOST}:{number}", at * S, at=at, peak=peak)


def test_connections_that_nothing_was_answered_on_leave_first_then_closed_ones_and_their_rows_stand():
    half = [connection(n, 60, responses=0) for n in range(6)]
    closed = [connection(n, n, closed="client") for n in range(10, 16)]
    live = [connection(n, 1) for n in range(20, 26)]
    rows, judge = judged([[cluster(), *half], closed, live])
    kept = {subject[2] for subject in judge.ledger.subjects("connection")}
    assert kept == {f"{HOST}:{n}" for n in (12, 13, 14, 15, *range(20, 26))}
    judge.progress("agent", 400 * S, ended=True)
    rows += judge.rows()
    frames = [row["count"] for row in open_rows(rows)["coverage"].values() if row["measure"] == "frames"]
    assert sum(frames) == 18 * 9
    assert not any(row.body.get("withdrawn") for row in rows if row.table == "coverage")


def test_a_connection_with_more_client_ids_than_are_kept_may_be_anybodys():
    one = connection(1, 1)
    spoken = [claim("connection_requests", *one.key, f"c-{n}", at=n) for n in range(100)]
    _, judge = judged([[cluster(), one, *spoken]])
    assert (
        len([c for c in judge.ledger.claims_of(*one.subjects()[0]).values() if c.kind == "connection_requests"])
        == CLIENT_IDS
    )
    context = judge.context()
    group = context.clusters.of(EAST, S)
    assert not seen_whole("c-99", HOST, {EAST}, group, context)
    assert not seen_whole("never heard", HOST, {EAST}, group, context)
    few = judged([[cluster(), one, *spoken[:3]]])[1].context()
    assert not seen_whole("c-2", HOST, {EAST}, few.clusters.of(EAST, S), few)
    assert seen_whole("c-99", HOST, {EAST}, few.clusters.of(EAST, S), few)


def test_of_the_ids_an_endpoint_spoke_of_the_least_are_kept_whatever_the_cuts():
    carriers = [carries(EAST, f"{n:05d}", at=n) for n in range(2000)]
    random.Random(3).shuffle(carriers)
    _, judge = judged([[cluster()], *(carriers[at : at + 300] for at in range(0, 2000, 300))], Settings())
    (kept,) = judge.ledger.claims("carries", "server")
    assert kept.peak == {f"least:{n:05d}": -n * S for n in range(MOST_MEMBERS)}


def test_of_one_kind_of_claims_about_a_subject_the_first_are_kept():
    bad = [claim("unknown", "Fetch", n, EAST, "version", HOST, at=n) for n in range(99)]
    _, judge = judged([[cluster(), *bad]])
    kept = judge.ledger.claims("unknown", "wire")
    assert [c["version"] for c in kept] == list(range(50))
    assert judge.evictor.evicted["wire"] == 49


@examples(30)
@given(st.data(), st.randoms(use_true_random=False))
def test_no_number_of_unanswered_clients_makes_a_client_or_topic_leave_that_was_answered(data, rng):
    many = data.draw(st.integers(0, 200))
    apps = data.draw(st.integers(0, 10))
    ours = [part for n in range(apps) for part in (client(f"app-{n}", n), bound(f"ours-{n}", numbered(900 + n), n))]
    evil = [absent(f"evil-{n}", rng.randrange(99)) for n in range(many)]
    evil += [client(f"evil-{n}", rng.randrange(99), answered=False) for n in range(many)]
    evil += [unknown_id(n, rng.randrange(99)) for n in range(many)]
    story = [*ours, *evil]
    rng.shuffle(story)
    cuts = sorted(rng.sample(range(len(story) + 1), min(4, len(story))))
    batches = [[cluster()], *(story[a:b] for a, b in zip([0, *cuts], [*cuts, len(story)], strict=True))]
    rows, judge = judged(batches, restarts=data.draw(st.booleans()))
    assert {f"app-{n}" for n in range(apps)} <= names(rows, "clients", "client_id")
    assert {f"ours-{n}" for n in range(apps)} <= names(rows, "topics", "name")
    assert all(judge.ledger.count(space) <= 11 for space in ("name", "id", "client"))


def test_below_the_bounds_nothing_is_counted_and_nothing_leaves():
    story = [client(f"app-{n}", n, answered=False) for n in range(11)]
    rows, judge = judged([[cluster(), *story]])
    assert standing(rows, "clients")[1] == 0
    assert (len(standing(rows, "clients")[0]), judge.evictor.evicted) == (11, {})


def test_an_answer_without_error_shows_that_a_client_counts_as_answered():
    lab = Lab()
    partition = {"topicId": ID_1, "partitions": [{"errorCode": 0}]}
    refused = {"topicId": ID_1, "partitions": [{"errorCode": 100}]}
    answers = {
        "greets": ("ApiVersions", 3, {"errorCode": 0}),
        "fails": ("Fetch", 13, {"errorCode": 0, "responses": [refused]}),
        "empty": ("Fetch", 13, {"errorCode": 0, "responses": []}),
        "reads": ("Fetch", 13, {"errorCode": 0, "responses": [refused, partition]}),
        "asks": ("Metadata", 12, {"topics": [{"errorCode": 3, "name": "no"}]}),
        "knows": ("Metadata", 12, {"topics": [{"errorCode": 3, "name": "no"}, {"errorCode": 0, "name": "t"}]}),
        "beats": ("Heartbeat", 4, {"errorCode": 0}),
        "beaten": ("Heartbeat", 4, {"errorCode": 25}),
    }
    for client_id, (api, version, answer) in answers.items():
        lab.talk(B1, client_id).ask(1, api, version, {}, answer)
    found = {c["client_id"] for c in lab.claims() if c.kind == "client" and c.peak["answered"]}
    assert found == {"reads", "knows", "beats"}


def test_a_sketch_counts_a_few_exactly_and_many_nearly_whatever_the_order():
    few, many, again = Distinct(), Distinct(), Distinct()
    for n in [*range(K - 1), *range(K - 1)]:
        few.add(str(n))
    assert len(few) == K - 1
    things = [str(n) for n in range(50_000)]
    for thing in things:
        many.add(thing)
    random.Random(1).shuffle(things)
    for thing in things:
        again.add(thing)
    assert many.least == again.least
    assert len(many.least) == K
    assert abs(len(many) - 50_000) < 10_000


def session(broker, at):
    yield claim("follower", broker, EAST, f"broker-{broker}-fetcher-0", HOST, at=at, peak={"full": -1})
    yield claim("fetch_versions", broker, HOST, 9092, at=at, tally={"180000000:17": 1})


def test_of_brokers_that_follow_those_stay_that_came_first():
    judge = Judge("lab")
    judge.absorb(said for broker in range(FOLLOWERS) for said in session(broker, 0))
    judge.rows()
    judge.absorb(said for broker in range(FOLLOWERS, 2 * FOLLOWERS) for said in session(broker, broker))
    judge.rows()
    assert judge.evictor.evicted["follower"] == judge.evictor.evicted["server"] == FOLLOWERS
    assert {versions["broker"] for versions in judge.ledger.claims("fetch_versions", "server")} == {*range(FOLLOWERS)}
    assert {subject[1] for subject in judge.ledger.subjects("follower")} == {str(broker) for broker in range(FOLLOWERS)}
    store = judge.shards()
    assert Judge("lab", store.get).ledger.count("follower") == FOLLOWERS


FEW = Settings(most_unanswered=10, most_ids_of_host=10)


@pytest.mark.parametrize("restarts", [False, True])
def test_invented_names_ids_and_clients_are_counted_and_those_in_use_stay(restarts):
    """A name that one request mentioned, an ID that one fetch asked for, a client that nothing answered."""
    ours = [bound("ours", numbered(900), 1), client("app", 1)]
    stuck = [claim("use", numbered(901), "Fetch", "c", HOST, EAST, at=at, tally={"asked": 1}) for at in (60, 95)]
    invented = [absent(f"x-{n}", n) for n in range(40)]
    invented += [
        claim("unknown_topic", "evil", HOST, EAST, f"x-{n}", at=n, outcomes=outcomes((n, 3))) for n in range(40)
    ]
    invented += [unknown_id(n, n) for n in range(40)] + [client(f"evil-{n}", n, answered=False) for n in range(40)]
    rows, judge = judged([[cluster(), *ours, *invented[:30]], [*invented[30:], *stuck]], FEW, restarts=restarts)
    kept, others = standing(rows, "topics")
    assert {"ours"} <= {row["name"] for row in kept}
    assert numbered(901) in {row["topic_id"] for row in kept}
    assert len([row for row in kept if row["name"] is None]) == 10
    assert others == 30 + 31
    clients, other_clients = standing(rows, "clients")
    assert ({row["client_id"] for row in clients} & {"app"}, len(clients), other_clients) == ({"app"}, 10, 31)
    assert judge.ledger.count("name") <= 11 + 10


def test_client_ids_at_one_address_are_counted_and_those_seen_last_stay():
    many = [client(f"id-{n}", n) for n in range(30)]
    elsewhere = claim("client", "app", "10.0.0.8", EAST, at=0, tally={"Fetch:13": 1}, peak={"answered": 1})
    rows, _ = judged([[cluster(), elsewhere, *many]], FEW)
    assert names(rows, "clients", "client_id") == {"app", *(f"id-{n}" for n in range(20, 30))}
    assert standing(rows, "clients")[1] == 20
