"""Laws of the ledger of requests: each is counted once, loss accuses nobody, nobody changes another client's row."""

import base64
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tests.depth import DEEP
from tests.judge.cases_progress import fetches
from tests.judge.lab import B1, B2, B3, ID_1, Lab, exchanged, lacks, ns, open_rows
from tests.laws.test_judge import absurd
from wirecheck.decode.columns import tables
from wirecheck.decode.connection.exchanges import CLOSED_BY_CLIENT, PENDING, RESPONSE_UNSEEN
from wirecheck.decode.connection.framing.recognise import hash_of_client
from wirecheck.decode.message import decode
from wirecheck.decode.request_waits import given_up
from wirecheck.decode.wire import REQUEST
from wirecheck.judge.activity_states import UNSEEN_ONE_IN
from wirecheck.judge.claims.extract.extraction import claims
from wirecheck.judge.revisions.judge import Judge

FEW = settings(max_examples=100 if DEEP else 20)
SEEDS = st.integers(0, 1 << 32)
HURT = {"stalled", "in part", "failing"}
APIS = (("Heartbeat", 4), ("SyncGroup", 5), ("InitProducerId", 4), ("EndTxn", 3), ("AddOffsetsToTxn", 3))
ERRORS = (15, 16, 53, 58, 47, -1)


def busy(dice, *, share=0.3, seconds=150):
    """A client that works, with up to this share of its requests rejected, at two brokers by several connections."""
    lab = Lab()
    lab.metadata(0)
    for api, version in dice.sample(APIS, 3):
        talks = [lab.talk(server, "app", "10.0.0.7") for server in (B1, B2)]
        for at in range(1, seconds):
            error = dice.choice(ERRORS) if dice.random() < share * dice.random() and at % 3 else 0
            talk = dice.choice(talks)
            talk.ask(at, api, version, {}, {"errorCode": error})
            talk.rejected = getattr(talk, "rejected", set()) | ({len(talk.exchanges) - 1} if error else set())
    lab.until = seconds + 60
    return lab


def states(lab):
    rows = lab.judge()["activities"].values()
    return {(row["client_id"], row["address"], row["api"]): row["state"] for row in rows}


@FEW
@given(seed=SEEDS)
def test_every_request_of_a_client_is_counted_once(seed):
    exchanges, decoded = exchanged(*absurd(seed).talks)
    every = sum(run.count for claim in claims(exchanges, decoded) if claim.kind == "activity"
                for run in claim.outcomes.runs())  # fmt: skip
    assert every == int((exchanges.request >= 0).sum())


def lose_responses(lab, dice, share, *, granted_ones):
    """Of all responses, or of those that grant something: these are longer, and a snap length cuts them."""
    for talk in lab.talks[1:]:
        lost = {
            number for number, (_, answer, _) in enumerate(talk.exchanges)
            if answer >= 0 and dice.random() < share and (not granted_ones or number not in talk.rejected)
        }  # fmt: skip
        talk.exchanges = [
            (asked, -1, RESPONSE_UNSEEN) if number in lost else (asked, answer, outcome)
            for number, (asked, answer, outcome) in enumerate(talk.exchanges)
        ]
        renumber(talk)


def lose_exchanges(lab, keep):
    for talk in lab.talks:
        talk.exchanges = [one for one in talk.exchanges if keep(talk, talk.messages[one[0]][5])]
        renumber(talk)


def renumber(talk):
    """Without the messages that no exchange has any more."""
    kept = sorted({half for asked, answer, _ in talk.exchanges for half in (asked, answer) if half >= 0})
    place = {old: new for new, old in enumerate(kept)} | {-1: -1}
    talk.messages = [talk.messages[old] for old in kept]
    talk.exchanges = [(place[asked], place[answer], outcome) for asked, answer, outcome in talk.exchanges]


@FEW
@example(seed=1, share=1.0, granted_ones=True)
@given(seed=SEEDS, share=st.sampled_from([0.02, 0.1, 0.5, 0.9, 1.0]), granted_ones=st.booleans())
def test_lost_responses_accuse_nobody(seed, share, granted_ones):
    lab = busy(Random(seed))
    assert HURT.isdisjoint(states(lab).values())
    lose_responses(lab, Random(seed + 1), share, granted_ones=granted_ones)
    assert HURT.isdisjoint(states(lab).values())


