"""Cases of the VER checks, in bytes. Ranges are those of real releases."""

import struct

from tests.decode.log.batches import batch, entry, text
from tests.judge.cases_control import log_batch
from tests.judge.lab import B1, B2, B3, BROKERS, CLUSTER, ID_1, ID_2, NO_ID, disagrees_at, disagrees_later, lacks, ns
from wirecheck.decode import schemas
from wirecheck.decode.api_names import key_of
from wirecheck.decode.connection.exchanges import (
    CLOSED_BY_CLIENT,
    CLOSED_BY_SERVER,
    NO_RESPONSE_DUE,
    RESPONSE_UNSEEN,
)


def ranges(release, listener="B"):
    return {key: (r.low, r.high) for key, r in schemas.releases()[release].items() if listener in r.listeners}


def modern(lab, **more):
    """A 4.4 broker: it advertises Produce from 0 and refuses 0 to 2."""
    lab.versions(0, {**ranges("4.4.0"), 0: (0, 13)}, **more)


@disagrees_at(10)
def ver001_fires(lab):
    modern(lab)
    for at in (10, 11):
        lab.talk(client_id="old").refused(at, "Produce", 2)


def writes_without_a_response(lab, times, version=0, *, late=0.005, **facts):
    """acks=0 on a new connection each, which is closed then."""
    for at in times:
        given = {"requests": 1, "over": True, **facts}
        talk = lab.talk(client_id="old", host="10.0.0.7", **given)
        talk.ask(at, "Produce", version, {"acks": 0}, outcome=NO_RESPONSE_DUE)
        talk.closed = at + late
    lab.until = max(times) + 100


def ver001_fires__without_a_response(lab):
    modern(lab)
    writes_without_a_response(lab, (10, 12, 14))


def ver001_fires__without_a_response_on_connections_joined_midway(lab):
    """They were there when the capture began, as other connections that go on."""
    talk = lab.talk(client_id="other", from_start=False)
    talk.ask(0, "Metadata", 12, {}, {}).ask(40, "Metadata", 12, {}, {})
    writes_without_a_response(lab, (1, 2), from_start=False)
    lab.versions(3, {**ranges("4.4.0"), 0: (0, 13)})
    writes_without_a_response(lab, (10, 12, 14))


def ver001_near_miss__without_a_response_twice(lab):
    modern(lab)
    writes_without_a_response(lab, (10, 12))


def ver001_near_miss__without_a_response_and_the_client_closes(lab):
    modern(lab)
    writes_without_a_response(lab, (10, 12, 14), closed_by="client-fin")


def ver001_near_miss__without_a_response_and_one_stays_open(lab):
    """The server closes when a connection is idle."""
    modern(lab)
    writes_without_a_response(lab, (10, 12, 14))
    writes_without_a_response(lab, (20,), late=40)


def ver001_near_miss__without_a_response_in_a_version_that_is_accepted(lab):
    lab.versions(0, ranges("3.9.1"))
    writes_without_a_response(lab, (10, 12, 14))


def ver001_near_miss__without_a_response_in_a_version_of_today(lab):
    modern(lab)
    writes_without_a_response(lab, (10, 12, 14), version=9)


def ver001_near_miss__all_is_answered(lab):
    """A broker that stops closes after the answers."""
    modern(lab)
    writes_without_a_response(lab, (10, 12, 14), responses=1)


def ver001_cannot_know__what_came_after_the_write(lab):
    modern(lab)
    writes_without_a_response(lab, (10, 12, 14), gaps=(lacks(ns(10), 0, 900),), unseen_request_bytes=900)


def ver001_near_miss__one_connection(lab):
    """A broker that is killed closes one connection of each client, with a request open."""
    modern(lab)
    lab.talk(client_id="old").refused(10, "Produce", 2)


def ver001_near_miss__answered_before_it_was_killed(lab):
    """The ranges are those of the release before its upgrade; it has answered this version since."""
    lab.versions(0, ranges("3.9.1"))
    lab.talk(client_id="other").ask(20, "Fetch", 18, {"sessionEpoch": -1}, {"responses": []})
    for at in (60, 60.1):
        lab.talk(client_id="new").refused(at, "Fetch", 18)


def ver001_cannot_know__ranges_that_were_not_seen(lab):
    """An answer to ApiVersions is missing from the capture: it may have told the ranges of another release."""
    lab.versions(0, ranges("3.9.1"))
    lab.talk(client_id="other").ask(20, "ApiVersions", 3, {}, outcome=RESPONSE_UNSEEN)
    for at in (60, 60.1):
        lab.talk(client_id="new").refused(at, "Fetch", 18)


UNSUPPORTED_VERSION = 35


def ver001_fires__by_an_error(lab):
    """One answer with the error is enough, and no success of the version."""
    lab.versions(0, ranges("3.9.1"))
    lab.talk(client_id="new").ask(10, "Fetch", 18, {}, {"errorCode": UNSUPPORTED_VERSION, "responses": []})


def ver001_near_miss__an_error_about_something_else(lab):
    """The version is one that the server advertises: what it does not support is what was asked in it."""
    lab.versions(0, ranges("3.9.1"))
    lab.talk(client_id="new").ask(10, "Fetch", 17, {}, {"errorCode": UNSUPPORTED_VERSION, "responses": []})


def upgraded_and_killed(lab, between):
    """Broker 1 is upgraded at 30; shortly after, it is killed with requests of its new versions open. Of what it
    advertised since, the capture has nothing; `between` says what else it lacks.
    """
    lab.versions(0, ranges("3.9.1"))
    lab.metadata(1)
    between()
    for at in (60, 60.1):
        lab.talk(client_id="new").refused(at, "Fetch", 18)


def ver001_cannot_know__a_hole_at_the_beginning_of_a_connection(lab):
    gap = lacks(ns(31), 1, 900)

    def between():
        lab.talk(client_id="other", gaps=(gap,), unseen_response_bytes=900).ask(32, "Metadata", 12, {}, {})

    upgraded_and_killed(lab, between)


def ver001_fires__a_hole_in_a_connection_of_before(lab):
    """A connection that lived through it all: its server is the process that advertised these ranges."""
    talk = lab.versions(0, ranges("3.9.1"))
    talk.facts |= {"gaps": (lacks(ns(31), 1, 900),), "unseen_response_bytes": 900}
    talk.ask(62, "Metadata", 12, {}, {})
    for at in (60, 60.1):
        lab.talk(client_id="new").refused(at, "Fetch", 18)


def ver001_cannot_know__joined_midway(lab):
    def between():
        lab.talk(client_id="other", from_start=False).ask(32, "Metadata", 12, {}, {})

    upgraded_and_killed(lab, between)


