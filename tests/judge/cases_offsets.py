"""Cases of offsets across a recreation, of fenced leader epochs, and of the metadata log's own order, in bytes."""

import base64

from tests.decode.log.batches import batch, remove_topic, topic
from tests.decode.log.test_metadata_tables import partition
from tests.judge.cases_control import id_bytes, log
from tests.judge.lab import B1, B2, B3, ID_1, ID_2, disagrees_at
from wirecheck.decode.connection.exchanges import RESPONSE_UNSEEN


def recreated(lab, born=40):
    lab.metadata(0, [("orders", ID_1)])
    lab.deleted(born - 5, "orders", ID_1)
    lab.metadata(born, [("orders", ID_2)])


def commits(lab, at, offset, version=8, topic_id=None, error=0):
    place = {"name": "orders"} if topic_id is None else {"topicId": topic_id}
    asked = {"groupId": "readers", "topics": [{**place, "partitions": [{"committedOffset": offset}]}]}
    answer = {"topics": [{**place, "partitions": [{"errorCode": error}]}]}
    lab.talk().ask(at, "OffsetCommit", version, asked, answer)
    lab.until = max(lab.until, at)


@disagrees_at(90)
def grp001_fires(lab):
    """The new topic ends at 10 (the lab's high watermark)."""
    recreated(lab)
    commits(lab, 90, 5000)
    lab.fetches([80, 100, 130], ID_2)


def grp001_fires__while_it_goes_on(lab):
    recreated(lab)
    for at in range(5, 200, 10):
        commits(lab, at, 5000)
    lab.fetches(range(20, 200, 10), ID_2)


def grp001_fires__by_id(lab):
    """The new ID with the offset of before (OffsetCommit 10)."""
    recreated(lab)
    for at in range(60, 200, 10):
        commits(lab, at, 5000, version=10, topic_id=ID_2)
    lab.fetches(range(20, 200, 10), ID_2)


def grp001_near_miss__a_group_that_corrects_itself(lab):
    recreated(lab)
    for at in range(5, 200, 10):
        commits(lab, at, 5000 if at < 60 else 10)
    lab.fetches(range(20, 200, 10), ID_2)


def grp001_near_miss(lab):
    """Consumers finish what they had read; offsets within the topic; commits that were refused."""
    recreated(lab)
    commits(lab, 30, 5000)
    lab.fetches([80, 100, 130], ID_2)
    commits(lab, 50, 5000)
    commits(lab, 60, 10)
    commits(lab, 90, 5000, error=22)


def grp001_cannot_know(lab):
    """How far the new topic goes was last seen too early: it may have grown since."""
    recreated(lab)
    commits(lab, 90, 5000)
    lab.fetches([80, 100], ID_2)
    lab.until = 200


def offsets_of(lab, at, topic_id, offset, error=0, *, epoch=-1, version=10):
    """What the coordinator says that the group has committed."""
    place = {"topicId": topic_id} if version >= 10 else {"name": "orders"}
    row = {"partitionIndex": 0, "committedOffset": offset, "committedLeaderEpoch": epoch, "errorCode": error}
    topics = [{**place, "partitions": [row]}]
    group = {"groupId": "readers"}
    answer, asked = {"groups": [group | {"topics": topics}]}, {"groups": [group | {"topics": None}]}
    if version < 8:
        answer, asked = {"topics": topics}, {"groupId": "readers", "topics": None}
    lab.talk().ask(at, "OffsetFetch", version, asked, answer)
    lab.until = max(lab.until, at)


@disagrees_at(60)
def grp004_fires(lab):
    recreated(lab)
    commits(lab, 20, 500, 10, ID_1)
    offsets_of(lab, 60, ID_2, -1)


def grp004_near_miss(lab):
    """A group without offsets that never had some; one whose offset is there; one that asks for the old id."""
    recreated(lab)
    offsets_of(lab, 60, ID_2, -1)
    commits(lab, 70, 5, 10, ID_2)
    offsets_of(lab, 80, ID_2, -1)
    commits(lab, 20, 500, 10, ID_1)
    lab.talks.pop()


