"""Cases of positions that stand, of records that are never read or read again, and of groups that wait, in bytes."""

from tests.judge.cases_unserved import (
    READER,
    assignment,
    in_session,
    lists_songs,
    member,
    next_member,
    share_fetches,
    share_member,
)
from tests.judge.lab import B1, B2, ID_1, ID_2, disagrees_at, disagrees_later, lacks, ns
from wirecheck.decode.connection.connection import FIRST_GAPS
from wirecheck.decode.connection.exchanges import CLOSED_BY_CLIENT, PENDING, RESPONSE_UNSEEN, Gap
from wirecheck.decode.connection.framing.recognise import hash_of_client
from wirecheck.decode.group_protocol import POLL_EXPIRED
from wirecheck.judge.results.finding import DOUBTED

OUT_OF_RANGE = 1


def fetches(lab, steps, topic_id=ID_1, *, client_id="reader", host="10.0.0.7", version=13, talk=None, partition=0):
    """`steps`: (second, offset, high watermark) each, with records where the log has more, or an error as a fourth."""
    talk = talk or lab.talk(client_id=client_id, host=host)
    named = {"topicId": topic_id} if version >= 13 else {"topic": topic_id}
    for at, offset, high, *error in steps:
        rows = [{"partition": partition, "fetchOffset": offset}]
        asked = {"replicaId": -1, "sessionEpoch": -1, "topics": [{**named, "partitions": rows}]}
        failed = error[0] if error else 0
        known = {"highWatermark": high, "lastStableOffset": high, "logStartOffset": 0}
        body = {"errorCode": failed, **(known if not failed else dict.fromkeys(known, -1))}
        body |= {"records": "AAAA" if offset < high and not failed else None, "abortedTransactions": None}
        answer = {"responses": [{**named, "partitions": [{"partitionIndex": partition, **body}]}]}
        talk.ask(at, "Fetch", version, asked, answer)
        lab.until = max(lab.until, at + 1)
    return talk


def listed(lab, at, topic_id):
    """A cluster of one broker: what is not asked here is not asked elsewhere."""
    lab.metadata(at, [("songs", topic_id)], brokers={B1: 1})


def follows(begin, end, rate=1):
    """A reader that keeps up with a log that grows."""
    return [(at, at * rate, at * rate) for at in range(begin, end)]


def grows(lab, until, topic_id=ID_1, rate=1, begin=0, version=13):
    """Another application reads what is written."""
    steps = [(at, (at - begin) * rate, (at - begin) * rate) for at in range(begin + 1, until, 3)]
    fetches(lab, steps, topic_id, client_id="other", host="10.0.0.8", version=version)


def commits(lab, times, offsets, talk=None, reads="g", partition=0):
    talk = talk or lab.talk(client_id="reader", host="10.0.0.7")
    for at, offset in zip(times, offsets, strict=True):
        rows = [{"partitionIndex": partition, "committedOffset": offset}]
        answer = {"topics": [{"name": "songs", "partitions": [{"partitionIndex": partition}]}]}
        asked = {**READER, "groupId": reads, "topics": [{"name": "songs", "partitions": rows}]}
        talk.ask(at, "OffsetCommit", 8, asked, answer)
    return talk


def fetches_offset(lab, at, offset, reads="g", client_id="reader"):
    talk = lab.talk(client_id=client_id, host="10.0.0.7")
    rows = [{"partitionIndex": 0, "committedOffset": offset}]
    asked = {"groupId": reads, "topics": [{"name": "songs", "partitionIndexes": [0]}]}
    talk.ask(at, "OffsetFetch", 7, asked, {"topics": [{"name": "songs", "partitions": rows}]})
    lab.until = max(lab.until, at + 1)


def lists_offset(lab, at, offset, timestamp):
    talk = lab.talk(client_id="reader", host="10.0.0.7")
    rows = [{"partitionIndex": 0, "timestamp": timestamp}]
    asked = {"replicaId": -1, "topics": [{"name": "songs", "partitions": rows}]}
    found = [{"partitionIndex": 0, "offset": offset}]
    talk.ask(at, "ListOffsets", 7, asked, {"topics": [{"name": "songs", "partitions": found}]})


def process(lab, at, number, *, until=None, topics=(("songs", (0,)),), client_id="reader", reads="g"):
    """A new member of the group, that lives for two seconds."""
    talk = lab.talk(client_id=client_id, host="10.0.0.7")
    mine = {**READER, "groupId": reads, "memberId": f"m-{number}"}
    asked = {**mine, "rebalanceTimeoutMs": 300_000, "sessionTimeoutMs": 45_000, "protocolType": "consumer"}
    talk.ask(at, "JoinGroup", 7, asked, {"errorCode": 0, "memberId": f"m-{number}", "leader": f"m-{number}"})
    talk.ask(at + 0.1, "SyncGroup", 5, mine, {"errorCode": 0, "assignment": assignment(*topics)})
    for now in range(at + 1, until or at + 2):
        talk.ask(now, "Heartbeat", 4, mine, {"errorCode": 0})
    return talk


# GRP009


def crashes(lab, times, offsets):
    """Each new process gets the committed offset, reads there, and ends."""
    lists_songs(lab, max(times) + 10)
    grows(lab, max(times) + 10)
    for number, (at, offset) in enumerate(zip(times, offsets, strict=True)):
        process(lab, at, number)
        fetches_offset(lab, at + 0.2, offset)
        fetches(lab, [(at + 0.3, offset, at)])


@disagrees_at(20)
def grp009_fires(lab):
    commits(lab, [5, 10], [5, 10])
    crashes(lab, range(20, 80, 5), [10] * 12)


def grp009_near_miss(lab):
    """Commits move between the restarts, as in a rolling deployment."""
    times = range(20, 80, 5)
    commits(lab, [at - 1 for at in times], [at - 2 for at in times])
    crashes(lab, times, [at - 2 for at in times])


def ends_its_session(lab, *error):
    """One member, twelve times; its fetch gets records, or an error."""
    commits(lab, [5, 10], [5, 10])
    lists_songs(lab, 90)
    grows(lab, 90)
    for at in range(20, 80, 5):
        process(lab, at, 1)
        fetches_offset(lab, at + 0.2, 10)
        fetches(lab, [(at + 0.3, 10, at, *error)])


def grp009_fires__the_same_member_joins_again(lab):
    """A library that ends its session at an error, and keeps its member ID."""
    ends_its_session(lab)
    (found,) = lab.findings("GRP009")
    assert found["count"] == 12


def grp009_fires__its_fetches_are_rejected(lab):
    """The records are in remote storage, which is gone; the library ends its session at the error."""
    ends_its_session(lab, -1)
    (found,) = lab.findings("GRP009")
    assert found["summary"].endswith(": 12 times, as its fetches get UNKNOWN_SERVER_ERROR.")


def grp009_near_miss__its_fetches_are_denied(lab):
    """A right that was taken: its library ends the session at each denial, and no log of a broker has more."""
    ends_its_session(lab, 29)


def grp009_fires__a_fetch_is_rejected_after_the_records_came(lab):
    """A record at which the application fails; at the end its leader moves."""
    commits(lab, [5, 10], [5, 10])
    crashes(lab, range(20, 80, 5), [10] * 12)
    fetches(lab, [(76, 10, 76, -1)])
    (found,) = lab.findings("GRP009")
    assert "error" not in {word["name"] for word in found["words"]}


def grp009_near_miss__others_come_and_leave(lab):
    """A member works on one record for a minute, and joins again whenever another pod comes and leaves."""
    commits(lab, [5, 10], [5, 10])
    lists_songs(lab, 90)
    grows(lab, 90)
    for number, at in enumerate(range(20, 80, 5)):
        process(lab, at, "stays")
        process(lab, at - 1, number, until=at + 2, client_id="pod")
        fetches_offset(lab, at + 0.2, 10)
        fetches(lab, [(at + 0.3, 10, at)])


def grp009_near_miss__takes_a_few_records_at_a_time(lab):
    """It leaves each time, and takes those of another partition."""
    commits(lab, [5, 10], [5, 10])
    lists_songs(lab, 90)
    grows(lab, 90)
    in_batches(lab, range(20, 80, 8))


def grp009_fires__many_batches_take_nothing_of_it(lab):
    """An application that closes its consumer at each error."""
    commits(lab, [5, 10], [5, 10])
    lists_songs(lab, 90)
    grows(lab, 90)
    in_batches(lab, range(20, 80, 5))


def in_batches(lab, times):
    for number, at in enumerate(times):
        talk = process(lab, at, number)
        fetches_offset(lab, at + 0.2, 10)
        fetches(lab, [(at + 0.3, 10, at)])
        commits(lab, [at + 1], [at], talk=talk, partition=1)
        talk.ask(
            at + 1.5, "LeaveGroup", 3, {"groupId": "g", "members": [{"memberId": f"m-{number}"}]}, {"errorCode": 0}
        )


def grp009_near_miss__the_log_has_no_more(lab):
    lists_songs(lab, 90)
    for number, at in enumerate(range(20, 80, 5)):
        process(lab, at, number)
        fetches_offset(lab, at + 0.2, 10)
        fetches(lab, [(at + 0.3, 10, 10)])


def grp009_near_miss__commits_once_a_minute(lab):
    """Three workers join in turn, and the offset is that of the last commit."""
    commits(lab, [5, 65, 125], [5, 65, 125])
    crashes(lab, [130, 145, 170], [125] * 3)


def grp009_near_miss__an_exporter_asks_for_the_offset(lab):
    """One member works on a long batch; who asks for its offset is no member."""
    lists_songs(lab, 100)
    grows(lab, 100)
    member(lab, (("songs", (0,)),), until=90)
    commits(lab, [5], [5])
    for at in range(10, 90, 5):
        fetches_offset(lab, at, 5, client_id="exporter")


def grp009_cannot_know(lab):
    """How far the log goes was not seen."""
    lists_songs(lab, 90)
    for number, at in enumerate(range(20, 80, 5)):
        process(lab, at, number)
        fetches_offset(lab, at + 0.2, 10)


# GRP010


def recreated(lab, begin=40):
    listed(lab, 0, ID_1)
    lab.deleted(begin - 5, "songs", ID_1)
    listed(lab, begin, ID_2)


@disagrees_at(50)
def grp010_fires(lab):
    """It keeps its offset across the recreation."""
    recreated(lab)
    fetches(lab, follows(1, 34))
    fetches(lab, [(50 + n, 33 + n, 60 + n) for n in range(20)], ID_2)


def grp010_fires__by_name(lab):
    recreated(lab)
    talk = fetches(lab, follows(1, 34), "songs", version=12)
    fetches(lab, [(50 + n, 33 + n, 60 + n) for n in range(20)], "songs", version=12, talk=talk)


def recreated_without_ids(lab):
    admin = lab.talk(client_id="admin")
    lab.metadata(0, [("songs", None)], version=9, brokers={B1: 1})
    admin.ask(35, "DeleteTopics", 3, {"topicNames": ["songs"]}, {"responses": [{"name": "songs"}]})
    asked = {"topics": [{"name": "songs", "numPartitions": 1, "replicationFactor": 1}]}
    admin.ask(41, "CreateTopics", 3, asked, {"topics": [{"name": "songs"}]})
    lab.metadata(60, [("songs", None)], version=9, brokers={B1: 1})


def grp010_fires__in_versions_without_ids(lab):
    recreated_without_ids(lab)
    talk = fetches(lab, follows(1, 34), "songs", version=11)
    fetches(lab, [(50 + n, 33 + n, 60 + n) for n in range(20)], "songs", version=11, talk=talk)
    (found,) = lab.findings("GRP010")
    assert found["count"] == 33


def grp010_near_miss__in_versions_without_ids(lab):
    recreated_without_ids(lab)
    talk = fetches(lab, follows(1, 34), "songs", version=11)
    fetches(lab, [(50 + n, n, 60 + n) for n in range(20)], "songs", version=11, talk=talk)


def grp010_fires__by_name_and_then_by_id(lab):
    """It reads by name until it knows the new ID: what it got by name, it has read."""
    recreated(lab)
    fetches(lab, follows(1, 34))
    talk = fetches(lab, [(41 + n / 10, 33 + n, 90) for n in range(20)], "songs", version=12)
    fetches(lab, [(50 + n, 53 + n, 90 + n) for n in range(20)], ID_2, talk=talk)
    (found,) = lab.findings("GRP010")
    assert found["count"] == 33


def grp010_fires__its_first_request_was_rejected(lab):
    """It asks for the beginning while the new topic has no leader yet, and goes on at its old offset."""
    recreated(lab)
    talk = fetches(lab, follows(1, 34))
    fetches(lab, [(41, 0, 0, 6)], ID_2, talk=talk)
    fetches(lab, [(50 + n, 33 + n, 60 + n) for n in range(20)], ID_2, talk=talk)
    (found,) = lab.findings("GRP010")
    assert found["count"] == 33


def grp010_near_miss__the_new_topic_lacks_its_partition(lab):
    """It was created with fewer, and the reader asks for its own at its old offset, for ever; its session is rejected,
    which is about no partition.
    """
    recreated(lab)
    talk = fetches(lab, follows(1, 34))
    asked = {"topics": [{"topic": "songs", "partitions": [{"partition": 0, "fetchOffset": 33}]}], "replicaId": -1}
    for at in range(50, 70, 2):
        talk.ask(at, "Fetch", 12, asked, {"errorCode": 106, "responses": []})
        fetches(lab, [(at + 1, 33, -1, 3)], "songs", version=12, talk=talk)


