"""Cases of FET008, in bytes: readers of committed records and the last stable offset."""

from tests.judge.lab import B1, ID_1

RECORDS = "AAAA"


def reads(lab, times, stable, high, *, level=1, given=(), version=13, topic_id=ID_1, partition=0, client_id="app"):
    """A fetch per time; `stable`, `high`: the last stable offset and the high watermark by time. `given`: when it gets
    records.
    """
    talk = lab.talk(B1, client_id, "10.0.0.99", from_start=True)
    for at in times:
        asked = {"topics": [{"topicId": topic_id, "partitions": [{"partition": partition}]}], "sessionEpoch": -1}
        asked |= {"replicaId": -1, "isolationLevel": level}
        row = {"partitionIndex": partition, "highWatermark": high(at), "lastStableOffset": stable(at)}
        row |= {"records": RECORDS if at in given else None, "abortedTransactions": []}
        topic = {"topicId": topic_id, "partitions": [row]}
        talk.ask(at, "Fetch", version, asked, {"responses": [topic]})
        lab.until = max(lab.until, at)


def told(lab):
    (found,) = lab.findings("FET008")
    return {word["name"]: word["value"] for word in found["words"]}


def grows(at):
    return 100 + 7 * int(at)


def fet008_fires(lab):
    lab.metadata(0, [("orders", ID_1)])
    reads(lab, range(1, 200, 3), lambda at: 100, grows)


def fet008_fires__and_goes_on_later(lab):
    """The transaction ends after three minutes."""
    lab.metadata(0, [("orders", ID_1)])
    reads(lab, range(1, 300, 3), lambda at: 100 if at < 190 else grows(at), grows, given=range(190, 300))
    assert told(lab)["offset"] == "100"


def fet008_fires__and_hangs(lab):
    lab.metadata(0, [("orders", ID_1)])
    reads(lab, range(1, 1100, 5), lambda at: 100, grows)
    assert told(lab)["hurt_host"] == "10.0.0.99"


def fet008_near_miss(lab):
    """Transactions of 100 s, one after the other."""
    lab.metadata(0, [("orders", ID_1)])
    reads(lab, range(1, 400, 3), lambda at: grows(at // 100 * 100), grows)


def fet008_near_miss__reads_what_is_not_committed(lab):
    lab.metadata(0, [("orders", ID_1)])
    reads(lab, range(1, 400, 3), lambda at: 100, grows, level=0)


def fet008_near_miss__nothing_is_behind(lab):
    """Nobody writes."""
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