def grp004_cannot_know(lab):
    """The answer is an error; or nothing says that the topic was created again."""
    lab.metadata(0, [("orders", ID_1)])
    commits(lab, 20, 500, 10, ID_1)
    offsets_of(lab, 60, ID_1, -1)
    offsets_of(lab, 60, ID_2, -1, 100)


def fenced(lab, times, *, epochs=((0, 5), (400, 5))):
    for at, epoch in epochs:
        lab.metadata(at, [("orders", ID_1, 0, epoch)])
    lab.fetches(times, ID_1, 74)


@disagrees_at(10)
def fet005_fires(lab):
    fenced(lab, range(10, 100, 2))
    lab.fetches(range(10, 500, 20), ID_2, 75, client_id="other")


def fet005_near_miss(lab):
    """A broker stops: a thousand in 34 s, and then the leader's epoch has changed."""
    fenced(lab, [10 + n / 30 for n in range(1000)], epochs=((0, 5), (42, 6), (400, 6)))


def fet005_cannot_know(lab):
    """Nobody says which epoch the partition is in."""
    fenced(lab, range(10, 100, 2), epochs=((0, -1),))


def denied_by_another(lab, error=6):
    """Broker 1 leads, as everybody says, and the client goes to broker 2."""
    for at in range(0, 130, 10):
        lab.metadata(at, [("orders", ID_1, 0, 5)])
    lab.fetches(range(10, 110, 2), ID_1, error, server=B2)


@disagrees_at(10)
def fet007_fires(lab):
    denied_by_another(lab)


def fet007_fires__of_a_topic_that_has_no_id(lab):
    """librdkafka issue 4796, as it was seen on brokers 2.2.2."""
    for at in range(0, 130, 10):
        lab.metadata(at, [("orders", None, 0, 1)], version=7)
    talk = lab.talk(B2, "till")
    for at in range(10, 110, 2):
        asked = {"acks": 1, "timeoutMs": 1000, "topicData": [{"name": "orders", "partitionData": [{"index": 0}]}]}
        refused = [{"name": "orders", "partitionResponses": [{"index": 0, "errorCode": 6, "baseOffset": -1}]}]
        talk.ask(at, "Produce", 7, asked, {"responses": refused})


def fet007_near_miss__it_hears_of_the_leader_within_the_half_minute(lab):
    for at in range(0, 130, 10):
        lab.metadata(at, [("orders", ID_1, 0, 5)])
    lab.fetches(range(10, 40), ID_1, 6, server=B2)


def fet007_near_miss(lab):
    """One broker still names the one that is asked: the client may have been told so."""
    denied_by_another(lab)
    partition = {"leaderId": 2, "leaderEpoch": 4, "replicaNodes": [1, 2, 3], "isrNodes": [1, 2, 3]}
    answer = {"clusterId": None, "topics": [{"name": "orders", "topicId": ID_1, "partitions": [partition]}]}
    lab.talk(B3).ask(60, "Metadata", 12, {"topics": None}, answer)


def fet007_cannot_know(lab):
    """Nobody says who leads."""
    lab.fetches(range(10, 110, 2), ID_1, 6, server=B2)


@disagrees_at(5)
def log002_fires(lab):
    created, removed = topic("orders", id_bytes(ID_1)), remove_topic(id_bytes(ID_1))
    log(lab, 5, created, removed, created, high_watermark=50)


def log002_fires__a_partition_of_what_is_gone(lab):
    gone = id_bytes(ID_1)
    log(lab, 5, topic("orders", gone), partition(0, gone, 1), remove_topic(gone), partition(1, gone, 1),
        high_watermark=50)  # fmt: skip


def log002_fires__a_partition_of_what_is_not_there_yet(lab):
    new = id_bytes(ID_1)
    log(lab, 5, partition(0, new, 1), topic("orders", new), partition(1, new, 1), high_watermark=50)


def log002_fires__a_name_that_is_given_away_too_early(lab):
    old, new = id_bytes(ID_1), id_bytes(ID_2)
    log(lab, 5, topic("orders", old), topic("orders", new), remove_topic(old), high_watermark=50)


