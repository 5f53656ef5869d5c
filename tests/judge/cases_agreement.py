"""Cases of TID020 to TID023, in bytes: those that fire, healthy operations that look like them, and what is unknown."""

from tests.decode.log.batches import remove_topic, topic
from tests.judge.agreement_kinds import KINDS
from tests.judge.cases_control import id_bytes, log, node_beats, registers
from tests.judge.lab import B1, B2, B3, ID_1, ID_2, ID_3, NO_ID, disagrees_at
from wirecheck.decode.layouts.program import Dialect
from wirecheck.decode.schemas import releases

TIMES = range(0, 120, 10)


def listed(lab):
    """All brokers answer, so that they are known to be one cluster."""
    for server in (B1, B2, B3):
        lab.metadata(0, server=server)
        lab.metadata(120, server=server)


def controllers_against_metadata(lab, times=TIMES):
    """A controller orders one ID, and every broker reports another one to clients."""
    KINDS["leader-and-isr"].states(lab, times, ID_1, B1)
    KINDS["update-metadata"].states(lab, times, ID_1, B2)
    for number, server in enumerate((B1, B2, B3)):
        KINDS["metadata"].states(lab, [at + 2 + number for at in times], ID_2, server)


@disagrees_at(2)
def tid020_fires(lab):
    controllers_against_metadata(lab)


def tid020_fires__at_one_broker(lab):
    """The same, captured at one broker: it is ordered one ID, and reports another."""
    KINDS["leader-and-isr"].states(lab, TIMES, ID_1, B1)
    KINDS["metadata"].states(lab, [at + 2 for at in TIMES], ID_2, B1)


def tid020_fires__the_log_against_groups(lab):
    listed(lab)
    KINDS["consumer-group-describe"].states(lab, TIMES, ID_1, B1)
    KINDS["metadata-log"].states(lab, [at + 2 for at in TIMES], ID_2, B3)


def tid020_fires__fetches_by_followers(lab):
    """A controller named the ID once; the leader serves it, and all brokers report another one."""
    listed(lab)
    KINDS["fetch-by-id"].states(lab, TIMES, ID_1, B1)
    KINDS["metadata"].states(lab, [at + 2 for at in TIMES], ID_2, B2)


def tid020_fires__drafted_names(lab):
    """A response of the draft pairs the name with the ID of another topic; its own client asked for that."""
    KINDS["draft-list-offsets"].states(lab, TIMES, ID_1, B1)
    KINDS["draft-metadata"].states(lab, [at + 2 for at in TIMES], ID_2, B1)


def tid020_fires__one_client_gets_both(lab):
    """On one connection, so no proxy can be the reason."""
    talk = lab.talk(B1)
    for at in TIMES:
        lab.metadata(at, [("orders", ID_1)], talk=talk)
        lab.metadata(at + 5, [("orders", ID_2)], talk=talk)


def tid020_near_miss(lab):
    """A recreated topic; an agent's clock is 3 s behind, and one broker answers late once."""
    lab.metadata(0, [("orders", ID_1, 0, 4)])
    KINDS["metadata"].states(lab, range(0, 50, 10), ID_1, B1)
    lab.deleted(52, "orders", ID_1)
    KINDS["leader-and-isr"].states(lab, [55], ID_2, B1)
    KINDS["metadata"].states(lab, range(53, 180, 10), ID_2, B2)
    KINDS["metadata"].states(lab, [100], ID_1, B3)


def tid020_fires__to_different_clients(lab):
    """One address gives each of two tenants its own topic of that name: it may be a proxy, so it is information."""
    KINDS["metadata"].states(lab, TIMES, ID_1, B1)
    KINDS["metadata"].states(lab, [at + 5 for at in TIMES], ID_2, B1)


def tid020_fires__to_different_clients_of_a_broker(lab):
    """The same address accepts requests of a controller and the fetches of a follower: it is no proxy."""
    tid020_fires__to_different_clients(lab)
    node_beats(lab, 20, TIMES, host="10.0.0.2", broker=2)
    KINDS["fetch-by-id"].states(lab, TIMES, ID_1, B1)


def tid020_fires__a_broker_names_no_id(lab):
    """A controller names the ID once, and one of three brokers reports none."""
    listed(lab)
    KINDS["update-metadata"].states(lab, [1], ID_1, B2)
    KINDS["metadata"].states(lab, TIMES, ID_1, B1)
    KINDS["metadata"].states(lab, TIMES, NO_ID, B2)


