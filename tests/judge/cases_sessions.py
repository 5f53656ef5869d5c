"""Cases of fetch sessions and of producers by name: FET003, FET004, GRP005, in bytes."""

from tests.judge.lab import B1, B2, B3, ID_1, ID_2, disagrees_at, disagrees_later


def listed(topics, version, number="partition", **more):
    """topics: name or id to partitions."""
    what = "topicId" if version >= 13 else "topic"
    return [{what: topic, "partitions": [{number: p, **more} for p in found]} for topic, found in topics.items()]


def session(lab, *steps, version=13, server=B1, client_id="app", **facts):
    """Steps: (second, epoch, asked, forgotten, answered), each topic to partitions."""
    talk = lab.talk(server, client_id, **facts)
    for at, epoch, asked, forgotten, answered in steps:
        what = "topicId" if version >= 13 else "topic"
        request = {
            "replicaId": -1, "sessionId": 9 if epoch else 0, "sessionEpoch": epoch, "topics": listed(asked, version),
            "forgottenTopicsData": [{what: topic, "partitions": found} for topic, found in forgotten.items()],
        }  # fmt: skip
        if version >= 15:
            del request["replicaId"]
        rows = listed(answered, version, "partitionIndex", records=None, abortedTransactions=None)
        talk.ask(at, "Fetch", version, request, {"sessionId": 9, "responses": rows})
        lab.until = max(lab.until, at + 60)
    return talk


ORDERS = {ID_1: [0, 1]}


def begun(*later, asked):
    return ((1, 0, asked, {}, asked), *later)


def forgets(lab, forgotten, **facts):
    lab.metadata(0, [("orders", ID_1), ("payments", ID_2)])
    session(lab, *begun((5, 1, {}, forgotten, {}), asked=ORDERS), **facts)


@disagrees_at(5)
def fet004_fires(lab):
    forgets(lab, {ID_1: [7]})


def fet004_fires__by_name(lab):
    session(lab, *begun((5, 1, {}, {"payments": [0]}, {}), asked={"orders": [0, 1]}), version=12)


def fet004_near_miss(lab):
    """What the session has, also what came into it later or before it began anew, on another connection too."""
    forgets(lab, {ID_1: [0]})
    session(lab, (10, 2, {ID_2: [3]}, {}, {}), (11, 3, {}, {ID_2: [3]}, {}))
    session(lab, (20, 0, ORDERS, {}, ORDERS), (21, 1, {}, {ID_2: [3]}, {}))


def fet004_near_miss__follower(lab):
    """Brokers hold everything; their own sessions are left out."""
    lab.metadata(0, [("orders", ID_1)])
    talk = session(lab, *begun(asked=ORDERS))
    talk.ask(5, "Fetch", 13, {"replicaId": 2, "sessionId": 9, "sessionEpoch": 1,
                              "forgottenTopicsData": [{"topicId": ID_1, "partitions": [9]}]}, {})  # fmt: skip


def fet004_cannot_know(lab):
    """The capture joined the connection late."""
    forgets(lab, {ID_1: [7]}, from_start=False)


def fet004_cannot_know__gap(lab):
    forgets(lab, {ID_1: [7]}, unseen_request_bytes=400)


def fet004_cannot_know__begun_elsewhere(lab):
    """The client goes on with its session after its connection was lost."""
    lab.metadata(0, [("orders", ID_1), ("payments", ID_2)])
    session(lab, (5, 8, {}, {ID_1: [7]}, {}))


def fet004_cannot_know__recreated(lab):
    """Java clients may forget partitions of one id under another of the same name."""
    forgets(lab, {ID_1: [7]})
    lab.metadata(40, [("orders", ID_2)])


def fet004_cannot_know__too_many(lab):
    """A session of more partitions than are kept."""
    lab.metadata(0, [("orders", ID_1)])
    every = {ID_1: list(range(0, 2000, 2))}
    session(lab, *begun((5, 1, {}, {ID_1: [1]}, {}), asked=every))


def fet003_fires__left_out(lab):
    lab.metadata(0, [("orders", ID_1)])
    session(lab, (1, 0, {ID_1: [0, 1, 2]}, {}, {ID_1: [0, 2]}))


def fet003_fires__not_in_the_session(lab):
    lab.metadata(0, [("orders", ID_1)])
    session(lab, *begun((5, 1, {}, {}, {ID_1: [1, 4]}), asked=ORDERS))