@FEW
@given(seed=SEEDS, share=st.sampled_from([0.02, 0.05, 0.1, 0.15]), error=st.sampled_from((15, 29, 30, 53, -1)))
def test_who_is_rejected_is_named_though_part_of_it_is_lost(seed, share, error):
    """A share of what was seen is the same, whatever is lost at random."""
    lab = rejected_all_the_time(error, every=2)
    talk, dice = lab.talks[1], Random(seed)
    talk.rejected = set()
    lose_exchanges(lab, lambda one, _: one is not talk or dice.random() >= share)
    lose_responses(lab, dice, share, granted_ones=False)
    lost = sum(answer < 0 for _, answer, _ in talk.exchanges)
    assume(lost * UNSEEN_ONE_IN < len(talk.exchanges) - lost)  # else a success may have been among them
    assert states(lab)["app", "10.0.0.7", "SyncGroup"] == "stalled"


@FEW
@given(seed=SEEDS, side=st.sampled_from((0, 1)), answers_lost=st.booleans(), moved=st.booleans())
def test_what_was_lost_before_a_request_does_not_hide_that_nobody_answers_it(seed, side, answers_lost, moved):
    """But where answers seem out of order: its own may stand before it in the capture, and was taken for none."""
    dice = Random(seed)
    gaps = [lacks(ns(dice.uniform(1, 29)), side, 100) for _ in range(dice.randint(1, 9))]
    gaps += [lacks(ns(60), 1, 100)] * answers_lost
    facts = {"unseen_request_bytes": sum(gap.size for gap in gaps), "gaps": tuple(gaps), "out_of_order": int(moved)}
    talk = Lab().talk(closed_by="client-fin", close_ns=ns(90), **facts)
    for at in range(30):
        talk.ask(at, "Heartbeat", 4, {"groupId": "g"}, {"errorCode": 0})
    talk.ask(40, "Heartbeat", 4, {"groupId": "g"}, outcome=CLOSED_BY_CLIENT)
    exchanges, decoded = exchanged(talk)
    found = given_up(exchanges, decoded, lambda name: tables(decoded, name, "request")).tolist()
    assert found == ([] if answers_lost or moved else [30])


@FEW
@given(lost_s=st.floats(30, 39), then=st.booleans())
def test_a_request_that_was_lost_may_be_what_another_one_waits_for(lost_s, then):
    """Such as a JoinGroup before the LeaveGroup of a member that ends. `then`: a later one was answered."""
    facts = {"unseen_request_bytes": 100, "gaps": (lacks(ns(lost_s), 0, 100),)}
    talk = Lab().talk(closed_by="client-fin", close_ns=ns(90), **facts)
    for at in (*range(30), *([39.5] if then else [])):
        talk.ask(at, "Heartbeat", 4, {"groupId": "g"}, {"errorCode": 0})
    talk.ask(40, "LeaveGroup", 4, {"groupId": "g"}, outcome=CLOSED_BY_CLIENT)
    exchanges, decoded = exchanged(talk)
    found = given_up(exchanges, decoded, lambda name: tables(decoded, name, "request"))
    assert bool(len(found)) == then


@FEW
@given(seed=SEEDS, begins=st.integers(0, 140), lasts=st.integers(1, 150))
def test_a_late_start_an_early_end_and_a_broker_that_was_not_captured_accuse_nobody(seed, begins, lasts):
    dice = Random(seed)
    lab, only = busy(dice), dice.choice([B1, B2, None])
    lose_exchanges(lab, lambda talk, at: begins <= at < begins + lasts and only in {None, talk.server})
    assert HURT.isdisjoint(states(lab).values())


@FEW
@given(seed=SEEDS)
def test_strangers_change_nobodys_row(seed):
    dice = Random(seed)
    alone = busy(Random(seed))
    among = busy(Random(seed))
    for host in ("10.9.9.9", "10.9.9.8"):
        talk = among.talk(dice.choice([B1, B2]), "app", host)
        for at in range(1, 120):
            api, version = dice.choice(APIS)
            talk.ask(at, api, version, {}, {"errorCode": dice.choice(ERRORS)})
    mine = {key: state for key, state in states(among).items() if not key[1].startswith("10.9.")}
    assert mine == states(alone)


def rejected_all_the_time(error, every=5):
    lab = Lab()
    lab.metadata(0)
    talk = lab.talk(B1, "app", "10.0.0.7")
    for at in range(1, 100, every):
        talk.ask(at, "SyncGroup", 5, {}, {"errorCode": error})
    lab.until = 160
    return lab


def test_a_client_whose_every_request_is_rejected_is_stalled_at_any_step():
    for error in (15, 29, 30, 35, -1):
        assert states(rejected_all_the_time(error))["app", "10.0.0.7", "SyncGroup"] == "stalled"