def ver001_near_miss(lab):
    """A broker that shuts down closes with requests open that it would have answered; a client may close first."""
    modern(lab)
    lab.talk(client_id="new").refused(10, "Produce", 9)
    lab.talk(client_id="old").ask(10, "Produce", 2, {}, outcome=CLOSED_BY_CLIENT)


def ver001_near_miss__killed_while_versions_are_negotiated(lab):
    """librdkafka asks ApiVersions v3 first; an old broker answers with an error, unless it is killed."""
    lab.versions(0, {**ranges("2.8.2", "Z"), 18: (0, 1)})
    lab.talk(client_id="rdkafka").refused(10, "ApiVersions", 3)


def ver001_cannot_know(lab):
    """The server had not been heard to say what it accepts; what it says later may be another release's."""
    lab.metadata(0)
    lab.talk(client_id="old").refused(10, "Produce", 2)
    lab.versions(60, {**ranges("4.4.0"), 0: (0, 13)})


def negotiated(lab, supported, version, at=1):
    lab.metadata(0)  # its host is granted something: it is authenticated
    talk = lab.versions(0, supported)
    asked = {"topics": [{"topicId": ID_1, "partitions": [{"partition": 0}]}], "sessionEpoch": -1}
    return talk.ask(at, "Fetch", version, asked, {"responses": []})


@disagrees_later("a connection counts its versions without their times: from its beginning")
def ver002_fires(lab):
    negotiated(lab, ranges("2.8.2", "Z"), 16)


def ver002_near_miss(lab):
    """Versions the server grew by an upgrade; each connection has its own time."""
    negotiated(lab, ranges("3.9.1"), 16)
    negotiated(lab, ranges("2.8.2", "Z"), 12)


def ver002_cannot_know(lab):
    """What another server, or the same one on another connection and after a restart, advertises says nothing."""
    lab.fetches([1], ID_1, version=16)
    lab.versions(0, ranges("2.8.2", "Z"), server=B2)
    lab.versions(60, ranges("2.8.2", "Z"))


def orders(lab, leader_and_isr, update_metadata, controller=3, epoch=1):
    at = lab.until + 1
    lab.control(at, "LeaderAndIsr", [("t", None, 1)], version=leader_and_isr, controller=controller, epoch=epoch)
    lab.control(at, "UpdateMetadata", [("t", None, 1)], version=update_metadata, controller=controller, epoch=epoch)


@disagrees_at(1)
def ver003_fires(lab):
    orders(lab, 4, 8)


def half_rolled(lab, until):
    """Broker 2 follows as before, broker 3 by id."""
    lab.metadata(0)
    follows(lab, 12, range(0, until, 60))
    follows(lab, 17, range(30, until, 60), broker=3)


def ver003_fires__longer_than_a_roll(lab):
    half_rolled(lab, 3900)


def ver003_near_miss__within_a_roll(lab):
    half_rolled(lab, 3500)


def ver003_near_miss(lab):
    """A half-rolled cluster: the next controller speaks the next level."""
    orders(lab, 4, 6)
    orders(lab, 5, 7, controller=2, epoch=2)


def ver003_near_miss__an_epoch_of_two_zookeepers(lab):
    """The cluster was set up again with another release, and its ClusterId is not in the capture."""
    orders(lab, 4, 6)
    lab.control(100, "LeaderAndIsr", [("t", ID_1, 1)], version=7)
    lab.control(101, "UpdateMetadata", [("t", ID_1, 1)], version=8)


def ver003_fires__two_senders(lab):
    orders(lab, 4, 6)
    lab.control(100, "LeaderAndIsr", [("t", ID_1, 1)], version=7)
    lab.control(101, "LeaderAndIsr", [("t", None, 1)], version=4)


def ver003_cannot_know(lab):
    """One kind of request says too little."""
    lab.control(0, "UpdateMetadata", [("t", None, 1)], version=8)


def follows(lab, version, times, server=B1, broker=2):
    talk = lab.talk(server, client_id=f"broker-{broker}-fetcher-0", host=f"10.0.0.{broker}")
    row = {"topicId": ID_1} if version >= 13 else {"topic": "orders"}
    asked = {"replicaId": broker, "replicaState": {"replicaId": broker}, "topics": [{**row, "partitions": [{}]}]}
    if version < 15:
        del asked["replicaState"]
    for at in times:
        talk.ask(at, "Fetch", version, asked, {})
        lab.until = max(lab.until, at)


@disagrees_at(60)
def ver004_fires(lab):
    """Some topics have ids, and one is named without."""
    follows(lab, 13, [0, 10])
    follows(lab, 12, range(60, 120, 5))
    lab.metadata(80, [("orders", ID_1), ("lost", NO_ID)])


def ver004_fires__beside(lab):
    """By name from one leader, by id from another."""
    lab.metadata(0)
    follows(lab, 13, range(0, 120, 5))
    follows(lab, 12, range(60, 120, 5), server=B2)


def ver004_near_miss(lab):
    """A second of names while a topic is deleted."""
    follows(lab, 13, [0, 10, 80])
    follows(lab, 12, [15])


def ver004_near_miss__rolled_back(lab):
    """The inter-broker protocol goes back to 3.0: everything is followed by name, and every topic keeps its id."""
    follows(lab, 13, range(0, 60, 5))
    follows(lab, 12, range(60, 180, 5))
    lab.metadata(90, [("orders", ID_1), ("payments", ID_2)])


def of_one_release(lab, release, *, times=range(0, 180, 5)):
    """A follower that fetches by name from the beginning."""
    for server in (B1, B2, B3):
        lab.metadata(0, [("orders", ID_1)], server=server)
        lab.versions(1, ranges(release), server=server)
    follows(lab, 12, times)


def ver004_fires__of_kafka_4(lab):
    """No level of it replicates by name."""
    of_one_release(lab, "4.0.0")


def ver004_near_miss__of_kafka_4(lab):
    """A topic is created or deleted: some seconds by name."""
    of_one_release(lab, "4.0.0", times=range(60, 80, 5))


def ver004_near_miss__of_an_older_kraft(lab):
    """Its metadata.version may be 3.0, which knows no fetch by ID."""
    of_one_release(lab, "3.9.1")


def ver004_cannot_know(lab):
    """Never seen to follow by id: perhaps it cannot yet."""
    follows(lab, 12, range(0, 120, 5))
    lab.metadata(80, [("orders", ID_1), ("lost", NO_ID)])


@disagrees_at(0)
def ver005_fires(lab):
    lab.talk(client_id="old").ask(0, "Fetch", 3, {}, {})


def ver005_near_miss(lab):
    lab.talk(client_id="new").ask(0, "Fetch", 4, {}, {})


def ver005_cannot_know(lab):
    """A broker's own request goes with the broker."""
    lab.control(0, "UpdateMetadata", [("t", None, 1)], version=6)


