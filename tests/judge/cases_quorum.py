"""Cases of the metadata log's quorum (LOG006, LOG007, TID013 of its requests), in bytes."""

from tests.judge.cases_agreement import listed
from tests.judge.cases_lives import A1, begins, shows, two_clusters, writes
from tests.judge.lab import B1, B2, B3, CLUSTER, disagrees_at

LOG, NULL_ID = "__cluster_metadata", "AAAAAAAAAAAAAAAAAAAAAA"
DIRECTORIES = {1: "Wv1mWcBnQd6yxmmS2rWhMQ", 2: "hk6M2Hb0T3iQH0oCkpvGJw", 3: "uLx0nXPqQPupj0yLkK7v0g"}


def announces(lab, at, leader, epoch, server, api="BeginQuorumEpoch", error=0, seen=None, topic=LOG, cluster=CLUSTER):
    """A leader announces itself to a voter; `seen`: the leader and epoch of the answer."""
    row = {"partitionIndex": 0, "leaderId": leader, "leaderEpoch": epoch}
    request = {"clusterId": cluster, "voterId": -1, "topics": [{"topicName": topic, "partitions": [row]}]}
    known, newest = seen or (leader, epoch)
    answer = {"partitionIndex": 0, "errorCode": error, "leaderId": known, "leaderEpoch": newest}
    response = {"errorCode": 0, "topics": [{"topicName": topic, "partitions": [answer]}]}
    lab.talk(server, f"raft-client-{leader}", f"10.0.0.{leader}").ask(at, api, 1, request, response)
    lab.until = max(lab.until, at)


def votes(lab, at, candidate, epoch, server, voter=2, *, granted=True, pre_vote=False, version=2, topic=LOG, **more):
    """A candidate asks a voter; `more` overrides fields of the request's partition."""
    row = {
        "partitionIndex": 0, "replicaEpoch": epoch, "replicaId": candidate, "lastOffsetEpoch": 1, "lastOffset": 9,
    }  # fmt: skip
    if version:
        row |= {"replicaDirectoryId": DIRECTORIES[candidate], "voterDirectoryId": DIRECTORIES[voter]}
    if version > 1:
        row["preVote"] = pre_vote
    request = {"clusterId": CLUSTER, "topics": [{"topicName": topic, "partitions": [{**row, **more}]}]}
    if version:
        request["voterId"] = voter
    answer = {"partitionIndex": 0, "errorCode": 0, "leaderId": -1, "leaderEpoch": epoch, "voteGranted": granted}
    response = {"errorCode": 0, "topics": [{"topicName": topic, "partitions": [answer]}]}
    lab.talk(server, f"raft-client-{candidate}", f"10.0.0.{candidate}").ask(at, "Vote", version, request, response)
    lab.until = max(lab.until, at)


@disagrees_at(10)
def log006_fires(lab):
    for at in range(5, 60, 10):
        announces(lab, at, 2, 11, B1)
        announces(lab, at + 5, 3, 11, B1)


def log006_fires__an_answer_names_another(lab):
    announces(lab, 5, 2, 11, B1)
    votes(lab, 20, 1, 10, B3, voter=3, granted=False)
    announces(lab, 30, 1, 10, B2, error=74, seen=(3, 11))


def describes(lab, at, leader, epoch, server):
    """An answer to DescribeQuorum."""
    row = {"partitionIndex": 0, "leaderId": leader, "leaderEpoch": epoch, "highWatermark": 9}
    answer = {"topics": [{"topicName": LOG, "partitions": [row]}]}
    asked = {"topics": [{"topicName": LOG, "partitions": [{"partitionIndex": 0}]}]}
    lab.talk(server, "admin").ask(at, "DescribeQuorum", 1, asked, answer)
    lab.until = max(lab.until, at)


def log006_fires__two_servers_describe_it(lab):
    listed(lab)
    for at in range(5, 60, 10):
        describes(lab, at, 2, 11, B1)
        describes(lab, at + 5, 3, 11, B3)


def log006_near_miss__described_before_and_after_an_election(lab):
    listed(lab)
    describes(lab, 5, 2, 11, B1)
    for server in (B1, B3):
        describes(lab, 40, 3, 12, server)


def log006_fires__refused_fetches_name_two(lab):
    """Voters that fetch the log are sent to two leaders."""
    listed(lab)
    asked = {"replicaId": 1, "topics": [{"topic": LOG, "partitions": [{"partition": 0, "currentLeaderEpoch": 11}]}]}
    for at, server, leader in ((5, B1, 2), (10, B3, 3)):
        row = {"partitionIndex": 0, "errorCode": 6, "records": None, "abortedTransactions": None}
        row["currentLeader"] = {"leaderId": leader, "leaderEpoch": 11}
        answer = {"responses": [{"topic": LOG, "partitions": [row]}]}
        lab.talk(server, "raft-client-1", "10.0.0.1").ask(at, "Fetch", 12, asked, answer)