def fet003_fires__as_long_as_the_capture(lab):
    """The session is answered about another topic to the end."""
    lab.metadata(0, [("orders", ID_1)])
    later = ((at, at // 5, {}, {}, {ID_2: [1]}) for at in range(5, 121, 5))
    session(lab, *begun(*later, asked=ORDERS))
    lab.until = 121


def fet003_near_miss__incremental(lab):
    """In a session only what has news is answered."""
    lab.metadata(0, [("orders", ID_1)])
    session(lab, *begun((5, 1, {ID_2: [0]}, {}, {ID_2: [0]}), (6, 2, {}, {}, {ID_1: [1]}), asked=ORDERS))


def fet003_near_miss__throttled(lab):
    lab.metadata(0, [("orders", ID_1)])
    talk = lab.talk()
    asked = {"replicaId": -1, "sessionEpoch": 0, "topics": listed(ORDERS, 13)}
    talk.ask(1, "Fetch", 13, asked, {"throttleTimeMs": 900})
    talk.ask(2, "Fetch", 13, asked, {"errorCode": 71})
    lab.until = 90


ZERO_ID = "A" * 22


def fet003_near_miss__the_zero_id_in_place_of_a_deleted_topic(lab):
    """As servers that are not Apache Kafka answer: in a full fetch, and in a session."""
    lab.metadata(0, [("orders", ID_1), ("kept", ID_2)])
    lab.deleted(1, "orders", ID_1)
    both = {ID_1: [0], ID_2: [0]}
    session(lab, (2, 0, both, {}, {ZERO_ID: [0], ID_2: [0]}), *begun((5, 1, {}, {}, {ZERO_ID: [0]}), asked=both))


def fet003_cannot_know__joined_late(lab):
    lab.metadata(0, [("orders", ID_1)])
    session(lab, (5, 4, {}, {}, {ID_1: [1, 4]}), from_start=False)


def writes(lab, at, name="orders", server=B1, error=0, **facts):
    row = {"name": name, "partitionResponses": [{"errorCode": error}]}
    asked = {"acks": 1, "topicData": [{"name": name, "partitionData": [{"records": None}]}]}
    lab.talk(server, "writer", "10.0.0.50", **facts).ask(at, "Produce", 9, asked, {"responses": [row]})
    lab.until = max(lab.until, at + 60)


def reports_id(lab, at, topic_id, server=B2, version=12):
    """Metadata of the producer itself."""
    talk = lab.talk(server, "writer", "10.0.0.50")
    lab.metadata(at, [("orders", topic_id)], talk=talk, version=version)


def crossed(lab, wrote_at=420, **facts):
    """Broker 2 knows nothing of the recreation; all brokers are captured."""
    lab.metadata(0, [("orders", ID_1)])
    for server in (B1, B2, B3):
        lab.metadata(1, [], server=server)
    reports_id(lab, 2, ID_1)
    lab.deleted(35, "orders", ID_1)
    lab.metadata(40, [("orders", ID_2)])
    lab.metadata(400, [("orders", ID_2)])
    writes(lab, 10)
    writes(lab, wrote_at, **facts)


@disagrees_later("what goes on after a change: from the change")
def grp005_fires(lab):
    crossed(lab)
    reports_id(lab, 330, ID_1)


def grp005_near_miss(lab):
    """It was told the new id; within the grace; refused."""
    crossed(lab)
    reports_id(lab, 330, ID_1)
    reports_id(lab, 60, ID_2)


def grp005_near_miss__soon(lab):
    crossed(lab, wrote_at=300)
    reports_id(lab, 250, ID_1)
    writes(lab, 450, error=3)


def grp005_cannot_know(lab):
    """No Metadata answer since: perhaps one was not seen."""
    crossed(lab)


def grp005_cannot_know__versions_without_ids(lab):
    crossed(lab)
    reports_id(lab, 330, ID_1)
    reports_id(lab, 331, None, version=9)


def grp005_cannot_know__gap(lab):
    crossed(lab, unseen_response_bytes=90)
    reports_id(lab, 330, ID_1)


def grp005_cannot_know__broker_not_captured(lab):
    crossed(lab)
    reports_id(lab, 330, ID_1)
    lab.metadata(331, [], brokers={"10.0.0.4:9092": 4})