def taken_over(lab, zookeeper_at):
    lab.control(0, "UpdateMetadata", [("t", ID_1, 1)], epoch=4)
    lab.control(10, "UpdateMetadata", [("t", ID_1, 1)], controller=3000, epoch=9, version=8, isKRaftController=True)
    lab.control(zookeeper_at, "UpdateMetadata", [("t", ID_1, 1)], epoch=4)


@disagrees_later("what goes on after a change: from the change")
def ver006_fires(lab):
    taken_over(lab, 60)


def ver006_near_miss(lab):
    taken_over(lab, 12)


def migrated_again(lab, late=False):
    """A migration is rolled back and tried again: the brokers have a ZooKeeper controller in between."""
    taken_over(lab, 12)
    for at in range(40, 120, 20):
        lab.control(at, "UpdateMetadata", [("t", ID_1, 1)], epoch=10)
    for at in range(130, 250, 20):
        lab.control(
            at, "UpdateMetadata", [("t", ID_1, 1)], controller=3001, epoch=11, version=8, isKRaftController=True
        )
    if late:
        lab.control(240, "UpdateMetadata", [("t", ID_1, 1)], epoch=10)


def ver006_near_miss__rolled_back_and_tried_again(lab):
    migrated_again(lab)


def ver006_fires__after_the_second_try(lab):
    migrated_again(lab, late=True)


def ver006_cannot_know(lab):
    """No KRaft controller was seen."""
    lab.control(0, "UpdateMetadata", [("t", ID_1, 1)], epoch=4)
    lab.control(60, "UpdateMetadata", [("t", ID_1, 1)], epoch=4)


def restarted(lab, before, after):
    lab.metadata(0)
    lab.versions(1, before)
    lab.versions(60, after)


@disagrees_at(60)
def ver007_fires(lab):
    restarted(lab, ranges("3.9.1"), ranges("3.7.2"))


def ver007_near_miss(lab):
    restarted(lab, ranges("3.7.2"), ranges("3.9.1"))


def rolled(lab, steps, until=1200):
    """Three brokers of 3.9, which come back one after the other as 3.7, each at its time."""
    servers = (B1, B2, B3)
    for at in (0, until):
        for server in servers:
            lab.metadata(at, server=server)
    for server in servers:
        lab.versions(1, ranges("3.9.1"), server=server)
    for server, at in zip(servers, steps, strict=False):
        lab.versions(at, ranges("3.7.2"), server=server)


@disagrees_at(60)
def ver007_fires__in_a_roll_of_all_brokers(lab):
    """A planned downgrade: each finding is information."""
    rolled(lab, (60, 360, 660))


def ver007_fires__in_a_roll_that_stopped(lab):
    rolled(lab, (60, 360))


def answered_by_part(asked, answer):
    """A request for one partition of orders, and the answer whose only error is the partition's."""
    partition = {"topics": [{"name": "orders", "partitions": [{"errorCode": 35, **answer}]}]}
    return {"topics": [{"name": "orders", "partitions": [{}]}], **asked}, partition


ANSWERED_BY_PART = {
    "OffsetFetch": ({"groupId": "g"}, {"groups": [{"errorCode": 35}]}),
    "OffsetCommit": answered_by_part({"groupId": "g"}, {}),
    "ListOffsets": answered_by_part({"replicaId": -1}, {"offset": -1}),
    "FindCoordinator": ({"coordinatorKeys": ["g"]}, {"coordinators": [{"key": "g", "nodeId": -1, "errorCode": 35}]}),
}
"""Requests and answers of APIs whose answers have no error of their own."""


def rejects_what_it_advertises(lab, api, version, times, *, own=True, asked=None):
    """A broker answers UNSUPPORTED_VERSION to one client."""
    lab.metadata(0)
    if own:
        lab.control(1, "LeaderAndIsr", [("orders", ID_1, 4)])
    lab.versions(2, ranges("3.9.1", "Z"))
    talk = lab.talk(client_id="reader", host="10.0.0.97")
    plain, answer = ANSWERED_BY_PART.get(api, ({}, {"errorCode": 35}))
    for at in times:
        talk.ask(at, api, version, {**plain, **(asked or {})}, answer)
    lab.metadata(150)


@disagrees_at(10)
def ver007_fires__a_version_that_it_rejects(lab):
    rejects_what_it_advertises(lab, "OffsetFetch", 9, range(10, 100, 5))


def ver007_fires__a_version_that_it_rejects__of_commits(lab):
    rejects_what_it_advertises(lab, "OffsetCommit", 8, range(10, 100, 5))


def ver007_fires__a_version_that_it_rejects__of_offsets(lab):
    rejects_what_it_advertises(lab, "ListOffsets", 7, range(10, 100, 5))


def ver007_fires__a_version_that_it_rejects__of_coordinators(lab):
    rejects_what_it_advertises(lab, "FindCoordinator", 4, range(10, 100, 5))


def ver007_near_miss__what_needs_a_feature_besides(lab):
    """Static members below inter.broker.protocol.version 2.3, the timestamp of tiered storage, groups of shares."""
    rejects_what_it_advertises(lab, "OffsetCommit", 8, range(10, 100, 5), asked={"groupInstanceId": "one"})
    tiered = {"topics": [{"name": "orders", "partitions": [{"timestamp": -5}]}]}
    rejects_what_it_advertises(lab, "ListOffsets", 7, range(10, 100, 5), asked=tiered)
    rejects_what_it_advertises(lab, "FindCoordinator", 4, range(10, 100, 5), asked={"keyType": 2})


def ver007_near_miss__offsets_in_zookeeper(lab):
    """Version 0 of commits, and of asking for them, at a broker of KRaft."""
    rejects_what_it_advertises(lab, "OffsetCommit", 0, range(10, 100, 5))
    topics = [{"name": "orders", "partitions": [{"errorCode": 35}]}]
    talk = lab.talk(client_id="reader", host="10.0.0.97")
    for at in range(10, 100, 5):
        talk.ask(at, "OffsetFetch", 0, {"groupId": "g"}, {"topics": topics})


def ver007_near_miss__commits_of_a_group_of_the_next_protocol(lab):
    """Its members may commit from version 9 on; a tool of another host does so below."""
    rejects_what_it_advertises(lab, "OffsetCommit", 8, range(10, 100, 5))
    talk = lab.talk(client_id="member", host="10.0.0.96")
    for at in range(10, 100, 5):
        asked = {"groupId": "g", "memberId": "m", "memberEpoch": 3}
        talk.ask(at, "ConsumerGroupHeartbeat", 0, asked, {"errorCode": 0, "memberId": "m", "memberEpoch": 3})


def ver007_near_miss__a_feature_that_is_off(lab):
    """The new protocol of groups is advertised, and answered so where its feature is not enabled."""
    rejects_what_it_advertises(lab, "ConsumerGroupHeartbeat", 0, range(10, 100, 5))