def fetched(lab, at, server, leader, epoch, who=4):
    """A broker fetches the log, and the answer names its leader."""
    row = {"partitionIndex": 0, "highWatermark": 9, "records": None, "abortedTransactions": None}
    row["currentLeader"] = {"leaderId": leader, "leaderEpoch": epoch}
    answer = {"responses": [{"topicId": "AAAAAAAAAAAAAAAAAAAAAQ", "partitions": [row]}]}
    lab.talk(server, f"raft-client-{who}", f"10.0.0.{who}").ask(at, "Fetch", 17, {"topics": []}, answer)
    lab.until = max(lab.until, at)


def log006_fires__two_grant_fetches(lab):
    """Each of two controllers serves the log to a broker, and names itself."""
    listed(lab)
    for at in range(5, 60, 10):
        fetched(lab, at, B2, 2, 11)
        fetched(lab, at + 5, B3, 3, 11, who=5)


def log006_near_miss__fetches_before_and_after_an_election(lab):
    listed(lab)
    for at in range(5, 60, 10):
        fetched(lab, at, B2 if at < 30 else B3, 2 if at < 30 else 3, 11 if at < 30 else 12)


def log006_near_miss(lab):
    """An election: a leader resigns, and another one leads the next epoch."""
    announces(lab, 5, 2, 11, B1)
    announces(lab, 5, 2, 11, B3)
    announces(lab, 40, 2, 11, B3, api="EndQuorumEpoch")
    votes(lab, 41, 3, 12, B1, voter=1)
    announces(lab, 42, 3, 12, B1)


def log006_near_miss__a_refused_announcement(lab):
    for at in range(5, 60, 10):
        announces(lab, at, 2, 11, B1)
        announces(lab, at + 5, 3, 11, B1, error=74, seen=(2, 11))


def log006_near_miss__the_log_started_over(lab):
    """The nodes were formatted again with the same cluster ID: epochs begin again."""
    listed(lab)
    shows(lab, 1, 60, begins(0, 1, 0), writes(1, 1, 5))
    announces(lab, 2, 2, 1, B1)
    shows(lab, 100, 10, begins(90, 1, 0), writes(91, 1, 3))
    announces(lab, 101, 3, 1, B1)


def log006_near_miss__two_clusters_with_one_id(lab):
    """Each has a log of its own (CLU003)."""
    two_clusters(lab)
    for at in range(10, 60, 10):
        announces(lab, at, 2, 1, B1)
        announces(lab, at + 5, 3, 1, A1)


def log006_cannot_know__two_logs_of_unknown_clusters(lab):
    two_clusters(lab, ids=(None, None))
    for at in range(10, 60, 10):
        announces(lab, at, 2, 1, B1, cluster=None)
        announces(lab, at + 5, 3, 1, A1, cluster=None)


def log007_near_miss__two_clusters_with_one_id(lab):
    two_clusters(lab)
    votes(lab, 10, 1, 2, B1, version=1, voterDirectoryId=NULL_ID)
    votes(lab, 15, 3, 2, A1, version=1, voterDirectoryId=NULL_ID)


def log006_cannot_know(lab):
    """No answer to the second announcement was captured."""
    announces(lab, 5, 2, 11, B1)
    row = {"partitionIndex": 0, "leaderId": 3, "leaderEpoch": 11}
    request = {"clusterId": CLUSTER, "voterId": -1, "topics": [{"topicName": LOG, "partitions": [row]}]}
    lab.talk(B1, "raft-client-3", "10.0.0.3").ask(10, "BeginQuorumEpoch", 1, request, None)


@disagrees_at(6)
def log007_fires(lab):
    votes(lab, 5, 1, 11, B2)
    votes(lab, 6, 3, 11, B2)


def log007_fires__voters_without_names(lab):
    """Requests before version 1 do not name the voter: it is who answers."""
    votes(lab, 5, 1, 11, B2, version=0)
    votes(lab, 6, 3, 11, B2, version=0)


def log007_fires__a_candidate_with_another_directory(lab):
    votes(lab, 5, 3, 11, B2)
    votes(lab, 6, 3, 11, B2, replicaDirectoryId=DIRECTORIES[1])


def log007_near_miss(lab):
    """A repeated vote of one candidate, one that is not granted, and the next epoch."""
    votes(lab, 5, 1, 11, B2)
    votes(lab, 6, 1, 11, B2)
    votes(lab, 7, 3, 11, B2, granted=False)
    votes(lab, 8, 3, 12, B2)


