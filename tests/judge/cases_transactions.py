"""Cases of FET008 and CLI013, in bytes: readers of committed records, and how transactions end."""

from tests.judge.lab import B1, B2, ID_1, disagrees_at, ns
from wirecheck.decode.connection.framing.recognise import hash_of_client

RECORDS = "AAAA"


def reads(
    lab,
    times,
    stable,
    high,
    *,
    level=1,
    given=(),
    client_id="app",
    host="10.0.0.99",
    server=B1,
):
    """A fetch per time; `stable`, `high`: the last stable offset and the high watermark by time. `given`: when it gets
    records.
    """
    talk = lab.talk(server, client_id, host, from_start=True)
    for at in times:
        asked = {"topics": [{"topicId": ID_1, "partitions": [{"partition": 0}]}], "sessionEpoch": -1}
        asked |= {"replicaId": -1, "isolationLevel": level}
        row = {"partitionIndex": 0, "highWatermark": high(at), "lastStableOffset": stable(at)}
        row |= {"records": RECORDS if at in given else None, "abortedTransactions": []}
        topic = {"topicId": ID_1, "partitions": [row]}
        talk.ask(at, "Fetch", 13, asked, {"responses": [topic]})
        lab.until = max(lab.until, at)


def words_of(lab):
    (found,) = lab.findings("FET008")
    return {word["name"]: word["value"] for word in found["words"]}


def grows(at):
    return 100 + 7 * int(at)


@disagrees_at(1)
def fet008_fires(lab):
    lab.metadata(0, [("orders", ID_1)])
    reads(lab, range(1, 200, 3), lambda at: 100, grows)


def fet008_fires__and_goes_on_later(lab):
    """The transaction ends after three minutes."""
    lab.metadata(0, [("orders", ID_1)])
    reads(lab, range(1, 300, 3), lambda at: 100 if at < 190 else grows(at), grows, given=range(190, 300))
    assert words_of(lab)["offset"] == "100"


def fet008_fires__and_hangs(lab):
    lab.metadata(0, [("orders", ID_1)])
    reads(lab, range(1, 1100, 5), lambda at: 100, grows)
    assert words_of(lab)["hurt_host"] == "10.0.0.99"


def writes_in_transaction(lab, at, name, limit_s=None, *, ends=None, **facts):
    """A write, and before it what its producer was granted."""
    talk = lab.talk(client_id="writer", host="10.0.0.98", **facts)
    if limit_s is not None:
        asked = {"transactionalId": name, "transactionTimeoutMs": limit_s * 1000}
        talk.ask(at, "InitProducerId", 4, asked, {"errorCode": 0, "producerId": 7})
    rows = [{"name": "orders", "partitionData": [{"index": 0, "records": RECORDS}]}]
    answer = {"responses": [{"name": "orders", "partitionResponses": [{"index": 0, "baseOffset": 100}]}]}
    talk.ask(at + 0.1, "Produce", 9, {"transactionalId": name, "acks": -1, "topicData": rows}, answer)
    if ends is not None:
        talk.ask(ends, "EndTxn", 3, {"transactionalId": name, "committed": True}, {"errorCode": 0})
    return talk


def held_back_by(lab, *, until=50, **facts):
    """For 50 s, by a transaction that may take ten minutes."""
    lab.metadata(0, [("orders", ID_1)])
    found = writes_in_transaction(lab, 0.2, "tx-1", 600, **facts)
    reads(lab, range(1, until, 3), lambda at: 100, grows)
    return found


OVER = {"over": True, "client_hash": hash_of_client(b"writer", 6)[0]}
GONE = {"closed_by": "client-rst", "close_ns": ns(3), **OVER}


def fet008_fires__its_producer_is_gone(lab):
    held_back_by(lab, **GONE)
    assert "vanished writer's transaction" in lab.findings("FET008")[0]["summary"]
    assert "hurt_host" not in words_of(lab)


def fet008_near_miss__its_producer_may_go_on(lab):
    """Nothing closed its connection: it works on what it will commit."""
    held_back_by(lab, **OVER)


def fet008_near_miss__its_producer_works_at_another_broker(lab):
    """It closed the connection to the leader alone, and is connected to its coordinator."""
    held_back_by(lab, **GONE)
    asked = {"v3AndBelowTransactionalId": "tx-1", "v3AndBelowTopics": [{"name": "orders", "partitions": [1]}]}
    lab.talk(B2, client_id="writer", host="10.0.0.98").ask(1, "AddPartitionsToTxn", 3, asked, {})


def fet008_near_miss__its_producer_keeps_writes_apart(lab):
    """As franz-go does: its other requests have a connection of their own to the broker, which is open."""
    held_back_by(lab, **GONE)
    asked = {"transactionalId": "tx-1", "transactionTimeoutMs": 600_000}
    answer = {"errorCode": 0, "producerId": 7}
    lab.talk(client_id="writer", host="10.0.0.98").ask(0.15, "InitProducerId", 4, asked, answer)


def fet008_near_miss__its_producer_closes_what_it_does_not_use(lab):
    """As franz-go does after 20 s."""
    held_back_by(lab, until=70, **{**GONE, "closed_by": "client-fin", "close_ns": ns(21)}).last_packet = 21


def fet008_near_miss__its_broker_was_restarted(lab):
    held_back_by(lab, **{**GONE, "closed_by": "server-fin"})


def fet008_near_miss__its_producer_began_again(lab):
    """Its next process ends what was open, with a new epoch."""
    held_back_by(lab, **GONE)
    writes_in_transaction(lab, 40, "tx-1", 600)