def tid020_fires__no_id_beside_ids_of_other_topics(lab):
    """Two brokers, of which one has the IDs of all topics but one. No controller names that one."""
    names_no_id(lab, [("payments", NO_ID), ("orders", ID_1)])


def tid020_near_miss__a_broker_without_any_ids(lab):
    """It may be of a release without IDs; a roll takes its time."""
    names_no_id(lab, [("payments", NO_ID)])


def names_no_id(lab, named):
    node_beats(lab, 20, TIMES, host="10.0.0.2", broker=2)
    KINDS["fetch-by-id"].states(lab, TIMES, ID_1, B1)
    for at in TIMES:
        lab.metadata(at, [("payments", ID_2), ("orders", ID_1)], server=B1)
        lab.metadata(at, named, server=B2)


OF_KRAFT = {key: (one.low, one.high) for key, one in releases()["4.0.0"].items() if "B" in one.listeners}


def one_without(lab, lacks, times=TIMES):
    """Servers name the only topic; those in `lacks` give it no ID."""
    for server in (B1, B2, B3):
        lab.versions(0, OF_KRAFT, server=server)
        for at in times:
            lab.metadata(at, [("orders", NO_ID if server in lacks else ID_1)], server=server)


def tid020_fires__a_kraft_broker_without_an_id(lab):
    """KRaft gives each topic an ID, whatever else was seen."""
    one_without(lab, {B2})


def tid020_near_miss__kraft_brokers_behind_a_proxy(lab):
    """A proxy with an address for each broker gives no IDs; the capture has both of its legs."""
    one_without(lab, ())
    proxy = {f"10.0.1.{number}:9092": number for number in (1, 2, 3)}
    for server in proxy:
        lab.versions(0, OF_KRAFT, server=server)
        for at in TIMES:
            lab.metadata(at + 3, [("orders", NO_ID)], server=server, brokers=proxy)


def tid020_near_miss__one_address_of_a_proxy(lab):
    """The same, of which one front address was captured."""
    one_without(lab, ())
    proxy = {f"10.0.1.{number}:9092": number for number in (1, 2, 3)}
    lab.versions(0, OF_KRAFT, server="10.0.1.2:9092")
    for at in TIMES:
        lab.metadata(at + 3, [("orders", NO_ID)], server="10.0.1.2:9092", brokers=proxy)


def tid020_fires__a_follower_that_knows_the_id(lab):
    """A broker fetches by the ID, and gives none to its clients."""
    follower_without(lab, range(0, 120, 10))


def tid020_near_miss__a_follower_that_knew_the_id(lab):
    """Its inter-broker protocol is older again: it fetches by name from then on."""
    follower_without(lab, range(0, 20, 5))


def follower_without(lab, times):
    node_beats(lab, 20, TIMES, host="10.0.0.2", broker=2)
    lab.fetches(times, ID_1, client_id="broker-2-fetcher-0", host="10.0.0.2")
    for at in TIMES:
        lab.metadata(at, [("orders", ID_1)], server=B1)
        lab.metadata(at, [("orders", NO_ID)], server=B2)


def tid020_near_miss__a_controller_without_ids(lab):
    """While the inter-broker protocol is rolled up, and back for a time, controllers' requests carry no IDs."""
    for begin, topic_id, version in ((0, ID_1, 7), (60, None, 6), (120, ID_1, 7), (180, None, 6), (240, ID_1, 7)):
        for at in range(begin, begin + 60, 10):
            lab.control(
                at, "UpdateMetadata", [("orders", topic_id, 4)], version=version, epoch=1 + begin // 60, server=B2
            )
            lab.metadata(at + 2, [("orders", topic_id or NO_ID, 0, 4)], server=B2)


def deleted_under_another_id(lab, until=120, *, own=True):
    """All brokers list the topic under one ID, and its deletion is answered with another."""
    if own:
        node_beats(lab, 20, TIMES, host="10.0.0.2", broker=2)
        KINDS["fetch-by-id"].states(lab, range(0, until, 10), ID_1, B1)
    for number, server in enumerate((B1, B2, B3)):
        KINDS["metadata"].states(lab, range(number, until, 10), ID_1, server)
    lab.deleted(55, "orders", ID_2)
    lab.until = 200