def ver007_near_miss__a_version_that_it_grants_others(lab):
    """It is about something else than the version."""
    rejects_what_it_advertises(lab, "OffsetFetch", 9, range(10, 100, 5))
    talk = lab.talk(client_id="another", host="10.0.0.96")
    for at in range(12, 102, 5):
        talk.ask(at, "OffsetFetch", 9, {"groupId": "h"}, {"groups": [{"errorCode": 0}]})


def ver007_near_miss__a_version_that_a_proxy_rejects(lab):
    rejects_what_it_advertises(lab, "OffsetFetch", 9, range(10, 100, 5), own=False)


def ver007_near_miss__a_version_outside_its_range(lab):
    rejects_what_it_advertises(lab, "OffsetFetch", 10, range(10, 100, 5))


def ver007_cannot_know__a_version_rejected_for_a_moment(lab):
    rejects_what_it_advertises(lab, "OffsetFetch", 9, range(10, 15))


def ver007_fires__of_no_release(lab):
    """A proxy that narrows every second API."""
    supported = ranges("3.9.1")
    lab.versions(1, {key: (low, min(high, 1) if key % 2 else high) for key, (low, high) in supported.items()})


def ver007_fires__beside_a_release(lab):
    """One API of 3.9 has a range of its own."""
    lab.versions(1, {**ranges("3.9.1"), 1: (4, 11)})


def ver007_fires__beside_a_release__from_a_later_version(lab):
    """One API of 3.9 begins later than there."""
    lab.versions(1, {**ranges("3.9.1"), 8: (5, 9)})


def ver007_fires__upside_down(lab):
    lab.versions(1, {**ranges("3.9.1"), 1: (5, 4)})


def ver007_fires__beside_a_release__what_two_releases_do_not_have_in_common(lab):
    """Kroxylicious 0.12 with Kafka's library of 4.0, before 4.4: ShareFetch 1-0."""
    share = 78
    lowest, highest = ranges("4.4.0")[share][0], ranges("4.0.0")[share][1]
    lab.versions(1, {**ranges("4.0.0"), share: (lowest, highest)})
    if lowest <= highest:
        raise ValueError("the releases have a version in common")


def ver007_near_miss__none_of_an_api(lab):
    """No range of it: that is configuration."""
    lab.versions(1, {key: span for key, span in ranges("3.9.1").items() if key != 1}, server=B2)


def of_releases(lab, *releases, until=7200):
    for at in (0, until):
        lab.metadata(at, brokers=BROKERS)
        for server, release in zip((B1, B2, B3), releases, strict=True):
            lab.versions(at + 1, ranges(release), server=server)


@disagrees_at(1)
def ver010_fires(lab):
    of_releases(lab, "3.9.1", "3.9.1", "3.4.1")


def ver010_fires__clients_that_stay_connected(lab):
    """They ask for versions once; the brokers answer them for two hours."""
    connected(lab, 7200)


def ver010_near_miss__clients_that_stay_connected(lab):
    connected(lab, 3000)


def connected(lab, until):
    for server, release in zip((B1, B2, B3), ("3.9.1", "3.9.1", "3.4.1"), strict=True):
        talk = lab.versions(1, ranges(release), server=server)
        for at in range(2, until, 300):
            lab.metadata(at, [("orders", ID_1)], server=server, talk=talk)


def ver010_near_miss(lab):
    """A roll of 50 minutes."""
    of_releases(lab, "3.9.1", "3.9.1", "3.4.1", until=3000)
    lab.versions(3100, ranges("3.9.1"), server=B3)
    lab.versions(7200, ranges("3.9.1"), server=B3)


def ver010_near_miss__one_line(lab):
    of_releases(lab, "3.9.1", "3.9.1", "3.9.2")


def ver010_cannot_know(lab):
    """Each broker was seen once."""
    lab.metadata(0, brokers=BROKERS)
    lab.versions(1, ranges("3.4.1"), server=B1)
    lab.versions(7200, ranges("3.9.1"), server=B2)


def with_features(lab, server, level, *, epoch=500, low=1, high=21, times=(0, 60, 120), name="metadata.version"):
    talk = lab.talk(server)
    answer = {
        "apiKeys": [],
        "supportedFeatures": [{"name": name, "minVersion": low, "maxVersion": high}],
        "finalizedFeaturesEpoch": epoch,
        "finalizedFeatures": [{"name": name, "maxVersionLevel": level, "minVersionLevel": level}],
    }
    for at in times:
        talk.ask(at, "ApiVersions", 3, {"clientSoftwareName": "x", "clientSoftwareVersion": "1"}, answer)


@disagrees_at(0)
def ver011_fires(lab):
    lab.metadata(0, brokers=BROKERS)
    for server, level in ((B1, 20), (B2, 20), (B3, 14)):
        with_features(lab, server, level)


def ver011_near_miss__the_quorums_own_feature(lab):
    """Kafka 4.0.0 with a dynamic quorum: the controllers' answers have 0."""
    lab.metadata(0, brokers=BROKERS)
    for server, level in ((B1, 1), (B2, 1), (B3, 0)):
        with_features(lab, server, level, low=0, high=1, name="kraft.version")


def ver011_fires__above_what_is_supported(lab):
    with_features(lab, B1, 27, high=25)


def ver011_fires__below_what_is_supported(lab):
    with_features(lab, B1, 3, low=7)


def ver011_near_miss__a_feature_that_is_off(lab):
    with_features(lab, B1, 0, low=1)


def with_growing_epochs(lab, server, levels, *, first):
    for number, level in enumerate(levels):
        with_features(lab, server, level, epoch=first + number * 10, times=(number * 20,))


def ver011_fires__epochs_grow(lab):
    """KRaft: an epoch is an offset of the metadata log, and no two answers have the same."""
    lab.metadata(0, brokers=BROKERS)
    for server, level, first in ((B1, 20, 500), (B2, 20, 503), (B3, 14, 506)):
        with_growing_epochs(lab, server, [level] * 6, first=first)


def ver011_near_miss__epochs_grow_over_an_upgrade(lab):
    """One broker is late."""
    lab.metadata(0, brokers=BROKERS)
    for server, first in ((B1, 500), (B2, 503)):
        with_growing_epochs(lab, server, [14] * 2 + [20] * 4, first=first)
    with_growing_epochs(lab, B3, [14] * 6, first=450)


def accepted_level(lab, before, after, *, only=False):
    """An update to level 21 is accepted at 50; what all brokers state until then and from then on, as epochs grow."""
    lab.metadata(0, brokers=BROKERS)
    asked = {"featureUpdates": [{"feature": LEVEL, "maxVersionLevel": 21}], "validateOnly": only}
    answer = {"errorCode": 0, "results": [{"feature": LEVEL, "errorCode": 0}]}
    lab.talk(B1, "adminclient-1").ask(50, "UpdateFeatures", 1, asked, answer)
    for number, server in enumerate((B1, B2, B3)):
        with_growing_epochs(lab, server, [before] * 3 + [after] * 7, first=500 + number)


