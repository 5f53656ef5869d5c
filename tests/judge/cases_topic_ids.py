"""Cases of the TID checks, in bytes: one that fires, one that nearly does, one where nobody can know."""

from tests.decode.log.batches import marker, remove_topic, topic
from tests.judge.cases_control import id_bytes, log, node_beats
from tests.judge.lab import B1, B2, B3, ID_1, ID_2, ID_3, NO_ID, START, disagrees_at, disagrees_later, lacks
from wirecheck.decode.schemas import releases

LOG_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
FIFTY = "AAAAAAAAAAAAAAAAAAAAMg"
TWO = {"replicas": [1, 2], "isr": [1, 2]}


def recreated(lab, born=40):
    lab.metadata(0, [("orders", ID_1, 0, 4)])
    lab.deleted(born - 5, "orders", ID_1)
    lab.metadata(born, [("orders", ID_2)])


@disagrees_at(35)
def tid001_fires(lab):
    recreated(lab)


def of_partitions(lab, before, after):
    """A topic that is deleted and created again with other partitions."""
    lab.metadata(0, [("orders", ID_1)], partitions=before)
    lab.deleted(25, "orders", ID_1)
    lab.metadata(30, [("orders", ID_2)], partitions=after)


def tid001_fires__with_fewer_partitions(lab):
    of_partitions(lab, 3, 2)
    (found,) = lab.findings("TID001")
    assert " with 2 of 3 partitions (deleted" in found["summary"]


def tid001_fires__with_more_partitions(lab):
    of_partitions(lab, 2, 3)
    (found,) = lab.findings("TID001")
    assert "partitions" not in found["summary"]


def tid001_fires__with_a_partition_that_has_no_leader(lab, leader_error=5):
    """Its only replica is on a broker that is gone: it is there, and needs none more."""
    lab.metadata(0, [("orders", ID_1)], partitions=3)
    lab.deleted(25, "orders", ID_1)
    for at in (30, 50, 70):
        lab.metadata(at, [("orders", ID_2)], partitions=3, leaderless=(2,), leader_error=leader_error)
    (found,) = lab.findings("TID001")
    assert "partitions" not in found["summary"]


def tid001_fires__with_a_partition_whose_leader_has_no_such_listener(lab):
    tid001_fires__with_a_partition_that_has_no_leader(lab, leader_error=72)


def tid001_near_miss(lab):
    """A validate-only creation answers an id that never exists."""
    lab.metadata(0, [("orders", ID_1)])
    lab.created(5, "orders", ID_2, validate_only=True)
    lab.metadata(60, [("orders", ID_1)])


def tid001_cannot_know(lab):
    """Another id, no deletion seen, and epochs that say nothing: perhaps a recreation, perhaps worse."""
    lab.metadata(0, [("orders", ID_1)])
    lab.metadata(40, [("orders", ID_2)])


@disagrees_at(1)
def tid002_fires(lab):
    lab.metadata(0, [("orders", ID_1)])
    lab.control(1, "LeaderAndIsr", [("orders", ID_1, 3)], server=B3, errors=[(ID_1, 103)])


def replica_back_in_sync(lab, isr=(1, 2), leader=1):
    """Broker 3 refuses the ID; later its disk is repaired, and it is in the ISR of the next epoch."""
    lab.metadata(0, [("orders", ID_1)])
    lab.control(0, "LeaderAndIsr", [("orders", ID_1, 3)])
    lab.control(1, "LeaderAndIsr", [("orders", ID_1, 4, {"isr": list(isr)})])
    lab.control(1, "LeaderAndIsr", [("orders", ID_1, 4, {"isr": list(isr)})], server=B3, errors=[(ID_1, 103)])
    lab.control(40, "UpdateMetadata", [("orders", ID_1, 5, {"leader": leader})])


def tid002_fires__in_sync_again(lab):
    replica_back_in_sync(lab)


def tid002_fires__never_left_the_isr(lab):
    replica_back_in_sync(lab, isr=(1, 2, 3))


def tid002_fires__leads_again(lab):
    """The only replica in sync refuses the ID; repaired, it leads the partition and serves it."""
    replica_back_in_sync(lab, isr=(3,), leader=3)
    lab.fetches([42, 44], ID_1, server=B3)


def tid002_near_miss(lab):
    """STALE_CONTROLLER_EPOCH (11) per partition is what every new controller gets."""
    lab.metadata(0, [("orders", ID_1)])
    lab.control(1, "LeaderAndIsr", [("orders", ID_1, 3)], server=B3, errors=[(ID_1, 11)])


def tid002_cannot_know(lab):
    """The answer was not seen."""
    talk = lab.control(1, "LeaderAndIsr", [("orders", ID_1, 3)], server=B3)
    talk.messages, talk.exchanges = talk.messages[:1], [(0, -1, 3)]