def log002_fires__two_ids_at_one_place(lab):
    """The leader shows two readers different records."""
    for topic_id in (ID_1, ID_2):
        log(lab, 5, topic("orders", id_bytes(topic_id)), high_watermark=50)


def log002_fires__two_ids_at_one_place_of_servers_of_one_list(lab):
    """A list of brokers names both servers."""
    for server, topic_id in ((B1, ID_1), (B2, ID_2)):
        lab.metadata(1, server=server)
        log(lab, 5, topic("orders", id_bytes(topic_id)), high_watermark=50, server=server)


def snapshots(lab, ids):
    """Two servers of one list hand out the snapshot of one end."""
    for number, (server, topic_id) in enumerate(zip((B1, B2), ids, strict=True)):
        lab.metadata(1, server=server)
        data = batch(topic("orders", id_bytes(topic_id)), base_offset=0, epoch=4)
        place = {"snapshotId": {"endOffset": 100, "epoch": 4}}
        row = {**place, "size": len(data), "unalignedRecords": base64.b64encode(data).decode()}
        topics = [{"name": "__cluster_metadata", "partitions": [place]}]
        answer = {"topics": [{"name": "__cluster_metadata", "partitions": [row]}]}
        talk = lab.talk(server, f"raft-client-{number + 4}", f"10.0.0.{number + 4}")
        talk.ask(5 + number, "FetchSnapshot", 0, {"topics": topics}, answer)
    lab.until = 60


def log002_fires__snapshots_of_one_end_that_differ(lab):
    snapshots(lab, (ID_1, ID_2))


def log002_near_miss__one_snapshot_of_two_servers(lab):
    snapshots(lab, (ID_1, ID_1))


def log002_near_miss__read_twice(lab):
    for at in (5, 6):
        log(lab, at, topic("orders", id_bytes(ID_1)), high_watermark=50)


def log002_near_miss__a_name_that_is_free_again(lab):
    old, new = id_bytes(ID_1), id_bytes(ID_2)
    log(lab, 5, topic("orders", old), remove_topic(old), topic("orders", new), remove_topic(new), high_watermark=50)


def log002_cannot_know__whether_the_earlier_id_lives(lab):
    """Its removal was not seen, which may have come before or after."""
    log(lab, 5, topic("orders", id_bytes(ID_1)), high_watermark=50)
    log(lab, 6, topic("orders", id_bytes(ID_2)), high_watermark=50, offset=20)


def log002_cannot_know__whether_two_servers_have_one_log(lab):
    """A cluster and its copy, of which no answer with the ClusterId was captured: both remove the topic."""
    gone = id_bytes(ID_1)
    log(lab, 5, topic("orders", gone), remove_topic(gone), high_watermark=50)
    log(lab, 6, topic("orders", gone), high_watermark=50, server=B2)
    log(lab, 7, remove_topic(gone), high_watermark=50, offset=30, server=B2)


def log002_cannot_know__two_ids_at_one_place_of_two_servers(lab):
    log(lab, 5, topic("orders", id_bytes(ID_1)), high_watermark=50)
    log(lab, 5, topic("orders", id_bytes(ID_2)), high_watermark=50, server=B2)


def log002_cannot_know__what_was_taken_back(lab):
    """The removal that came too late stands above the high watermark."""
    old, new = id_bytes(ID_1), id_bytes(ID_2)
    log(lab, 5, topic("orders", old), topic("orders", new), remove_topic(old), high_watermark=2)


def log002_near_miss__partitions_of_their_time(lab):
    """A topic that is made again gets partitions after the old one's end."""
    old, new = id_bytes(ID_1), id_bytes(ID_2)
    log(lab, 5, topic("orders", old), partition(0, old, 1), partition(1, old, 1), remove_topic(old),
        topic("orders", new), partition(0, new, 1), high_watermark=50)  # fmt: skip


def log002_near_miss(lab):
    """Read again it is the same; and ids come and go once."""
    for at in (5, 3600):
        log(lab, at, topic("orders", id_bytes(ID_1)), remove_topic(id_bytes(ID_1)), topic("orders", id_bytes(ID_2)),
            high_watermark=50)  # fmt: skip