@FEW
@given(seed=SEEDS)
def test_who_is_sent_to_a_broker_that_was_not_captured_is_not_accused_by_its_silence(seed):
    """Members that a restart sends away, and back, at times that nobody chooses; they are quiet meanwhile."""
    dice = Random(seed)
    lab, at = Lab(), 0
    lab.metadata(0)
    talk, error = lab.talk(B1, "app", "10.0.0.7"), dice.choice((15, 16))
    for _ in range(dice.randint(2, 4)):
        begins = at + dice.randint(40, 90)
        for at in range(begins, begins + dice.randint(3, 8)):
            talk.ask(at, "Heartbeat", 4, {}, {"errorCode": error})
    lab.until = at + 60
    assert HURT.isdisjoint(states(lab).values())
    for server in (B2, B3):
        lab.metadata(2, server=server)
    assert states(lab)["app", "10.0.0.7", "Heartbeat"] in HURT


@FEW
@given(every=st.integers(80, 150), cut=st.sampled_from(["all", "a part", "no list"]))
def test_a_quorum_that_is_seen_at_one_of_its_voters_is_not_accused_by_its_silence(every, cut):
    """Each new leader is asked elsewhere, for minutes; answers of voters have no list of them."""
    lab = Lab()
    if cut != "no list":
        lab.metadata(0, brokers={B1: 1} if cut == "all" else {B1: 1, B2: 2})
    talk = lab.talk(B1, "raft-client-6", "10.0.0.6")
    for at in range(1, 320, every):
        talk.ask(at, "Fetch", 12, {"replicaId": 6}, {"errorCode": 6})
    lab.until = 330
    hurt = HURT & {*states(lab).values()}
    assert bool(hurt) == (cut == "all")


@FEW
@given(works=st.integers(0, 60), captured=st.booleans(), denied=st.booleans())
def test_who_works_on_and_asks_no_more_may_have_been_answered_elsewhere(works, captured, denied):
    """For a topic that a broker does not know yet; not for one that each of them denies."""
    lab, brokers = Lab(), {B1: 1} if captured else {B1: 1, B2: 2}
    lab.metadata(0, brokers=brokers)
    talk = lab.talk(B1, "app", "10.0.0.7")
    for at in range(2, 24):
        lab.metadata(at, [("orders", ID_1, 29 if denied else 3)], talk=talk, brokers=brokers)
    fetches(lab, [(at, at, at + 1) for at in range(24, 24 + works)], client_id="app")
    talk.ask(80, "Heartbeat", 4, {"groupId": "g"}, {"errorCode": 0})  # that is no work
    lab.until = 90
    failing = states(lab)["app", "10.0.0.7", "Metadata"] == "failing"
    assert failing == (captured or denied or works <= 10)


@FEW
@given(seed=SEEDS)
def test_who_looks_for_its_coordinator_at_a_broker_and_finds_it_at_another_one_is_elsewhere(seed):
    """While coordinators are loaded, clients ask one broker after the other; only one of these was captured."""
    dice, lab = Random(seed), Lab()
    lab.metadata(0)
    talk, api = lab.talk(B1, "app", "10.0.0.7"), dice.choice(APIS)
    for at in range(1, 1 + dice.randint(1, 4)):
        talk.ask(at, *api, {}, {"errorCode": dice.choice((14, 15, 16))})
    lab.until = 90
    assert states(lab)["app", "10.0.0.7", api[0]] == "elsewhere"


@FEW
@given(seed=SEEDS, others=st.integers(1, 6), every=st.integers(2, 8))
def test_a_connection_that_is_granted_nothing_is_stalled_whoever_else_has_its_client_id(seed, others, every):
    """Pods behind one address: one of them is denied what all others are granted, far more often."""
    dice, lab = Random(seed), Lab()
    lab.metadata(0)
    denied = lab.talk(B1, "app", "10.0.0.7")
    for at in range(5, 120, every):
        denied.ask(at, "InitProducerId", 4, {}, {"errorCode": 53})
    granted = [lab.talk(dice.choice((B1, B2)), "app", "10.0.0.7") for _ in range(others)]
    for tenth in range(1_300):
        dice.choice(granted).ask(tenth / 10, "InitProducerId", 4, {}, {"errorCode": 0})
    lab.until = 160
    assert states(lab)["app", "10.0.0.7", "InitProducerId"] == "stalled"


def writes(talk, times, partition, error=0):
    for at in times:
        row = {"index": partition, "errorCode": error, "baseOffset": 1, "logAppendTimeMs": -1}
        asked = {"acks": -1, "timeoutMs": 30_000, "topicData": [{"name": "orders", "partitionData": []}]}
        talk.ask(at, "Produce", 7, asked, {"responses": [{"name": "orders", "partitionResponses": [row]}]})