def tid020_fires__a_deletion_of_another_id(lab):
    deleted_under_another_id(lab)


def tid020_near_miss__a_deletion_of_another_id_that_ended_it(lab):
    """What brokers listed until then was old: the topic had been recreated."""
    deleted_under_another_id(lab, until=70)


def tid020_near_miss__a_tenant_deletes_its_own(lab):
    """It may be a gateway, at which each tenant has a topic of that name."""
    deleted_under_another_id(lab, own=False)


def tid020_near_miss__a_proxy_without_ids(lab):
    """A gateway gives clients no IDs; the brokers behind it have them."""
    listed(lab)
    KINDS["update-metadata"].states(lab, TIMES, ID_1, B2)
    KINDS["metadata"].states(lab, TIMES, ID_1, B1)
    KINDS["metadata"].states(lab, TIMES, NO_ID, "10.0.0.77:9092")


def tid020_near_miss__ids_are_assigned(lab):
    listed(lab)
    KINDS["metadata"].states(lab, range(0, 60, 10), NO_ID, B1)
    KINDS["update-metadata"].states(lab, range(61, 120, 10), ID_1, B1)
    KINDS["metadata"].states(lab, range(62, 180, 10), ID_1, B1)


def tid020_near_miss__a_rejected_controller(lab):
    """The former controller goes on, and brokers answer STALE_CONTROLLER_EPOCH (11)."""
    KINDS["metadata"].states(lab, TIMES, ID_1, B1)
    for at in TIMES:
        lab.control(at + 5, "UpdateMetadata", [("orders", ID_2, 4)], server=B2, error=11)


def tid020_near_miss__validate_only(lab):
    """A client validates a creation every 10 s, and gets another ID that never exists."""
    KINDS["metadata"].states(lab, TIMES, ID_1, B1)
    for at in TIMES:
        lab.created(at + 5, "orders", ID_2, validate_only=True)


def tid020_fires__two_processes_of_one_node(lab):
    """Each has its own metadata (CTL012)."""
    registers(lab, ID_1, [0], epoch=20, host="10.0.0.2", broker=2)
    node_beats(lab, 20, range(1, 118, 2), host="10.0.0.2", broker=2)
    registers(lab, ID_2, [4], epoch=70, host="10.0.0.7", broker=2)
    node_beats(lab, 70, range(5, 118, 2), host="10.0.0.7", broker=2)
    KINDS["metadata"].states(lab, TIMES, ID_1, B2)
    KINDS["consumer-group-describe"].states(lab, [at + 5 for at in TIMES], ID_2, B2)


def tid020_near_miss__a_stale_follower(lab):
    """Broker 2 still fetches the ID of before the topic was recreated, and a stale leader serves it (TID017)."""
    listed(lab)
    lab.metadata(0, [("orders", ID_1, 0, 4)])
    lab.control(2, "LeaderAndIsr", [("orders", ID_2, 0, {"isNew": True})], server=B3)
    KINDS["fetch-by-id"].states(lab, TIMES, ID_1, B1)
    KINDS["metadata"].states(lab, [at + 5 for at in TIMES], ID_2, B2)


def tid020_near_miss__a_lost_id(lab):
    """The controller gives the topic another ID under its data, and brokers keep the former (TID004)."""
    listed(lab)
    lab.control(0, "LeaderAndIsr", [("orders", ID_1, 3)])
    KINDS["consumer-group-describe"].states(lab, TIMES, ID_1, B1)
    for at in TIMES:
        lab.control(at + 5, "LeaderAndIsr", [("orders", ID_2, 5)], server=B2, epoch=2, errors=[(ID_2, 103)])


def tid020_near_miss__a_node_with_an_empty_disk(lab):
    """It reads the whole metadata log hours after the topic was recreated, in which the former ID stands first."""
    first, second = topic("orders", id_bytes(ID_1)), topic("orders", id_bytes(ID_2))
    listed(lab)
    log(lab, 1, first, high_watermark=1)
    KINDS["metadata"].states(lab, range(2, 40, 5), ID_1, B1)
    log(lab, 40, remove_topic(id_bytes(ID_1)), second, offset=1, high_watermark=3)
    KINDS["metadata"].states(lab, range(41, 8000, 60), ID_2, B2)
    for at in (7000, 7100, 7200):
        log(lab, at, first, high_watermark=3)
        log(lab, at + 1, remove_topic(id_bytes(ID_1)), second, offset=1, high_watermark=3)