def both_ids(lab, again, source="LeaderAndIsr"):
    lab.control(0, source, [("orders", ID_1, 3)])
    lab.control(20, source, [("orders", ID_2, 0, {"isNew": True} if source == "LeaderAndIsr" else {})])
    lab.control(again, source, [("orders", ID_1, 3)])
    lab.until = 200


def tid001_fires__in_versions_without_ids(lab):
    admin = lab.talk(client_id="admin")
    lab.metadata(0, [("orders", None)], version=9)
    admin.ask(30, "DeleteTopics", 3, {"topicNames": ["orders"]}, {"responses": [{"name": "orders"}]})
    asked = {"topics": [{"name": "orders", "numPartitions": 1, "replicationFactor": 1}]}
    admin.ask(35, "CreateTopics", 3, asked, {"topics": [{"name": "orders"}]})
    lab.metadata(60, [("orders", None)], version=9)


def tid001_near_miss__created_and_deleted(lab):
    admin = lab.talk(client_id="admin")
    lab.metadata(0, [("orders", None)], version=9)
    asked = {"topics": [{"name": "orders", "numPartitions": 1, "replicationFactor": 1}]}
    admin.ask(30, "CreateTopics", 3, asked, {"topics": [{"name": "orders"}]})
    admin.ask(35, "DeleteTopics", 3, {"topicNames": ["orders"]}, {"responses": [{"name": "orders"}]})


@disagrees_later("what goes on after a change: from the change")
def tid003_fires(lab):
    both_ids(lab, 80)


def ordered_again(lab, *, reporting=(B1, B2)):
    """The topic was recreated; then ZooKeeper was restored, and a controller orders the ID of before."""
    lab.control(0, "UpdateMetadata", [("orders", ID_1, 3)])
    lab.deleted(18, "orders")
    lab.control(20, "UpdateMetadata", [("orders", ID_2, 0)])
    for server in (B1, B2):
        lab.metadata(15, [("orders", ID_1)], server=server)
        lab.metadata(40, [("orders", ID_2)], server=server)
    lab.control(80, "UpdateMetadata", [("orders", ID_1, 0)], epoch=2)
    for at in (90, 120, 150):
        for server in (B1, B2):
            lab.metadata(at, [("orders", ID_1 if server in reporting else ID_2)], server=server)
    lab.until = 200


def tid003_fires__though_the_end_is_taken_back(lab):
    ordered_again(lab)


def tid003_fires__in_answers_of_one_broker(lab):
    """To one client, without any controller's request; a follower fetches there."""
    talk = lab.talk(B1)
    for begin, topic_id in ((0, ID_1), (60, ID_2), (120, ID_1)):
        for at in range(begin, begin + 60, 10):
            lab.metadata(at, [("orders", topic_id)], talk=talk)
    node_beats(lab, 20, range(1, 180, 20), host="10.0.0.2", broker=2)
    lab.fetches(range(5, 180, 20), ID_3, client_id="broker-2-fetcher-0", host="10.0.0.2")


def described(lab, times, topic_id):
    talk = lab.talk(B1)
    for at in times:
        answer = {"topics": [{"name": "orders", "topicId": topic_id, "partitions": []}]}
        talk.ask(at, "DescribeTopicPartitions", 0, {"topics": [{"name": "orders"}]}, answer)
        lab.until = max(lab.until, at)


def tid003_fires__in_descriptions_of_one_broker(lab):
    for begin, topic_id in ((0, ID_1), (60, ID_2), (120, ID_1)):
        described(lab, range(begin, begin + 60, 10), topic_id)
    node_beats(lab, 20, range(1, 180, 20), host="10.0.0.2", broker=2)


def tid003_near_miss__in_descriptions_of_a_recreation(lab):
    """Twice, with an ID of its own each time."""
    for begin, topic_id in ((0, ID_1), (60, ID_2), (120, ID_3)):
        described(lab, range(begin, begin + 60, 10), topic_id)
    node_beats(lab, 20, range(1, 180, 20), host="10.0.0.2", broker=2)


def tid003_fires__in_answers_of_a_broker_that_a_controller_gave_the_first(lab):
    lab.control(0, "LeaderAndIsr", [("orders", ID_1, 4)])
    tid003_fires__in_answers_of_one_broker(lab)


def tid003_near_miss__of_two_clients_of_a_proxy(lab):
    """It renames topics for one of them."""
    for begin, topic_id, host in ((0, ID_1, "10.0.0.98"), (60, ID_2, "10.0.0.99"), (120, ID_1, "10.0.0.98")):
        for at in range(begin, begin + 60, 10):
            lab.metadata(at, [("orders", topic_id)], talk=lab.talk(B1, host=host))


def tid003_near_miss__recreated_and_one_late_answer(lab):
    talk = lab.talk(B1)
    for begin, topic_id in ((0, ID_1), (60, ID_2)):
        for at in range(begin, begin + 60, 10):
            lab.metadata(at, [("orders", topic_id)], talk=talk)
    lab.metadata(125, [("orders", ID_1)], talk=talk)