def log002_cannot_know(lab):
    """Above the high watermark nothing is settled."""
    created = topic("orders", id_bytes(ID_1))
    log(lab, 5, created, remove_topic(id_bytes(ID_1)), created, high_watermark=2)


def grp006_asks(lab, times, *, error=15, version=4, client_id="reader", servers=(B1, B2)):
    """A client asks one broker after the other for the coordinator of its group."""
    lab.metadata(0)
    talks = [lab.talk(server, client_id) for server in servers]
    for number, at in enumerate(times):
        found = {"nodeId": -1 if error else 1, "host": "", "port": -1, "errorCode": error}
        if version >= 4:
            asked, answer = {"keyType": 0, "coordinatorKeys": ["g"]}, {"coordinators": [{"key": "g", **found}]}
        else:
            asked, answer = {"key": "g", "keyType": 0}, found
        talks[number % len(talks)].ask(at, "FindCoordinator", version, asked, answer)
        lab.until = max(lab.until, at)


@disagrees_at(2)
def grp006_fires(lab):
    grp006_asks(lab, range(2, 60))


def grp006_fires__old_versions(lab):
    grp006_asks(lab, range(2, 60), version=3)


def grp006_near_miss(lab):
    """A broker restarts."""
    grp006_asks(lab, range(2, 25))


def grp006_near_miss__twice(lab):
    grp006_asks(lab, [*range(2, 22), *range(40, 60)])


def grp006_near_miss__found_in_between(lab):
    grp006_asks(lab, range(2, 25))
    grp006_asks(lab, [25], error=0)
    grp006_asks(lab, range(26, 50))


def grp006_near_miss__found(lab):
    for version in (3, 4):
        grp006_asks(lab, range(2, 60), error=0, version=version)


def grp006_cannot_know(lab):
    """What was answered is not in the capture."""
    lab.metadata(0)
    for at in range(2, 60):
        talk = lab.talk(client_id="reader")
        talk.ask(at, "FindCoordinator", 4, {"keyType": 0, "coordinatorKeys": ["g"]}, outcome=RESPONSE_UNSEEN)
    lab.until = 60


def states(lab, times, leader_epoch=0, topic_id=ID_2):
    for at in times:
        lab.metadata(at, [("orders", topic_id, 0, leader_epoch)])


@disagrees_at(80)
def grp007_fires(lab):
    """The topic was recreated: its epochs begin again."""
    recreated(lab)
    offsets_of(lab, 80, ID_2, 176, epoch=6)
    states(lab, (90, 120, 150))


def grp007_fires__by_name(lab):
    recreated(lab)
    offsets_of(lab, 80, ID_2, 176, epoch=6, version=9)
    states(lab, (90, 120, 150))


def grp007_fires__an_old_request(lab):
    recreated(lab)
    offsets_of(lab, 80, ID_2, 176, epoch=6, version=7)
    states(lab, (90, 120, 150))


def grp007_fires__and_a_client_reads_on(lab):
    """kafka-python does: then it is information."""
    grp007_fires(lab)
    lab.fetches(range(85, 150, 5), ID_2)


def grp007_near_miss(lab):
    """The epoch is the leader's."""
    recreated(lab)
    offsets_of(lab, 80, ID_2, 176, epoch=6)
    states(lab, (90, 120, 150), leader_epoch=6)


def grp007_near_miss__one_stale_answer(lab):
    recreated(lab)
    offsets_of(lab, 80, ID_2, 176, epoch=6)
    states(lab, (81, 82), leader_epoch=5)
    states(lab, (83, 120, 150), leader_epoch=6)


def grp007_near_miss__no_epoch(lab):
    recreated(lab)
    offsets_of(lab, 80, ID_2, 176, epoch=-1)
    states(lab, (90, 120, 150))


def grp007_near_miss__an_error(lab):
    recreated(lab)
    offsets_of(lab, 80, ID_2, 176, epoch=6, error=3)
    states(lab, (90, 120, 150))


def grp007_cannot_know(lab):
    """No leader's epoch was stated after that answer for long enough."""
    recreated(lab)
    offsets_of(lab, 80, ID_2, 176, epoch=6)
    states(lab, (90, 100))