def ver011_fires__an_accepted_level_that_none_has(lab):
    accepted_level(lab, 14, 14)


def ver011_near_miss__an_accepted_level(lab):
    accepted_level(lab, 14, 21)


def ver011_near_miss__a_level_that_is_only_validated(lab):
    accepted_level(lab, 14, 14, only=True)


def ver011_near_miss__a_level_that_is_not_reported(lab):
    """Some releases call kraft.version off, whatever it is (KAFKA-18979)."""
    accepted_level(lab, 0, 0)


def ver011_near_miss__another_level_since(lab):
    """Another update followed, which is not in the capture."""
    accepted_level(lab, 14, 20)


def ver011_cannot_know__servers_that_are_behind(lab):
    """Their epochs are those of before."""
    lab.metadata(0, brokers=BROKERS)
    raises_level(lab, 50, 21, error=0)
    for server in (B1, B2, B3):
        with_features(lab, server, 14, times=(0, 60, 120))


def ver011_near_miss(lab):
    """An upgrade on its way: one broker is late."""
    lab.metadata(0, brokers=BROKERS)
    for server, level, epoch in ((B1, 20, 500), (B2, 20, 500), (B3, 14, 420)):
        with_features(lab, server, level, epoch=epoch)


def ver011_cannot_know(lab):
    """The epoch is unknown (-1)."""
    lab.metadata(0, brokers=BROKERS)
    for server, level in ((B1, 20), (B3, 14)):
        with_features(lab, server, level, epoch=-1)


LEVEL = "metadata.version"
GHOST = "Invalid update version 21 for feature metadata.version. Controller 5 only supports versions 1-20"


def registers(lab, at, number, high, *, role="Controller", error=0):
    """A node registers with the active controller."""
    node = {f"{role.lower()}Id": number, "incarnationId": ID_1}
    features = [{"name": LEVEL, "minSupportedVersion": 1, "maxSupportedVersion": high}]
    listener = [{"name": "CONTROLLER", "host": f"10.0.0.{number}", "port": 9093, "securityProtocol": 0}]
    asked = {**node, "listeners": listener, "features": features}
    lab.talk(B3, f"node-{number}", f"10.0.0.{number}").ask(at, f"{role}Registration", 0, asked, {"errorCode": error})


def raises_level(lab, at, level, *, error=95, reason=None, version=2):
    asked = {"featureUpdates": [{"feature": LEVEL, "maxVersionLevel": level, "upgradeType": 1}]}
    answer = {"errorCode": error, "errorMessage": reason}
    if version < 2:
        answer = {"errorCode": 0, "results": [{"feature": LEVEL, "errorCode": error, "errorMessage": reason}]}
    lab.talk(B1, "adminclient-1").ask(at, "UpdateFeatures", version, asked, answer)
    lab.until = max(lab.until, at)


@disagrees_at(60)
def ver012_fires(lab):
    """A controller that is gone is registered with what its release had (KAFKA-20295)."""
    lab.metadata(0, brokers=BROKERS)
    registers(lab, 1, 5, 20)
    for number in (6, 7):
        registers(lab, 2, number, 25)
    raises_level(lab, 60, 21)


def ver012_fires__in_the_log(lab):
    """A node that begins reads the registration out of the log."""
    lab.metadata(0, brokers=BROKERS)
    log_batch(lab, 1, batch(controller_record(5, 20), controller_record(6, 25), base_offset=0, epoch=4), 50)
    raises_level(lab, 60, 21, version=1)


def ver012_fires__by_the_answer(lab):
    """No registration was captured."""
    lab.metadata(0, brokers=BROKERS)
    raises_level(lab, 60, 21, reason=GHOST)


def controller_record(number, high):
    name = text(LEVEL) + struct.pack(">hh", 1, high) + b"\x00"
    head = struct.pack(">i", number) + bytes(16) + b"\x00"
    return entry(27, head + b"\x01" + b"\x02" + name + b"\x00")


def ver012_near_miss(lab):
    """It registered again with the new release before the update, or was unregistered, or another node is at fault."""
    lab.metadata(0, brokers=BROKERS)
    registers(lab, 1, 5, 20)
    registers(lab, 30, 5, 25)
    registers(lab, 1, 4, 20, role="Broker")
    lab.talk(B3, "adminclient-1").ask(40, "UnregisterBroker", 0, {"brokerId": 4}, {"errorCode": 0})
    raises_level(lab, 60, 21)


def ver011_fires__a_broker_is_registered_below_the_level(lab):
    """By a controller that must reject it."""
    lab.metadata(0, brokers=BROKERS)
    with_features(lab, B1, 20)
    registers(lab, 30, 4, 14, role="Broker")
    lab.until = 120


def ver011_near_miss__a_broker_is_not_registered_below_the_level(lab):
    lab.metadata(0, brokers=BROKERS)
    with_features(lab, B1, 20)
    registers(lab, 30, 4, 14, role="Broker", error=35)
    registers(lab, 40, 5, 21, role="Broker")
    lab.until = 120


def ver011_cannot_know__a_broker_was_registered_before_the_level(lab):
    """What was finalized then was not asked."""
    lab.metadata(0, brokers=BROKERS)
    registers(lab, 1, 4, 14, role="Broker")
    with_features(lab, B1, 20, times=(30, 60, 120))


def sets_level(lab, at, level, name=LEVEL):
    """A record of the metadata log, read by a node a moment later."""
    record = entry(12, text(name) + struct.pack(">h", level) + b"\x00")
    at_ms = ns(at) // 1_000_000
    log_batch(lab, at + 1, batch(record, epoch=4, base_timestamp=at_ms, max_timestamp=at_ms), 50)


def ver011_fires__a_record_above_what_a_server_supports(lab):
    """No server has stated the level as its own."""
    lab.metadata(0, brokers=BROKERS)
    with_features(lab, B1, 20, high=21, times=(0, 120, 240))
    sets_level(lab, 120, 25)


def ver011_near_miss__a_record_with_a_level_that_all_support(lab):
    """Of one whose software was replaced in time, and of the quorum's own feature."""
    lab.metadata(0, brokers=BROKERS)
    with_features(lab, B1, 20, high=21, times=(0, 40))
    with_features(lab, B1, 20, high=25, times=(100, 240))
    with_features(lab, B2, 20, high=25, times=(0, 240))
    with_features(lab, B3, 0, low=0, high=0, times=(0, 240), name="kraft.version")
    sets_level(lab, 120, 25)
    sets_level(lab, 130, 1, name="kraft.version")