def tid020_near_miss__a_mirrored_cluster(lab):
    """It has a topic of the same name, and brokers of the same numbers."""
    mirror = {"10.0.1.1:9092": 1, "10.0.1.2:9092": 2}
    for at in TIMES:
        lab.metadata(at, [("orders", ID_1)])
        for server in mirror:
            lab.metadata(at + 2, [("orders", ID_2)], server=server, brokers=mirror, cluster_id="mirrorAAAAAAAAAAAAAAAA")


def tid020_near_miss__two_clusters_behind_one_address(lab):
    """In turn, as behind a balancer by name (CLU001)."""
    for at in TIMES:
        lab.metadata(at, [("orders", ID_1)])
        lab.metadata(at + 5, [("orders", ID_2)], cluster_id="mirrorAAAAAAAAAAAAAAAA")


def tid020_near_miss__a_paused_broker(lab):
    """The topic is recreated while it is paused; then it answers what has waited for 60 s, from what it knew."""
    lab.metadata(0, [("orders", ID_1, 0, 4)])
    KINDS["metadata"].states(lab, range(0, 60, 5), ID_1, B2)
    lab.deleted(60, "orders", ID_1)
    KINDS["metadata"].states(lab, range(62, 240, 10), ID_2, B1)
    for number in range(20):
        lab.metadata(122 + number / 20, [("orders", ID_1)], server=B2)
    KINDS["metadata"].states(lab, range(130, 240, 10), ID_2, B2)


def tid020_cannot_know(lab):
    """Nothing was captured of the second ID after the first was stated again."""
    KINDS["leader-and-isr"].states(lab, range(0, 120, 10), ID_1, B1)
    KINDS["metadata"].states(lab, range(0, 20, 5), ID_2, B2)


def disputed_use(lab, client_id, host, until, kind="leader-and-isr"):
    """An ID was named and the leader serves it; all brokers report another one, and nothing ended."""
    listed(lab)
    KINDS[kind].states(lab, [0, 20, 40], ID_1, B1)
    lab.fetches(range(1, until, 5), ID_1, client_id=client_id, host=host)
    KINDS["metadata"].states(lab, range(2, until, 10), ID_2, B2)


def tid017_near_miss__both_ids_are_stated(lab):
    disputed_use(lab, "broker-2-fetcher-0", "10.0.0.2", 120)


def tid005_near_miss__both_ids_are_stated(lab):
    disputed_use(lab, "app", "10.0.0.99", 600)


def tid017_near_miss__the_log_has_the_other(lab):
    disputed_use(lab, "broker-2-fetcher-0", "10.0.0.2", 120, kind="metadata-log")


def tid005_near_miss__the_log_has_the_other(lab):
    disputed_use(lab, "app", "10.0.0.99", 600, kind="metadata-log")


def unlisted_use(lab, lists=(("orders", ID_1),), *, server=B1, client_id="app", host="10.0.0.99", at=range(2, 120, 10)):
    """A client fetches an ID that no message names, and lists all topics as often."""
    talk = lab.talk(server, client_id, host)
    for second in at:
        lab.metadata(second, lists, server=server, talk=talk)
    lab.fetches(range(0, 130, 5), ID_2)


@disagrees_at(0)
def tid021_fires(lab):
    unlisted_use(lab)


def tid021_fires__to_another_client(lab):
    """The listing is another client's, of a broker that has a controller's requests; both are without a login."""
    KINDS["leader-and-isr"].states(lab, TIMES, ID_1, B1)
    node_beats(lab, 20, TIMES, host="10.0.0.2", broker=2)
    KINDS["fetch-by-id"].states(lab, TIMES, ID_1, B1)
    unlisted_use(lab, client_id="admin", host="10.0.0.98")


def tid021_fires__an_assignment(lab):
    talk = lab.talk(B1)
    for at in range(2, 120, 10):
        lab.metadata(at, [("orders", ID_1)], talk=talk)
    for at in range(0, 130, 5):
        assigned = {"topicPartitions": [{"topicId": ID_2, "partitions": [0]}]}
        talk.ask(at, "ConsumerGroupHeartbeat", 0, {"groupId": "g"}, {"assignment": assigned})