def fet008_near_miss__another_producer_ended_its_own_and_left(lab):
    held_back_by(lab, ends=2, **GONE)


def fet008_fires__longer_than_its_producers_were_granted(lab):
    lab.metadata(0, [("orders", ID_1)])
    writes_in_transaction(lab, 0.2, "tx-1", 60)
    writes_in_transaction(lab, 0.4, "tx-2", 10)
    reads(lab, range(1, 200, 3), lambda at: 100, grows)
    assert words_of(lab)["hurt_host"] == "10.0.0.99"


def granted_a_minute(lab, until):
    lab.metadata(0, [("orders", ID_1)])
    writes_in_transaction(lab, 0.2, "tx-1", 60)
    reads(lab, range(1, until, 3), lambda at: 100, grows)


def fet008_fires__soon_after_what_its_producer_was_granted(lab):
    granted_a_minute(lab, 110)
    assert words_of(lab)["hurt_host"] == "10.0.0.99"


def fet008_near_miss__its_coordinator_may_abort_it_yet(lab):
    granted_a_minute(lab, 90)


def fet008_near_miss__the_producer_that_was_granted_it_ends_its_own(lab):
    """The open transaction is of another producer, which began before the capture and may take ten minutes."""
    granted_a_minute(lab, 110)
    writes_in_transaction(lab, 30, "tx-1", ends=31)


def fet008_fires__one_of_its_producers_was_not_seen_to_begin(lab):
    lab.metadata(0, [("orders", ID_1)])
    writes_in_transaction(lab, 0.2, "tx-1", 60)
    writes_in_transaction(lab, 0.4, "tx-2")
    reads(lab, range(1, 200, 3), lambda at: 100, grows)
    assert "hurt_host" not in words_of(lab)


def fet008_fires__its_producer_was_granted_an_hour(lab):
    lab.metadata(0, [("orders", ID_1)])
    writes_in_transaction(lab, 0.2, "tx-1", 3600)
    reads(lab, range(1, 200, 3), lambda at: 100, grows)
    assert "hurt_host" not in words_of(lab)


def fet008_fires__across_a_change_of_leader(lab):
    """Neither leader alone is asked for long enough."""
    lab.metadata(0, [("orders", ID_1)])
    reads(lab, range(1, 100, 3), lambda at: 100, grows)
    reads(lab, range(100, 200, 3), lambda at: 100, grows, server=B2)


def fet008_fires__before_other_transactions(lab):
    """Two more of 50 s each come later: how many records waited for the first one is not known."""
    lab.metadata(0, [("orders", ID_1)])
    reads(lab, range(1, 300, 3), lambda at: 100 if at < 190 else grows(at // 50 * 50 - 10), grows)
    assert words_of(lab)["behind"] == ""


def fet008_near_miss(lab):
    """Transactions of 100 s, one after the other."""
    lab.metadata(0, [("orders", ID_1)])
    reads(lab, range(1, 400, 3), lambda at: grows(at // 100 * 100), grows)


def fet008_near_miss__reads_what_is_not_committed(lab):
    lab.metadata(0, [("orders", ID_1)])
    reads(lab, range(1, 400, 3), lambda at: 100, grows, level=0)


def fet008_near_miss__nothing_is_behind(lab):
    """No client writes."""
    lab.metadata(0, [("orders", ID_1)])
    reads(lab, range(1, 400, 3), lambda at: 100, lambda at: 100)


def fet008_near_miss__reads_what_came_before(lab):
    """A transaction is open for long, and the consumer still reads what was written before it."""
    lab.metadata(0, [("orders", ID_1)])
    reads(lab, range(1, 400, 3), lambda at: 10_000, lambda at: 10_000 + grows(at), given=range(400))


def fet008_near_miss__a_broker(lab):
    lab.metadata(0, [("orders", ID_1)])
    reads(lab, range(1, 400, 3), lambda at: 100, grows, client_id="broker-2-fetcher-0")


def fet008_cannot_know(lab):
    """The capture is shorter than what counts."""
    lab.metadata(0, [("orders", ID_1)])
    reads(lab, range(1, 100, 3), lambda at: 100, grows)


def ends_transactions(lab, times, committed, *, error=0):
    talk = lab.talk(client_id="writer", host="10.0.0.98")
    for at, good in zip(times, committed, strict=True):
        asked = {"transactionalId": "tx-1", "producerId": 7, "committed": good}
        talk.ask(at, "EndTxn", 4, asked, {"errorCode": error})
    lab.until = max(times) + 1


@disagrees_at(1)
def cli013_fires(lab):
    ends_transactions(lab, range(1, 61, 2), [False] * 30)


def cli013_fires__after_it_worked(lab):
    ends_transactions(lab, range(1, 121, 2), [True] * 30 + [False] * 30)


def cli013_near_miss(lab):
    """One in three is committed."""
    ends_transactions(lab, range(1, 61, 2), [False, False, True] * 10)


def cli013_near_miss__a_dependency_is_away_for_twenty_seconds(lab):
    ends_transactions(lab, range(1, 61, 2), [True] * 10 + [False] * 10 + [True] * 10)


def cli013_near_miss__rejected(lab):
    """It is fenced: nothing ended."""
    ends_transactions(lab, range(1, 61, 2), [False] * 30, error=90)


def cli013_cannot_know(lab):
    """Too few."""
    ends_transactions(lab, range(1, 61, 15), [False] * 4)