def ver011_cannot_know__a_record_after_a_servers_last_answer(lab):
    """It may have been stopped, and its software replaced."""
    lab.metadata(0, brokers=BROKERS)
    with_features(lab, B1, 20, high=21, times=(0, 60))
    sets_level(lab, 120, 25)


def with_epochs(lab, server, *epochs, first=0):
    for number, epoch in enumerate(epochs):
        with_features(lab, server, 20, epoch=epoch, times=(first + number * 20,))


def ver011_fires__epochs_that_go_back(lab):
    """The metadata log of the broker began at its start, and the broker goes on."""
    lab.metadata(0, brokers=BROKERS)
    with_epochs(lab, B1, 500, 510, 520, 40, 50, 60, 70)
    with_epochs(lab, B2, 500, 510, 520, 530, 540, 550, 560)


def ver011_fires__another_level_at_the_same_epoch_later(lab):
    lab.metadata(0, brokers=BROKERS)
    with_features(lab, B1, 20, epoch=520, times=(0, 20, 40))
    with_features(lab, B1, 14, epoch=520, times=(60, 80, 100))


def ver011_near_miss__another_level_at_the_next_epoch(lab):
    lab.metadata(0, brokers=BROKERS)
    with_features(lab, B1, 14, epoch=520, times=(0, 20, 40))
    with_features(lab, B1, 20, epoch=521, times=(60, 80, 100))


def ver011_near_miss__a_controller_that_starts(lab):
    """It answers while it reads the log; a broker behind it for a moment was late by one answer."""
    lab.metadata(0, brokers=BROKERS)
    for at in (0, 60):
        lab.versions(at, ranges("4.4.0", "C"), server="10.0.0.9:9093")
    with_epochs(lab, "10.0.0.9:9093", 500, 510, 520, 40, 50, 60, 70)
    with_epochs(lab, B1, 500, 510, 505, 520, 530)
    with_epochs(lab, B2, 500, -1, -1, -1, -1, 510)


def ver011_cannot_know__epochs_of_several_servers_at_one_address(lab):
    """A balancer's address is in no list of brokers."""
    lab.metadata(0, brokers=BROKERS)
    with_epochs(lab, "10.0.0.40:9092", 500, 510, 520, 40, 50, 60, 70)


def ver012_near_miss__asked_too_early(lab):
    """The last controller was upgraded a moment later, and the update asked for again."""
    lab.metadata(0, brokers=BROKERS)
    registers(lab, 1, 5, 20)
    raises_level(lab, 60, 21)
    registers(lab, 90, 5, 25)
    raises_level(lab, 120, 21, error=0)


def ver012_fires__a_lower_level_is_accepted_later(lab):
    lab.metadata(0, brokers=BROKERS)
    registers(lab, 1, 5, 20)
    raises_level(lab, 60, 21)
    raises_level(lab, 120, 20, error=0)


def ver012_near_miss__accepted(lab):
    """In the middle of a roll brokers are registered with several ranges, and nobody asks for more."""
    lab.metadata(0, brokers=BROKERS)
    registers(lab, 1, 1, 25, role="Broker")
    registers(lab, 1, 2, 20, role="Broker")
    raises_level(lab, 60, 20, error=0)


def ver012_cannot_know(lab):
    """Neither registrations nor a reason were captured."""
    lab.metadata(0, brokers=BROKERS)
    raises_level(lab, 60, 21)


def ver007_near_miss__every_release(lab):
    for number, (release, listener) in enumerate((r, x) for r in schemas.releases() for x in "ZBC"):
        if ranges(release, listener):
            lab.versions(1, ranges(release, listener), server=f"10.0.9.{number}:9092")


def ver007_cannot_know(lab):
    """Ranges beyond those of any release known here."""
    restarted(lab, {0: (0, 99), 1: (0, 99)}, {0: (0, 1)})


def ver007_cannot_know__older(lab):
    """Kafka 1.1: older than the oldest release known here."""
    lab.versions(1, {0: (0, 5), 1: (0, 7), 2: (0, 2), 3: (0, 5), 8: (0, 3), 9: (0, 3), 10: (0, 1), 18: (0, 1)})


def changing(lab, ranges_of, own=True):
    """A broker that answers ApiVersions in turn; a controller's requests show that it is no proxy."""
    lab.metadata(0)
    if own:
        lab.control(1, "LeaderAndIsr", [("orders", ID_1, 4)])
    for number, at in enumerate(range(2, 120, 10)):
        lab.versions(at, ranges_of(number), client_id=f"app-{number}")
    lab.metadata(120)


def ver007_fires__to_and_fro_in_one_release(lab):
    changing(lab, lambda number: {**ranges("3.9.1"), **({1: (0, 13)} if number % 2 else {})})


def ver007_fires__what_the_controller_handles(lab):
    """CreateTopics is advertised as far as the active controller has it."""
    own = {**ranges("3.9.1"), 19: (0, 5)}
    changing(lab, lambda number: own if number % 2 else ranges("3.9.1"))


def ver007_fires__restarted_with_another_range(lab):
    changing(lab, lambda number: {**ranges("3.9.1"), **({1: (0, 13)} if number > 5 else {})})


def answers_twice(lab, keys=(), features=()):
    """One answer with more than one range of an API or a feature; what is at the address is unknown."""
    every = [*ranges("4.0.0").items(), *keys]
    answer = {"apiKeys": [{"apiKey": key, "minVersion": low, "maxVersion": high} for key, (low, high) in every]}
    answer["supportedFeatures"] = [
        {"name": "metadata.version", "minVersion": low, "maxVersion": high} for low, high in features
    ]
    lab.talk().ask(1, "ApiVersions", 3, {"clientSoftwareName": "x", "clientSoftwareVersion": "1"}, answer)
    lab.until = 60


def ver007_fires__an_api_twice_in_one_answer(lab):
    answers_twice(lab, [(1, (4, 11))])


def ver007_fires__a_feature_twice_in_one_answer(lab):
    answers_twice(lab, features=[(7, 25), (1, 14)])


def ver007_near_miss__the_same_twice_in_one_answer(lab):
    answers_twice(lab, [(1, ranges("4.0.0")[1])], [(7, 25), (7, 25)])


def balanced(lab, stated):
    """A balancer gives connections to two clusters in turn; of their answers to Metadata few were captured."""
    for at in range(1, 120, 10):
        lab.versions(at, ranges("3.9.1"))
        lab.versions(at + 5, ranges("3.7.2"))
    for at, cluster_id in stated:
        lab.metadata(at, brokers={B1: 1}, cluster_id=cluster_id)


def ver007_cannot_know__behind_a_balancer(lab):
    """Its ClusterIds seem to come one after the other, its ranges come in turn."""
    balanced(lab, [(2, CLUSTER), (30, CLUSTER), (70, "other-cluster-id-22-ch")])