def reads(talk, times, _partition, error=0):
    for at in times:
        asked = {"replicaId": -1, "sessionEpoch": -1, "topics": [{"topicId": ID_1, "partitions": [{"partition": 0}]}]}
        row = {"partitionIndex": 0, "errorCode": error, "records": None if error else "AAAA"}
        talk.ask(at, "Fetch", 13, asked, {"responses": [{"topicId": ID_1, "partitions": [row]}]})


@FEW
@given(seed=SEEDS, works=st.sampled_from([writes, reads]))
def test_a_partition_that_moves_away_and_back_accuses_nobody(seed, works):
    """Rolls: what a broker rejects before it goes, and once it is back, is no streak, as others serve it meanwhile; nor
    are the last error of one partition and the first of another.
    """
    dice = Random(seed)
    lab, at = Lab(), 1
    for server in (B1, B2, B3):
        lab.metadata(0, [("orders", ID_1)], server=server)
    old, new = lab.talk(B1, "app", "10.0.0.7"), lab.talk(B2, "app", "10.0.0.7")
    works(old, [at], 0)
    for _ in range(dice.randint(2, 4)):
        partition = dice.randint(0, 1)
        fast = [at + tenth / 10 for tenth in range(10 * dice.randint(2, 5))]
        works(old, fast, partition, 6)
        until = int(fast[-1]) + dice.randint(40, 90)
        works(new, range(int(fast[-1]) + 1, until), partition)
        at = until
    lab.until = at + 60
    result = lab.judge()
    assert HURT.isdisjoint(row["state"] for row in result["activities"].values())
    assert {row["level"] for row in result["harms"].values()} <= {"briefly"}


@FEW
@given(seed=SEEDS, others=st.integers(1, 6), every=st.integers(2, 15))
def test_a_group_that_no_member_gets_into_is_stalled_whoever_else_has_its_client_id(seed, others, every):
    """A process that ends at the error, and is started again, beside members of other groups that come and go."""
    dice, lab = Random(seed), Lab()
    lab.metadata(0)
    for at in range(1, 150, every):
        lab.talk(B1, "rdkafka", "10.0.0.7").ask(at, "JoinGroup", 5, {"groupId": "denied"}, {"errorCode": 30})
    for number in range(others):
        for at in range(1, 150, dice.randint(1, 9)):
            talk = lab.talk(B1, "rdkafka", "10.0.0.7")
            talk.ask(at + dice.random(), "JoinGroup", 5, {"groupId": f"g-{number}"}, {"errorCode": 0})
    lab.until = 200
    assert states(lab)["rdkafka", "10.0.0.7", "JoinGroup"] == "stalled"


@FEW
@given(error=st.sampled_from((23, 30, 81)), others=st.integers(0, 3))
def test_a_member_whose_join_was_answered_unseen_is_not_accused(error, others):
    """Rolling changes of an assignor, with a response of each round that was not captured."""
    lab = Lab()
    lab.metadata(0)
    talk = lab.talk(B1, "rdkafka", "10.0.0.7")
    for begin in (10, 100):
        for at in (begin, begin + 1):
            talk.ask(at, "JoinGroup", 5, {"groupId": "g"}, {"errorCode": error})
        talk.ask(begin + 2, "JoinGroup", 5, {"groupId": "g"}, outcome=RESPONSE_UNSEEN)
        for at in range(begin + 3, begin + 80, 3):
            talk.ask(at, "Heartbeat", 4, {"groupId": "g"}, {"errorCode": 0})
    for number in range(others):
        lab.talk(B1, "rdkafka", "10.0.0.7").ask(5, "JoinGroup", 5, {"groupId": f"g-{number}"}, {"errorCode": 0})
    lab.until = 200
    assert HURT.isdisjoint(states(lab).values())


def test_activities_are_the_same_in_any_batches():
    lab = busy(Random(7), share=0.9)
    exchanges, _ = exchanged(*lab.talks)
    judge = Judge("lab")
    for piece in exchanges.divided(np.array_split(np.arange(len(exchanges)), 5)):
        judge.absorb(claims(piece, decode(piece.messages)))
    judge.progress("agent", ns(lab.until), ended=True)
    rows = open_rows(judge.rows())["activities"]
    assert rows == lab.judge()["activities"]


def transactions(dice, lost):
    """A transaction every 2 s; of a lost one any request is answered that another process has its ID."""
    lab = Lab()
    lab.metadata(0)
    talk, number = lab.talk(B1, "app", "10.0.0.7"), 100
    for turn in range(number):
        at, fails = 1 + 2 * turn, dice.choice(OF_A_TRANSACTION) if lost(turn) else ""
        for step, api in enumerate(OF_A_TRANSACTION):
            code = dice.choice((47, 90)) if api == fails else 0
            talk.ask(at + 0.2 * step, api, 3, {}, {"errorCode": code} if api != "AddPartitionsToTxn" else added(code))
            if code:
                break
    lab.until = 2 * number + 60
    return {api: state for (_, _, api), state in states(lab).items()}


