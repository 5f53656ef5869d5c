"""Partitions that come while a group reads their topic: three cases of GRP017 and its look-alikes."""

from tests.judge.cases_unserved import READER, assignment
from tests.judge.lab import B1, CLUSTER, ID_1, disagrees_at

GREW, UNTIL = 30, 420


def listed(lab, at, count, talk=None):
    """A cluster of one broker, and a topic with so many partitions."""
    rows = [{"partitionIndex": n, "leaderId": 1, "replicaNodes": [1], "isrNodes": [1]} for n in range(count)]
    host, _, port = B1.partition(":")
    answer = {"brokers": [{"nodeId": 1, "host": host, "port": int(port)}], "clusterId": CLUSTER}
    answer["topics"] = [{"name": "songs", "topicId": ID_1, "partitions": rows}]
    (talk or lab.talk(client_id="other", host="10.0.0.8")).ask(at, "Metadata", 12, {"topics": None}, answer)


def joins(lab, at, partitions, *, until=UNTIL, count=1, name="m-1", host="10.0.0.7", leader="m-1"):
    """A member of a generation of so many, which gets these partitions and lives on."""
    talk, who = lab.talk(client_id="reader", host=host), {**READER, "memberId": name}
    every = [{"memberId": f"m-{n + 1}", "metadata": "AAAA"} for n in range(count)] if name == leader else []
    asked = {**who, "rebalanceTimeoutMs": 300_000, "sessionTimeoutMs": 45_000, "protocolType": "consumer"}
    joined = {"errorCode": 0, "memberId": name, "leader": leader, "members": every}
    talk.ask(at, "JoinGroup", 7, asked, joined)
    talk.ask(at + 0.1, "SyncGroup", 5, who, {"errorCode": 0, "assignment": assignment(("songs", partitions))})
    for now in range(at + 1, until, 3):
        talk.ask(now, "Heartbeat", 4, who, {"errorCode": 0})
    lab.until = max(lab.until, until + 1)
    return talk


def fetches(lab, times, partition, *, client_id="reader", host="10.0.0.7"):
    """A partition that grows by a record a second."""
    talk = lab.talk(client_id=client_id, host=host)
    for at in times:
        rows = [{"partition": partition, "fetchOffset": at}]
        body = {"partitionIndex": partition, "errorCode": 0, "highWatermark": at, "lastStableOffset": at}
        body |= {"logStartOffset": 0, "records": None, "abortedTransactions": None}
        asked = {"replicaId": -1, "sessionEpoch": -1, "topics": [{"topicId": ID_1, "partitions": rows}]}
        talk.ask(at, "Fetch", 13, asked, {"responses": [{"topicId": ID_1, "partitions": [body]}]})


def commits(lab):
    talk = lab.talk(client_id="reader", host="10.0.0.7")
    rows = [{"partitionIndex": 0, "committedOffset": 5}]
    answer = {"topics": [{"name": "songs", "partitions": [{"partitionIndex": 0}]}]}
    talk.ask(6, "OffsetCommit", 8, {**READER, "topics": [{"name": "songs", "partitions": rows}]}, answer)


def grown(lab, *, until=UNTIL, others=range(GREW + 1, UNTIL, 5), before=1):
    """One partition becomes two; another application reads what comes to the new one."""
    listed(lab, 0, before)
    listed(lab, GREW, 2)
    commits(lab)
    fetches(lab, range(2, until, 5), 0)
    fetches(lab, others, 1, client_id="other", host="10.0.0.8")


@disagrees_at(30)
def grp017_fires(lab):
    grown(lab)
    joins(lab, 1, (0,))
    (found,) = lab.findings("GRP017")
    words = {word["name"]: word["value"] for word in found["words"]}
    assert (words["group"], words["partitions"], found["client_ids"]) == ("g", "partition 1", ["reader"])


def grp017_fires__of_two_members(lab):
    """The second one has none, as there was one partition for both."""
    grown(lab)
    joins(lab, 1, (0,), count=2)
    joins(lab, 1, (), name="m-2", host="10.0.0.9")


def grp017_fires__in_a_later_generation_with_old_metadata(lab):
    grown(lab)
    joins(lab, 1, (0,), until=50)
    joins(lab, 50, (0,))


def grp017_near_miss(lab):
    """The group rebalances after 100 s, as Java's and most others do within 5 minutes."""
    grown(lab)
    joins(lab, 1, (0,), until=130)
    joins(lab, 130, (0, 1))
    fetches(lab, range(131, UNTIL, 5), 1)


def grp017_near_miss__soon(lab):
    """Clients may not have asked for metadata yet."""
    grown(lab, until=320)
    joins(lab, 1, (0,), until=320)


def grp017_near_miss__nothing_comes(lab):
    grown(lab, others=())
    joins(lab, 1, (0,))


def grp017_near_miss__it_was_there_before(lab):
    """An assignor of its own leaves it out on purpose."""
    grown(lab, before=2)
    joins(lab, 1, (0,))


def grp017_near_miss__read_without_the_group(lab):
    """The application reads the new one by assign()."""
    grown(lab)
    joins(lab, 1, (0,))
    fetches(lab, range(60, UNTIL, 5), 1)


def grp017_near_miss__another_host_of_the_application(lab):
    grown(lab)
    joins(lab, 1, (0,))
    fetches(lab, range(60, UNTIL, 5), 1, host="10.0.0.11")


def grp017_near_miss__without_a_group(lab):
    """assign() to one partition, with commits."""
    grown(lab)


def grp017_cannot_know(lab):
    """A member of the generation was not captured: it may have the new partition."""
    grown(lab)
    joins(lab, 1, (0,), count=2)


def grp017_cannot_know__who_leads_was_not_captured(lab):
    grown(lab)
    joins(lab, 1, (0,), leader="m-9")


def grp017_cannot_know__a_later_leader_was_not_captured(lab):
    grown(lab)
    joins(lab, 1, (0,), until=40)
    joins(lab, 100, (0,), leader="m-9")


def grp017_cannot_know__one_broker_was_not_captured(lab):
    grown(lab)
    joins(lab, 1, (0,))
    lab.metadata(20, [("songs", ID_1)], talk=lab.talk(client_id="other", host="10.0.0.8"))
