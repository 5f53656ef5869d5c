"""Cases of CTL018, in bytes: where a log ends, and what leaders state about it later."""

from tests.judge.lab import B1, B2, CLUSTER, ID_1, ID_2, disagrees_later

BY_NAME, BY_ID = 9, 13
METADATA_LOG = "AAAAAAAAAAAAAAAAAAAAAQ"
CONTROLLER = "10.0.0.9:9093"


def writes(talk, times, base, *, acks=-1, version=BY_NAME, topic_id=ID_1, step=1, answered_in=0.001, error=0):
    """One write per time, of `step` records each."""
    place = {"name": "orders"} if version < BY_ID else {"topicId": topic_id}
    asked = {"acks": acks, "timeoutMs": 30000, "topicData": [{**place, "partitionData": [{"records": None}]}]}
    for number, at in enumerate(times):
        row = {"errorCode": error, "baseOffset": -1 if error else base + number * step}
        answer = {"responses": [{**place, "partitionResponses": [row]}]}
        talk.ask(at, "Produce", version, asked, answer, answered_in=answered_in)


def reads(talk, times, high_watermark, *, version=BY_ID, topic_id=ID_1, replica=-1, start=0):
    place = {"topic": "orders"} if version < BY_ID else {"topicId": topic_id}
    asked = {"topics": [{**place, "partitions": [{"partition": 0}]}], "sessionEpoch": -1, "replicaId": replica}
    for at in times:
        row = {"highWatermark": high_watermark, "logStartOffset": start, "records": None, "abortedTransactions": None}
        talk.ask(at, "Fetch", version, asked, {"responses": [{**place, "partitions": [row]}]})


def asks_for_ends(talk, times, offset, *, timestamp=-1, isolation_level=0):
    asked = {"replicaId": -1, "isolationLevel": isolation_level}
    asked["topics"] = [{"name": "orders", "partitions": [{"timestamp": timestamp}]}]
    for at in times:
        row = {"timestamp": -1, "offset": offset}
        talk.ask(at, "ListOffsets", 5, asked, {"topics": [{"name": "orders", "partitions": [row]}]})


def led(lab, *times, leader=1, epoch=0, topic_id=ID_1):
    for at in times:
        lab.metadata(at, [("orders", topic_id, 0, epoch)], leader=leader)


def empty_disk(lab, *, version=BY_NAME, acks=-1, later=range(118, 162)):
    """The only replica comes back with an empty disk, after 88 s without a broker."""
    led(lab, 0)
    writes(lab.talk(), range(2, 30), 150, version=version, acks=acks)
    led(lab, 117, epoch=1)
    writes(lab.talk(), later, 0, version=version, acks=acks)
    led(lab, max(later) + 1, epoch=1)


@disagrees_later("known to 10 s, and says so")
def ctl018_fires(lab):
    empty_disk(lab)


def ctl018_fires__by_id(lab):
    empty_disk(lab, version=BY_ID)


def ctl018_fires__and_grows_past_it(lab):
    empty_disk(lab, later=range(118, 360))


def ctl018_fires__alone(lab):
    """With acks=1 the leader alone has the records: that is information."""
    empty_disk(lab, acks=1)


def ctl018_fires__at_another_leader(lab):
    """An unclean election; the follower that truncates learns of the end from the new leader."""
    led(lab, 0)
    writes(lab.talk(), range(2, 30), 150)
    led(lab, 60, leader=2, epoch=1)
    reads(lab.talk(B2, "broker-1-fetcher-0", "10.0.0.1"), range(61, 120, 2), 140, replica=1, version=14)
    led(lab, 121, leader=2, epoch=1)


def ctl018_fires__of_high_watermarks(lab):
    led(lab, 0)
    reads(lab.talk(), range(1, 30), 177)
    led(lab, 60, leader=2, epoch=1)
    reads(lab.talk(B2), range(61, 120), 170)
    led(lab, 121, leader=2, epoch=1)


def ctl018_fires__of_listed_ends(lab):
    led(lab, 0)
    writes(lab.talk(), range(2, 30), 150)
    led(lab, 60, epoch=1)
    asks_for_ends(lab.talk(), range(61, 120, 5), 3)
    led(lab, 121, epoch=1)


def ctl018_fires__and_is_filled_again_within_half_a_minute(lab):
    """In a later leader epoch no answer is overtaken."""
    led(lab, 0)
    writes(lab.talk(), range(2, 60), 1000, step=10)
    led(lab, 62, epoch=2)
    writes(lab.talk(), range(64, 180), 0, step=50)
    led(lab, 181, epoch=2)


def ctl018_near_miss__filled_soon_in_one_epoch(lab):
    """As far as the capture shows; who leads was stated too seldom to know."""
    led(lab, 0, 180)
    writes(lab.talk(), range(2, 60), 1000, step=10)
    writes(lab.talk(), range(64, 180), 0, step=50)


def ctl018_near_miss__writes_sent_again_after_an_election(lab):
    """An idempotent producer sends again what was not acknowledged, and then has nothing more to write."""
    led(lab, 0)
    writes(lab.talk(), range(2, 60), 1000, step=10)
    led(lab, 62, leader=2, epoch=2)
    writes(lab.talk(B2), range(64, 76), 1450, step=10)
    led(lab, 181, leader=2, epoch=2)


def ctl018_near_miss(lab):
    """Answers overtake each other."""
    led(lab, 0, 150)
    one, other = lab.talk(), lab.talk()
    writes(one, range(2, 150, 2), 100, step=10)
    writes(other, [at + 0.01 for at in range(2, 150, 2)], 95, step=10, answered_in=0.7)