def added(code):
    rows = [{"partitionIndex": 0, "partitionErrorCode": code}]
    return {"resultsByTopicV3AndBelow": [{"name": "orders", "resultsByPartition": rows}]}


OF_A_TRANSACTION = ("AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn")


@FEW
@given(seed=SEEDS, one_in=st.integers(4, 8))
def test_who_loses_transactions_to_another_process_is_hurt_whichever_request_shows_it(seed, one_in):
    """Of each API less than a tenth may be rejected, and a tenth of the transactions is lost all the same."""
    found = transactions(Random(seed), lambda turn: turn % one_in == 0)
    assert not {*found.values()}.isdisjoint({"in part", "stalled"})


@FEW
@given(seed=SEEDS)
def test_a_deployment_that_takes_over_hurts_nobody(seed):
    """Processes one after the other, each of which ends the one before: once, and six of them within 12 s."""
    found = transactions(Random(seed), lambda turn: turn == 10 or turn in range(40, 46))
    assert {*found.values()} == {"working"}


MEMBER = {"groupId": "g", "memberId": "m"}


def takes_over(lab, at, until, fenced_at):
    """A static member on a connection of its own, until another process has its group.instance.id."""
    talk = lab.talk(B1, "app", "10.0.0.7")
    talk.ask(at, "JoinGroup", 5, MEMBER, {"errorCode": 0})
    talk.ask(at + 0.1, "SyncGroup", 3, MEMBER, {"errorCode": 0})
    for now in np.arange(at + 1, until, 3):
        talk.ask(now, "Heartbeat", 3, MEMBER, {"errorCode": 0})
    if fenced_at is not None:
        talk.ask(fenced_at, "Heartbeat", 3, MEMBER, {"errorCode": 82})


@FEW
@given(every=st.integers(3, 20), begin=st.integers(2, 40), learns=st.integers(1, 3))
def test_static_members_that_fence_each_other_in_turn_are_hurt(every, begin, learns):
    """Each learns it by its next heartbeat."""
    lab = Lab()
    lab.metadata(0)
    for at in range(begin, begin + 160, every):
        takes_over(lab, at, at + every, at + every + learns)
    lab.until = begin + 220
    assert "in part" in states(lab).values()