def tid021_fires__commits(lab):
    talk = lab.talk(B1)
    for at in range(0, 130, 5):
        topics = [{"topicId": ID_2, "partitions": [{"committedOffset": at}]}]
        answer = {"topics": [{"topicId": ID_2, "partitions": [{"errorCode": 0}]}]}
        talk.ask(at, "OffsetCommit", 10, {"groupId": "g", "topics": topics}, answer)
    for at in range(2, 120, 10):
        lab.metadata(at, [("orders", ID_1)], talk=talk)


def tid021_fires__offsets_fetched(lab):
    talk = lab.talk(B1)
    for at in range(0, 130, 5):
        offsets_fetched(talk, at, ID_2, ID_2)
    for at in range(2, 120, 10):
        lab.metadata(at, [("orders", ID_1)], talk=talk)


def offsets_fetched(talk, at, asked, answered):
    """A group's offsets by ID."""
    group = {"groupId": "g", "topics": [{"topicId": asked, "partitionIndexes": [0]}]}
    row = {"groupId": "g", "topics": [{"topicId": answered, "partitions": [{"committedOffset": 5}]}]}
    talk.ask(at, "OffsetFetch", 10, {"groups": [group]}, {"groups": [row]})


def share_state(lab, times, asked, answered=None, *, api="WriteShareGroupState", error=0):
    """What a broker asks a share coordinator about a partition that a share group reads."""
    talk = lab.talk(B1, "Persister-client-2", "10.0.0.2")
    for at in times:
        topics = [{"topicId": asked, "partitions": [{"partition": 0}]}]
        results = [{"topicId": answered or asked, "partitions": [{"partition": 0, "errorCode": error}]}]
        talk.ask(at, api, 0, {"groupId": "s", "topics": topics}, {"results": results})
        lab.until = max(lab.until, at)
    return talk


def tid021_fires__the_state_of_a_share_group(lab):
    talk = share_state(lab, range(0, 130, 5), ID_2)
    for at in range(2, 120, 10):
        lab.metadata(at, [("orders", ID_1)], talk=talk)


def tid021_near_miss__the_state_of_a_share_group_is_deleted(lab):
    """The coordinator deletes it after the topic, however late."""
    talk = share_state(lab, range(0, 130, 5), ID_2, api="DeleteShareGroupState")
    for at in range(2, 120, 10):
        lab.metadata(at, [("orders", ID_1)], talk=talk)


def tid022_fires__the_state_of_a_share_group(lab):
    share_state(lab, (1, 2), ID_1, ID_2)


def tid022_near_miss__the_state_of_a_share_group(lab):
    share_state(lab, (1, 2), ID_1)
    share_state(lab, (3, 4), ID_1, NO_ID, error=100)


def tid012_fires__the_state_of_a_share_group(lab):
    share_state(lab, (1, 2), NO_ID, api="ReadShareGroupState")


def tid013_fires__a_member_has_a_topic_without_an_id(lab):
    """By what an administrator is answered about the group."""
    KINDS["consumer-group-describe"].states(lab, TIMES, NO_ID, B1)


def tid021_fires__a_transaction(lab):
    talk = lab.talk(B1)
    for at in range(0, 130, 5):
        topics = [{"topicId": ID_2, "partitions": [{"committedOffset": at}]}]
        answer = {"topics": [{"topicId": ID_2, "partitions": [{"errorCode": 0}]}]}
        talk.ask(at, "TxnOffsetCommit", 6, {"groupId": "g", "topics": topics}, answer)
    for at in range(2, 120, 10):
        lab.metadata(at, [("orders", ID_1)], talk=talk)


def tid021_fires__directories(lab):
    """Of a broker, to a topic that no broker lists. The controller is a broker, too."""
    KINDS["fetch-by-id"].states(lab, TIMES, ID_1, B1)
    for at in TIMES:
        directories = [{"topics": [{"topicId": ID_2, "partitions": [{"partitionIndex": 0}]}]}]
        answer = {"directories": directories}
        talk = lab.talk(B1, "2", "10.0.0.2")
        talk.ask(at, "AssignReplicasToDirs", 0, {"brokerId": 2, "directories": directories}, answer)
        for server in (B1, B2, B3):
            lab.metadata(at + 2, [("orders", ID_1)], server=server)


def tid021_near_miss(lab):
    """A topic is new: it is used before it is listed."""
    unlisted_use(lab, at=range(2, 40, 10))
    lab.metadata(45, [("orders", ID_1), ("fresh", ID_2)])