def tid003_near_miss(lab):
    """Within the grace both ids are on their way."""
    both_ids(lab, 30)


def tid003_cannot_know(lab):
    """Clients' Metadata flips with the broker that is asked."""
    lab.control(0, "UpdateMetadata", [("orders", ID_1, 3)])
    lab.deleted(19, "orders", ID_1)
    lab.control(20, "UpdateMetadata", [("orders", ID_2, 0)])
    lab.metadata(45, [("orders", ID_1)])


def renumbered(lab, new_epoch, **facts):
    lab.control(0, "LeaderAndIsr", [("orders", ID_1, 3)]).facts.update(facts)
    lab.control(60, "LeaderAndIsr", [("orders", ID_2, new_epoch)], epoch=2, errors=[(ID_2, 103)])


@disagrees_at(60)
def tid004_fires(lab):
    renumbered(lab, 4)


TWO_LEFT = {"replicas": [1, 3], "isr": [1, 3]}


def moved(lab):
    """A controller that knows no ids moves the partition; the next one gives the topic another id (KAFKA-12835)."""
    lab.control(0, "LeaderAndIsr", [("orders", ID_1, 3, {"replicas": [1, 2], "isr": [1, 2]})])
    lab.control(60, "LeaderAndIsr", [("orders", ID_2, 5)], epoch=2, errors=[(ID_2, 103)])


def tid004_fires__moved_by_a_controller_without_ids(lab):
    moved(lab)
    lab.metadata(30, [("orders", ID_1, 0, 5)])


def tid004_fires__moved_and_told_only_on_its_way(lab):
    """Nobody asked for Metadata once the reassignment was done, as it happened with three brokers 2.8.0."""
    lab.control(0, "LeaderAndIsr", [("orders", ID_1, 3, {"replicas": [1, 2], "isr": [1, 2]})])
    lab.metadata(30, [("orders", ID_1, 0, 4)])
    lab.control(60, "LeaderAndIsr", [("orders", ID_2, 5, TWO_LEFT)], epoch=2, errors=[(ID_2, 103)])


def tid004_near_miss__a_replica_less_that_nobody_told_of_the_old_id(lab):
    """What it had before is no state on a way."""
    lab.control(0, "LeaderAndIsr", [("orders", ID_1, 3)])
    lab.metadata(30, [("orders", ID_1, 0, 4)])
    lab.control(60, "LeaderAndIsr", [("orders", ID_2, 5, TWO_LEFT)], epoch=2, errors=[(ID_2, 103)])


def tid004_near_miss__other_replicas_that_nobody_told_of_the_old_id(lab):
    moved(lab)
    lab.metadata(70, [("orders", ID_2, 0, 5)])


def tid004_fires__in_answers_of_a_broker(lab):
    talk = lab.talk(B1)
    for at in range(0, 160, 10):
        lab.metadata(at, [("orders", ID_1 if at < 60 else NO_ID)], talk=talk)


def tid004_fires__in_one_kind_of_requests(lab):
    for at in range(0, 120, 10):
        lab.control(at, "LeaderAndIsr", [("orders", ID_1, 3)])
        lab.control(at + 1, "UpdateMetadata", [("orders", NO_ID, 3)])


def tid004_near_miss__a_controller_without_ids(lab):
    """Its inter-broker protocol is older than 2.8."""
    tid004_fires__in_answers_of_a_broker(lab)
    lab.control(59, "UpdateMetadata", [("orders", None, 3)], version=6)


def tid004_near_miss(lab):
    """Leader epochs that start again: a recreation."""
    renumbered(lab, 0)


def tid004_cannot_know(lab):
    """Something of what the broker was told is missing: the deletion may have been in it."""
    renumbered(lab, 4, gaps=(lacks(START + 30_000_000_000, 0, 4096),))


def refused_behind_a_gap(lab, *answers):
    """Replicas are told of another id; something of what they were told is missing."""
    for server, errors in zip((B1, B2), answers, strict=True):
        order = lab.control(0, "LeaderAndIsr", [("orders", ID_1, 3, TWO)], server=server)
        order.facts.update(gaps=(lacks(START + 30_000_000_000, 0, 4096),))
        lab.control(60, "LeaderAndIsr", [("orders", ID_2, 4, TWO)], epoch=2, errors=errors, server=server)


def tid004_fires__behind_a_gap_where_all_replicas_refuse(lab):
    lab.metadata(0, [("orders", ID_1, 0, 3)])
    refused_behind_a_gap(lab, [(ID_2, 103)], [(ID_2, 103)])


def tid004_cannot_know__behind_a_gap_where_a_replica_takes_it(lab):
    lab.metadata(0, [("orders", ID_1, 0, 3)])
    refused_behind_a_gap(lab, [(ID_2, 103)], [])