def ctl018_near_miss__recreated(lab):
    led(lab, 0, 40)
    writes(lab.talk(), range(2, 30), 150)
    lab.deleted(50, "orders", ID_1)
    lab.created(60, "orders", ID_2)
    led(lab, 61, 160, topic_id=ID_2)
    writes(lab.talk(), range(100, 160), 0)


def ctl018_near_miss__recreated_and_seen_late(lab):
    """The writes between are to the new topic; the old ID is stated by a broker that was away."""
    led(lab, 0, 62)
    writes(lab.talk(), range(2, 30), 150)
    led(lab, 90, 160, topic_id=ID_2)
    writes(lab.talk(), range(61, 159), 0)


def ctl018_near_miss__retention(lab):
    """The start of the log moves to its end, by age or by DeleteRecords."""
    led(lab, 0, 150)
    writes(lab.talk(), range(2, 30), 150)
    reads(lab.talk(), range(60, 150), 178, start=178)
    asks_for_ends(lab.talk(), range(60, 150, 5), 100, timestamp=-2)


def ctl018_near_miss__a_clean_change_with_acks_1(lab):
    """Some records were not copied yet; the log has grown past them within a second."""
    led(lab, 0)
    writes(lab.talk(), range(2, 60), 100, acks=1, step=10)
    led(lab, 61, leader=2, epoch=1)
    writes(lab.talk(B2), range(61, 120), 670, acks=1, step=10)
    led(lab, 121, leader=2, epoch=1)


def ctl018_near_miss__a_follower_that_lags(lab):
    """Since KIP-392 consumers may read from followers, which know less."""
    led(lab, 0, 150)
    writes(lab.talk(), range(2, 150), 100, step=10)
    reads(lab.talk(B2), range(2, 150), 100)


def ctl018_near_miss__a_leader_that_was_paused(lab):
    """It answers from what it knew, although another leads."""
    led(lab, 0)
    reads(lab.talk(), range(1, 5), 100)
    led(lab, 20, leader=2, epoch=1)
    writes(lab.talk(B2), range(21, 120), 100, step=10)
    reads(lab.talk(), range(80, 130, 2), 100)
    led(lab, 121, leader=2, epoch=1)


def ctl018_near_miss__writes_sent_again(lab):
    """The broker answers where it has the records already."""
    led(lab, 0)
    one, other = lab.talk(), lab.talk()
    writes(one, range(2, 40), 100, step=10)
    writes(other, [70, 71, 72, 73], 100, step=10)
    led(lab, 120)


def ctl018_near_miss__a_high_watermark_after_an_election(lab):
    """The new leader learns within half a minute what its followers have."""
    led(lab, 0)
    reads(lab.talk(), range(1, 10), 177)
    led(lab, 28, leader=2, epoch=1)
    reads(lab.talk(B2), range(29, 73), 170)
    reads(lab.talk(B2), range(73, 120), 177)
    led(lab, 121, leader=2, epoch=1)


def ctl018_near_miss__open_transactions(lab):
    """With isolation level 1 the end is that of the last transaction that has ended."""
    led(lab, 0)
    writes(lab.talk(), range(2, 30), 150)
    asks_for_ends(lab.talk(), range(61, 120, 5), 3, isolation_level=1)
    led(lab, 121)


def ctl018_near_miss__a_request_that_names_no_partition(lab):
    """It is unknown what it asked for."""
    led(lab, 0)
    writes(lab.talk(), range(2, 30), 150)
    row = {"name": "orders", "partitions": [{"timestamp": -1, "offset": 3}]}
    for at in range(61, 120, 5):
        lab.talk().ask(at, "ListOffsets", 5, {"replicaId": -1, "topics": []}, {"topics": [row]})
    led(lab, 121)


def ctl018_near_miss__no_ids(lab):
    lab.metadata(0, [("orders", None)], version=9)
    writes(lab.talk(), range(2, 30), 150)
    writes(lab.talk(), range(118, 162), 0)
    lab.metadata(163, [("orders", None)], version=9)


def ctl018_near_miss__the_metadata_log(lab):
    talk = lab.talk(CONTROLLER, "raft-client-2", "10.0.0.2")
    reads(talk, range(2, 30), 150, topic_id=METADATA_LOG)
    reads(talk, range(90, 150), 10, topic_id=METADATA_LOG)
    led(lab, 0, 150)


def ctl018_cannot_know(lab):
    """Nothing states the ID after the writes: the topic may be another one."""
    led(lab, 0)
    writes(lab.talk(), range(2, 30), 150)
    writes(lab.talk(), range(118, 162), 0)
    lab.until = 163


def ctl018_cannot_know__who_leads(lab):
    answer = {"clusterId": CLUSTER, "brokers": [{"nodeId": 1, "host": "10.0.0.1", "port": 9092}]}
    for at in (0, 165):
        rows = [{"errorCode": 5, "leaderId": -1, "replicaNodes": [1], "isrNodes": []}]
        topic = {"errorCode": 0, "name": "orders", "topicId": ID_1, "partitions": rows}
        lab.talk(B1).ask(at, "Metadata", 12, {"topics": None}, {**answer, "topics": [topic]})
    writes(lab.talk(), range(2, 30), 150, version=BY_ID)
    writes(lab.talk(), range(118, 162), 0, version=BY_ID)
    lab.until = 165