def tid021_near_miss__another_principal(lab):
    """What a principal may not see is not in its listings."""
    for client_id, host, user in (("app", "10.0.0.99", "AGJvYgBw"), ("admin", "10.0.0.98", "AGFkYQBw")):
        talk = lab.talk(B1, client_id, host)
        talk.facts["sasl"] = "PLAIN"
        talk.ask(0, "SaslHandshake", 1, {"mechanism": "PLAIN"}, {"mechanisms": ["PLAIN"]})
        talk.ask(0.1, "SaslAuthenticate", 2, {"authBytes": user}, {"authBytes": ""})
    KINDS["leader-and-isr"].states(lab, TIMES, ID_1, B1)
    unlisted_use(lab, client_id="admin", host="10.0.0.98")


def tid021_near_miss__connections_from_before(lab):
    """Who logged in before the capture is not known."""
    KINDS["leader-and-isr"].states(lab, TIMES, ID_1, B1)
    unlisted_use(lab, client_id="admin", host="10.0.0.98")
    lab.talk(B1, "app", from_start=False).ask(1, "ListGroups", 0, {}, {"groups": []})


def tid021_near_miss__an_encrypted_connection(lab):
    KINDS["leader-and-isr"].states(lab, TIMES, ID_1, B1)
    unlisted_use(lab, client_id="admin", host="10.0.0.98")
    lab.talk(B1, "app", protocol="tls")


def tid021_near_miss__a_late_server(lab):
    """One broker does not list the new topic yet, while another one grants it."""
    unlisted_use(lab, server=B2)


def tid021_near_miss__not_all_have_an_id(lab):
    unlisted_use(lab, [("orders", ID_1), ("fresh", NO_ID)])


def tid021_near_miss__a_drafts_name(lab):
    """Its sender has a name for the ID."""
    unlisted_use(lab)
    drafted_fetches(lab)


def drafted_fetches(lab):
    talk = lab.talk(B2)
    talk.dialect = Dialect.KIP516_DRAFT
    asked = {"replicaId": -1, "topics": [{"topic": "fresh", "topicId": ID_2, "partitions": [{"partition": 0}]}]}
    talk.drafted(5, "Fetch", 12, asked | {"sessionEpoch": -1}, {"responses": []})


def tid021_near_miss__a_deleted_topic(lab):
    unlisted_use(lab)
    log(lab, 50, remove_topic(id_bytes(ID_2)), high_watermark=1)


def tid021_near_miss__a_group_names_it(lab):
    unlisted_use(lab)
    KINDS["consumer-group-describe"].states(lab, [5], ID_2, B1)


def tid021_cannot_know(lab):
    """One listing, and it may have been sent before the topic was created."""
    unlisted_use(lab, at=[60])


@disagrees_at(1)
def tid022_fires(lab):
    lab.metadata(0, [("orders", ID_1)])
    talk = lab.talk(B1)
    for at in (1, 2):
        answered_with(talk, at, [ID_1], [ID_2])


def tid022_fires__metadata_by_id(lab):
    talk = lab.talk(B1)
    for at in (1, 2):
        asked = {"topics": [{"topicId": ID_1, "name": None}]}
        talk.ask(at, "Metadata", 12, asked, {"topics": [{"name": "orders", "topicId": ID_2, "partitions": []}]})


def tid022_fires__offsets_fetched(lab):
    talk = lab.talk(B1)
    for at in (1, 2):
        offsets_fetched(talk, at, ID_1, ID_2)


def tid022_fires__a_share_group(lab):
    """Each request begins a session."""
    talk = lab.talk(B1)
    for at in (1, 2):
        shared(talk, at, ID_1, ID_2, epoch=0)


def committed_by_id(lab, error, answered):
    talk = lab.talk(B1)
    for at in (1, 2, 3):
        topics = [{"topicId": ID_1, "partitions": [{"committedOffset": at}]}]
        answer = {"topics": [{"topicId": answered, "partitions": [{"errorCode": error}]}]}
        talk.ask(at, "OffsetCommit", 10, {"groupId": "g", "topics": topics}, answer)


def tid022_fires__without_an_id(lab):
    committed_by_id(lab, 0, NO_ID)


def tid022_near_miss__a_refusal_without_an_id(lab):
    committed_by_id(lab, 100, NO_ID)