def dead_id_used(lab, until, **who):
    recreated(lab)
    lab.fetches([*range(10, until, 10)], ID_1, 100, **who)


@disagrees_later("what goes on after a change: from the next slot of 10 s that has a use, or the change")
def tid005_fires(lab):
    dead_id_used(lab, 400)


def tid005_fires__called_like_a_broker(lab):
    """A client ID proves nothing: it is a client's use, of a host that no broker names."""
    dead_id_used(lab, 400, client_id="broker-2-fetcher-0")


def tid005_near_miss(lab):
    """Clients have 300 s to hear of it."""
    dead_id_used(lab, 300)


def tid005_cannot_know(lab):
    """Nothing says that the id ended."""
    lab.metadata(0, [("orders", ID_1)])
    lab.fetches(range(10, 400, 10), ID_1, 0)


def two_orders(lab, other, at=1.0, **more):
    lab.control(0, "LeaderAndIsr", [("orders", ID_1, 3)])
    lab.control(at, "UpdateMetadata", [("orders", other, 3)], **more)
    lab.until = 100


@disagrees_at(0.5)
def tid006_fires(lab):
    two_orders(lab, ID_2, 0.5)


def tid006_near_miss(lab):
    two_orders(lab, ID_1, 0.5)


def tid006_fires__a_broker_goes_on(lab):
    """It was sent the new ID, and no controller has ordered the former one since."""
    lab.control(0, "UpdateMetadata", [("orders", ID_1, 3)])
    lab.deleted(18, "orders", ID_1)
    lab.control(20, "UpdateMetadata", [("orders", ID_2, 0)])
    for at in (10, 30, 60, 90, 120):
        lab.metadata(at, [("orders", ID_1)])


def by_turns(lab, *, epochs=(1, 1)):
    """One ID to broker 1, another one to broker 2, by turns. Only the leaders that the requests list join the two."""
    leaders = [{"brokerId": n, "hostName": f"10.0.0.{n}", "port": 9092} for n in (1, 2)]
    for at in range(0, 120, 10):
        for server, topic_id, epoch in ((B1, ID_1, epochs[0]), (B2, ID_2, epochs[1])):
            lab.control(at, "LeaderAndIsr", [("orders", topic_id, 3)], server=server, epoch=epoch, liveLeaders=leaders)


def tid006_fires__to_two_brokers(lab):
    by_turns(lab)


def tid006_near_miss__in_two_epochs(lab):
    """Two controllers: TID003 says who gives the earlier ID again."""
    by_turns(lab, epochs=(1, 2))


def tid006_near_miss__the_former_id_ordered_again(lab):
    ordered_again(lab)


def tid006_near_miss__one_broker_keeps_the_other_id(lab):
    """It is not taken back, and yet the broker that reports the former ID was ordered to."""
    ordered_again(lab, reporting=(B1,))


def tid006_cannot_know(lab):
    """Another controller epoch: the topic may have been made anew in between."""
    two_orders(lab, ID_2, 60, epoch=2)


def answers(lab, one, other, times=range(40, 100, 2)):
    """Broker 3 answers one thing, broker 1 another."""
    lab.metadata(0, [("orders", ID_1, 0, 4)])
    lab.deleted(30, "orders", ID_1)
    for at in times:
        lab.metadata(at, [one], server=B3)
        lab.metadata(at + 1, [other], server=B1)


@disagrees_at(41)
def tid007_fires(lab):
    answers(lab, ("orders", ID_1), ("orders", ID_2))


def denied(lab, known, unknown):
    """One broker answers the id, another one that there is no such topic."""
    for at in known:
        lab.metadata(at, [("orders", ID_1)])
    for at in unknown:
        lab.metadata(at, [("orders", None, 3)], server=B3)


def tid007_fires__one_denies_it(lab):
    denied(lab, range(0, 100, 4), range(2, 100, 4))


def tid007_near_miss__denied_before_and_after_its_life(lab):
    """Asked just before the creation, and again when the topic was gone."""
    denied(lab, range(4, 72, 4), (2, 75))
    denied(lab, (), (120, 122))


def tid007_near_miss__nobody_knows_it_at_first(lab):
    """Created, but both brokers learn of it a minute later; one says so before the other."""
    lab.created(1, "orders", ID_1)
    for at in range(2, 62, 4):
        lab.metadata(at, [("orders", None, 3)])
        lab.metadata(at + 1, [("orders", None, 3)], server=B3)
    lab.metadata(65, [("orders", ID_1)])
    lab.metadata(67, [("orders", None, 3)], server=B3)
    for at in range(80, 160, 4):
        lab.metadata(at, [("orders", ID_1)])
        lab.metadata(at + 1, [("orders", ID_1)], server=B3)


def tid007_near_miss__denied_by_a_broker_that_starts_twice(lab):
    denied(lab, range(0, 200, 4), (60, 61, 135, 136))