@FEW
@example(every=3, members=5, rolls=3, overlap=False)
@example(every=2, members=20, rolls=4, overlap=True)
@given(every=st.integers(2, 20), members=st.integers(2, 20), rolls=st.integers(1, 4), overlap=st.booleans())
def test_static_members_that_are_replaced_in_rolls_are_not_hurt(every, members, rolls, overlap):
    """Each new process begins before the one that it replaces ends, which began before the roll. A roll back may follow
    at once, or when most members are replaced.
    """
    lab = Lab()
    lab.metadata(0)
    takes = max(members * every * (3 if overlap else 4) // 4, 12)
    ends = 40 + rolls * members * every + 60
    for number in range(members):
        births = [2, *(40 + roll * takes + number * every for roll in range(rolls))]
        for begins, replaced_at in pairwise(births):
            takes_over(lab, begins, replaced_at, replaced_at + 1)
        takes_over(lab, births[-1], ends, None)
    lab.until = ends + 20
    assert {*states(lab).values()} == {"working"}


@FEW
@given(every=st.integers(1, 20), others=st.integers(0, 9), api=st.sampled_from(["JoinGroup", "Heartbeat"]))
def test_a_static_member_that_is_fenced_and_asks_on_is_hurt_whoever_works_beside_it(every, others, api):
    lab = Lab()
    lab.metadata(0)
    for number in range(others):
        takes_over(lab, 2 + number, 250, None)
    takes_over(lab, 5, 20, 21)
    version = {"JoinGroup": 5, "Heartbeat": 3}[api]
    for at in range(22, 250, every):
        lab.talks[-1].ask(at, api, version, MEMBER, {"errorCode": 82})
    lab.until = 260
    assert "stalled" in states(lab).values()


@FEW
@given(
    library=st.sampled_from(["apache-kafka-java", "kafka-python", "sarama", "kgo", "", "not captured", "lost"]),
    every=st.integers(1, 4),
    granted=st.integers(0, 3),
    rejected=st.sampled_from([1, 1, 8]),
    behind=st.booleans(),
    by_id=st.booleans(),
    share=st.sampled_from([0.5, 0.3, 0.1]),
)
@example(library="apache-kafka-java", every=1, granted=2, rejected=1, behind=True, by_id=False, share=0.5)
@example(library="apache-kafka-java", every=1, granted=1, rejected=8, behind=False, by_id=False, share=0.5)
@example(library="apache-kafka-java", every=1, granted=2, rejected=1, behind=False, by_id=False, share=0.1)
@example(library="lost", every=1, granted=2, rejected=1, behind=False, by_id=False, share=0.5)
@example(library="sarama", every=1, granted=1, rejected=1, behind=False, by_id=False, share=0.5)
def test_who_splits_what_is_too_large_is_hurt_only_if_little_is_granted(
    library, every, granted, rejected, behind, by_id, share
):
    """Producers of some libraries send the records of a batch that was too large again, in smaller ones (KIP-126). One
    that is rejected far more often makes no smaller ones, and one record that is too large cannot be split. An
    idempotent one has what it had sent `behind` rejected.
    """
    assume(granted != 1 or not behind)
    lab, known = Lab(), library not in {"not captured", "lost"}
    lab.metadata(0, [("songs", ID_1)])
    lacking = {"not captured": {"from_start": False}, "lost": {"gaps": (lacks(ns(1), REQUEST, 60),)}}
    talk = lab.talk(B1, "app", "10.0.0.7", **lacking.get(library, {}))
    if library and known:
        talk.ask(1, "ApiVersions", 3, {"clientSoftwareName": library, "clientSoftwareVersion": "1.0"}, {})
    lab.metadata(1, [("songs", ID_1)], talk=talk)
    topic = {"topicId": ID_1} if by_id else {"name": "songs"}
    for at in range(2, 122, every):
        for turn in range(-rejected - behind, granted):
            records = base64.b64encode(bytes(int(1000 * share) if turn >= 0 else 1000)).decode()
            asked = {"acks": -1, "topicData": [{**topic, "partitionData": [{"index": 0, "records": records}]}]}
            row = {"index": 0, "errorCode": 0 if turn >= 0 else 45 if behind and turn == -1 else 10}
            answer = {"responses": [{**topic, "partitionResponses": [row]}]}
            talk.ask(at + 0.01 * turn, "Produce", 13 if by_id else 9, asked, answer)
    lab.until = 130
    splits = library in {"apache-kafka-java", "kafka-python", "not captured", "lost"}
    splits &= rejected == 1 and share > 0.25
    expected = "stalled" if not granted else "working" if splits else "in part"
    hurt = {row["client_id"] for row in lab.judge()["harms"].values() if row["level"] == "hurt"}
    assert (states(lab)["app", "10.0.0.7", "Produce"], hurt) == (expected, set() if expected == "working" else {"app"})


@FEW
@given(every=st.integers(2, 8), reads_on=st.booleans(), captured=st.sampled_from(["all", "a part", "no list"]))
def test_who_is_sent_into_the_next_rebalance_again_and_again_is_stalled_unless_it_reads_on(every, reads_on, captured):
    """It may read at a broker that was not captured, also where no answer lists the brokers."""
    lab = Lab()
    if captured != "no list":
        lab.metadata(0, brokers={B1: 1} if captured == "all" else {B1: 1, B2: 2})
    talk = lab.talk(B1, "app", "10.0.0.7")
    for at in range(2, 122, every):
        talk.ask(at, "JoinGroup", 5, MEMBER, {"errorCode": 0})
        talk.ask(at + 0.5, "SyncGroup", 3, MEMBER, {"errorCode": 27})
    if reads_on:
        fetches(lab, [(at + 0.7, at, at + 1) for at in range(2, 122)], client_id="app")
    lab.until = 180
    found = states(lab)["app", "10.0.0.7", "SyncGroup"]
    assert (found == "stalled") == (captured == "all" and not reads_on)


@FEW
@given(every=st.integers(2, 8), lasts=st.integers(20, 200), cut=st.booleans())
def test_who_waits_while_others_join_one_after_the_other_is_not_hurt(every, lasts, cut):
    """An application scales up: each new member sends those before it into the next rebalance, and then it is over. The
    capture may end before.
    """
    lab = Lab()
    lab.metadata(0, brokers={B1: 1})
    talk = lab.talk(B1, "app", "10.0.0.7")
    ends = 2 + (min(lasts, 70) if cut else lasts)
    for at in range(2, ends, every):
        talk.ask(at, "JoinGroup", 5, MEMBER, {"errorCode": 0})
        talk.ask(at + 0.5, "SyncGroup", 3, MEMBER, {"errorCode": 27})
    if not cut:
        talk.ask(ends + 1, "JoinGroup", 5, MEMBER, {"errorCode": 0})
        talk.ask(ends + 1.5, "SyncGroup", 3, MEMBER, {"errorCode": 0})
    lab.until = ends + (1 if cut else 60)
    assert states(lab)["app", "10.0.0.7", "SyncGroup"] == "working"


@FEW
@given(
    seed=SEEDS,
    step=st.sampled_from(["", "JoinGroup", "InitProducerId"]),
    reads=st.sampled_from(["all", "none", "before"]),
)
def test_who_needs_no_coordinator_to_read_is_hurt_in_part_and_any_other_is_stalled(seed, step, reads):
    """One that assigns partitions to itself reads on without commits; one that joins, or writes in transactions, does
    not get what it asks for, and neither does one that reads nothing since.
    """
    dice, lab = Random(seed), Lab()
    lab.metadata(0, [("songs", ID_1)])
    talk, begin = lab.talk(B1, "app", "10.0.0.7"), dice.randint(40, 60)
    for at in range(2, 40):
        talk.ask(at, "FindCoordinator", 3, {"key": "g"}, {"nodeId": 1, "host": "10.0.0.1", "port": 9092})
    for at in range(begin, begin + 100):
        talk.ask(at, "FindCoordinator", 3, {"key": "g"}, {"errorCode": 15})
    if step:
        talk.ask(3, step, 5, {"groupId": "g"} if step == "JoinGroup" else {}, {"errorCode": 0})
    until = {"all": begin + 100, "before": begin - 5, "none": 0}[reads]
    fetches(lab, [(at + 0.5, at, at + 1) for at in range(2, until)], client_id="app", talk=talk)
    lab.until = begin + 120
    found = states(lab)["app", "10.0.0.7", "FindCoordinator"]
    assert found == ("in part" if (step, reads) == ("", "all") else "stalled")


@FEW
@given(seed=SEEDS, open_one=st.booleans(), reopened=st.booleans(), unknown=st.sampled_from(["", "broker", "bytes"]))
def test_a_client_is_gone_when_each_of_its_connections_is_closed_and_not_before(seed, open_one, reopened, unknown):
    """Who closed the last of them is named; a port that is used again is another connection. It may go on at a broker
    that was not captured, and on a connection of which nothing shows the client.
    """
    dice, lab, hashed = Random(seed), Lab(), hash_of_client(b"app", 3)[0]
    for server in (B1, B2):
        lab.metadata(0, server=server, brokers={B1: 1, B2: 2, **({B3: 3} if unknown == "broker" else {})})
    if unknown == "bytes":
        lab.talk(B2, None, "10.0.0.7", client_hash=-1, unseen_request_bytes=9).last_packet = 99
    ends = sorted(dice.sample(range(10, 90), dice.randint(1, 4)))
    for end in ends:
        closed = end + dice.random()
        by = dice.choice(("client-fin", "server-fin", "client-rst", "server-rst"))
        facts = {"over": True, "client_hash": hashed, "close_ns": ns(closed), "closed_by": by}
        talk = lab.talk(dice.choice((B1, B2)), "app", "10.0.0.7", **facts)
        talk.last_packet = closed
        for at in sorted(dice.sample(range(1, 10 * end), 3)):
            talk.ask(at / 10, *dice.choice(APIS), {}, {"errorCode": 0})
    last_by = by.partition("-")[0]
    if open_one or reopened:
        again = lab.talk(B1, "app", "10.0.0.7", over=True, client_hash=hashed)
        again.client = lab.talks[-2].client if reopened and not open_one else again.client
        again.ask(95, *APIS[0], {}, {"errorCode": 0})
    lab.until = 120
    (row,) = (row for row in lab.judge()["clients"].values() if row["address"] == "10.0.0.7")
    gone = not (open_one or reopened or unknown)
    assert row["closed"] == (ns(closed) if gone else None)
    assert row["closed_by"] == (last_by if gone else None)


@FEW
@given(seed=SEEDS, again=st.sampled_from(["", "granted", "unseen"]), captured=st.booleans(), worked=st.booleans())
def test_who_is_sent_to_a_broker_that_was_not_captured_is_elsewhere_until_it_asks_again(seed, again, captured, worked):
    """Also if it is not known how it is answered then: without any other answer nothing shows how it fares."""
    dice, lab = Random(seed), Lab()
    lab.metadata(0)
    if captured:
        for server in (B2, B3):
            lab.metadata(0, server=server)
    talk, works = lab.talk(B1, "app", "10.0.0.7"), dice.choice((writes, reads))
    lab.metadata(0.5, talk=talk)
    works(talk, range(1, 20) if worked else (), 0)
    works(talk, [20, 20.1], 0, dice.choice((5, 6, 74)))
    if again:
        works(talk, [40], 0)
    if again == "unseen":
        talk.exchanges[-1] = (talk.exchanges[-1][0], -1, RESPONSE_UNSEEN)
        talk.messages.pop()
    lab.until = 120
    found = {state for (_, *who, api), state in states(lab).items() if who == ["10.0.0.7"] and api != "Metadata"}
    unknown = again == "unseen" and not worked and not captured
    assert found == ({"not captured"} if unknown else {"working"} if again or captured else {"elsewhere"})


def polls(lab, lasts, wait_s=30):
    """Long polls one after the other at two brokers, beside heartbeats; a capture of so many seconds."""
    lab.metadata(0)
    beats = lab.talk(B1, "app", "10.0.0.7")
    for at in range(1, lasts, 3):
        beats.ask(at, "Heartbeat", 4, {}, {"errorCode": 0})
    pending = []
    for server in (B1, B2):
        talk = lab.talk(server, "app", "10.0.0.7")
        for at in range(2, lasts, wait_s):
            asked = {"maxWaitMs": wait_s * 1000, "sessionEpoch": -1, "replicaId": -1}
            if at + wait_s - 1 <= lasts:
                rows = [{"topicId": ID_1, "partitions": [{"partitionIndex": 0, "errorCode": 0}]}]
                talk.ask(at, "Fetch", 13, asked, {"responses": rows}, answered_in=wait_s - 1)
            else:
                talk.ask(at, "Fetch", 13, asked, outcome=PENDING)
                pending.append((talk, at))
    lab.until = lasts
    return pending


@FEW
@given(lasts=st.integers(3, 150), late_s=st.integers(0, 90), closes=st.booleans())
def test_what_is_in_flight_at_the_end_counts_for_neither(lasts, late_s, closes):
    """Open for no longer than it may be (max_wait_ms, and 5 s): nothing lacks. For longer, it is not known why."""
    lab = Lab()
    pending = polls(lab, lasts)
    for talk, _ in pending:
        talk.last_packet = lasts + late_s
        talk.facts |= {"over": True} if closes else {}
    lab.until = lasts + late_s
    (row,) = (row for row in lab.judge()["activities"].values() if row["api"] == "Fetch")
    long = [at for _, at in pending if lasts + late_s - at >= 30 + 5]
    assert (row["in_flight"], row["unknown"]) == (len(pending) - len(long), len(long))
    assert row["in_flight"] + row["unknown"] + row["granted"] == row["requests"]
    assert row["state"] == ("not captured" if long and not row["granted"] else "working")


@FEW
@given(times=st.integers(1, 12), every=st.integers(3, 20), answered=st.integers(0, 11), api=st.sampled_from(APIS))
def test_who_closes_before_each_answer_gets_nothing(times, every, answered, api):
    """Each time after a second, in which no library waits in vain: one answer meanwhile, and it works."""
    lab = Lab()
    lab.metadata(0)
    for number in range(times):
        at = 1 + number * every
        talk = lab.talk(B1, "app", "10.0.0.7", over=True, closed_by="client-fin", close_ns=ns(at + 1), responses=1)
        if number == answered:
            talk.ask(at, *api, {}, {"errorCode": 0})
        talk.ask(at + 0.1, *api, {}, outcome=CLOSED_BY_CLIENT)
        talk.last_packet = at + 1
    lab.until = times * every + 60
    (row,) = (row for row in lab.judge()["activities"].values() if row["api"] == api[0])
    long = times >= 5 and (times - 1) * every >= 30 and not 0 < answered < times
    assert (row["in_flight"], row["unknown"]) == ((0, times) if long else (times, 0))
    assert row["state"] == ("not captured" if long and answered else "working")


@pytest.mark.parametrize(("lost", "may_be_over"), [(46, True), (20, False)])
def test_a_last_request_without_a_captured_response_may_have_been_granted(lost, may_be_over):
    """Who asks until it is granted asks no more after that."""
    lab = Lab()
    talk = lab.metadata(0, talk=lab.talk(B1, "app", "10.0.0.7"))
    for at in range(47):
        unseen = (
            {"outcome": RESPONSE_UNSEEN} if at == lost else {"response": {"topics": [{"name": "t", "errorCode": 38}]}}
        )
        talk.ask(1 + at * 5, "CreateTopics", 7, {"topics": [{"name": "t"}]}, **unseen)
    lab.until = 300
    (row,) = (row for row in lab.judge()["activities"].values() if row["api"] == "CreateTopics")
    assert (row["state"], row["until"] is not None) == ("stalled", may_be_over)