def replicas_answered(lab, topic_id, error=0):
    """A leader changes its ISR and assigns directories, and the controller answers."""
    listed(lab)
    talk = lab.talk(B3, "1", "10.0.0.1")
    part, row = {"topicId": ID_1, "partitions": [{}]}, {"topicId": topic_id, "partitions": [{"errorCode": error}]}
    for at in TIMES:
        talk.ask(at, "AlterPartition", 2, {"brokerId": 1, "topics": [part]}, {"topics": [row]})
        asked = {"brokerId": 1, "directories": [{"id": ID_3, "topics": [part]}]}
        talk.ask(at + 1, "AssignReplicasToDirs", 0, asked, {"directories": [{"id": ID_3, "topics": [row]}]})


def tid022_fires__without_an_id_to_a_broker(lab):
    replicas_answered(lab, NO_ID)


def tid022_near_miss__a_refusal_without_an_id_to_a_broker(lab):
    replicas_answered(lab, NO_ID, error=100)


def tid022_near_miss__to_a_broker(lab):
    replicas_answered(lab, ID_1)


def tid022_near_miss__commits(lab):
    committed_by_id(lab, 0, ID_1)


def tid022_near_miss__a_session_of_a_share_group(lab):
    """It goes on from before the capture."""
    talk = lab.talk(B1, from_start=False)
    for at in range(1, 9):
        shared(talk, at, ID_1, ID_2, epoch=at)


def session(lab, begin, then):
    """A session of a fetch and one of a share group: what each asks for first and then, and what is answered."""
    fetches, shares = lab.talk(B1), lab.talk(B1, "share", "10.0.0.98")
    answered_with(fetches, 1, begin, begin, sessionEpoch=0)
    shared(shares, 1, begin[-1], begin[-1], epoch=0)
    for at in range(2, 9):
        answered_with(fetches, at, [], then, sessionEpoch=at - 1)
        shared(shares, at, begin[-1], then[0], epoch=at - 1)


@disagrees_at(2)
def tid022_fires__in_a_session(lab):
    session(lab, [ID_1], [ID_2])


def tid022_near_miss__a_session_that_began_with_it(lab):
    session(lab, [ID_1, ID_2], [ID_2])


def shared(talk, at, asked, answered, *, epoch):
    topics = [{"topicId": asked, "partitions": [{"partitionIndex": 0}]}]
    responses = [{"topicId": answered, "partitions": [{"partitionIndex": 0}]}]
    talk.ask(at, "ShareFetch", 1, {"shareSessionEpoch": epoch, "topics": topics}, {"responses": responses})


def answered_with(talk, at, asked, answered, **more):
    row = {"partitionIndex": 0, "records": None, "abortedTransactions": None}
    topics = [{"topicId": one, "partitions": [{"partition": 0}]} for one in asked]
    responses = [{"topicId": one, "partitions": [row]} for one in answered]
    talk.ask(at, "Fetch", 13, {"topics": topics, "replicaId": -1, "sessionEpoch": -1, **more}, {"responses": responses})


def tid022_near_miss(lab):
    """An incremental fetch of a session: its answers name what was asked for before."""
    talk = lab.talk(B1)
    answered_with(talk, 1, [ID_1, ID_2], [ID_1, ID_2], sessionEpoch=0)
    for number in (1, 2, 3):
        answered_with(talk, 1 + number, [ID_1], [ID_2], sessionEpoch=number)


def tid022_near_miss__by_name_and_id(lab):
    talk = lab.talk(B1)
    for at in (1, 2):
        asked = {"topics": [{"topicId": ID_1, "name": None}, {"topicId": NO_ID, "name": "other"}]}
        rows = [{"name": name, "topicId": one, "partitions": []} for name, one in (("orders", ID_1), ("other", ID_3))]
        talk.ask(at, "Metadata", 12, asked, {"topics": rows})


def tid022_cannot_know(lab):
    """Once: it may have been read wrongly."""
    answered_with(lab.talk(B1), 1, [ID_1], [ID_2])


def rejected_writes(lab, times, errors=(), server=B1, own=True):
    """Writes by an ID that the server names all the while; it serves followers unless it may be a proxy."""
    if own:
        KINDS["leader-and-isr"].states(lab, [0], ID_1, server)
    for at in TIMES:
        lab.metadata(at, [("orders", ID_1)], server=server)
    talk = lab.talk(server, "writer", "10.0.0.97")
    for number, at in enumerate(times):
        error = errors[number] if number < len(errors) else 100
        rejects(talk, at, "Produce", error)