def tid007_near_miss(lab):
    """For some seconds after a recreation brokers answer both."""
    answers(lab, ("orders", ID_1), ("orders", ID_2), range(40, 60, 2))
    lab.metadata(100, [("orders", ID_2)], server=B3)


def tid007_cannot_know(lab):
    """Two clusters that share a name; nothing joins them."""
    lab.metadata(0, [("orders", ID_1)])
    for at in range(2, 100, 2):
        lab.metadata(at, [("orders", ID_1)])
        lab.metadata(at, [("orders", ID_2)], server="10.9.9.9:9092", cluster_id="another-cluster-22-cha", brokers={})


@disagrees_at(5)
def tid008_fires(lab):
    lab.metadata(0, [("orders", ID_1)])
    lab.metadata(5, [("payments", ID_1)])


def tid008_near_miss(lab):
    lab.metadata(0, [("orders", ID_1), ("payments", ID_2)])


def tid008_cannot_know(lab):
    """An error answer binds nothing."""
    lab.metadata(0, [("orders", ID_1)])
    lab.metadata(5, [("payments", ID_1, 29)])


@disagrees_at(2)
def tid009_fires(lab):
    lab.created(0, "orders", ID_1)
    lab.metadata(2, [("orders", ID_2)])


def tid009_near_miss(lab):
    lab.created(0, "orders", ID_1)
    lab.metadata(2, [("orders", ID_1)])


def tid009_cannot_know(lab):
    """Deleted and created again meanwhile."""
    lab.created(0, "orders", ID_1)
    lab.deleted(1, "orders", ID_1)
    lab.metadata(2, [("orders", ID_2)])


def created_in_one_of_two(lab, *stated):
    """Two clusters are in the capture; B2 states at these seconds that it is of the first one."""
    for at in (0, 90):
        lab.metadata(at, brokers={B3: 3}, server=B3, cluster_id="other-cluster-id-22-ch")
        lab.metadata(at, brokers={B1: 1, B2: 2})
    for at in stated:
        lab.metadata(at, brokers={B1: 1, B2: 2}, server=B2)
    lab.created(20, "orders", ID_1, server=B2)
    lab.metadata(22, [("orders", ID_2)], brokers={B1: 1, B2: 2})


def tid009_fires__in_one_of_two_clusters(lab):
    created_in_one_of_two(lab, 10, 30)


def tid009_cannot_know__whose_address_it_was(lab):
    """It may have been the other cluster's when it created the topic."""
    created_in_one_of_two(lab, 60, 90)


@disagrees_later("what goes on after a change: from the change")
def tid010_fires(lab):
    lab.metadata(0, [("orders", ID_1)])
    lab.deleted(10, "orders", ID_1)
    for at in (25, 60):
        lab.metadata(at, [("orders", ID_1)])


def tid010_near_miss__a_pause_that_is_over(lab):
    """A paused broker answers what waited by what it knew before, and then catches up."""
    lab.metadata(0, [("orders", ID_1)])
    lab.deleted(10, "orders", ID_1)
    for at in (60, 60.1, 60.2):
        lab.metadata(at, [("orders", ID_1)])
    lab.metadata(90, [])


def tid010_fires__deleted_by_name_alone(lab):
    """Before version 6 the answer says no id: the one that the name had is meant."""
    lab.metadata(0, [("orders", ID_1)])
    lab.deleted(10, "orders")
    for at in (25, 60):
        lab.metadata(at, [("orders", ID_1)])


def tid010_fires__read_on(lab):
    lab.metadata(0, [("orders", ID_1)])
    lab.deleted(10, "orders", ID_1)
    lab.fetches([30, 60, 70], ID_1)


def removed(lab, *records, high_watermark=50):
    """What the metadata log says of a topic that all brokers list on."""
    lab.metadata(0, [("orders", ID_1)])
    log(lab, 1, topic("orders", id_bytes(ID_1)), high_watermark=high_watermark)
    log(lab, 10, *records, high_watermark=high_watermark, offset=10)
    for at in range(20, 90, 10):
        lab.metadata(at, [("orders", ID_1)])


def tid010_fires__removed_in_the_metadata_log(lab):
    removed(lab, remove_topic(id_bytes(ID_1)))


def tid010_near_miss__removed_in_a_transaction_that_is_aborted(lab):
    removed(lab, marker(23), remove_topic(id_bytes(ID_1)), marker(25))


def tid010_cannot_know__removed_above_the_high_watermark(lab):
    removed(lab, remove_topic(id_bytes(ID_1)), high_watermark=10)


def tid010_fires__described_on(lab):
    lab.metadata(0, [("orders", ID_1)])
    lab.deleted(10, "orders", ID_1)
    described(lab, [25, 60], ID_1)


def tid010_near_miss__deleted_by_name_again_and_again(lab):
    for number, topic_id in enumerate((ID_1, ID_2, ID_3)):
        lab.metadata(100 * number, [("orders", topic_id)])
        lab.metadata(100 * number + 80, [("orders", topic_id)])
        lab.fetches([100 * number + 85], topic_id)
        lab.deleted(100 * number + 90, "orders")