def ver007_cannot_know__where_an_answer_may_have_named_another_cluster(lab):
    balanced(lab, [(2, CLUSTER), (30, CLUSTER)])
    lab.talk(gaps=(lacks(ns(50), 1, 900),), unseen_response_bytes=900).ask(
        50, "Metadata", 12, {}, outcome=RESPONSE_UNSEEN
    )


def swapped(lab, *, stated):
    """Of two clusters in one capture; what states B2's ClusterId, and when."""
    lab.metadata(1, brokers={B1: 1})
    lab.metadata(120, brokers={B1: 1})
    for at, release in ((2, "3.9.1"), (60, "3.7.2")):
        lab.versions(at, ranges(release), server=B2)
    for at in stated:
        lab.metadata(at, brokers={B2: 1}, cluster_id="other-cluster-id-22-ch", server=B2)


def ver007_cannot_know__whose_address_it_was_before(lab):
    swapped(lab, stated=(90, 100))


def ver007_cannot_know__whose_address_it_is_now(lab):
    swapped(lab, stated=(1, 2))


def ver007_fires__one_of_two_clusters(lab):
    swapped(lab, stated=(2, 90))


def ver007_fires__in_turn(lab):
    balanced(lab, [(2, CLUSTER), (70, CLUSTER)])


def ver008_cannot_know__behind_a_balancer(lab):
    balanced(lab, [(2, CLUSTER), (30, CLUSTER), (70, "other-cluster-id-22-ch")])


@disagrees_at(60)
def ver008_fires(lab):
    restarted(lab, ranges("3.7.2"), ranges("3.9.1"))


CONTROLLER = "10.0.0.1:9093"


def both_listeners(lab, before, after, controller=CONTROLLER):
    """A combined node: its controller listener has other APIs than its broker listener."""
    lab.metadata(0)
    for at, release in ((1, before), (60, after)):
        lab.versions(at, ranges(release, "B"))
        lab.versions(at + 5, ranges(release, "C"), server=controller)
    lab.talk(CONTROLLER).ask(2, "DescribeCluster", 1, {}, {"clusterId": CLUSTER})


def ver008_near_miss(lab):
    restarted(lab, ranges("3.9.1"), ranges("3.9.2"))


ver008_cannot_know = ver007_cannot_know


def ver004_near_miss__a_replica_id_that_was_refused(lab):
    """A client fetches by name with broker 2's replica ID; each partition is refused."""
    lab.metadata(0)
    follows(lab, 17, range(0, 300, 5))
    talk = lab.talk(B1, "billing")
    lab.metadata(100, talk=talk)
    for at in range(101, 160, 2):
        asked = {"replicaId": 2, "sessionEpoch": -1, "topics": [{"topic": "orders", "partitions": [{}]}]}
        row = {"topic": "orders", "partitions": [{"errorCode": 29}]}
        talk.ask(at, "Fetch", 12, asked, {"responses": [row]})


def between(lab, api, version, limit, *, times=(5, 30), heard=(1, 60), changed=None, outcome=None, host="10.0.0.3"):
    """A broker sends an API in a version, on a connection of its own without ApiVersions. Broker 1 advertises to a
    client that it accepts the API up to `limit`, and later up to `changed`.
    """
    lab.metadata(0)
    advertised = {**ranges("3.9.1"), **ranges("3.9.1", "C"), **ranges("3.9.1", "Z"), key_of(api): (0, limit)}
    lab.versions(heard[0], advertised)
    for at in heard[1:]:
        lab.versions(at, advertised if changed is None else {**advertised, key_of(api): (0, changed)})
    talk = lab.talk(client_id="3", host=host)
    for at in times:
        answer = None if outcome else {}
        talk.ask(at, api, version, {}, answer, outcome=outcome)
    lab.until = 200
    return talk


def ver002_fires__ranges_of_another_connection(lab):
    between(lab, "LeaderAndIsr", 7, 5)


def ver002_fires__a_connection_that_outlives_the_ranges(lab):
    """It was open when they were advertised."""
    between(lab, "LeaderAndIsr", 7, 5, times=(0.5, 30), heard=(1,))


def ver002_fires__from_a_host_that_no_list_names(lab):
    """A broker behind another address: it was granted requests."""
    between(lab, "LeaderAndIsr", 7, 5, host="10.0.5.5")


def ver002_fires__a_client_whose_ranges_were_not_captured(lab):
    """The broker advertises less to all others, and accepts a controller's requests: no balancer is in between."""
    lab.versions(0, ranges("2.8.2", "Z"))
    lab.control(1, "UpdateMetadata", [("orders", ID_1, 0)])
    lab.fetches([5, 6], ID_1, version=16)
    lab.versions(10, ranges("2.8.2", "Z"))


def told_to_all_others(lab, listed):
    """A broker serves a client in a version that it has not for four others."""
    lab.metadata(0, brokers=listed)
    for number in range(4):
        lab.versions(number, ranges("2.8.2", "Z"), client_id=f"app-{number}")
    lab.fetches([5, 6], ID_1, version=16)
    lab.versions(10, ranges("2.8.2", "Z"))


@disagrees_at(5)
def ver002_fires__a_broker_that_tells_all_clients_the_same(lab):
    told_to_all_others(lab, BROKERS)


def told_before(lab, until, version=16):
    """A client begins after the last ApiVersions answer; those who got one are served `until` then."""
    lab.metadata(0, brokers=BROKERS)
    for number in range(4):
        talk = lab.versions(number, ranges("3.1.2", "Z"), client_id=f"app-{number}")
        for at in range(5, until, 10):
            lab.metadata(at, talk=talk)
    lab.fetches(range(40, 120, 5), ID_1, version=version)


def ver002_fires__a_client_that_begins_after_all_others(lab):
    """Their connections have not ended since, nor has the broker's process."""
    told_before(lab, 120)


def ver002_near_miss__a_broker_that_may_have_been_restarted(lab):
    """None of those who know its ranges talk to it any more."""
    told_before(lab, 38)


def ver002_near_miss__a_client_that_begins_after_all_others(lab):
    told_before(lab, 120, version=13)


def ver002_near_miss__an_old_client_that_does_not_ask(lab):
    """It sends what it has, and the broker closes the connection (VER001)."""
    lab.metadata(0, brokers=BROKERS)
    for at in (1, 2, 3, 30):
        lab.versions(at, ranges("4.0.0"), client_id=f"app-{at}")
    talk = lab.talk(client_id="old", host="10.0.0.97")
    lab.metadata(4, talk=talk)
    talk.refused(5, "ListOffsets", 0, {})
    lab.until = 60


def ver002_near_miss__an_address_in_no_list(lab):
    """A balancer in front of brokers: what another one of them advertises is not in the capture."""
    told_to_all_others(lab, {"10.0.0.11:9092": 1, "10.0.0.12:9092": 2})