def rejects(talk, at, api, error):
    row = {"topicId": ID_1, "partitions": [{"errorCode": error}]}
    if api == "Produce":
        row = {"topicId": ID_1, "partitionResponses": [{"errorCode": error, "baseOffset": at}]}
        talk.ask(at, api, 13, {"acks": -1, "topicData": [{"topicId": ID_1}]}, {"responses": [row]})
    elif api == "OffsetCommit":
        talk.ask(at, api, 10, {"groupId": "g", "topics": [{"topicId": ID_1}]}, {"topics": [row]})
    elif api == "OffsetFetch":
        asked = {"groups": [{"groupId": "g", "topics": [{"topicId": ID_1}]}]}
        talk.ask(at, api, 10, asked, {"groups": [{"groupId": "g", "topics": [row]}]})
    else:
        rows = [{"errorCode": error, "name": None, "topicId": ID_1}]
        talk.ask(at, "Metadata", 12, {"topics": [{"topicId": ID_1, "name": None}]}, {"topics": rows})


@disagrees_at(20)
def tid023_fires(lab):
    rejected_writes(lab, range(20, 110, 5))


def by_another_api(lab, api):
    KINDS["leader-and-isr"].states(lab, [0], ID_1, B1)
    for at in TIMES:
        lab.metadata(at, [("orders", ID_1)])
    talk = lab.talk(B1, "reader", "10.0.0.97")
    for at in range(20, 110, 5):
        rejects(talk, at, api, 100)


def tid023_fires__metadata_by_id(lab):
    by_another_api(lab, "Metadata")


def tid023_fires__commits(lab):
    by_another_api(lab, "OffsetCommit")


def tid023_fires__offsets_fetched(lab):
    by_another_api(lab, "OffsetFetch")


def tid023_near_miss(lab):
    """The topic is new: for some seconds it is named and not yet served."""
    rejected_writes(lab, range(1, 25, 2))


def tid023_near_miss__granted_in_between(lab):
    rejected_writes(lab, range(20, 110, 5), [100, 100, 0, 100, 0])


def tid023_near_miss__of_a_deleted_topic(lab):
    """A writer keeps the old ID, which the server names no more."""
    KINDS["leader-and-isr"].states(lab, [0], ID_1, B1)
    for at in (0, 10, 20):
        lab.metadata(at, [("orders", ID_1)])
    lab.deleted(22, "orders", ID_1)
    for at in range(30, 120, 10):
        lab.metadata(at, [("orders", ID_2)])
    talk = lab.talk(B1, "writer", "10.0.0.97")
    for at in range(15, 110, 5):
        rejects(talk, at, "Produce", 0 if at < 22 else 100)


def tid023_near_miss__a_proxy_that_hides_topics(lab):
    """It names the topic to one client, and to another it is unknown."""
    rejected_writes(lab, range(20, 110, 5), own=False)


def tid023_cannot_know(lab):
    """It names the ID before and after, and perhaps not meanwhile."""
    KINDS["leader-and-isr"].states(lab, [0], ID_1, B1)
    lab.metadata(0, [("orders", ID_1)])
    talk = lab.talk(B1, "writer", "10.0.0.97")
    for at in range(20, 40, 5):
        rejects(talk, at, "Produce", 100)
    lab.metadata(60, [("orders", ID_1)])


def clu002_near_miss__servers_reject_what_they_name(lab):
    """A writer is granted nothing, and asks for the ID that all clients get."""
    rejected_writes(lab, range(20, 110, 5))


def clu002_near_miss__servers_reject_fetches_of_what_they_name(lab):
    """A reader is granted nothing, and asks for the ID that all clients get."""
    rejected_writes(lab, ())
    lab.fetches(range(10, 110, 4), ID_1, 100, client_id="reader", host="10.0.0.96")


def clu002_near_miss__servers_reject_the_version_of_fetches(lab):
    """UNSUPPORTED_VERSION (35) is about no ID."""
    rejected_writes(lab, ())
    talk = lab.talk(B1, "reader", "10.0.0.96")
    for at in range(10, 110, 4):
        asked = {"topics": [{"topicId": ID_3, "partitions": [{}]}], "replicaId": -1, "sessionEpoch": -1}
        talk.ask(at, "Fetch", 13, asked, {"errorCode": 35})