def tid010_near_miss__read_in_vain(lab):
    lab.metadata(0, [("orders", ID_1)])
    lab.deleted(10, "orders", ID_1)
    lab.fetches([12, 35], ID_1)
    lab.fetches([60, 70], ID_1, 100)


def tid010_near_miss(lab):
    """A deletion takes some seconds to reach everyone."""
    lab.metadata(0, [("orders", ID_1)])
    lab.deleted(10, "orders", ID_1)
    lab.metadata(25, [("orders", ID_1)])
    lab.metadata(60, [("orders", None, 3)])


def tid010_fires__deleted_after_it_was_taken_back(lab):
    ordered_again(lab)
    lab.deleted(155, "orders")
    lab.metadata(170, [("orders", ID_1)])
    lab.metadata(230, [("orders", ID_1)])


def tid010_near_miss__ordered_again(lab):
    ordered_again(lab)


def tid010_near_miss__reported_again_by_all(lab):
    """Without controllers' orders: every server that reported the later ID reports this one again."""
    lab.deleted(18, "orders", ID_1)
    for server in (B1, B2):
        for at, topic_id in ((1, ID_1), (20, ID_2), (40, ID_1), (100, ID_1)):
            lab.metadata(at, [("orders", topic_id)], server=server)


def deleted_at_a_broker(lab, *, recreated=False, error=0):
    """StopReplica deletes the topic at broker 1, which goes on serving the ID."""
    lab.control(0, "LeaderAndIsr", [("orders", ID_1, 4)])
    state = {"partitionIndex": 0, "leaderEpoch": -2, "deletePartition": True}
    states = [{"topicName": "orders", "partitionStates": [state]}]
    asked = {"controllerId": 3, "controllerEpoch": 1, "topicStates": states}
    lab.talk(B1, "3", "10.0.0.3").ask(20, "StopReplica", 3, asked, {"errorCode": error})
    if recreated:
        lab.control(25, "LeaderAndIsr", [("orders", ID_2, 0, {"isNew": True})])
    lab.fetches(range(2, 20, 5), ID_1)
    lab.fetches(range(32, 150, 5), ID_2 if recreated else ID_1)


def tid010_fires__deleted_by_a_controller(lab):
    deleted_at_a_broker(lab)


def tid010_near_miss__deleted_by_a_controller_and_created_again(lab):
    deleted_at_a_broker(lab, recreated=True)


def tid010_near_miss__a_controller_that_is_refused(lab):
    deleted_at_a_broker(lab, error=11)


def tid010_cannot_know(lab):
    """Which id the name had when it was deleted is not known: an old answer carries none."""
    lab.metadata(0, [("orders", None)], version=9)
    lab.deleted(10, "orders")
    lab.metadata(60, [("orders", None)], version=9)


@disagrees_at(0)
def tid011_fires(lab):
    lab.control(0, "LeaderAndIsr", [("orders", NO_ID, 3)])
    lab.until = 60


def tid011_near_miss(lab):
    """The id came within the grace: the inter-broker protocol reached 2.8."""
    lab.control(0, "LeaderAndIsr", [("orders", NO_ID, 3)])
    lab.control(10, "LeaderAndIsr", [("orders", ID_1, 3)])
    lab.until = 60


def kraft_without(lab, topics, listener="B"):
    """A lone broker of 4.0, or a broker of 3.9 with ZooKeeper."""
    release = "4.0.0" if listener == "B" else "3.9.1"
    lab.versions(0, {k: (one.low, one.high) for k, one in releases()[release].items() if listener in one.listeners})
    for at in range(1, 120, 10):
        lab.metadata(at, topics)


@disagrees_at(1)
def tid011_fires__a_lone_kraft_broker(lab):
    """It gives another topic its ID, and all topics of KRaft have one."""
    kraft_without(lab, [("orders", NO_ID), ("payments", ID_2)])


@disagrees_at(1)
def tid011_fires__a_lone_kraft_broker_without_any_ids(lab):
    """It grants fetches by an ID, and gives no topic one."""
    kraft_without(lab, [("orders", NO_ID), ("payments", NO_ID)])
    lab.fetches(range(2, 110, 4), ID_1)


def tid011_near_miss__ids_are_rejected(lab):
    """A proxy takes them all away, and knows none."""
    kraft_without(lab, [("orders", NO_ID), ("payments", NO_ID)])
    lab.fetches(range(2, 110, 4), ID_1, 100)


def tid011_near_miss__granted_for_a_moment(lab):
    """As of a server that was replaced behind its address."""
    kraft_without(lab, [("orders", NO_ID)])
    lab.fetches(range(2, 10, 4), ID_1)