def ver002_near_miss__a_client_that_is_only_refused(lab):
    """Any host can send it."""
    lab.versions(0, ranges("2.8.2", "Z"))
    lab.control(1, "UpdateMetadata", [("orders", ID_1, 0)])
    lab.fetches([5, 6], ID_1, 100, version=16)
    lab.versions(10, ranges("2.8.2", "Z"))


def ver002_near_miss__who_is_only_refused(lab):
    """Any host may send requests between brokers under a node's client ID."""
    between(lab, "LeaderAndIsr", 7, 5, host="10.0.5.5", outcome=CLOSED_BY_SERVER)


def ver002_near_miss__a_client_that_sends_what_brokers_send(lab):
    """It is granted what any client is; that is CLU007."""
    pretends(lab, "LeaderAndIsr", 7, 5)


def pretends(lab, api, version, limit, *, body=None, outcome=None, host="10.0.5.5", **facts):
    """A client whose Metadata is answered sends what only brokers send, in a version that the server does not
    advertise, and is refused, or cut off.
    """
    lab.metadata(0)
    advertised = {**ranges("3.9.1", "Z"), key_of(api): (0, limit)}
    for at in (1, 60):
        lab.versions(at, advertised)
    talk = lab.talk(client_id="billing", host=host, **facts)
    lab.metadata(2, talk=talk)
    for at in (5, 30):
        answer = None if outcome else {"errorCode": 31, **(body or {})}
        talk.ask(at, api, version, {}, answer, outcome=outcome)
    lab.until = 200
    return talk


@disagrees_later("a connection counts its versions without their times: from its beginning")
def clu007_fires(lab):
    pretends(lab, "LeaderAndIsr", 7, 5)


def clu007_fires__cut_off(lab):
    pretends(lab, "BrokerHeartbeat", 1, 0, outcome=CLOSED_BY_SERVER)


def clu007_fires__brokers_have_host_names(lab):
    """All traffic of the host was captured, and none of it was granted as a broker's."""
    pretends(lab, "LeaderAndIsr", 7, 5)
    by_host_names(lab)


def by_host_names(lab):
    for talk in lab.talks:
        talk.messages = [(data.replace(b"10.0.0.", b"kafka-0"), *more) for data, *more in talk.messages]


def clu007_near_miss(lab):
    """A broker at an address that no list names: an earlier request of it was granted. That is VER002."""
    talk = pretends(lab, "LeaderAndIsr", 7, 5)
    talk.ask(40, "LeaderAndIsr", 5, {"controllerId": 3}, {})


def clu007_near_miss__a_listed_broker(lab):
    """Its requests are refused; that is VER002."""
    pretends(lab, "LeaderAndIsr", 7, 5, host="10.0.0.3")


def clu007_near_miss__a_follower_of_no_list(lab):
    """A server granted it a fetch with a replica ID."""
    talk = pretends(lab, "LeaderAndIsr", 7, 5)
    asked = {"topics": [{"topicId": ID_1, "partitions": [{"partition": 0}]}], "replicaId": 3, "sessionEpoch": -1}
    row = {"partitionIndex": 0, "highWatermark": 10, "records": None, "abortedTransactions": None}
    talk.ask(40, "Fetch", 13, asked, {"responses": [{"topicId": ID_1, "partitions": [row]}]})


def clu007_near_miss__a_version_that_the_server_advertises(lab):
    """A refused request: it says nothing that contradicts."""
    pretends(lab, "LeaderAndIsr", 5, 5)


def clu007_near_miss__an_administrator_aborts_a_transaction(lab):
    pretends(lab, "WriteTxnMarkers", 1, 0)


def clu007_cannot_know(lab):
    """Brokers have host names, and what the host did before the capture began may have been a broker's."""
    pretends(lab, "LeaderAndIsr", 7, 5, from_start=False)
    by_host_names(lab)


def ver002_fires__a_listed_broker_that_is_refused(lab):
    pretends(lab, "LeaderAndIsr", 7, 5, host="10.0.0.3")


def ver002_fires__a_broker_that_was_granted_a_request_before(lab):
    clu007_near_miss(lab)


def ver002_fires__a_follower(lab):
    between(lab, "LeaderAndIsr", 5, 5)
    follows(lab, 18, [30], broker=3)


def ver002_near_miss__a_client_that_does_not_ask(lab):
    """Old clients send what they have; that the server closes the connection is VER001."""
    between(lab, "Produce", 13, 8, outcome=RESPONSE_UNSEEN, host="10.0.0.9")


def ver002_near_miss__a_client_behind_a_balancer(lab):
    """Another server behind the address answers; what it advertises is not in the capture."""
    between(lab, "Metadata", 13, 12, host="10.0.0.9")


def ver002_near_miss__inside_the_ranges_of_another_connection(lab):
    between(lab, "LeaderAndIsr", 5, 5)


def ver002_near_miss__upgraded_and_not_yet_heard(lab):
    """The first requests after an upgrade come before the first client asks."""
    between(lab, "LeaderAndIsr", 7, 5, times=(30, 50), changed=7)


def ver002_cannot_know__started_again_since(lab):
    """Nothing was heard of the process that answers."""
    between(lab, "LeaderAndIsr", 7, 5, times=(30, 50), heard=(1,))


def ver002_near_miss__a_fork(lab):
    """Of what it does elsewhere nothing is known."""
    between(lab, "LeaderAndIsr", 7, 5)
    lab.versions(70, {**ranges("3.9.1", "Z"), 4: (0, 5), 10000: (0, 3)})


def ver003_fires__a_follower_in_a_version_of_consumers(lab):
    lab.metadata(0)
    follows(lab, 9, range(0, 60, 10))


def ver003_near_miss__levels_of_a_fork(lab):
    orders(lab, 4, 8)
    lab.versions(0, {**ranges("3.9.1", "Z"), 10000: (0, 3)})


@disagrees_at(0)
def ver009_fires(lab):
    lab.metadata(0)
    lab.versions(0, {**ranges("4.4.0"), 1: (4, 99)})
    lab.versions(5, {**ranges("4.4.0"), 1: (4, 99)}, server=B2)


def ver009_fires__once_for_many_ranges(lab):
    """A server that advertises other versions each time, and a broker with two listeners."""
    lab.metadata(0)
    for number in range(40):
        lab.versions(number, {**ranges("4.4.0"), 1: (4, 60 + number)})
    lab.versions(50, {**ranges("4.4.0"), 1: (4, 99)}, server=B2)


def ver009_near_miss(lab):
    """Every known release, in their order, and ranges between two releases (VER007)."""
    ver007_near_miss__every_release(lab)


def ver009_cannot_know(lab):
    """Narrowed by a proxy: VER007."""
    ver007_fires__of_no_release(lab)