def grp010_near_miss__its_new_id_was_seen_late(lab):
    """By name, and it has read the first records when a broker reports the new ID."""
    listed(lab, 0, ID_1)
    talk = fetches(lab, follows(1, 34), "songs", version=12)
    lab.deleted(35, "songs", ID_1)
    fetches(lab, [(37 + n / 2, n, n + 9) for n in range(60)], "songs", version=12, talk=talk)
    listed(lab, 43, ID_2)


def grp010_fires__retention(lab):
    """The log begins behind its offset."""
    listed(lab, 0, ID_1)
    talk = fetches(lab, follows(1, 20))
    fetches(lab, [(60, 20, 500, OUT_OF_RANGE)], talk=talk)
    lists_offset(lab, 62, 400, -2)
    fetches(lab, [(63 + n, 400 + n, 500) for n in range(9)], talk=talk)


def starts_again(lab, offset, *, committed=True):
    """A group reads and commits; minutes later a new member gets an offset, or none (-1)."""
    listed(lab, 0, ID_1)
    process(lab, 1, 1, until=30)
    fetches(lab, follows(2, 30))
    if committed:
        commits(lab, [20, 29], [20, 29])
    process(lab, 300, 2, until=340)
    fetches_offset(lab, 301, offset)


def loses_its_end(lab, goes_back_to=None, *, ahead=60, reads_on=True, asks=None, **facts):
    """Broker 2 lacks all from 30 on as it is elected at 65 s; its log has again what the reader waits for at 156 s."""
    brokers = {"brokers": {B1: 1, B2: 2}, "replicas": (1, 2)}
    lab.metadata(0, [("songs", ID_1, 0, 0)], **brokers)
    grows(lab, 61)
    fetches(lab, follows(1, ahead), talk=lab.talk(client_id="reader", host="10.0.0.7", **facts))
    lab.metadata(65, [("songs", ID_1, 0, 1)], leader=2, **brokers)
    other = lab.talk(B2, "other", "10.0.0.8")
    ends = {at: 30 + (at - 66) // 3 for at in range(66, 220, 3)}
    fetches(lab, [(at, end, end) for at, end in ends.items()], talk=other)
    reader = lab.talk(B2, "reader", "10.0.0.7")
    if goes_back_to is not None:
        fetches(lab, [(72, goes_back_to, ends[72])], talk=reader)
    if asks is not None:
        lists_offset(lab, 155, asks, -1)
    fetches(lab, [(at, end, end) for at, end in ends.items() if end >= 60 and reads_on], talk=reader)
    lab.metadata(220, [("songs", ID_1, 0, 1)], leader=2, **brokers)
    lab.until = 225


def grp010_fires__the_log_lost_its_end(lab):
    loses_its_end(lab)
    (found,) = lab.findings("GRP010")
    assert "its log had fallen back" in found["summary"], found["summary"]


def grp010_near_miss__it_goes_back_to_where_the_log_was_cut(lab):
    """It asks for the end of the epoch before, as Java's consumer does (KIP-320)."""
    loses_its_end(lab, 30)


def grp010_near_miss__it_reads_the_log_again(lab):
    loses_its_end(lab, 0)


def grp010_near_miss__it_is_started_again_at_the_end(lab):
    """A viewer that is of no group, and was closed when the log lost its end."""
    loses_its_end(lab, asks=60)


def grp010_fires__it_asks_for_the_end_until_it_is_beyond_its_offset(lab):
    """As kafka-go does; what it goes on at is its own offset."""
    loses_its_end(lab, asks=62)


def grp010_near_miss__it_was_not_that_far(lab):
    loses_its_end(lab, 28, ahead=28)


def grp010_near_miss__it_ends_with_its_broker(lab):
    loses_its_end(lab, reads_on=False)


def grp010_cannot_know__what_it_asked_for_as_the_log_lost_its_end(lab):
    loses_its_end(lab, unseen_request_bytes=300, gaps=(lacks(ns(70), 1, 300),))


def grp010_fires__it_asks_for_the_end_of_the_new_topic(lab):
    """After one fetch at its old offset, which the new topic does not have: it reads on as it is configured."""
    recreated(lab)
    talk = fetches(lab, follows(1, 34))
    fetches(lab, [(44, 33, 28, OUT_OF_RANGE)], ID_2, talk=talk)
    lists_offset(lab, 44.1, 28, -1)
    fetches(lab, [(45 + n, 28 + n, 28 + n) for n in range(20)], ID_2, talk=talk)
    (found,) = lab.findings("GRP010")
    assert found["kind"] == "information"


def grp010_fires__an_offset_that_expired(lab):
    starts_again(lab, -1)
    lists_offset(lab, 302, 300, -1)
    fetches(lab, follows(303, 340))


def loses_offsets(lab, *, read, begins):
    """Its group commits 29 in time, and the topic with the offsets of all groups is deleted; the member asks for `read`
    last of all.
    """
    listed(lab, 0, ID_1)
    process(lab, 1, 1, until=35)
    fetches(lab, follows(2, read + 1))
    commits(lab, [20, 29], [20, 29])
    lab.deleted(read + 2, "__consumer_offsets")
    process(lab, read + 3, 2, until=80)
    fetches_offset(lab, read + 4, -1)
    lists_offset(lab, read + 4.5, begins, -1)
    fetches(lab, [(at, begins + at - read - 5, begins + at - read - 5) for at in range(read + 5, 80)])


def grp010_fires__behind_what_was_read_and_not_committed(lab):
    """What the member before it may have read of the 10 seconds of the loss, at its pace, is not counted."""
    loses_offsets(lab, read=45, begins=120)
    (found,) = lab.findings("GRP010")
    assert found["count"] == 120 - 49


def grp010_near_miss__read_and_not_committed(lab):
    """The member before it had read on after its last commit, up to where this one begins."""
    loses_offsets(lab, read=45, begins=45)


def grp010_cannot_know__it_reads_on_in_the_same_seconds(lab):
    """Its own reads of the slot of the loss are before and after it."""
    listed(lab, 0, ID_1)
    process(lab, 1, 1, until=80)
    talk = fetches(lab, follows(2, 44))
    commits(lab, [20, 29], [20, 29])
    fetches_offset(lab, 44.2, -1)
    lists_offset(lab, 44.5, 46, -1)
    fetches(lab, [(at, at + 1, at + 1) for at in range(45, 80)], talk=talk)


def grp010_fires__the_new_log_grows_to_its_offset(lab):
    """kafka-go looks for both ends, and goes on at its old offset: that it asked for the end is no choice."""
    recreated(lab)
    talk = fetches(lab, follows(1, 34), "songs", version=12)
    fetches(lab, [(51, 33, 20, OUT_OF_RANGE)], "songs", version=12, talk=talk)
    lists_offset(lab, 52, 40, -1)
    fetches(lab, [(53 + n, 33 + n, 60 + n) for n in range(20)], "songs", version=12, talk=talk)
    (found,) = lab.findings("GRP010")
    assert (found["count"], found["kind"]) == (33, "anomaly")


def grp010_fires__by_name_while_others_read_the_new_one(lab):
    """It asks for the former topic in the very seconds of the recreation."""
    listed(lab, 0, ID_1)
    lab.deleted(34, "songs", ID_1)
    listed(lab, 35, ID_2)
    talk = fetches(lab, follows(1, 34), "songs", version=12)
    fetches(lab, [(36 + n / 2, n, n) for n in range(8)], ID_2, client_id="other", host="10.0.0.8")
    fetches(lab, [(50 + n, 33 + n, 60 + n) for n in range(20)], "songs", version=12, talk=talk)
    (found,) = lab.findings("GRP010")
    assert found["count"] == 33


def started_again(lab, offset, *, at=82, committed=33, until=80):
    """librdkafka: commits once more when the topic is back, reads the new one, and is started again."""
    recreated(lab)
    process(lab, 1, 1, until=until)
    fetches(lab, follows(1, 34))
    commits(lab, [20, 41], [20, committed])
    fetches(lab, [(45 + n, n, 30 + n) for n in range(25)], ID_2)
    process(lab, at, 2, until=at + 20)
    fetches_offset(lab, at + 1, offset)
    fetches(lab, [(at + 2 + n, offset + n, 60 + n) for n in range(18)], ID_2)


def grp010_fires__started_again_at_an_offset_of_the_topic_before(lab):
    started_again(lab, 33)
    (found,) = lab.findings("GRP010")
    assert found["count"] == 9


def grp010_near_miss__started_again_where_it_was(lab):
    """It has committed what it read of the new topic."""
    commits(lab, [65], [24])
    started_again(lab, 24)


def grp010_near_miss__started_again_where_an_administrator_set_it(lab):
    started_again(lab, 40)


def grp010_near_miss__another_member_reads_on_meanwhile(lab):
    fetches(lab, [(70 + n, 24 + n, 60 + n) for n in range(30)], ID_2, client_id="reader", host="10.0.0.9")
    started_again(lab, 33)


def grp010_cannot_know__started_again_within_the_same_seconds(lab):
    """Until where it read in that slot is not known."""
    started_again(lab, 33, at=62)


def grp010_near_miss__started_again_soon_where_it_never_was(lab):
    """In the slot after the birth."""
    started_again(lab, 2, at=53, until=50)


def loaded_again(lab, steps, *, at=60, again=120):
    """The new topic is loaded with as many records: a job reads all of them, commits, leaves, and is started again."""
    recreated(lab)
    process(lab, 1, 1, until=34)
    fetches(lab, follows(1, 34))
    commits(lab, [20, 33], [20, 33])
    talk = process(lab, at, 2)
    fetches(lab, steps, ID_2, talk=talk)
    commits(lab, [at + 2], [33], talk=talk)
    leaves(talk, at + 3)
    process(lab, again, 3, until=again + 20)
    fetches_offset(lab, again + 1, 33)
    fetches(lab, [(again + 2 + n, 33 + n, 60 + n) for n in range(15)], ID_2)


def grp010_near_miss__as_many_records_in_one_response(lab):
    loaded_again(lab, [(61, 0, 33)])


def grp010_near_miss__as_many_records_in_two_responses(lab):
    loaded_again(lab, [(61, 0, 33), (61.5, 20, 33)])


def grp010_near_miss__as_many_records_as_soon_as_the_topic_is_there(lab):
    """In the slot of the birth it is not known whether it committed before it read."""
    loaded_again(lab, [(42, 0, 33), (43, 20, 33)], at=41, again=70)


def grp010_near_miss__started_again_where_a_tool_set_it(lab):
    """That is where the group was in the former topic, too."""
    admin = lab.talk(client_id="adminclient-1", host="10.0.0.50")
    commits(lab, [75], [33], talk=admin)
    started_again(lab, 33)


def grp010_near_miss__works_for_a_minute_on_what_it_got(lab):
    started_again(lab, 33, at=112, until=110)
    commits(lab, [105], [33])


def grp010_fires__the_log_deleted_its_offset_in_one_slot(lab):
    """It was granted that offset, where nothing was yet, seconds before."""
    listed(lab, 0, ID_1)
    talk = fetches(lab, [*follows(1, 20), (60, 20, 20), (61, 20, 20), (63, 20, 500, OUT_OF_RANGE)])
    lists_offset(lab, 63.5, 400, -2)
    fetches(lab, [(64 + n, 400 + n, 500) for n in range(9)], talk=talk)
    (found,) = lab.findings("GRP010")
    assert found["count"] == 380


def grp010_near_miss__a_log_that_fell_back_grows_to_its_offset(lab):
    """After an unclean election."""
    listed(lab, 0, ID_1)
    talk = fetches(lab, [*follows(1, 34), (51, 33, 20, OUT_OF_RANGE)])
    lists_offset(lab, 52, 40, -1)
    fetches(lab, [(53 + n, 33 + n, 60 + n) for n in range(20)], talk=talk)


def grp010_fires__by_name_while_the_new_one_grows(lab):
    """In the slot of the birth others were answered before it had grown: not more than it may have left out counts."""
    listed(lab, 0, ID_1)
    lab.deleted(34, "songs", ID_1)
    listed(lab, 35, ID_2)
    talk = fetches(lab, follows(1, 34), "songs", version=12)
    fetches(lab, [(35.5 + n / 10, n, 20) for n in range(8)], ID_2, client_id="other", host="10.0.0.8")
    steps = [(38, 33, 90), *((50 + n, 53 + n, 90 + n) for n in range(20))]
    fetches(lab, steps, "songs", version=12, talk=talk)
    (found,) = lab.findings("GRP010")
    assert found["count"] == 33


def one_broker_of_two(lab, *, epoch=0, leader=1, old=0, new=33, begin=50, stated=80, deleted=True, client_id="reader"):
    """Broker 2 was not captured; the reader reads another partition of the topic before, and keeps its offset."""
    brokers, known = {B1: 1, B2: 2}, (("songs", ID_1), ("songs", ID_2, 0, epoch))
    talk = lab.talk(client_id="admin", host="10.0.0.5")
    lab.metadata(0, [known[0]], brokers=brokers, talk=talk)
    if deleted:
        lab.deleted(35, "songs", ID_1)
    else:
        lab.metadata(36, [("songs", None, 3)], brokers=brokers, talk=talk)
    lab.metadata(40, [("songs", ID_2)], brokers=brokers, talk=talk)
    lab.metadata(stated, [known[1]], brokers=brokers, talk=talk, leader=leader)
    fetches(lab, follows(1, 34), partition=old)
    return fetches(lab, [(begin + n, new + n, 90 + n) for n in range(30)], ID_2, client_id=client_id)


def grp010_fires__the_only_leader_of_its_partition_was_captured(lab):
    one_broker_of_two(lab)
    (found,) = lab.findings("GRP010")
    assert found["count"] == 33


def grp010_fires__another_partition_shows_that_it_read_the_topic_before(lab):
    one_broker_of_two(lab, old=1)
    (found,) = lab.findings("GRP010")
    assert found["count"] == 33


def grp010_fires__deleted_at_a_broker_that_was_not_captured(lab):
    """The one that was says meanwhile that there is no such topic."""
    one_broker_of_two(lab, deleted=False)
    (found,) = lab.findings("GRP010")
    assert found["count"] == 33


def grp010_near_miss__its_offset_may_be_set_at_a_broker_that_was_not_captured(lab):
    """The end of the new topic, by an operator: the former one never came so far."""
    one_broker_of_two(lab, new=50)


def grp010_near_miss__its_offset_may_be_translated_at_a_broker_that_was_not_captured(lab):
    """By MirrorMaker: the reader was far beyond it in the former topic."""
    one_broker_of_two(lab, new=12)


def grp010_fires__it_goes_on_at_once_where_no_tool_sets_it(lab):
    """Java's client cuts its position back to the end of the new log (KIP-320)."""
    one_broker_of_two(lab, new=5, begin=41)
    (found,) = lab.findings("GRP010")
    assert found["count"] == 5


def grp010_near_miss__members_that_take_turns(lab):
    """One reads on where the other one was; their group is not known, as its coordinator was not captured."""
    for number in (1, 2):
        fetches(lab, follows(1, 34), client_id=f"pod-{number}")
    one_broker_of_two(lab, new=40, begin=100, client_id="pod-1", stated=200)
    fetches(lab, [(41 + n, n, 60) for n in range(20)], ID_2, client_id="pod-1")
    fetches(lab, [(70 + n, 20 + n, 60) for n in range(20)], ID_2, client_id="pod-2")


def tool_sets_its_offset(lab, offset):
    """While the group has no member."""
    recreated(lab)
    process(lab, 1, 1, until=34)
    fetches(lab, follows(1, 34))
    commits(lab, [20, 33], [20, 33])
    commits(lab, [70], [offset], talk=lab.talk(client_id="tool", host="10.0.0.50"))
    process(lab, 90, 2, until=130)
    fetches_offset(lab, 90.5, offset)
    fetches(lab, [(91 + n, offset + n, 150) for n in range(30)], ID_2)


def grp010_near_miss__a_tool_sets_its_offset(lab):
    tool_sets_its_offset(lab, 73)


def grp010_fires__a_tool_copies_its_former_offset(lab):
    tool_sets_its_offset(lab, 33)
    (found,) = lab.findings("GRP010")
    assert found["count"] == 33


def grp010_near_miss__a_tool_sets_it_to_an_offset_that_it_had_read_seconds_before(lab):
    """And committed more since."""
    tool_sets_its_offset(lab, 26)


def comes_back(lab, offset, end):
    """It was away meanwhile, and the log is longer when it comes."""
    recreated(lab)
    fetches(lab, follows(1, 34))
    fetches(lab, [(50 + n, n, 20 + 3 * n) for n in range(40)], ID_2, client_id="other", host="10.0.0.8")
    fetches(lab, [(91 + n, offset + n, end + n) for n in range(30)], ID_2)


def grp010_near_miss__an_application_names_an_offset_of_the_new_topic(lab):
    comes_back(lab, 60, 150)


def grp010_fires__it_was_away_and_goes_on_where_it_was(lab):
    comes_back(lab, 33, 150)


def grp010_fires__it_was_away_and_begins_at_the_end(lab):
    """Its application asks for no end: its library jumps there."""
    comes_back(lab, 140, 140)


def grp010_fires__a_time_that_it_asks_for(lab):
    """It chose to leave out what is before."""
    recreated(lab)
    fetches(lab, follows(1, 34))
    lists_offset(lab, 59, 12, 1_700_000_000_000)
    fetches(lab, [(60 + n, 12 + n, 90) for n in range(30)], ID_2)
    (found,) = lab.findings("GRP010")
    assert found["kind"] == "information"


def grp010_near_miss__the_only_leader_gives_it_the_first_record(lab):
    one_broker_of_two(lab, new=0)


def grp010_near_miss__another_broker_may_have_led_its_partition(lab):
    one_broker_of_two(lab, epoch=1)


def grp010_near_miss__nothing_states_the_leader_since_it_began(lab):
    one_broker_of_two(lab, stated=45)


def grp010_near_miss__who_went_before_it_may_be_of_its_group(lab):
    """Their coordinator was not captured."""
    fetches(lab, [(41 + n / 4, n, 60) for n in range(33)], ID_2, client_id="mate", host="10.0.0.9")
    one_broker_of_two(lab)


def grp010_fires__another_application_reads_on(lab):
    fetches(lab, [(41 + n, n, 60) for n in range(40)], ID_2, client_id="other", host="10.0.0.9")
    one_broker_of_two(lab)
    assert ["reader"] in [found["client_ids"] for found in lab.findings("GRP010")]


def grp010_fires__a_tool_that_shows_the_last_records(lab):
    """Of no group, each time from a few records before the end: it loses nothing."""
    recreated(lab)
    talk = fetches(lab, [(at, at, at + 5) for at in range(1, 34, 6)])
    for at in range(50, 80, 6):
        lists_offset(lab, at - 0.5, at + 10, -1)
        fetches(lab, [(at, at + 5, at + 10)], ID_2, talk=talk)
    (found,) = lab.findings("GRP010")
    assert found["kind"] == "information"


def grp010_fires__a_reader_that_asks_for_both_ends_and_goes_on(lab):
    """kafka-go, of one partition."""
    recreated(lab)
    talk = fetches(lab, follows(1, 34))
    for at in range(45, 50):
        lists_offset(lab, at, 60, -1)
    fetches(lab, [(50 + n, 33 + n, 60 + n) for n in range(20)], ID_2, talk=talk)
    (found,) = lab.findings("GRP010")
    assert found["kind"] == "anomaly"


def keeps_its_offset(lab, **facts):
    """Its connection, of which not everything was captured; the leader is stated at the end."""
    recreated(lab)
    talk = fetches(lab, follows(1, 34))
    fetches(lab, [(41 + n, 33 + n, 60 + n) for n in range(30)], ID_2, talk=talk)
    talk.facts.update(facts)
    listed(lab, 80, ID_2)


def grp010_fires__the_capture_begins_in_the_middle_of_its_connection(lab):
    keeps_its_offset(lab, from_start=False)
    (found,) = lab.findings("GRP010")
    assert found["count"] == 33


def grp010_fires__bytes_are_missing_long_before_and_after(lab):
    keeps_its_offset(lab, gaps=(lacks(ns(20), 0, 60), lacks(ns(60), 0, 40)), unseen_request_bytes=100)
    (found,) = lab.findings("GRP010")
    assert found["count"] == 33


def both_lack(lab, at_ns, **times):
    """A request of its connection and its response."""
    gaps = lacks(at_ns, 0, 60, **times), lacks(at_ns, 1, 90, **times)
    keeps_its_offset(lab, gaps=gaps, unseen_request_bytes=60, unseen_response_bytes=90)


def grp010_fires__bytes_that_are_missing_before_are_noticed_at_the_moment(lab):
    both_lack(lab, ns(20), since_ns=ns(18), noticed_ns=ns(43))
    (found,) = lab.findings("GRP010")
    assert found["count"] == 33


def grp010_fires__a_request_is_missing_at_the_moment_and_no_response(lab):
    """What nothing answers gives no record."""
    keeps_its_offset(lab, gaps=(lacks(ns(43), 0, 60, since_ns=ns(38)),), unseen_request_bytes=60)
    (found,) = lab.findings("GRP010")
    assert found["count"] == 33


def grp010_fires__a_response_is_missing_at_the_moment_and_no_request(lab):
    keeps_its_offset(lab, gaps=(lacks(ns(43), 1, 60, since_ns=ns(38)),), unseen_response_bytes=60)
    (found,) = lab.findings("GRP010")
    assert found["count"] == 33


def grp010_near_miss__bytes_are_missing_at_the_moment(lab):
    both_lack(lab, ns(43), since_ns=ns(38))


def grp010_near_miss__bytes_are_missing_between_a_time_before_and_one_behind(lab):
    both_lack(lab, ns(60), since_ns=ns(20), noticed_ns=ns(61))


def grp010_near_miss__nothing_was_read_behind_what_is_missing(lab):
    gaps = Gap(ns(21), 0, 60, ns(20), -1), Gap(ns(21), 1, 90, ns(20), -1)
    keeps_its_offset(lab, gaps=gaps, unseen_request_bytes=60, unseen_response_bytes=90)


def grp010_near_miss__so_many_gaps_that_the_last_are_not_kept(lab):
    gaps = tuple(lacks(ns(10 + n / 100), n % 2, 60) for n in range(FIRST_GAPS))
    keeps_its_offset(lab, gaps=gaps, unseen_request_bytes=500_000)


def grp010_near_miss__set_back_while_bytes_are_missing(lab):
    keeps_its_offset(lab, gaps=(lacks(ns(60), 0, 60),), unseen_request_bytes=60)
    fetches_offset(lab, 61, 0)


def grp010_near_miss(lab):
    """It begins at the first record."""
    recreated(lab)
    fetches(lab, follows(1, 34))
    fetches(lab, [(50 + n, n, 60 + n) for n in range(20)], ID_2)


def grp010_near_miss__by_name_from_the_beginning(lab):
    recreated(lab)
    talk = fetches(lab, follows(1, 34), "songs", version=12)
    fetches(lab, [(45 + n, 3 * n, 60 + n) for n in range(20)], "songs", version=12, talk=talk)


def grp010_near_miss__another_member_reads_them(lab):
    recreated(lab)
    fetches(lab, follows(1, 34))
    fetches(lab, [(45 + n, n, 60 + n) for n in range(30)], ID_2, host="10.0.0.9")
    fetches(lab, [(80 + n, 33 + n, 90 + n) for n in range(20)], ID_2)


def grp010_near_miss__a_new_group_begins_at_the_end(lab):
    recreated(lab)
    fetches(lab, [(50 + n, 60 + n, 60 + n) for n in range(20)], ID_2)


def grp010_near_miss__by_name_from_the_beginning_and_then_by_id(lab):
    recreated(lab)
    fetches(lab, follows(1, 34))
    talk = fetches(lab, [(41 + n / 10, n, 90) for n in range(20)], "songs", version=12)
    fetches(lab, [(50 + n, 20 + n, 90 + n) for n in range(20)], ID_2, talk=talk)


def grp010_near_miss__begun_between_the_two(lab):
    """A new reader that asks for the topic by name while it is away, and begins at its end."""
    recreated(lab)
    talk = fetches(lab, [(37, 0, 0, 3)], "songs", version=12)
    fetches(lab, [(50 + n, 33 + n, 60 + n) for n in range(20)], "songs", version=12, talk=talk)


def grp010_near_miss__a_seek(lab):
    """It moves on by itself, without an error."""
    listed(lab, 0, ID_1)
    fetches(lab, [*follows(1, 20), *((30 + n, 400 + n, 500) for n in range(9))])


def grp010_near_miss__out_of_range_and_back(lab):
    """The log is shorter than its offset, as after an unclean election."""
    listed(lab, 0, ID_1)
    talk = fetches(lab, follows(1, 50))
    fetches(lab, [(60, 50, 20, OUT_OF_RANGE)], talk=talk)
    lists_offset(lab, 61, 20, -1)
    fetches(lab, [(63 + n, 20 + n, 20 + n) for n in range(9)], talk=talk)


def grp010_cannot_know__another_broker_was_not_captured(lab):
    """It led the partition before, so that the reader may have read the first records there."""
    grp010_fires(lab)
    lab.metadata(60, [("songs", ID_2, 0, 1)])


def grp010_cannot_know__bytes_are_missing(lab):
    recreated(lab)
    fetches(lab, follows(1, 34))
    talk = lab.talk(client_id="reader", host="10.0.0.7", unseen_request_bytes=100)
    fetches(lab, [(50 + n, 33 + n, 60 + n) for n in range(20)], ID_2, talk=talk)


def grp010_cannot_know(lab):
    """No deletion was seen: the log may be the same under another ID."""
    listed(lab, 0, ID_1)
    listed(lab, 40, ID_2)
    fetches(lab, follows(1, 34))
    fetches(lab, [(50 + n, 33 + n, 60 + n) for n in range(20)], ID_2)


# GRP011


def leaves(talk, at, reason=None):
    gone = [{"memberId": "m-1"}]
    asked = {"groupId": "g", "members": [{"memberId": "m-1", "reason": reason}] if reason else gone}
    talk.ask(at, "LeaveGroup", 5 if reason else 3, asked, {"errorCode": 0, "members": gone})


def leaves_behind(lab, *, stopped=30, left=45, until=120, times=(), **facts):
    lists_songs(lab, until)
    grows(lab, until)
    talk = process(lab, 1, 1, until=left)
    talk.facts |= facts
    leaves(talk, left)
    fetches(lab, follows(2, stopped))
    times = times or range(5, stopped + 1, 5)
    commits(lab, times, times)
    lab.until = until


@disagrees_at(45)
def grp011_fires(lab):
    leaves_behind(lab)


def grp011_near_miss(lab):
    """A service that is stopped: it leaves while it reads."""
    leaves_behind(lab, stopped=44)


STAYS = {"stopped": 36, "times": (5, 15, 25, 36), "over": True}
"""It takes 9 s for its last records, and leaves."""


def grp011_fires__its_connection_stays_open(lab):
    """librdkafka's max.poll.interval.ms is over; the process lives on."""
    leaves_behind(lab, **STAYS, client_hash=hashed_name("reader"))


def grp011_near_miss__its_connection_closes(lab):
    leaves_behind(lab, **STAYS, client_hash=hashed_name("reader"), close_ns=ns(46), closed_by="client-fin")


def grp011_near_miss__it_reads_something_else(lab):
    """Its application has unsubscribed, and assigns itself partitions."""
    leaves_behind(lab, **STAYS, client_hash=hashed_name("reader"))
    fetches(lab, follows(80, 110))


def task_leaves(
    lab, *, begun=10, left=12, worker=range(2, 150, 5), joins=(8,), worker_leaves=None, of_worker=None,
    name="connect-10.0.0.7:8083", **facts
):  # fmt: skip
    """A sink task of Kafka Connect, and its worker; `of_worker`: what is known of the worker's connection."""
    lists_songs(lab, 150)
    grows(lab, 150)
    task = process(lab, begun, 1, until=left, client_id="connector-consumer-s-0")
    task.facts |= facts
    fetches(lab, [(begun + 0.5, begun, begun + 1)], talk=task)
    leaves(task, left)
    talk = lab.talk(client_id=name, host="10.0.0.7", **(of_worker or {}))
    mine = {"groupId": "connect", "memberId": "w-1", "protocolType": "connect"}
    for at in joins:
        talk.ask(at, "JoinGroup", 7, mine, {"errorCode": 0, "memberId": "w-1"})
    for at in worker:
        talk.ask(at, "Heartbeat", 4, mine, {"errorCode": 0})
    if worker_leaves:
        talk.ask(worker_leaves, "LeaveGroup", 4, {"groupId": "connect", "members": []}, {"errorCode": 0})
    lab.until = 150


def grp011_fires__a_connect_task_that_fails_at_its_first_record(lab):
    task_leaves(lab)


def grp011_fires__a_connect_task_that_fails_later(lab):
    task_leaves(lab, left=50)


def named_worker(lab, name="pipes", stores=("etl-pipes-offsets", "etl-pipes-statuses"), **more):
    """A worker with a client.id: those of its clients that keep configurations, offsets and states begin with the
    group, and have it, too.
    """
    for store in stores:
        fetches(lab, [(at, 0, 0) for at in range(5, 150, 5)], talk=lab.talk(client_id=store, host="10.0.0.7"))
    task_leaves(lab, left=50, name=name, **more)


def grp011_fires__a_task_of_a_named_connect_worker(lab):
    named_worker(lab)


def grp011_cannot_know__what_the_worker_is_called(lab):
    """It may have joined again."""
    named_worker(lab, "other", joins=(8, 49))


def beats(lab, name, times):
    """A member of another group on the host of the task."""
    talk = lab.talk(client_id=name, host="10.0.0.7")
    for at in times:
        mine = {"groupId": "two", "memberId": name}
        talk.ask(at, "Heartbeat", 4, mine, {"errorCode": 0})


def grp011_near_miss__another_worker_lives_on_that_host(lab):
    """Of another cluster: the worker of the task was stopped, which its LeaveGroup does not show."""
    beats(lab, "connect-10.0.0.7:8084", range(2, 150, 5))
    named_worker(lab, worker=range(2, 51, 5))


def grp011_fires__another_worker_had_ended_before(lab):
    beats(lab, "connect-10.0.0.7:8084", range(2, 20, 5))
    named_worker(lab)


def grp011_cannot_know__whether_an_application_of_such_a_name_is_a_worker(lab):
    """It keeps no states of tasks: the worker has another name."""
    beats(lab, "order", range(2, 150, 5))
    named_worker(lab, "other", stores=["order-statuses"], joins=(8, 49))


def grp011_near_miss__a_connector_of_a_named_worker_is_deleted(lab):
    named_worker(lab, joins=(8, 49))


def grp011_near_miss__a_connector_is_deleted(lab):
    """Its worker joins again for that."""
    task_leaves(lab, left=50, joins=(8, 49))


def grp011_near_miss__a_connect_worker_is_stopped(lab):
    task_leaves(lab, left=50, worker=range(2, 50, 5))


def grp011_near_miss__a_connect_worker_is_started_again(lab):
    """It has no task until scheduled.rebalance.max.delay.ms is over."""
    task_leaves(lab, left=50, worker=[*range(2, 50, 5), *range(92, 150, 5)], joins=(8, 90))


def grp011_near_miss__one_of_two_connect_workers_of_a_host_is_stopped(lab):
    task_leaves(lab, left=50, worker=range(2, 50, 5), worker_leaves=51)
    talk = lab.talk(client_id="connect-10.0.0.7:8084", host="10.0.0.7")
    for at in range(2, 150, 5):
        talk.ask(at, "Heartbeat", 4, {"groupId": "other", "memberId": "w-2"}, {"errorCode": 0})


def grp011_near_miss__a_connector_is_deleted_while_its_task_writes(lab):
    """It leaves when it has written what it read before its worker joined again."""
    task_leaves(lab, left=50, joins=(8, 12))


def grp011_cannot_know__what_a_connect_worker_sent(lab):
    """That it joined again may be missing."""
    task_leaves(lab, left=50, of_worker={"unseen_request_bytes": 300})


def grp011_near_miss__a_connect_task_moves(lab):
    task_leaves(lab, left=50)
    process(lab, 52, 2, until=150, client_id="connector-consumer-s-0")


def grp011_cannot_know__what_a_connect_task_sent(lab):
    task_leaves(lab, left=50, unseen_request_bytes=300)


def grp011_cannot_know__what_it_sent_after_it_left(lab):
    leaves_behind(lab, **STAYS, client_hash=hashed_name("reader"))
    carries_nothing(lab, 100, gaps=(lacks(ns(100), 1, 900),), unseen_response_bytes=900)


def grp011_near_miss__another_member_comes(lab):
    leaves_behind(lab)
    process(lab, 60, 2, until=110)


def cannot_handle_its_first_records(
    lab, steps=((11.2, 3, 11),), *, leaves_at=15, until=90, topics=(("songs", (0,)),), version=13, **facts
):
    """A library that reads no further ahead than it handles, as KafkaJS: at what it cannot handle, it leaves."""
    lists_songs(lab, until)
    grows(lab, until)
    talk = process(lab, 11, 1, topics=topics)
    talk.facts |= facts
    fetches(lab, steps, ID_1 if version >= 13 else "songs", talk=talk, version=version)
    leaves(talk, leaves_at)
    lab.until = until


def grp011_fires__at_the_first_records_that_it_got(lab):
    """Without the codec that its topic needs."""
    cannot_handle_its_first_records(lab)


def grp011_near_miss__asked_for_more_after_the_first_records(lab):
    """A cache that is filled, and commits nothing."""
    cannot_handle_its_first_records(lab, [(11.2, 3, 11), (12, 11, 12)])


def grp011_near_miss__committed_its_first_records(lab):
    """A console that prints one message."""
    cannot_handle_its_first_records(lab)
    commits(lab, [13], [4])


def grp011_near_miss__found_no_records_and_left(lab):
    cannot_handle_its_first_records(lab, [(11.2, 11, 11)])


def grp011_near_miss__others_come_after_its_first_records(lab):
    cannot_handle_its_first_records(lab)
    process(lab, 30, 2, until=80)


def grp011_near_miss__another_partition_goes_on_beside_its_first_records(lab):
    """A sample: it commits nothing."""
    cannot_handle_its_first_records(lab, topics=(("songs", (0, 1)),))
    fetches(lab, [(11.3, 3, 11), (12, 11, 12)], partition=1)


def grp011_near_miss__its_first_records_by_name_and_the_next_by_id(lab):
    """A broker is upgraded meanwhile."""
    cannot_handle_its_first_records(lab, version=12)
    grows(lab, 90, "songs", version=12)
    fetches(lab, [(12, 11, 12), (13, 12, 13)])


def grp011_near_miss__a_glance_without_a_group_beside_a_group_of_another_topic(lab):
    """Of two processes that have their library's ID."""
    cannot_handle_its_first_records(lab, topics=(("orders", (0,)),))


def grp011_near_miss__its_first_records_are_committed_in_a_transaction(lab):
    cannot_handle_its_first_records(lab)
    rows = [{"partitionIndex": 0, "committedOffset": 5}]
    asked = {**READER, "groupId": "g", "topics": [{"name": "songs", "partitions": rows}]}
    answer = {"topics": [{"name": "songs", "partitions": [{"partitionIndex": 0}]}]}
    lab.talk(client_id="writer", host="10.0.0.7").ask(12, "TxnOffsetCommit", 3, asked, answer)


def grp011_near_miss__it_commits_another_topic_than_that_of_its_first_records(lab):
    """The first answers are full of orders, of which many wait."""
    cannot_handle_its_first_records(lab, topics=(("orders", (0,)), ("songs", (0,))))
    rows = [{"partitionIndex": 0, "committedOffset": 5}]
    asked = {**READER, "groupId": "g", "topics": [{"name": "orders", "partitions": rows}]}
    answer = {"topics": [{"name": "orders", "partitions": [{"partitionIndex": 0}]}]}
    lab.talk(client_id="reader", host="10.0.0.7").ask(12, "OffsetCommit", 8, asked, answer)


def grp011_near_miss__its_first_records_do_not_come(lab):
    """The leader moves as it begins."""
    cannot_handle_its_first_records(lab, [(11.2, 3, 11, 6), (12.2, 3, 11, 6)])


def grp011_near_miss__it_is_stopped_with_its_first_records_in_hand(lab):
    cannot_handle_its_first_records(lab, leaves_at=42, until=120)


def grp011_near_miss__another_client_reads_its_first_records_for_it(lab):
    """The driver of a batch query of Spark joins, its executors read by assignment."""
    cannot_handle_its_first_records(lab)
    fetches(lab, [(12, 3, 12), (13, 12, 13)], client_id="executor", host="10.0.0.9")


def reads_the_first_records(lab, groups, every=20):
    """And leaves within two seconds; `groups`: what it joins, in turn."""
    until = 40 + every * len(groups)
    lists_songs(lab, until)
    grows(lab, until)
    for number, reads in enumerate(groups):
        at = 11 + every * number
        talk = process(lab, at, number, reads=reads)
        lists_offset(lab, at + 0.3, 0, -2)
        fetches(lab, [(at + 0.5, 0, at)], talk=talk)
        gone = [{"memberId": f"m-{number}"}]
        talk.ask(at + 2, "LeaveGroup", 3, {"groupId": reads, "members": gone}, {"errorCode": 0, "members": gone})
    lab.until = until


def grp011_near_miss__a_probe_that_has_another_group_each_time(lab):
    reads_the_first_records(lab, ["p-1", "p-2", "p-3"])


def grp018_near_miss__a_probe_that_has_another_group_each_time(lab):
    reads_the_first_records(lab, [f"p-{number}" for number in range(8)])


def grp011_near_miss__a_connector_is_deleted_within_its_first_records(lab):
    task_leaves(lab, left=14, joins=(8, 13))


def grp011_cannot_know__the_capture_ends_28_s_after_its_first_records(lab):
    cannot_handle_its_first_records(lab, leaves_at=19, until=47)


def grp011_cannot_know__what_it_read_after_its_first_records(lab):
    cannot_handle_its_first_records(lab, unseen_request_bytes=300)


def grp011_cannot_know__the_capture_ends_at_its_first_records(lab):
    cannot_handle_its_first_records(lab, until=30)


def grp011_near_miss__nothing_waits(lab):
    """A job that has read all, and waited for more."""
    lists_songs(lab, 120)
    leaves(process(lab, 1, 1, until=45), 45)
    fetches(lab, follows(2, 30))
    commits(lab, [10, 30], [10, 29])
    fetches(lab, [(at, 29, 29) for at in range(31, 120, 3)], client_id="other", host="10.0.0.8")


def grp011_fires__its_library_fetches_on(lab):
    """Records are fetched in the background until the member leaves."""
    leaves_behind(lab, stopped=44, times=range(5, 31, 5))


def grp011_near_miss__it_takes_records_of_another_partition(lab):
    """A few at a time, and leaves: those of this one wait."""
    leaves_behind(lab)
    commits(lab, range(32, 45, 4), range(32, 45, 4), partition=1)


def grp011_near_miss__it_commits_seldom(lab):
    leaves_behind(lab, stopped=74, left=75, until=150, times=(20, 40, 60))


def grp011_cannot_know(lab):
    """The capture ends soon after."""
    leaves_behind(lab, until=60)


# GRP012


def joins(lab, at, until, *, client_id="reader", outcome=PENDING, response=None, answered_in=0.001, **facts):
    talk = lab.talk(client_id=client_id, host="10.0.0.7", **facts)
    asked = {**READER, "memberId": client_id, "rebalanceTimeoutMs": 300_000, "sessionTimeoutMs": 45_000}
    talk.ask(at, "JoinGroup", 7, asked, response, outcome=None if response else outcome, answered_in=answered_in)
    served = lab.talk(client_id="other", host="10.0.0.8")
    for now in range(int(at), until, 5):
        served.ask(now, "Metadata", 12, {"topics": None}, {"clusterId": None})
    lab.until = until


@disagrees_at(20)
def grp012_fires(lab):
    member(lab, until=20)
    joins(lab, 20, 100, client_id="late")


def grp012_fires__answered_at_last(lab):
    joins(lab, 20, 200, response={"errorCode": 0, "memberId": "reader"}, answered_in=90)


def grp012_fires__it_was_killed_and_is_started_again(lab):
    """It waits for the member that it was, and works then: it is not in doubt."""
    joins(lab, 20, 100, response={"errorCode": 0, "memberId": "reader"}, answered_in=43)
    (found,) = lab.findings("GRP012")
    assert DOUBTED not in {word["name"] for word in found["words"]}


def grp012_fires__it_is_killed_again_and_again(lab):
    for at in (20, 70):
        joins(lab, at, 120, response={"errorCode": 0, "memberId": f"reader-{at}"}, answered_in=43)
    (found,) = lab.findings("GRP012")
    assert DOUBTED in {word["name"] for word in found["words"]}


def rolled(lab, starts, *, begins="{}", until=220):
    """Members that do not leave as they end: at each time one begins again, and all wait for the one that it was, by
    another client ID than before if `begins` has its number.
    """
    members = {name: (name, f"{name}-0") for name in ("a", "b")}
    for client_id, member_id in members.values():
        joins(lab, 5, 12, client_id=client_id, response={"errorCode": 0, "memberId": member_id}, answered_in=0.2)
    for number, (at, again) in enumerate(starts):
        if again is not None:
            members[again] = begins.format(again, number), f"{again}-{number + 1}"
        for client_id, member_id in members.values():
            response = {"errorCode": 0, "memberId": member_id}
            joins(lab, at, until, client_id=client_id, response=response, answered_in=43)
    return {
        found["client_ids"][0]: DOUBTED in {word["name"] for word in found["words"]} for found in lab.findings("GRP012")
    }


def grp012_fires__each_member_is_replaced_once(lab):
    """A roll of an application of Kafka Streams: no member is in doubt."""
    assert rolled(lab, [(20, "a"), (90, "b")]) == {"a": False, "b": False}


def grp012_fires__all_wait_for_one_that_begins_again_and_again(lab):
    assert rolled(lab, [(20, "a"), (90, "a")]) == {"a": True, "b": True}


def grp012_fires__each_is_replaced_by_one_of_another_name(lab):
    """The pods of a deployment."""
    found = rolled(lab, [(20, "a"), (90, "b")], begins="{}-{}")
    assert found == {"a-0": False, "b": False, "b-1": False}


def grp012_fires__one_is_killed_and_has_another_name_each_time(lab):
    """More begin than there were: who was there all the time waits again and again."""
    found = rolled(lab, [(at, "a") for at in range(20, 300, 60)], begins="{}-{}", until=310)
    assert found.pop("b")
    assert not any(found.values())  # each waited once


def grp012_fires__all_wait_for_one_that_works_long(lab):
    """At each change of the group; none begins again."""
    assert rolled(lab, [(20, None), (90, None)]) == {"a": True, "b": True}


def grp012_fires__members_of_one_client_id_are_replaced_once(lab):
    members = ["app-0", "app-1", "app-2"]
    for member_id in members:
        joins(lab, 5, 12, client_id="app", response={"errorCode": 0, "memberId": member_id}, answered_in=0.2)
    for number, at in enumerate((20, 90, 160)):
        members[number] = f"app-{number}-again"
        for member_id in members:
            joins(lab, at, 220, client_id="app", response={"errorCode": 0, "memberId": member_id}, answered_in=43)
    (found,) = lab.findings("GRP012")
    assert DOUBTED not in {word["name"] for word in found["words"]}


def grp012_near_miss(lab):
    """The others join within seconds."""
    joins(lab, 20, 100, response={"errorCode": 0, "memberId": "reader"}, answered_in=9)


def grp012_cannot_know(lab):
    """The capture ends before."""
    joins(lab, 20, 40)


CLOSES = {"outcome": CLOSED_BY_CLIENT, "closed_by": "client-fin", "close_ns": ns(90)}


def grp012_fires__it_closes_without_a_response(lab):
    member(lab, until=20)
    joins(lab, 20, 100, client_id="late", **CLOSES)


def grp012_cannot_know__whether_it_got_a_response(lab):
    """A segment of the server is missing."""
    member(lab, until=20)
    joins(lab, 20, 100, client_id="late", unseen_response_bytes=300, **CLOSES)


def grp012_fires__packets_were_lost_before(lab):
    """What is missing was sent before the member asked."""
    member(lab, until=20)
    lost = {"gaps": (lacks(ns(5), 1, 300),), "unseen_response_bytes": 300}
    joins(lab, 20, 100, client_id="late", **lost, **CLOSES)


# GRP013


def acknowledges(lab, times, kinds, client_id="reader"):
    talk = lab.talk(client_id=client_id, host="10.0.0.7")
    for number, (at, kind) in enumerate(zip(times, kinds, strict=True)):
        given = [{"firstOffset": 0, "lastOffset": 9, "acknowledgeTypes": [kind]}]
        rows = [{"partitionIndex": 0, "acknowledgementBatches": given if number else []}]
        asked = {**READER, "shareSessionEpoch": number, "topics": [{"topicId": ID_1, "partitions": rows}]}
        got = [{"firstOffset": 0, "lastOffset": 9, "deliveryCount": 1 + number % 5}]
        answer = [{"topicId": ID_1, "partitions": [{"partitionIndex": 0, "acquiredRecords": got}]}]
        talk.ask(at, "ShareFetch", 1, asked, {"errorCode": 0, "responses": answer})
    lab.until = max(times) + 1


@disagrees_at(2)
def grp013_fires(lab):
    lists_songs(lab, 70)
    acknowledges(lab, range(1, 61, 2), [2] * 30)


def grp013_near_miss(lab):
    """One in three is accepted."""
    lists_songs(lab, 70)
    acknowledges(lab, range(1, 61, 2), [2, 2, 1] * 10)


def grp013_near_miss__rejects_what_it_cannot_process(lab):
    lists_songs(lab, 70)
    acknowledges(lab, range(1, 61, 2), [3] * 30)


def grp013_near_miss__a_dependency_is_away_for_twenty_seconds(lab):
    lists_songs(lab, 70)
    acknowledges(lab, range(1, 61, 2), [1] * 10 + [2] * 10 + [1] * 10)


def grp013_cannot_know(lab):
    """Too few."""
    lists_songs(lab, 70)
    acknowledges(lab, range(1, 61, 15), [2] * 4)


# GRP014


def begins_before(lab, *, committed=True):
    starts_again(lab, -1, committed=committed)
    lists_offset(lab, 302, 0, -2)
    fetches(lab, [(303 + n, n, 400) for n in range(20)])


@disagrees_at(301)
def grp014_fires(lab):
    begins_before(lab)


def grp014_near_miss(lab):
    """It has its offset."""
    starts_again(lab, 29)
    fetches(lab, [(303 + n, 29 + n, 400) for n in range(20)])


def grp014_cannot_know(lab):
    """What it had committed was not seen."""
    begins_before(lab, committed=False)


# CLI007


def starves(lab, pace, *, known=True, paused=False):
    """Its fetches wait for 10 s each. It gets so many records in 10 s of the 20 that are written; `paused`: of a
    partition that it asks for no more after the first one.
    """
    listed(lab, 0, ID_1)
    if known:
        grows(lab, 100, rate=2)
    talk = lab.talk(client_id="app", host="10.0.0.7")
    for at in range(2, 100, 10):
        topic = {"topicId": ID_1}
        asked = {"replicaId": -1, "sessionEpoch": -1}
        number = int(paused and at > 2)
        asked["topics"] = [{**topic, "partitions": [{"partition": number, "fetchOffset": pace * at // 10}]}]
        row = {"partitionIndex": number, "highWatermark": 2 * at if known else -1, "records": "AAAA"}
        answer = {"responses": [{**topic, "partitions": [row]}], "throttleTimeMs": 10_000}
        talk.ask(at, "Fetch", 13, asked, answer)
    (found,) = lab.findings("CLI007")
    return found["kind"]


def cli007_fires__reads_next_to_nothing(lab):
    assert starves(lab, 1) == "anomaly"


def cli007_fires__reads_what_is_written(lab):
    """It waits all the time, and keeps up."""
    assert starves(lab, 19) == "information"


def cli007_fires__a_partition_of_which_it_asks_no_more(lab):
    """It is paused, or another member's; in the other one it keeps up."""
    assert starves(lab, 19, paused=True) == "information"


def cli007_fires__where_the_log_ends_is_not_known(lab):
    assert starves(lab, 1, known=False) == "information"


# CLI004


def shares(lab, times, *, until=240, written_until=240):
    lists_songs(lab, until)
    grows(lab, written_until)
    share_member(lab, until=until)
    share_fetches(lab, times)
    lab.until = until + 1


def cli004_fires__a_share_group_that_had_a_rhythm(lab):
    """Its thread waits for something after a batch; records come on."""
    shares(lab, range(3, 100, 2))


def cli004_near_miss__a_share_group_whose_batches_take_a_minute(lab):
    shares(lab, [*range(3, 40, 2), 95, *range(150, 160), 215])


def cli004_near_miss__a_share_group_to_which_nothing_comes(lab):
    shares(lab, range(3, 100, 2), written_until=90)


# CLI014


def gives_up(lab, times, offset, *, until=None, answered=(), ends=None, **facts):
    """Fetches that the client ends by closing the connection, before the broker has what they ask for."""
    until = until or max(times) + 20
    listed(lab, 0, ID_1)
    if ends is None:
        grows(lab, until)
    else:
        steps = [(at, ends(at), ends(at)) for at in range(3, until, 3)]
        fetches(lab, steps, client_id="other", host="10.0.0.8")
    process(lab, 8, 1, until=until)
    for at in times:
        facts = {"over": True, "closed_by": "client-fin", **facts}
        talk = lab.talk(client_id="reader", host="10.0.0.7", **facts)
        rows = [{"partition": 0, "fetchOffset": offset}]
        asked = {"replicaId": -1, "sessionEpoch": -1, "maxWaitMs": 60_000, "minBytes": 50_000_000}
        asked |= {"topics": [{"topicId": ID_1, "partitions": rows}]}
        talk.ask(at, "Fetch", 13, asked, outcome=CLOSED_BY_CLIENT, answered_in=19)
        talk.closed = at + 19
    for at in answered:
        fetches(lab, [(at, offset, at)])
    lab.until = until


@disagrees_at(10)
def cli014_fires(lab):
    gives_up(lab, range(10, 140, 20), 5)
    (found,) = lab.findings("CLI014")
    assert {"name": "hurt_host", "value": "10.0.0.7"} in found["words"]


def cli014_fires__it_read_before(lab):
    fetches(lab, follows(1, 10))
    gives_up(lab, range(10, 140, 20), 10)


def gets_empty_answers(lab, offset=5, *, version=2, until=140, fed=(), error=0, unseen=False, **facts):
    """Of a broker that gives no record that is larger than the client takes, as before Fetch v3."""
    listed(lab, 0, ID_1)
    grows(lab, until)
    talk = lab.talk(client_id="reader", host="10.0.0.7", **facts)
    for at in range(10, until, 5):
        asked = [{"partition": 0, "fetchOffset": offset}, *({"partition": number, "fetchOffset": at} for number in fed)]
        row = {"highWatermark": at, "errorCode": error, "records": None}
        rows = [{"partitionIndex": 0, **row}]
        rows += [{"partitionIndex": number, **row, "records": "AAAA"} for number in fed]
        topics = [{"topic": "songs", "partitions": asked}]
        request = {"replicaId": -1, "maxWaitMs": 500, "topics": topics}
        if unseen:
            talk.ask(at, "Fetch", version, request, outcome=RESPONSE_UNSEEN)
        else:
            talk.ask(at, "Fetch", version, request, {"responses": [{"topic": "songs", "partitions": rows}]})
    lab.until = until


def cli014_fires__answers_without_a_record(lab):
    """A record of 5,000 bytes, of which it takes 1,000."""
    gets_empty_answers(lab)


def cli014_near_miss__answers_without_a_record_at_the_end(lab):
    gets_empty_answers(lab, 500)


def cli014_near_miss__others_are_read_first(lab):
    """It is behind in partition 1 too, of which records come."""
    gets_empty_answers(lab, fed=(1,))


def cli014_near_miss__empty_answers_for_half_a_minute(lab):
    gets_empty_answers(lab, until=45)


def cli014_near_miss__answers_without_a_record_by_a_later_version(lab):
    """A broker gives one record however large it is: something else, such as a slow store, is behind it."""
    gets_empty_answers(lab, version=4)


def cli014_near_miss__an_error_at_last(lab):
    gets_empty_answers(lab, error=3)


def cli014_fires__answers_without_a_record_beside_a_gap(lab):
    """A response with records, and no other, would have moved it on."""
    gets_empty_answers(lab, gaps=(lacks(ns(15), 1, 900),), unseen_response_bytes=900, over=True)


def cli014_near_miss(lab):
    """It waits for 50 MB for 12 s, as it may, and then gets what there is."""
    gives_up(lab, (10,), 5, until=140, answered=range(32, 140, 12))


def cli014_near_miss__a_restart(lab):
    gives_up(lab, (10, 30), 5, until=140)


def cli014_near_miss__nothing_waits(lab):
    """Nothing is written where it reads: a fetch may wait as long as it likes."""
    gives_up(lab, range(10, 140, 20), 500)


def cli014_near_miss__others_keep_up(lab):
    """It asks for the next record of a log that is written once in a while."""
    gives_up(lab, range(10, 140, 20), 138)


def cli014_near_miss__its_log_fell_back(lab):
    """Another replica became the leader: the log ends where it reads, as CTL018 says, and grew to 500 before."""
    fetches(lab, [(1, 400, 500)], client_id="other", host="10.0.0.8")
    gives_up(lab, range(10, 140, 20), 5, ends=lambda at: 5)


def cli014_near_miss__a_transaction_is_open(lab):
    """Another reader of committed records is held up there, and says how far they come."""
    gives_up(lab, range(10, 140, 20), 5)
    rows = [{"partition": 0, "fetchOffset": 5}]
    asked = {"replicaId": -1, "sessionEpoch": -1, "isolationLevel": 1}
    asked |= {"topics": [{"topicId": ID_1, "partitions": rows}]}
    row = {"partitionIndex": 0, "lastStableOffset": 5, "records": None, "abortedTransactions": None}
    talk = lab.talk(client_id="committed", host="10.0.0.9")
    for at in range(2, 140, 5):
        held = {"topicId": ID_1, "partitions": [{**row, "highWatermark": at + 5}]}
        talk.ask(at, "Fetch", 13, asked, {"responses": [held]})


def cli014_cannot_know__requests_alone(lab):
    """Its fetches are seen, and no answer."""
    gets_empty_answers(lab, unseen=True)


def cli014_cannot_know(lab):
    """What came on its connections was not captured whole."""
    gives_up(lab, range(10, 140, 20), 5, gaps=(lacks(ns(15), 1, 900),), unseen_response_bytes=900)


def leader_alone(lab, *, until=140, acks=1, server=B1, grown=(), begins=20, last=None):
    """A leader grants writes that too few replicas confirm: the committed part of its log ends at 19."""
    listed(lab, 0, ID_1)
    fetches(lab, [*follows(1, begins), *((at, 19, 19) for at in range(begins, until, 3))])
    fetches(lab, [(at, at, at) for at in grown], client_id="other", host="10.0.0.8")
    writer = lab.talk(server, "writer", "10.0.0.6")
    for at in range(begins + 1, last or until, 4):
        partition = {"index": 0, "records": None}
        asked = {"transactionalId": None, "acks": acks, "timeoutMs": 30_000}
        asked |= {"topicData": [{"topicId": ID_1, "partitionData": [partition]}]}
        row = {"index": 0, "errorCode": 0, "baseOffset": at, "logAppendTimeMs": -1, "logStartOffset": 0}
        answer = {"responses": [{"topicId": ID_1, "partitionResponses": [row]}]}
        writer.ask(at, "Produce", 13, asked, answer)
    lab.until = until


@disagrees_at(20)
def cli014_fires__too_few_replicas_confirm(lab):
    leader_alone(lab)
    (found,) = lab.findings("CLI014")
    words = {word["name"]: word["value"] for word in found["words"]}
    assert (words["hurt_host"], words["held"]) == ("10.0.0.7", "yes")


def cli014_near_miss__replicas_confirm_later(lab):
    """A follower was away for as long as it may be: the reader gets it all then."""
    leader_alone(lab, grown=range(100, 140, 3))


def cli014_near_miss__unconfirmed_for_half_a_minute(lab):
    leader_alone(lab, until=60)


def cli014_near_miss__the_writer_is_granted_by_all(lab):
    """What acks=all is granted every reader gets: this answer is of another time than the one that it contradicts."""
    leader_alone(lab, acks=-1)


def cli014_near_miss__another_leader_since(lab):
    """What the former one alone had is gone with it."""
    leader_alone(lab, server=B2)


def cli014_fires__another_member_has_the_partition_since(lab):
    """The former one reads another partition."""
    leader_alone(lab, last=140, until=40)
    fetches(lab, [(at, 19, 19) for at in range(41, 140, 3)], client_id="heir", host="10.0.0.9")
    fetches(lab, [(at, at, at) for at in range(41, 140, 3)], partition=1)
    lab.until = 140
    (found,) = lab.findings("CLI014")
    assert found["client_ids"] == ["heir"]


def cli014_near_miss__reads_from_a_follower(lab):
    """A replica in its own rack is behind; the leader gives others all that it granted."""
    leader_alone(lab)
    talk = lab.talk(B2, "other", "10.0.0.8")
    fetches(lab, [(at, at, at) for at in range(21, 140, 3)], talk=talk)


def gets_the_same(lab, *, until=140, every=4, offset=5, new=False, first=False, behind=False, grown=True):
    """A reader of no group that is given the records at one offset, and cannot use them."""
    listed(lab, 0, ID_1)
    if grown:
        grows(lab, until)
    else:
        fetches(lab, [(at, offset, offset + 1) for at in range(1, until, 3)], client_id="other", host="10.0.0.8")
    talk = None
    for at in range(10, until, every):
        talk = None if new else talk
        if first:
            lists_offset(lab, at, offset, -2)
        end = at if grown else offset + 1
        talk = fetches(lab, [(at, offset, end), *([(at + 1, offset + 1, end)] if behind else [])], talk=talk)
    lab.until = until


@disagrees_at(10)
def cli014_fires__the_same_records_each_time(lab):
    """A batch whose checksum is wrong: the library fetches it again, over the same connection."""
    gets_the_same(lab)
    (found,) = lab.findings("CLI014")
    assert {"name": "hurt_host", "value": "10.0.0.7"} in found["words"]


def cli014_fires__the_same_records_over_new_connections(lab):
    """It may be a tool that looks at them now and then: no client counts as hurt."""
    gets_the_same(lab, new=True)
    (found,) = lab.findings("CLI014")
    assert found["kind"] == "information"
    assert "hurt_host" not in {word["name"] for word in found["words"]}


def cli014_near_miss__the_same_records_for_half_a_minute(lab):
    gets_the_same(lab, until=45)


def cli014_near_miss__it_looks_at_the_first_record(lab):
    """A check of health begins at the beginning each time."""
    gets_the_same(lab, new=True, first=True, offset=0)


def cli014_near_miss__it_looks_at_the_last_record(lab):
    """Nothing is written after it."""
    gets_the_same(lab, new=True, grown=False)


def cli014_near_miss__it_reads_on_each_time(lab):
    gets_the_same(lab, new=True, behind=True)


def cli014_near_miss__it_is_of_a_group(lab):
    """GRP018 has its own rules, by what the group commits."""
    gets_the_same(lab)
    process(lab, 8, 1, until=140)


def carries_nothing(lab, at, **facts):
    """A connection of the reader's host on which not a byte was captured."""
    talk = lab.talk(B1, "reader", "10.0.0.7", over=True, protocol="undecided", **facts)
    talk.closed = at


def cli014_fires__beside_connections_that_carried_nothing(lab):
    """Its host is refused once, and a probe connects and leaves: nothing is missing for that."""
    gives_up(lab, range(10, 140, 20), 5)
    for how in ("server-rst", "client-fin"):
        carries_nothing(lab, 100, closed_by=how)


def cli014_cannot_know__beside_a_connection_of_which_bytes_are_missing(lab):
    gives_up(lab, range(10, 140, 20), 5)
    missing = {"gaps": (lacks(ns(100), 1, 900),), "unseen_response_bytes": 900}
    carries_nothing(lab, 100, closed_by="client-fin", **missing)


# CLI009


def reads_alone(lab, *, until=40, end=140, connected=True, every=1, reader="reader", **facts):
    """A reader of no group; its connection is there until the end of the capture."""
    for at in (0, end):
        listed(lab, at, ID_1)
    grows(lab, end)
    steps = [(at, at, at) for at in range(2, until, every)]
    known = {"client_hash": hashed_name(reader), "over": True, **facts}
    talk = fetches(lab, steps, talk=lab.talk(client_id=reader, host="10.0.0.7", **known))
    if not connected:
        talk.closed = until + 1
    lab.until = end
    return talk


def hashed_name(name):
    return hash_of_client(name.encode(), len(name))[0]


@disagrees_at(39)
def cli009_fires(lab):
    """Nothing closes its connection."""
    reads_alone(lab)


def cli009_fires__it_lives_on_and_closes_later(lab):
    talk = reads_alone(lab)
    talk.ask(100, "Metadata", 12, {"topics": None}, {"clusterId": None})
    talk.closed = 101


def cli009_near_miss(lab):
    """A job that is done, and closes its connection."""
    reads_alone(lab, connected=False)


def cli009_near_miss__it_reads_each_20_seconds(lab):
    """It was quiet for 30 s, and that is its rhythm."""
    reads_alone(lab, until=420, every=20, end=450)


def cli009_near_miss__nothing_comes(lab):
    reads_alone(lab, end=42).closed = 140
    lab.until = 140


def cli009_near_miss__a_member_of_a_group(lab):
    """Its patience is its group's."""
    talk = reads_alone(lab)
    talk.ask(50, "Heartbeat", 4, {"groupId": "g", "memberId": "m"}, {"errorCode": 0})


def cli009_near_miss__it_looked_once(lab):
    """A tool, or a page of a web interface."""
    reads_alone(lab, until=8)


def cli009_near_miss__it_reads_another_topic_on(lab):
    talk = reads_alone(lab)
    for at in range(40, 140):
        fetches(lab, [(at, at, at)], ID_2, talk=talk)


def cli009_cannot_know(lab):
    """Some of its requests were not captured."""
    reads_alone(lab, unseen_request_bytes=100)


# GRP016


def vanishes(lab, *, last=30, until=140, **facts):
    """A member that commits once a second, and of which nothing is seen from then on."""
    for at in (0, until):
        listed(lab, at, ID_1)
    grows(lab, until)
    talk = process(lab, 1, 1, until=last)
    talk.facts.update(facts)
    fetches(lab, follows(2, last))
    commits(lab, range(5, last), range(5, last))
    lab.until = until
    return talk


@disagrees_at(29)
def grp016_fires(lab):
    vanishes(lab)


def grp016_fires__killed(lab):
    """The system closes its connections."""
    talk = vanishes(lab)
    talk.closed = 31
    talk.facts.update(closed_by="client-rst")


def grp016_near_miss(lab):
    """It leaves: GRP011 looks at that."""
    leaves(vanishes(lab), 30)


def grp016_near_miss__another_one_comes(lab):
    vanishes(lab)
    process(lab, 60, 2, until=135)


def grp016_near_miss__it_is_asked_to_join_again(lab):
    """Its heartbeats are answered by REBALANCE_IN_PROGRESS while it works on a batch: others wait for it."""
    talk = vanishes(lab)
    for at in range(30, 140, 3):
        talk.ask(at, "Heartbeat", 4, {**READER, "memberId": "m-1"}, {"errorCode": 27})


def rejected_and_gone(lab, until):
    """Its coordinator moves, and it ends while that rejects its heartbeats."""
    talk = vanishes(lab, until=until)
    for at in range(30, 60, 3):
        talk.ask(at, "Heartbeat", 4, {**READER, "memberId": "m-1"}, {"errorCode": 16})


def grp016_fires__its_last_heartbeats_were_rejected(lab):
    rejected_and_gone(lab, 140)


def grp016_near_miss__its_last_heartbeats_were_rejected_a_minute_ago(lab):
    rejected_and_gone(lab, 120)


def grp016_near_miss__nothing_comes(lab):
    listed(lab, 0, ID_1)
    listed(lab, 140, ID_1)
    process(lab, 1, 1, until=30)
    fetches(lab, follows(2, 30))
    commits(lab, range(5, 30), range(5, 30))
    lab.until = 140


def grp016_near_miss__a_minute(lab):
    """As long as the coordinator may wait for it, and a little more."""
    vanishes(lab, until=95)


def grp016_cannot_know(lab):
    vanishes(lab, unseen_request_bytes=100)


# GRP019


def leaves_partitions(lab, *, until=140, second=True, **facts):
    """One of two static members is killed after 30 s; its session is long."""
    for at in (0, until):
        listed(lab, at, ID_1)
    grows(lab, until)
    first = process(lab, 1, 1, until=30, **facts)
    fetches(lab, follows(2, 30))
    commits(lab, range(5, 30), range(5, 30), talk=first)
    if second:
        process(lab, 2, 2, until=until, topics=(("songs", (1,)),), client_id="second")
    lab.until = until
    return first


@disagrees_at(29)
def grp019_fires(lab):
    leaves_partitions(lab)
    assert not lab.findings("GRP016")


def grp019_near_miss(lab):
    """All members are gone: GRP016 looks at that."""
    leaves_partitions(lab, second=False)


def grp019_near_miss__it_leaves(lab):
    leaves(leaves_partitions(lab), 30)


def grp019_near_miss__it_comes_back(lab):
    leaves_partitions(lab)
    process(lab, 80, 3, until=140)


def grp019_near_miss__the_other_one_takes_over(lab):
    leaves_partitions(lab)
    process(lab, 75, 4, until=140, topics=(("songs", (0, 1)),), client_id="second")


def grp019_near_miss__a_reader_without_a_group_takes_over(lab):
    leaves_partitions(lab)
    fetches(lab, [(at, at - 15, at) for at in range(40, 140)], client_id="by-hand", host="10.0.0.44")


def grp019_fires__a_reader_without_a_group_looks_at_the_end(lab):
    leaves_partitions(lab)
    fetches(lab, follows(80, 140), client_id="by-hand", host="10.0.0.44")


def grp019_near_miss__an_administrator_removes_it(lab):
    leaves_partitions(lab)
    leaves(lab.talk(client_id="admin", host="10.0.0.44"), 60)


def grp019_near_miss__a_minute(lab):
    leaves_partitions(lab, until=95)


def grp019_near_miss__nothing_comes(lab):
    for at in (0, 140):
        listed(lab, at, ID_1)
    talk = process(lab, 1, 1, until=30)
    fetches(lab, follows(2, 30))
    commits(lab, range(5, 30), range(5, 30), talk=talk)
    process(lab, 2, 2, until=140, topics=(("songs", (1,)),), client_id="second")
    lab.until = 140


def grp019_cannot_know(lab):
    leaves_partitions(lab).facts.update(gaps=(lacks(ns(31), 1, 900, since_ns=ns(28)),), unseen_response_bytes=900)


def grp019_fires__bytes_were_missing_before(lab):
    leaves_partitions(lab).facts.update(gaps=(lacks(ns(20), 1, 900),), unseen_response_bytes=900)
    assert lab.findings("GRP019")


# GRP015


REJECTED = 3


def ends_rejected(lab, *, until=120, begin=40, topic=(ID_1, 13), **who):
    """A reader whose fetches are rejected once its topic is deleted, and that is not seen to fetch after that; others
    write to the new topic.
    """
    recreated(lab, begin)
    talk = fetches(lab, follows(1, begin - 6), topic[0], version=topic[1], **who)
    fetches(lab, [(begin - 4 + n, begin - 7, 0, REJECTED) for n in range(3)], topic[0], version=topic[1], talk=talk)
    grows(lab, until, ID_2, begin=begin + 1)
    return talk


@disagrees_at(38)
def grp015_fires(lab):
    ends_rejected(lab)


def grp015_fires__by_name_and_lives_on(lab):
    talk = ends_rejected(lab, topic=("songs", 12))
    for at in range(50, 120, 10):
        talk.ask(at, "Metadata", 12, {"topics": None}, {"clusterId": None})
    (found,) = lab.findings("GRP015")
    assert {"name": "hurt_host", "value": "10.0.0.7"} in found["words"]


def grp015_near_miss(lab):
    """It reads the new topic a minute later."""
    talk = ends_rejected(lab)
    fetches(lab, [(100 + n, n, 60 + n) for n in range(20)], ID_2, talk=talk)


def grp015_near_miss__it_is_started_again(lab):
    """A new process on its host, with another client ID."""
    ends_rejected(lab)
    fetches(lab, [(60 + n, n, 60 + n) for n in range(20)], ID_2, client_id="reader-2")


def grp015_near_miss__another_one_of_its_application(lab):
    ends_rejected(lab)
    fetches(lab, [(60 + n, n, 60 + n) for n in range(20)], ID_2, host="10.0.0.9")


def grp015_near_miss__stopped_before_the_deletion(lab):
    """As a runbook has it, and started elsewhere later."""
    recreated(lab)
    fetches(lab, follows(1, 30))
    grows(lab, 120, ID_2, begin=41)


def grp015_near_miss__reads_on_at_its_old_offset(lab):
    ends_rejected(lab)
    fetches(lab, [(60 + n, 33 + n, 60 + n) for n in range(20)], ID_2)
    lists_offset(lab, 59, 33, -1)


def grp015_near_miss__nobody_writes(lab):
    ends_rejected(lab, until=60)
    lab.metadata(120, [("songs", ID_2)], brokers={B1: 1})


def grp015_cannot_know(lab):
    """It may have fetched from a broker that was not captured."""
    ends_rejected(lab)
    lab.metadata(60, [("songs", ID_2)])


# CLI011


def reads_on(lab, until, steps, *, committed, timeout_ms=300_000, metadata=True):
    """A member of the group that fetches; the group commits an offset per second of `committed`."""
    if metadata:
        lists_songs(lab, until)
    grows(lab, until)
    member(lab, (("songs", (0,)),), until=until, timeout_ms=timeout_ms)
    commits(lab, [at for at, _ in committed], [offset for _, offset in committed])
    fetches(lab, steps)


def seeks_back(begin, until, offset):
    """It reads the same records every 2 s, and what is behind them in between."""
    return [step for at in range(begin, until, 2) for step in [(at, offset, at), (at + 1, at, at)]]


@disagrees_later("what stays away: known to 10 s")
def cli011_fires(lab):
    """One record is handled again and again."""
    done = [(at, at) for at in range(3, 40, 2)]
    reads_on(lab, 180, [*follows(2, 40), *seeks_back(40, 180, 39)], committed=done)
    (found,) = lab.findings("CLI011")
    words = {word["name"]: word["value"] for word in found["words"]}
    assert (words["group"], words["offset"], words["client"]) == ("g", "39", "reader")


def cli011_fires__its_library_reads_ahead(lab):
    """The application is stuck."""
    reads_on(lab, 180, follows(2, 180), committed=[(at, at) for at in range(3, 40, 2)])


def cli011_fires__beside_a_client_of_the_same_id(lab):
    """Whose commits of another topic are rejected."""
    talk = lab.talk(client_id="reader", host="10.0.0.7")
    for at in range(50, 170, 10):
        rows = [{"name": "films", "partitions": [{"partitionIndex": 0, "errorCode": 82}]}]
        asked = [{"name": "films", "partitions": [{"partitionIndex": 0, "committedOffset": 3}]}]
        talk.ask(at, "OffsetCommit", 8, {"groupId": "other", "topics": asked}, {"topics": rows})
    reads_on(lab, 180, follows(2, 180), committed=[(at, at) for at in range(3, 40, 2)])


def cli011_fires__in_a_session_of_kip_848(lab):
    """Its requests name no partition, since the offset is the same each time."""
    lists_songs(lab, 180)
    grows(lab, 180)
    next_member(lab, ((ID_1, (0,)),), until=180)
    in_session(lab, range(3, 180, 2), asks=[(0, (0, 1))], forgets=[(40, (1,))])
    commits(lab, range(4, 40, 2), range(4, 40, 2))


def cli011_fires__no_rhythm_was_seen(lab):
    """The same offset is committed after each attempt, for longer than its max.poll.interval.ms."""
    reads_on(lab, 420, seeks_back(3, 420, 2), committed=[(at, 2) for at in range(4, 420, 10)])


def cli011_fires__soon_after_it_began_to_read(lab):
    reads_on(lab, 130, follows(2, 130), committed=[(at, at) for at in range(2, 18)])


def cli011_near_miss__soon_after_it_began_to_read(lab):
    """What comes first may take a minute."""
    reads_on(lab, 100, follows(2, 100), committed=[(at, at) for at in range(2, 18)])


def cli011_fires__another_group_of_the_same_id_reads_the_partition(lab):
    """It may have paused: the fetches may be the other's."""
    process(lab, 2, 7, until=180, reads="h")
    commits(lab, range(4, 170, 8), range(4, 170, 8), reads="h")
    reads_on(lab, 180, follows(2, 180), committed=[(at, at) for at in range(3, 40, 2)])
    (found,) = lab.findings("CLI011")
    words = {word["name"]: word["value"] for word in found["words"]}
    assert (words["group"], words["does"]) == ("g", "holds")


def alone_beside_a_group(lab, offset):
    """Its leader alone has what is behind offset 19, and the group has committed that far."""
    lists_songs(lab, 180)
    leader_alone(lab, until=180)
    member(lab, (("songs", (0,)),), until=180)
    commits(lab, range(2, offset + 1), range(2, offset + 1))


def cli011_fires__behind_what_too_few_replicas_confirm(lab):
    alone_beside_a_group(lab, 13)


def cli011_near_miss__has_all_that_replicas_confirm(lab):
    alone_beside_a_group(lab, 19)


def cli011_near_miss(lab):
    """It commits on."""
    reads_on(lab, 180, follows(2, 180), committed=[(at, at) for at in range(3, 180, 2)])


def cli011_near_miss__no_rhythm_was_seen(lab):
    """A record may take as long as its max.poll.interval.ms."""
    reads_on(lab, 280, seeks_back(3, 280, 2), committed=[(at, 2) for at in range(4, 280, 10)])


def cli011_near_miss__commits_once_a_minute(lab):
    done = [(at, at) for at in range(3, 720, 60)]
    reads_on(lab, 760, follows(2, 760), committed=done)


def cli011_near_miss__a_record_that_takes_long_now_and_then(lab):
    """As long as one before it did."""
    done = [(at, at) for at in [*range(3, 30, 3), *range(103, 130, 3), *range(230, 260, 3)]]
    reads_on(lab, 340, follows(2, 340), committed=done)


def cli011_near_miss__the_log_has_no_more(lab):
    lists_songs(lab, 180)
    member(lab, (("songs", (0,)),), until=180)
    commits(lab, range(3, 40, 2), range(3, 40, 2))
    fetches(lab, [*follows(2, 40), *[(at, 39, 39) for at in range(40, 180, 2)]])


def cli011_near_miss__stopped_fetching(lab):
    """CLI004 says so."""
    reads_on(lab, 180, follows(2, 40), committed=[(at, at) for at in range(3, 40, 2)])


def cli011_near_miss__a_topic_of_transactions(lab):
    """What is behind the committed offset may be aborted, or markers."""
    writes_in_transaction(lab)
    reads_on(lab, 180, follows(2, 180), committed=[(at, at) for at in range(3, 40, 2)])


def writes_in_transaction(lab):
    talk = lab.talk(client_id="writer", host="10.0.0.98")
    rows = [{"name": "songs", "partitionData": [{"index": 0, "records": "AAAA"}]}]
    answer = {"responses": [{"name": "songs", "partitionResponses": [{"index": 0, "baseOffset": 100}]}]}
    talk.ask(1, "Produce", 9, {"transactionalId": "tx", "acks": -1, "topicData": rows}, answer)


def cli011_cannot_know(lab):
    """A broker that was not captured may have had its commits."""
    lab.metadata(0.5, [("songs", ID_1)], brokers={B1: 1, "10.0.0.2:9092": 2})
    reads_on(lab, 180, follows(2, 180), committed=[(at, at) for at in range(3, 40, 2)], metadata=False)


# CLI004


def polls(lab, *, asks_at=(5,), other=(), closes=None, until=200, offsets=None):
    """A member that fetches, then commits the same offset every 5 s: Java does while its application polls."""
    lists_songs(lab, until)
    grows(lab, until)
    member(lab, (("songs", (0,)),), until=until)
    in_session(lab, asks_at, asks={0: (0,)}, closes=closes)
    for at in other:
        fetches(lab, [(at, at, at)], client_id="lone", host="10.0.0.7")
    times = range(10, until, 5)
    commits(lab, times, offsets or [3] * len(times))


def cli004_fires__polls_on_and_does_not_fetch(lab):
    """As Java's consumer does at a batch whose checksum is wrong."""
    polls(lab)


def cli004_fires__another_client_of_its_host_reads_the_topic(lab):
    """Not for the group, which does not get on."""
    polls(lab, other=range(10, 200, 5))


def cli004_fires__it_closes_its_session_as_it_ends(lab):
    polls(lab, closes=199)


def polls_beside_a_log_of_fifty(lab, committed):
    lists_songs(lab, 200)
    member(lab, (("songs", (0,)),), until=200)
    in_session(lab, (5,), asks={0: (0,)}, closes=6)
    fetches(lab, [(at, 50, 50) for at in range(2, 200, 2)], client_id="other", host="10.0.0.9")
    commits(lab, range(10, 200, 5), [committed] * 38)


def cli004_fires__polls_on_beside_a_log_that_stands(lab):
    """As Java's consumer does at a batch whose checksum is wrong, in a topic that is not written any more."""
    polls_beside_a_log_of_fifty(lab, 0)


def cli004_near_miss__polls_on_beside_a_log_that_it_has_read(lab):
    polls_beside_a_log_of_fifty(lab, 50)


def hangs(lab, reads):
    """A member that fetches for a minute, and then sends heartbeats alone; another client of its host reads on."""
    lists_songs(lab, 300)
    grows(lab, 300)
    member(lab, (("songs", (0,)),), until=300)
    in_session(lab, reads, asks=dict.fromkeys(range(len(reads)), (0,)), closes=61)
    fetches(lab, [(at, at, at) for at in range(2, 300, 2)], client_id="lone", host="10.0.0.7")


def cli004_fires__it_read_for_a_while_and_its_host_reads_on(lab):
    """As behind NAT."""
    hangs(lab, range(3, 60, 2))


def cli004_near_miss__its_host_reads_and_it_hardly_did(lab):
    """The driver of a query of Spark, which has executors."""
    hangs(lab, (3, 5))


def cli004_near_miss__polls_on_for_a_minute(lab):
    polls(lab, until=80)


def cli004_near_miss__polls_on_and_fetches_its_other_partition(lab):
    """An application that pauses one of them."""
    lists_songs(lab, 200)
    grows(lab, 200)
    member(lab, until=200)
    in_session(lab, range(5, 200, 5), asks={0: (0, 1)}, forgets={1: (0,)})
    commits(lab, range(10, 200, 5), [3] * 38)


def cli004_near_miss__works_on_a_batch_and_commits_nothing(lab):
    lists_songs(lab, 200)
    grows(lab, 200)
    member(lab, (("songs", (0,)),), until=200)
    in_session(lab, (5,), asks={0: (0,)})
    commits(lab, [10], [3])


def cli004_near_miss__another_client_fetches_for_it(lab):
    """Its group gets on."""
    polls(lab, other=range(10, 200, 5), offsets=range(9, 199, 5))


def cli004_near_miss__polls_on_at_the_end_of_the_log(lab):
    """A session asks for the partition until it is closed; nothing is written."""
    lists_songs(lab, 200)
    member(lab, (("songs", (0,)),), until=200)
    in_session(lab, (5, 10), asks={0: (0,)})
    commits(lab, range(10, 200, 5), [10] * 38)


# GRP018


def lives(lab, until=150):
    """A member that commits until second 10, while the log grows on."""
    lists_songs(lab, until)
    grows(lab, until)
    process(lab, 2, 1, until=until)
    commits(lab, [5, 10], [5, 10])


@disagrees_at(20)
def grp018_fires(lab):
    lives(lab)
    fetches(lab, [(at, 10, at) for at in range(20, 120, 4)])


def grp018_fires__what_it_reads_ahead(lab):
    """It asks for what is behind the record, and comes back; the commit is that of the record itself."""
    lives(lab)
    commits(lab, [12], [11])
    fetches(lab, [step for at in range(20, 120, 4) for step in ((at, 10, at), (at + 1, at, at))])
    (found,) = lab.findings("GRP018")
    assert found["count"] == 10


def grp018_fires__a_session_lists_the_partition_once(lab):
    """Its offset stays the same, and so no later request has it."""
    lives(lab)
    talk = lab.talk(client_id="reader", host="10.0.0.7")
    for epoch, at in enumerate(range(20, 120, 4)):
        rows = [{"partition": 0, "fetchOffset": 10}]
        topics = [{"topicId": ID_1, "partitions": rows}] if not epoch else []
        asked = {"replicaId": -1, "sessionId": 7 if epoch else 0, "sessionEpoch": epoch, "topics": topics}
        body = {"errorCode": 0, "highWatermark": at, "lastStableOffset": at, "logStartOffset": 0, "records": "AAAA"}
        row = {"partitionIndex": 0, **body, "abortedTransactions": None}
        answer = {"sessionId": 7, "responses": [{"topicId": ID_1, "partitions": [row]}]}
        talk.ask(at, "Fetch", 13, asked, answer)
        lab.until = max(lab.until, at + 1)


def grp018_fires__nothing_is_committed_and_it_joins_again(lab):
    """A library that loses its partitions before it commits, and begins at the first record each time."""
    lists_songs(lab, 150)
    grows(lab, 150)
    for number, at in enumerate(range(10, 130, 14)):
        process(lab, at, number, until=at + 10)
        fetches(lab, [(at + 1, 0, at), (at + 2, at, at)])


def grp018_fires__it_joins_again_after_some_tries(lab):
    """It leaves well, and the group commits on in another partition."""
    lists_songs(lab, 150)
    grows(lab, 150)
    commits(lab, [5, 10], [5, 10])
    for number, at in enumerate(range(15, 120, 25)):
        talk = process(lab, at, number, until=at + 20)
        fetches_offset(lab, at + 0.2, 10)
        commits(lab, [at + 3], [at], talk=talk, partition=1)
        leaves(talk, at + 21)
    fetches(lab, [(at, 10, at) for at in range(20, 140, 4)])


def grp018_fires__committed_before_the_capture(lab):
    """The group commits on in another partition."""
    lists_songs(lab, 150)
    grows(lab, 150)
    process(lab, 2, 1, until=150)
    commits(lab, range(5, 120, 5), range(5, 120, 5), partition=1)
    fetches(lab, [step for at in range(20, 120, 4) for step in ((at, 10, at), (at + 1, at, at))])


def grp018_near_miss(lab):
    """It tries a record for half a minute, and goes on."""
    lives(lab)
    fetches(lab, [(at, 10, at) for at in range(20, 50, 4)])
    fetches(lab, follows(50, 120))


def grp018_near_miss__a_tool_of_its_id_looks_at_the_record(lab):
    """The member works on a batch; each look is a process of its own."""
    lives(lab)
    for at in range(20, 120, 4):
        fetches(lab, [(at, 10, at)])


def grp018_near_miss__the_log_has_no_more(lab):
    lists_songs(lab, 150)
    process(lab, 2, 1, until=150)
    commits(lab, [5, 10], [5, 10])
    fetches(lab, [(at, 10, 10) for at in range(20, 120, 4)])


def grp018_near_miss__the_group_commits_on(lab):
    """Another process of the same name reads the partition for the group, and this one replays it."""
    lives(lab)
    commits(lab, range(20, 120, 10), range(20, 120, 10))
    fetches(lab, [(at, 10, at) for at in range(20, 120, 4)])


def grp018_near_miss__it_replays_the_topic(lab):
    """A cache that is filled every 7 s, from the first record, and commits nothing."""
    lists_songs(lab, 150)
    grows(lab, 150)
    process(lab, 2, 1, until=150)
    fetches(lab, [step for at in range(20, 120, 7) for step in ((at, 0, at), (at + 1, at, at))])


def is_quiet(lab, end, until=150):
    """The log has no more than that."""
    lists_songs(lab, until)
    fetches(lab, [(at, end, end) for at in range(3, until, 5)], client_id="other", host="10.0.0.8")
    return process(lab, 2, 1, until=until)


def grp018_near_miss__the_last_record_is_looked_at(lab):
    """By another reader of the same client ID; the group has committed all that there is."""
    is_quiet(lab, 100)
    commits(lab, [5, 10], [99, 100])
    fetches(lab, [step for at in range(20, 140, 8) for step in ((at, 99, 100), (at + 1, 100, 100))])


def grp018_near_miss__a_topic_of_one_record(lab):
    """A cache is filled from it again and again."""
    is_quiet(lab, 1)
    commits(lab, [5], [1])
    fetches(lab, [step for at in range(20, 140, 8) for step in ((at, 0, 1), (at + 1, 1, 1))])


def grp018_near_miss__what_was_committed_before_the_capture(lab):
    """A cache of the same client ID; the group gets on in another partition."""
    lists_songs(lab, 150)
    grows(lab, 150)
    process(lab, 2, 1, until=150)
    fetches_offset(lab, 2.2, 18)
    commits(lab, range(5, 140, 5), range(5, 140, 5), partition=1)
    fetches(lab, [step for at in range(20, 140, 8) for step in ((at, 0, at), (at + 1, at, at))])


def grp018_near_miss__it_looks_for_the_beginning_each_time(lab):
    """The same, in a capture that begins after the group had its offsets."""
    lists_songs(lab, 150)
    grows(lab, 150)
    process(lab, 2, 1, until=150)
    commits(lab, range(5, 140, 5), range(5, 140, 5), partition=1)
    for at in range(20, 140, 8):
        lists_offset(lab, at - 0.5, 0, -2)
        fetches(lab, [(at, 0, at), (at + 1, at, at)])


def grp018_near_miss__a_job_that_reads_all_there_is(lab):
    """It commits nothing, and leaves well each time."""
    lists_songs(lab, 150)
    grows(lab, 150)
    for number, at in enumerate(range(10, 130, 14)):
        talk = process(lab, at, number, until=at + 6)
        lists_offset(lab, at + 0.5, 0, -2)
        fetches(lab, [(at + 1, 0, at), (at + 2, at, at)])
        leaves(talk, at + 7)


def leaves_at(lab, offset, every=11, reason=None):
    """It reads from the beginning up to an offset that it cannot process, leaves well, and is started again."""
    lists_songs(lab, 170)
    grows(lab, 170, rate=4)
    for number, at in enumerate(range(10, 150, every)):
        talk = process(lab, at, number, until=at + 4)
        lists_offset(lab, at + 0.5, 0, -2)
        high = 4 * at
        fetches(lab, [(at + 1, 0, high), (at + 2, min(offset, high), high)])
        leaves(talk, at + 5, reason)


def grp018_fires__it_leaves_well_each_time(lab):
    leaves_at(lab, 30)


def grp018_near_miss__a_job_that_is_started_often(lab):
    leaves_at(lab, 1_000)


def doubted(lab):
    found = lab.findings("GRP018")
    assert {one["kind"] for one in found} == {"information"}
    return {
        client for one in found if DOUBTED in {word["name"] for word in one["words"]} for client in one["client_ids"]
    }


def grp018_fires__a_process_that_ends_at_once_is_in_doubt(lab):
    """It is started again every 6 s, commits nothing, and had asked for all there is before it failed."""
    leaves_at(lab, 1_000, every=6)
    assert doubted(lab) == {"reader"}


def grp018_near_miss__a_job_that_commits_at_once(lab):
    """The same, of a group that gets on."""
    leaves_at(lab, 1_000, every=6)
    commits(lab, range(12, 150, 6), [4 * at for at in range(12, 150, 6)])


def divided(lab, *, whole=False):
    """Two members; one of them is started again every 20 s, and both begin at the first record each time. Or a process
    of each has the topic whole.
    """
    lists_songs(lab, 170)
    grows(lab, 170)
    for number, at in enumerate(range(10, 150, 20)):
        process(lab, at, 1, until=at + 9)
        process(lab, at + 10, 1, until=at + 19)
        if not whole:
            process(lab, at + 10, 100 + number, until=at + 19, topics=(("songs", (1,)),), client_id="mate")
        for begun in (at, at + 10):
            lists_offset(lab, begun + 0.5, 0, -2)
            fetches(lab, [(begun + 1, 0, begun), (begun + 2, begun, begun)])


def grp018_fires__a_group_that_divides_the_topic_and_commits_nothing(lab):
    """No member has all of it, as a cache would."""
    divided(lab)
    assert doubted(lab) == {"reader"}


def grp018_fires__one_that_has_the_topic_whole_as_a_note(lab):
    divided(lab, whole=True)
    assert not doubted(lab)


def grp018_near_miss__a_tool_that_looks_at_the_first_records(lab):
    leaves_at(lab, 30, every=20)


def grp018_fires__a_check_of_health_as_a_note(lab):
    """It asks for the first records only, and commits nothing."""
    leaves_at(lab, 0)
    (found,) = lab.findings("GRP018")
    assert found["kind"] == "information"


def grp018_fires__a_check_of_health_each_6_s_as_a_note(lab):
    """As soon as who is started again because it fails; but it asks for the first records only, and leaves."""
    leaves_at(lab, 0, every=6)
    assert not doubted(lab)


def grp018_fires__it_does_not_poll_in_time(lab):
    """Each round ends as its application has been busy with the first records for too long: it never gets further."""
    leaves_at(lab, 0, reason=POLL_EXPIRED)
    (found,) = lab.findings("GRP018")
    assert (found["kind"], found["client_ids"]) == ("anomaly", ["reader"])


def grp018_fires__it_leaves_for_a_reason_of_its_own_as_a_note(lab):
    leaves_at(lab, 0, reason="all well")
    (found,) = lab.findings("GRP018")
    assert found["kind"] == "information"


def joins_again(lab, *, reads_on=False):
    """A member that lives on begins at the first record whenever its group is divided."""
    lists_songs(lab, 150)
    grows(lab, 150)
    if reads_on:
        commits(lab, range(12, 130, 5), range(12, 130, 5))
    for at in range(10, 130, 15):
        process(lab, at, 1, until=at + 14)
        lists_offset(lab, at + 0.5, 0, -2)
        fetches(lab, [(at + 1, 0, at), (at + 2, at, at)])


def grp018_fires__begins_again_with_each_generation_as_a_note(lab):
    """It commits nothing: a cache does so, too."""
    joins_again(lab)
    (found,) = lab.findings("GRP018")
    assert found["kind"] == "information"


def grp018_near_miss__begins_again_and_commits(lab):
    joins_again(lab, reads_on=True)


def grp018_near_miss__of_a_group_that_reads_another_topic(lab):
    """A client of the same name, whose group runs every 20 s, beside a reader without a group."""
    lists_songs(lab, 150)
    grows(lab, 150)
    for number, at in enumerate(range(10, 130, 20)):
        process(lab, at, number, until=at + 10, topics=(("other", (0,)),))
    fetches(lab, [(at, 10, at) for at in range(20, 120, 4)])


def grp018_near_miss__outside_of_groups(lab):
    lists_songs(lab, 150)
    grows(lab, 150)
    fetches(lab, [(at, 10, at) for at in range(20, 120, 4)])


def grp018_near_miss__behind_a_transaction(lab):
    """It waits for the transaction to end; what is committed ends at its offset."""
    lives(lab)
    talk = lab.talk(client_id="reader", host="10.0.0.7")
    for at in range(20, 120, 4):
        rows = [{"partition": 0, "fetchOffset": 10}]
        asked = {"replicaId": -1, "isolationLevel": 1, "sessionEpoch": -1}
        body = {"errorCode": 0, "highWatermark": at, "lastStableOffset": 10, "logStartOffset": 0, "records": None}
        answer = {"topicId": ID_1, "partitions": [{"partitionIndex": 0, **body, "abortedTransactions": None}]}
        talk.ask(at, "Fetch", 13, {**asked, "topics": [{"topicId": ID_1, "partitions": rows}]}, {"responses": [answer]})


def grp018_cannot_know(lab):
    """How far the log goes was not seen."""
    lists_songs(lab, 150)
    process(lab, 2, 1, until=150)
    commits(lab, [5, 10], [5, 10])
    fetches(lab, [(at, 10, 0) for at in range(20, 120, 4)])


# CLI008, of one group among several of a client ID


def two_groups(lab, asks, until=120):
    """Two processes of one client ID, whose groups have no offset; so many of them ask where to begin."""
    lists_songs(lab, until)
    grows(lab, until)
    for number, reads in enumerate("gh"):
        process(lab, 2 + number, number, until=until, reads=reads)
        fetches_offset(lab, 3 + number, -1, reads)
    for number in range(asks):
        lists_offset(lab, 4 + number, 0, -2)
    commits(lab, range(6, until - 10, 5), range(6, until - 10, 5))
    fetches(lab, follows(5, until))
    lab.until = until


def cli008_fires__one_of_two_groups_has_no_offset_and_asks_for_none(lab):
    two_groups(lab, 1)
    (found,) = lab.findings("CLI008")
    words = {word["name"]: word["value"] for word in found["words"]}
    assert words["group"] == "h"


def cli008_near_miss__both_groups_ask_where_to_begin(lab):
    """One of them does not commit, by design."""
    two_groups(lab, 2)


def cli008_cannot_know__whether_the_group_goes_on(lab):
    two_groups(lab, 1, until=50)