def tid011_near_miss__a_broker_with_zookeeper(lab):
    """Its controller's inter-broker protocol may have been older when the topic was created."""
    kraft_without(lab, [("orders", NO_ID), ("payments", ID_2)], "Z")


def tid011_cannot_know__a_lone_broker_without_any_ids(lab):
    """A proxy may take them all away."""
    kraft_without(lab, [("orders", NO_ID), ("payments", NO_ID)])


def tid011_cannot_know(lab):
    """A version that carries no ids."""
    lab.control(0, "LeaderAndIsr", [("orders", None, 3)], version=4)
    lab.until = 60


@disagrees_at(1)
def tid012_fires(lab):
    lab.fetches([1, 2], NO_ID, 100)


def tid012_fires__for_long(lab):
    """The client reads nothing."""
    lab.fetches(range(0, 100, 5), NO_ID, 100)


def owns(lab, topic_ids):
    """A member of a group of the new protocol says what it has; None: as before."""
    talk = lab.talk()
    for at, topic_id in enumerate(topic_ids):
        own = None if topic_id is None else [{"topicId": topic_id, "partitions": [0]}]
        talk.ask(at * 5, "ConsumerGroupHeartbeat", 0, {"groupId": "g", "topicPartitions": own}, {"memberEpoch": 1})
    lab.until = 60


def tid012_fires__a_member_has_partitions_of_none(lab):
    owns(lab, [NO_ID] * 8)


def tid012_near_miss__a_member_has_what_it_had(lab):
    owns(lab, [ID_1, *[None] * 7])


def tid012_near_miss(lab):
    """A Java producer sends one before its first metadata."""
    talk = lab.talk()
    for at in (0, 5):
        asked = {"topicData": [{"topicId": NO_ID, "partitionData": [{"records": None}]}], "acks": 1}
        answer = {"responses": [{"topicId": NO_ID, "partitionResponses": [{"errorCode": 100}]}]}
        talk.ask(at, "Produce", 13, asked, answer)


def tid012_cannot_know(lab):
    """A version that carries names."""
    lab.talk().ask(0, "Fetch", 12, {"topics": [{"topic": "orders", "partitions": [{}]}]}, {})


@disagrees_at(0)
def tid013_fires(lab):
    lab.metadata(0, [("orders", LOG_ID), ("payments", FIFTY)])


def tid013_near_miss(lab):
    """The log's own id under its own name; ids as Kafka makes them."""
    lab.metadata(0, [("__cluster_metadata", LOG_ID), ("orders", ID_1)])
    lab.fetches([1], LOG_ID, version=17)


def assigns(lab, topic_id, times):
    """A coordinator of the new protocol assigns a topic."""
    answer = {"assignment": {"topicPartitions": [{"topicId": topic_id, "partitions": [0]}]}}
    talk = lab.talk()
    for at in times:
        talk.ask(at, "ConsumerGroupHeartbeat", 0, {"groupId": "g"}, answer)
        lab.until = max(lab.until, at)


def tid013_fires__a_group_is_assigned_the_null_id(lab):
    assigns(lab, NO_ID, (0, 5, 10))


def tid013_near_miss__a_group_is_assigned_an_id(lab):
    lab.metadata(0, [("orders", ID_1)])
    assigns(lab, ID_1, (0, 5, 10))


def share_offsets(lab, topic_id, offset):
    """A share coordinator describes how far a group has come."""
    rows = [{"topicName": "orders", "topicId": topic_id, "partitions": [{"startOffset": offset}]}]
    talk = lab.talk()
    for at in (0, 5, 10):
        talk.ask(at, "DescribeShareGroupOffsets", 0, {}, {"groups": [{"groupId": "s", "topics": rows}]})
    lab.until = 60


def tid013_fires__offsets_of_a_share_group_under_the_null_id(lab):
    share_offsets(lab, NO_ID, 5)


def tid013_near_miss__a_share_group_without_offsets(lab):
    """The coordinator knows no topic of that name (GroupCoordinatorService.describeShareGroupOffsets)."""
    share_offsets(lab, NO_ID, -1)


def tid013_fires__a_member_of_a_share_group_has_the_null_id(lab):
    pair = {"topicName": "orders", "topicId": NO_ID, "partitions": [0]}
    member = {"assignment": {"topicPartitions": [pair]}}
    for at in (0, 5, 10):
        lab.talk().ask(at, "ShareGroupDescribe", 1, {}, {"groups": [{"groupId": "s", "members": [member]}]})
    lab.until = 60


def creates_without_an_id(lab, release, listener, **more):
    ranges = {key: (one.low, one.high) for key, one in releases()[release].items() if listener in one.listeners}
    lab.versions(0, ranges)
    lab.metadata(0, [("orders", ID_1)])
    lab.created(5, "fresh", NO_ID, **more)
    lab.metadata(40, [("orders", ID_1)])


def tid013_fires__a_topic_is_created_with_the_null_id(lab):
    creates_without_an_id(lab, "4.0.0", "B")