def log007_near_miss__pre_votes(lab):
    """A pre-vote binds nothing (KIP-996)."""
    for at in range(5, 60, 5):
        votes(lab, at, 1, 11, B2, pre_vote=True)
        votes(lab, at + 1, 3, 11, B2, pre_vote=True)


def log007_near_miss__two_voters(lab):
    votes(lab, 5, 1, 11, B2)
    votes(lab, 6, 3, 11, B1, voter=1)


def log007_cannot_know(lab):
    """The answer to one of the requests was not captured."""
    votes(lab, 5, 1, 11, B2)
    row = {
        "partitionIndex": 0, "replicaEpoch": 11, "replicaId": 3, "replicaDirectoryId": DIRECTORIES[3],
        "voterDirectoryId": DIRECTORIES[2], "lastOffsetEpoch": 1, "lastOffset": 9, "preVote": False,
    }  # fmt: skip
    request = {"clusterId": CLUSTER, "voterId": 2, "topics": [{"topicName": LOG, "partitions": [row]}]}
    lab.talk(B2, "raft-client-3", "10.0.0.3").ask(6, "Vote", 2, request, None)


def tid013_fires__votes_about_another_topic(lab):
    votes(lab, 5, 1, 11, B2, topic="orders")


def snapshot_of(lab, name, error=0):
    state = {"snapshotId": {"endOffset": 10, "epoch": 1}}
    asked = {"replicaId": 1, "topics": [{"name": name, "partitions": [state]}]}
    answer = {"topics": [{"name": name, "partitions": [{**state, "errorCode": error, "unalignedRecords": ""}]}]}
    lab.talk(B3, "raft-client-1", "10.0.0.1").ask(5, "FetchSnapshot", 1, asked, answer)


def tid013_fires__a_snapshot_of_another_topic(lab):
    snapshot_of(lab, "orders")


def tid013_near_miss__a_snapshot(lab):
    """Of the log, and one of another topic that is refused (UNKNOWN_TOPIC_OR_PARTITION)."""
    snapshot_of(lab, LOG)
    snapshot_of(lab, "orders", error=3)


def tid013_near_miss__a_refused_vote_about_another_topic(lab):
    row = {"partitionIndex": 0, "leaderId": 1, "leaderEpoch": 3}
    request = {"clusterId": CLUSTER, "topics": [{"topicName": "orders", "partitions": [row]}]}
    lab.talk(B2, "raft-client-1", "10.0.0.1").ask(5, "BeginQuorumEpoch", 0, request, {"errorCode": 42, "topics": []})


@disagrees_at(30)
def log008_fires(lab):
    announces(lab, 5, 2, 12, B1)
    for at in range(30, 100, 10):
        announces(lab, at, 3, 10, B1)


def log008_fires__described(lab):
    """A broker describes the quorum by an older controller after a newer one."""
    for at, leader, epoch in ((5, 2, 12), *((at, 3, 10) for at in range(30, 100, 10))):
        describes(lab, at, leader, epoch, B1)


def log008_near_miss__described_by_one_that_is_behind(lab):
    """Another server is cut off from the quorum for a minute."""
    for at in range(5, 150, 10):
        describes(lab, at, 2, 12, B1)
        describes(lab, at + 2, *((3, 10) if at < 60 else (2, 12)), B3)


def log008_fires__beside_another_cluster(lab):
    """The address states its own ClusterId before and after."""
    lab.metadata(6, brokers={B2: 1}, cluster_id="other-cluster-id-22-ch", server=B2)
    for at in (1, 110):
        lab.metadata(at, brokers={B1: 1})
    log008_fires__described(lab)


def log008_cannot_know__an_address_of_two_clusters(lab):
    """The address may have been another cluster's since: it stated its ClusterId before alone."""
    describes(lab, 5, 2, 12, B1)
    lab.metadata(6, brokers={B1: 1})
    lab.metadata(6, brokers={B2: 1}, cluster_id="other-cluster-id-22-ch", server=B2)
    for at in range(30, 100, 10):
        describes(lab, at, 3, 10, B1)


def log008_near_miss(lab):
    """The older leader is refused; its epoch came before the newer one."""
    announces(lab, 1, 3, 10, B1)
    announces(lab, 5, 2, 12, B1)
    for at in range(30, 100, 10):
        announces(lab, at, 3, 10, B1, error=74, seen=(2, 12))


def log008_cannot_know(lab):
    """Another server accepted the newer epoch."""
    announces(lab, 5, 2, 12, B3)
    for at in range(30, 100, 10):
        announces(lab, at, 3, 10, B1)