def logged_id(lab, topic_id):
    lab.metadata(0)
    log(lab, 1, topic("orders", id_bytes(topic_id)), high_watermark=1)


def tid013_fires__a_record_of_the_log_has_the_null_id(lab):
    logged_id(lab, NO_ID)


def tid013_near_miss__a_record_of_the_log_has_an_id(lab):
    logged_id(lab, ID_1)


def tid013_near_miss__a_topic_is_only_validated(lab):
    creates_without_an_id(lab, "4.0.0", "B", validate_only=True)


def tid013_near_miss__a_topic_is_created_before_ids(lab):
    """inter.broker.protocol.version is below 2.8."""
    creates_without_an_id(lab, "3.9.2", "Z")


def tid013_fires__in_use(lab):
    """Nobody names the id."""
    lab.metadata(0)
    lab.fetches([1], FIFTY)


def tid013_fires__of_another_form(lab):
    """Information only: another server's ids may look so."""
    lab.metadata(0, [("orders", "AAAAAAAAAAAAAAAAAAAD6A")])


def tid013_fires__of_several_ids(lab):
    """One finding per topic: servers can state as many as they like."""
    for number in range(5):
        lab.metadata(number, [("orders", f"AAAAAAAAAAAAAAAAAAAD{'ABCDE'[number]}A")], server=f"10.0.9.{number}:9092")


def tid013_cannot_know(lab):
    lab.metadata(0, [("orders", LOG_ID, 5)])


@disagrees_at(0)
def tid014_fires(lab):
    lab.fetches([0, 1], ID_1)
    lab.until = 60


def tid014_fires__of_a_broker_and_a_client(lab):
    """Brokers are called by their numbers."""
    tid014_fires(lab)
    lab.fetches([0, 1], ID_1, client_id="broker-2-fetcher-0", host="10.0.0.2")
    lab.metadata(0)


def tid014_near_miss(lab):
    """The name arrives later."""
    lab.fetches([0, 1], ID_1)
    lab.metadata(60, [("orders", ID_1)])


def tid014_cannot_know(lab):
    """The name may still come."""
    lab.fetches([0, 1], ID_1)
    lab.until = 10


@disagrees_at(60)
def tid016_fires(lab):
    lab.control(0, "LeaderAndIsr", [("orders", None, 3)], version=4)
    lab.control(60, "LeaderAndIsr", [("orders", ID_1, 3)], epoch=2)


def tid016_near_miss(lab):
    """An id that was lost and came back was not assigned."""
    lab.control(0, "LeaderAndIsr", [("orders", ID_1, 3)])
    lab.control(30, "LeaderAndIsr", [("orders", None, 3)], version=4, epoch=2)
    lab.control(60, "LeaderAndIsr", [("orders", ID_1, 3)], epoch=3)


def tid016_cannot_know(lab):
    """An answer of a version without ids says nothing about them."""
    lab.metadata(0, [("orders", None)], version=9)
    lab.metadata(60, [("orders", ID_1)])


@disagrees_later("what goes on after a change: from the next slot of 10 s that has a use, or the change")
def tid017_fires(lab):
    dead_id_used(lab, 120, client_id="broker-2-fetcher-0", host="10.0.0.2")


def tid017_near_miss(lab):
    dead_id_used(lab, 60, client_id="broker-2-fetcher-0", host="10.0.0.2")


def tid017_cannot_know(lab):
    lab.fetches(range(0, 120, 10), ID_3, 0, client_id="broker-2-fetcher-0")


def two_words(lab, *, since, again):
    """Two brokers that tell different ids for one topic and go on doing so; which is the older one was not seen."""
    lab.metadata(since, [("orders", ID_2)], server=B1)
    lab.metadata(since + 5, [("orders", ID_1)], server=B3)
    lab.metadata(again, [("orders", ID_2)], server=B1)
    lab.metadata(again, [("orders", ID_1)], server=B3)


def tid017_cannot_know__which_is_older(lab):
    """A broker that is cut off tells the old id after another has told the new one."""
    two_words(lab, since=0, again=100)
    lab.fetches(range(0, 120, 5), ID_2, client_id="broker-2-fetcher-0", host="10.0.0.2")


def tid005_cannot_know__which_is_older(lab):
    two_words(lab, since=0, again=500)
    lab.fetches(range(0, 600, 50), ID_2)


def tid017_fires__told_by_one_broker(lab):
    """The same, but one of them changes its mind: now it is known."""
    two_words(lab, since=0, again=100)
    lab.metadata(110, [("orders", ID_2)], server=B3)
    lab.fetches(range(0, 200, 5), ID_1, client_id="broker-2-fetcher-0", host="10.0.0.2")


def tid017_near_miss__a_client_id_proves_nothing(lab):
    """Anybody may call itself as a broker's fetchers are called; no authorizer refuses a client ID."""
    dead_id_used(lab, 120, client_id="broker-2-fetcher-0")
