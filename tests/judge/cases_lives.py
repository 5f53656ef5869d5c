"""Cases of the lives of a metadata log (LOG004, LOG005), in bytes."""

import base64
import struct

from tests.decode.log.batches import Batch, batch, crc32c, entry, record, remove_topic, topic
from tests.judge.cases_control import id_bytes
from tests.judge.cases_versions import ranges
from tests.judge.lab import B1, B2, B3, CLUSTER, ID_1, ID_2, ID_3, NO_ID, START, S, disagrees_at

LOG_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
CONTROL_BATCH = 0x20


def at_ms(at):
    return (START + int(at * S)) // 1_000_000


def begins(at, epoch, offset):
    """The leader's first batch in an epoch: a LeaderChangeMessage."""
    message = record(struct.pack(">hi", 0, 3) + b"\1\1\0", key=struct.pack(">hh", 0, 2))
    stamps = {"base_timestamp": at_ms(at), "max_timestamp": at_ms(at)}
    return Batch([message], base_offset=offset, epoch=epoch, attributes=CONTROL_BATCH, **stamps).bytes()


def writes(at, epoch, offset, *records):
    made = batch(*records, base_offset=offset, epoch=epoch)
    fields = {"base_timestamp": at_ms(at), "max_timestamp": at_ms(at)}
    return restamped(made, **fields)


def restamped(data, base_timestamp, max_timestamp):
    """The same batch with other times."""
    body = data[21:27] + struct.pack(">qq", base_timestamp, max_timestamp) + data[43:]
    return data[:17] + struct.pack(">I", crc32c(body)) + body


def shows(lab, at, high_watermark, *batches, epoch=1, server=B3, diverging=None, leader=3):
    """The metadata log as a leader's Fetch answer shows it."""
    row = {
        "partitionIndex": 0, "highWatermark": high_watermark, "abortedTransactions": None,
        "records": base64.b64encode(b"".join(batches)).decode(),
        "currentLeader": {"leaderId": leader, "leaderEpoch": epoch},
    }  # fmt: skip
    if diverging is not None:
        row["divergingEpoch"] = {"epoch": diverging[0], "endOffset": diverging[1]}
    answer = {"responses": [{"topicId": LOG_ID, "partitions": [row]}]}
    lab.talk(server, "raft-client-1", "10.0.0.1").ask(at, "Fetch", 17, {"topics": []}, answer)
    lab.until = max(lab.until, at)


def elected(leader, topic_id=ID_1, recovering=True):
    """A PartitionChangeRecord of partition 0; its tags are leader and LeaderRecoveryState."""
    tags = b"\x01\x04" + struct.pack(">i", leader)
    tags += b"\x05\x01\x01" if recovering else b""
    return entry(5, struct.pack(">i", 0) + id_bytes(topic_id) + (b"\x02" if recovering else b"\x01") + tags)


def election(lab, recovering, high_watermark=60):
    shows(lab, 1, 10, begins(0, 1, 0), writes(1, 1, 5, topic("orders", id_bytes(ID_1))))
    shows(lab, 20, high_watermark, writes(20, 1, 40, elected(2, recovering=recovering)))
    lab.until = 60


@disagrees_at(20)
def ctl013_fires(lab):
    election(lab, recovering=True)


def requested(lab, partition=0, kind=1, error=0):
    """An operator asks for the election."""
    asked = {"electionType": kind, "topicPartitions": [{"topic": "orders", "partitions": [partition]}]}
    result = {"partitionId": partition, "errorCode": error}
    answer = {"replicaElectionResults": [{"topic": "orders", "partitionResult": [result]}]}
    lab.metadata(0)
    lab.talk(client_id="operator").ask(20, "ElectLeaders", 2, asked, answer)
    election(lab, recovering=True)


def ctl013_fires__as_requested(lab):
    requested(lab)


def ctl013_near_miss(lab):
    """A replica that was in sync."""
    election(lab, recovering=False)


def ctl013_cannot_know(lab):
    """Not known to be committed."""
    election(lab, recovering=True, high_watermark=30)


def first_life(lab):
    """Topics orders and late exist at offsets 5 and 40; 60 is committed."""
    shows(lab, 1, 10, begins(0, 1, 0), writes(1, 1, 5, topic("orders", id_bytes(ID_1))))
    shows(lab, 20, 60, writes(20, 1, 40, topic("late", id_bytes(ID_3))))
    for server in (B1, B2, B3):
        lab.metadata(21, [("orders", ID_1), ("late", ID_3)], server=server)


def formatted_again(lab):
    first_life(lab)
    shows(lab, 40, 8, begins(39, 1, 0), writes(40, 1, 4, topic("orders", id_bytes(ID_2))))
    for at in (41, 100):
        for server in (B1, B2, B3):
            lab.metadata(at, [("orders", ID_2)], server=server)
    lab.fetches(range(42, 120, 2), ID_2, client_id="broker-2-fetcher-0", host="10.0.0.2")
    lab.until = 120


def restored(lab, end=30):
    first_life(lab)
    shows(lab, 40, end, epoch=1, diverging=(1, end))
    shows(lab, 42, end + 2, writes(41, 1, end, topic("other", id_bytes(ID_2))))
    for at in (45, 100):
        for server in (B1, B2, B3):
            lab.metadata(at, [("orders", ID_1)], server=server)
    lab.until = 120


def reported_again(lab, servers=(B1, B2)):
    """The topic is recreated, and some servers go back to the ID of before: the log was restored, which nobody saw."""
    for server in (B1, B2):
        lab.metadata(1, [("orders", ID_1)], server=server)
        lab.metadata(20, [("orders", ID_2)], server=server)
    lab.deleted(18, "orders", ID_1)
    for at in (40, 100):
        for server in (B1, B2):
            lab.metadata(at, [("orders", ID_1 if server in servers else ID_2)], server=server)
    lab.fetches(range(42, 120, 2), ID_1, client_id="broker-2-fetcher-0", host="10.0.0.2")


def tid017_fires__one_server_goes_on(lab):
    reported_again(lab, servers=(B1,))


def tid017_near_miss__an_end_taken_back(lab):
    reported_again(lab)


def tid017_near_miss__the_log_lost_the_id(lab):
    """Brokers go on with what the log lost: LOG004 says so, and a restart would remove their data."""
    restored(lab)
    lab.fetches(range(42, 120, 2), ID_3, client_id="broker-2-fetcher-0", host="10.0.0.2")


def tid017_near_miss__after_a_pause(lab):
    """A paused follower of old uses the ID for a moment when it goes on."""
    lab.metadata(0, [("orders", ID_1, 0, 4)])
    lab.deleted(30, "orders", ID_1)
    lab.fetches([5, 29, 30.2], ID_1, client_id="broker-2-fetcher-0", host="10.0.0.2")
    lab.fetches([75, 75.5], ID_1, 100, client_id="broker-2-fetcher-0", host="10.0.0.2")
    lab.until = 100


@disagrees_at(40)
def log004_fires(lab):
    restored(lab)


def log004_fires__in_another_epoch(lab):
    """A backup of a running controller: its next leader epoch begins below what was committed."""
    first_life(lab)
    shows(lab, 40, 30, begins(39, 2, 30), epoch=2, diverging=(1, 30))
    lab.until = 60


def log004_fires__by_what_its_follower_had_read(lab):
    """The new leader's first record was not captured: that the epoch before ends below what was committed in it says
    it.
    """
    first_life(lab)
    shows(lab, 40, 33, epoch=2, diverging=(1, 30))
    lab.until = 60


def log004_near_miss__a_follower_of_long_ago(lab):
    """It had read further of an earlier epoch, of which nothing more was committed."""
    shows(lab, 1, 10, begins(0, 1, 0), epoch=1)
    shows(lab, 20, 60, begins(19, 2, 30), epoch=2)
    shows(lab, 40, 70, epoch=2, diverging=(1, 30))
    lab.until = 60


def log004_near_miss(lab):
    """A follower of an earlier leader truncates what was never committed."""
    first_life(lab)
    shows(lab, 40, 62, begins(39, 2, 60), epoch=2, diverging=(1, 60))
    lab.until = 60


def recreated_and_restored(lab):
    """Topic orders is recreated, the log loses that, and the former ID is deleted again; then it is recreated."""
    shows(lab, 1, 10, begins(0, 1, 0), writes(1, 1, 5, topic("orders", id_bytes(ID_1))))
    shows(lab, 20, 60, writes(20, 1, 40, remove_topic(id_bytes(ID_1)), topic("orders", id_bytes(ID_2))))
    lab.deleted(20, "orders", ID_1)
    shows(lab, 40, 30, epoch=1, diverging=(1, 30))
    shows(lab, 42, 70, writes(41, 1, 65, remove_topic(id_bytes(ID_1))))
    lab.deleted(41, "orders", ID_1)
    shows(lab, 50, 90, writes(50, 1, 80, topic("orders", id_bytes(ID_3))))
    lab.until = 90


def log004_fires__a_topic_was_recreated_before_and_after(lab):
    recreated_and_restored(lab)


def log002_near_miss__removed_in_another_life_of_the_log(lab):
    recreated_and_restored(lab)


def log004_cannot_know(lab):
    """No high watermark was seen before."""
    shows(lab, 40, 30, epoch=1, diverging=(1, 30))
    lab.until = 60


@disagrees_at(40)
def log005_fires(lab):
    formatted_again(lab)


def log005_fires__and_one_disk_was_forgotten(lab):
    """All were formatted again but one follower, which has read the former log further than the new one goes."""
    formatted_again(lab)
    shows(lab, 60, 47, epoch=2, diverging=(1, 30))


def log005_fires__by_a_high_watermark_that_falls(lab):
    """Of the second log's beginning nothing was captured."""
    shows(lab, 1, 100)
    shows(lab, 20, 160)
    shows(lab, 45, 8)
    shows(lab, 60, 30)


def log005_fires__after_elections_that_wrote_nothing(lab):
    """The first leader of the second log has epoch 4; a follower wrote a record of epoch 3, which nobody has."""
    shows(lab, 1, 10, begins(0, 4, 0), epoch=4)
    shows(lab, 20, 60, epoch=4)
    shows(lab, 40, -1, begins(39, 4, 0), epoch=4)
    shows(lab, 40.1, -1, epoch=4, diverging=(3, 0))
    lab.until = 60


def log004_near_miss__after_elections_that_wrote_nothing(lab):
    log005_fires__after_elections_that_wrote_nothing(lab)


def node(lab, since, until, incarnation, epoch, server=B1, offset=0, brokers=None, number=1):
    """A node is registered by a controller, and reports how far it has read the log; nobody fetches the log."""
    lab.metadata(since, server=server, brokers=brokers or {B1: 1})
    talk = lab.talk(server, str(number), "10.0.0.14")
    host, port = next(iter(brokers or {B1: 1})).split(":")
    listener = {"name": "PLAINTEXT", "host": host, "port": int(port)}
    asked = {"brokerId": number, "incarnationId": incarnation, "clusterId": CLUSTER, "listeners": [listener]}
    talk.ask(since, "BrokerRegistration", 1, asked, {"brokerEpoch": epoch})
    for at in range(since + 1, until, 2):
        beat = {"brokerId": number, "brokerEpoch": epoch, "currentMetadataOffset": epoch + offset + at}
        talk.ask(at, "BrokerHeartbeat", 1, beat, {"isFenced": False})
    lab.until = max(lab.until, until)


def log005_fires__by_the_registration_of_a_broker(lab):
    """A node that is broker and controller: its log is not fetched by anybody."""
    node(lab, 0, 40, ID_1, 7, offset=100)
    node(lab, 50, 80, ID_2, 7)


def repeated(lab, *, denies=range(60, 130, 5), kraft=True, takes_over=True, error=0, known=range(0, 140, 5)):
    """A migration to KRaft that is repeated with empty controllers: two brokers start again and know no topics."""
    first_life(lab)
    shows(lab, 40, 2, begins(39, 1, 0))
    if takes_over:
        more = {"controller": 3000, "epoch": 7, "version": 8, "isKRaftController": kraft, "error": error}
        for server in (B1, B2, B3):
            lab.control(50, "UpdateMetadata", [], server=server, **more)
    for at in known:
        lab.metadata(at, [("orders", ID_1)], server=B2)
    for server in (B1, B3):
        lab.metadata(45, [("orders", ID_1)], server=server)
        for at in denies:
            lab.metadata(at, [("orders", None, 3)], server=server)
    shows(lab, 140, 30)
    lab.until = 150


def log005_fires__and_topics_are_gone(lab):
    repeated(lab)


def ctl008_fires__a_broker_asks_a_controller_that_waits(lab):
    repeated(lab)
    talk = lab.talk(B3, "1", "10.0.0.1")
    for at in range(62, 130, 2):
        answer = {"topics": [{"name": "__consumer_offsets", "topicId": NO_ID, "errorCode": 41, "configs": []}]}
        talk.ask(at, "CreateTopics", 7, {"topics": [{"name": "__consumer_offsets"}]}, answer)


def log005_near_miss__a_node_that_starts_again(lab):
    node(lab, 0, 40, ID_1, 7, offset=100)
    node(lab, 50, 80, ID_2, 160)


def log005_near_miss__a_stack_beside_it(lab):
    """Two deployments with one fixed cluster ID, whose brokers have other numbers: the first log goes on."""
    node(lab, 0, 80, ID_1, 7, offset=100)
    node(lab, 30, 80, ID_2, 7, server=A1, brokers={A1: 5}, number=5)


def stacks(lab, names=("orders", "orders")):
    """The same; each has topics of its own."""
    log005_near_miss__a_stack_beside_it(lab)
    for at in range(1, 80, 10):
        lab.metadata(at, [(names[0], ID_1)], server=B1, brokers={B1: 1})
        if at > 30:
            lab.metadata(at + 1, [(names[1], ID_2)], server=A1, brokers={A1: 5})


def renaming(lab, until=120, server_names=("a-orders", "a-own"), start=0):
    """For tenants, with brokers of its own addresses; both legs are captured."""
    front = {"10.0.0.50:9092": 1, "10.0.0.51:9092": 2}
    for at in range(start, until, 5):
        for server in front:
            talk = lab.talk(server, "tenant", "10.0.9.9")
            lab.metadata(at, [("orders", ID_1), ("own", ID_3)], server=server, brokers=front, talk=talk)
        for server in (B1, B2):
            talk = lab.talk(server, "tenant", "10.0.0.50")
            first, second = server_names
            lab.metadata(at + 0.01, [(first, ID_1), ("orders", ID_2), (second, ID_3)], server=server, talk=talk)
    lab.until = until + 20


@disagrees_at(0)
def clu005_fires(lab):
    renaming(lab)


def clu003_near_miss__a_proxy_that_renames_topics(lab):
    renaming(lab)


def clu003_near_miss__a_proxy_for_two_tenants(lab):
    """Each tenant has topics of the same names at an address of its own; the cluster has them with the tenant's."""
    ids = {("a", "orders"): ID_1, ("a", "pay"): ID_2, ("b", "orders"): ID_3, ("b", "pay"): "Z" + ID_3[1:]}
    for at in range(0, 120, 5):
        lab.metadata(at, [(f"{tenant}.{name}", topic_id) for (tenant, name), topic_id in ids.items()])
        for port, tenant in ((9101, "a"), (9111, "b")):
            front = f"10.0.0.50:{port}"
            mine = [(name, topic_id) for (whose, name), topic_id in ids.items() if whose == tenant]
            lab.metadata(at + 0.1, mine, server=front, brokers={front: 1})


def tenants(lab, behind=True):
    """Two tenants call their one topic alike, each at an address of its own; `behind`: the cluster was captured too."""
    for at in range(0, 120, 5):
        if behind:
            lab.metadata(at, [("a.orders", ID_1), ("b.orders", ID_2)])
        for port, topic_id in ((9101, ID_1), (9111, ID_2)):
            front = f"10.0.0.50:{port}"
            lab.metadata(at + 0.1, [("orders", topic_id)], server=front, brokers={front: 1})


def clu003_near_miss__two_tenants_with_one_topic_each(lab):
    tenants(lab)


def clu003_fires__two_addresses_without_what_is_behind(lab):
    """As two tenants of a proxy would look, and as two clusters would: the finding has both readings."""
    tenants(lab, behind=False)


def clu003_fires__two_addresses_with_the_ranges_of_one_proxy(lab):
    """Kroxylicious: what its own release and the brokers' have in common, the same for both tenants."""
    tenants(lab, behind=False)
    narrowed = {**ranges("3.9.1"), 0: (3, 10)}
    for port in (9101, 9111):
        lab.versions(3, narrowed, server=f"10.0.0.50:{port}")


def clu003_fires__beside_an_address_that_renames(lab):
    """Two clusters, and a listener of one of them that calls its topic otherwise."""
    copies(lab)
    for at in range(0, 100, 10):
        for front in ("10.0.9.1:9092", "10.0.9.1:9093"):
            lab.metadata(at + 2, [("t.orders", ID_1)], server=front, brokers={"10.0.9.1:9092": 1, "10.0.9.1:9093": 2})


def tid007_near_miss__a_proxy_that_renames_topics(lab):
    renaming(lab)


def tid008_near_miss__a_proxy_that_renames_topics(lab):
    renaming(lab)


def tid020_near_miss__a_proxy_that_renames_topics(lab):
    renaming(lab)


def tid007_fires__by_another_list_of_the_brokers_behind_a_proxy(lab):
    """It shares no address with theirs: the topics' names show whose it is."""
    renaming(lab)
    another_list(lab, "10.0.0.13:19092", "10.0.0.14:19092")


def tid007_near_miss__one_server_of_another_list(lab):
    """Only the server itself names it: a stranger's server would do the same."""
    renaming(lab)
    another_list(lab, "10.0.0.13:19092")


def another_list(lab, *servers):
    internal = {"10.0.0.13:19092": 3, "10.0.0.14:19092": 4}
    for at in range(0, 120, 5):
        for server in servers:
            lab.metadata(at, [("a-orders", ID_1), ("orders", "Z" + ID_2[1:])], server=server, brokers=internal)


def clu005_near_miss(lab):
    """One ID with two names is TID008's affair."""
    renaming(lab, server_names=("a-orders", "own"))


def clu005_cannot_know(lab):
    """Of one leg no topic was named."""
    lab.metadata(0, [("orders", ID_1)])
    lab.metadata(1, [], server="10.0.0.50:9092", brokers={"10.0.0.50:9092": 1})


def clu003_fires__by_brokers_that_each_have_a_controller(lab):
    stacks(lab)


def clu003_cannot_know__topics_of_other_names(lab):
    stacks(lab, ("orders", "bills"))


def tid017_near_miss__a_stack_beside_it(lab):
    """A follower uses the ID of its own cluster, while another cluster of the same ID created the topic later."""
    stacks(lab)
    lab.fetches(range(2, 120, 2), ID_1, client_id="broker-2-fetcher-0", host="10.0.0.2")


def log005_near_miss__out_of_order(lab):
    """Two connections to a leader, captured in another order than they were answered in."""
    shows(lab, 9.9, 100)
    shows(lab, 10.1, 99)
    shows(lab, 30, 160)


def log005_near_miss__two_leaders(lab):
    """A leader that was replaced goes on for a while with what it knows."""
    shows(lab, 1, 100, begins(0, 1, 0), server=B3)
    shows(lab, 20, 160, begins(19, 2, 110), epoch=2, server=B2)
    shows(lab, 32, 105, server=B3)


def log005_near_miss(lab):
    """A new node reads the log from its beginning, hours later."""
    first_life(lab)
    shows(lab, 7000, 61, begins(0, 1, 0), writes(1, 1, 5, topic("orders", id_bytes(ID_1))))
    shows(lab, 7001, 61, writes(7001, 1, 60, topic("other", id_bytes(ID_2))))


def log005_cannot_know(lab):
    """Of the first log nothing was captured."""
    lab.metadata(21, [("orders", ID_1)])
    shows(lab, 40, 8, begins(39, 1, 0), writes(40, 1, 4, topic("orders", id_bytes(ID_2))))
    lab.metadata(41, [("orders", ID_2)])


OTHER = "other-cluster-id-22-ch"


def switched(lab, first=20, second=60):
    """The address of broker 1 leads to another cluster; a reader keeps an ID of the former one."""
    for at in (0, first):
        lab.metadata(at, [("orders", ID_1)], brokers={B1: 1})
    lab.fetches(range(0, first, 2), ID_1, client_id="reader")
    lab.fetches(range(second, second + 60, 2), ID_1, 100, client_id="reader")
    for at in (second + 1, second + 60):
        lab.metadata(at, [("orders", ID_2)], brokers={B1: 1}, cluster_id=OTHER)


@disagrees_at(61)
def clu004_fires(lab):
    switched(lab)


def clu004_fires__a_cluster_that_was_formatted_anew(lab):
    """All brokers answer under another cluster ID; a reader keeps its ID."""
    for server in (B1, B2, B3):
        for at in range(0, 60, 10):
            lab.metadata(at, [("orders", ID_1)], server=server)
        for at in range(90, 150, 10):
            lab.metadata(at, [("orders", ID_2)], server=server, cluster_id=OTHER)
    lab.fetches(range(0, 60, 2), ID_1, client_id="reader")
    lab.fetches(range(90, 150, 2), ID_1, 100, client_id="reader")


def clu004_near_miss(lab):
    """An address that leads to two clusters in turn is CLU001."""
    for at in range(0, 60, 10):
        lab.metadata(at, [("orders", ID_1)], brokers={B1: 1})
        lab.metadata(at + 5, [("orders", ID_2)], brokers={B1: 1}, cluster_id=OTHER)


def there_and_back(lab, times=((0, 30), (40, 80), (90, 150)), step=5):
    """The address of broker 1 leads to another cluster and back; a reader keeps its ID."""
    for number, (since, until) in enumerate(times):
        other = number % 2
        for at in range(since, until, step):
            known = {"cluster_id": OTHER} if other else {}
            lab.metadata(at, [("orders", ID_2 if other else ID_1)], brokers={B1: 1}, **known)
        lab.fetches(range(since + 1, until, 2), ID_1, 100 if other else 0, client_id="reader")
    lab.until = times[-1][1]


def clu004_fires__there_and_back(lab):
    there_and_back(lab)


def clu001_fires__in_turn_for_less_than_10_s(lab):
    there_and_back(lab, ((0, 30), (32, 38), (42, 90)), 2)


GATEWAY = "10.0.0.9:9092"


def gateway(lab, clients=("tenant-1", "tenant-2")):
    """One address serves each of two clients a cluster of its own, and lists addresses of its own."""
    brokers = {f"10.0.0.9:{9092 + number}": number for number in (1, 2, 3)}
    for at in range(0, 60, 10):
        lab.metadata(at, [("orders", ID_1)])
        lab.metadata(at, [("orders", ID_1)], server=B2)
        for number, (topic_id, cluster_id) in enumerate(((ID_1, CLUSTER), (ID_2, OTHER))):
            talk = lab.talk(GATEWAY, clients[number], f"10.0.0.9{number}")
            lab.metadata(at + number, [("orders", topic_id)], brokers=brokers, cluster_id=cluster_id, talk=talk)


def clu001_fires__each_client_has_its_cluster(lab):
    gateway(lab)


def clu002_near_miss__a_gateway_of_two_clusters(lab):
    gateway(lab)


def clu001_cannot_know__seldom_seen(lab):
    """The other cluster was seen for 4 s, between two sightings that are 36 s apart: it may have been there longer."""
    there_and_back(lab, ((0, 27), (38, 42), (63, 64)), 3)


def clu001_near_miss__there_and_back(lab):
    there_and_back(lab)


def clu004_cannot_know(lab):
    """Nothing after the switch states a ClusterId."""
    lab.metadata(0, [("orders", ID_1)], brokers={B1: 1})
    lab.fetches(range(60, 120, 2), ID_1, 100, client_id="reader")


A1, A2 = "10.0.1.1:9092", "10.0.1.2:9092"


def two_clusters(lab, alive=60, ids=(CLUSTER, CLUSTER), later=5.0):
    """B1 and A1 lead two logs of these ClusterIds; each names its own brokers."""
    two = ((B1, {B1: 1, B2: 2}, ID_1, 0, 2), (A1, {A1: 1, A2: 2}, ID_2, later, 3))
    for (server, brokers, topic_id, since, leader), cluster_id in zip(two, ids, strict=True):
        shows(lab, since + 1, 3, begins(since, 1, 0), server=server, leader=leader)
        for at in range(int(since) + 2, int(since) + alive, 5):
            shows(lab, at, 10 + at, server=server, leader=leader)
            for one in brokers:
                lab.metadata(at, [("orders", topic_id)], server=one, brokers=brokers, cluster_id=cluster_id)


@disagrees_at(6)
def clu003_fires(lab):
    two_clusters(lab)


def clu003_fires__started_within_a_second(lab):
    two_clusters(lab, later=0.25)


def tid017_cannot_know__two_logs_of_unknown_clusters(lab):
    """No answer with a ClusterId was captured: an ID of one cluster does not end the other's."""
    two_clusters(lab, ids=(None, None))
    lab.fetches(range(2, 120, 2), ID_1, client_id="broker-2-fetcher-0", host="10.0.0.2")


def clu003_fires__by_registrations_of_one_epoch(lab):
    """Copies of one disk begin alike: both register node 1 at the same offset."""
    node(lab, 0, 60, ID_1, 60)
    node(lab, 1, 60, ID_2, 60, server=A1, brokers={A1: 1})


def clu003_near_miss__a_proxy_before_the_controller(lab):
    """Captured on both sides of it."""
    node(lab, 0, 60, ID_1, 60)
    node(lab, 1, 60, ID_1, 60, server=A1, brokers={A1: 1})


def copies(lab, number=1, alive=100):
    """Two live clusters of one ClusterId without a controller's traffic: A1 created the topic again."""
    for at in range(0, alive, 10):
        lab.metadata(at, [("orders", ID_1)], server=B1, brokers={B1: 1, B2: 2})
        lab.metadata(at + 1, [("orders", ID_1 if at < 20 else ID_2)], server=A1, brokers={A1: number, A2: 2})


def clu003_fires__by_answers_of_one_broker_number(lab):
    copies(lab)


def clu003_near_miss__other_numbers(lab):
    """A stale broker that is asked at another listener than the others."""
    copies(lab, number=3)


def clu003_near_miss__one_after_the_other(lab):
    """The topic was created again; at one listener nobody asks for it any more."""
    for at in range(0, 30, 10):
        lab.metadata(at, [("orders", ID_1)], server=B1, brokers={B1: 1, B2: 2})
    for at in range(0, 100, 10):
        lab.metadata(at + 1, [("orders", ID_1 if at < 20 else ID_2)], server=A1, brokers={A1: 1, A2: 2})


def clu003_near_miss__a_proxy_for_all(lab):
    """All brokers are reached at one address, which therefore says nothing of one of them."""
    for at in range(0, 100, 10):
        lab.metadata(at, [("orders", ID_1)], server=B1, brokers={B1: 1, B2: 2})
        for number in (1, 2):
            lab.metadata(at + number, [("orders", ID_2)], server=A1, brokers={A1: number})


def clu003_near_miss(lab):
    """Formatted again at other addresses: one log after the other."""
    for server, brokers, topic_id, since in ((B1, {B1: 1, B2: 2}, ID_1, 0), (A1, {A1: 1, A2: 2}, ID_2, 80)):
        shows(lab, since + 1, 3, begins(since, 1, 0), server=server)
        for at in range(since + 2, since + 60, 5):
            shows(lab, at, 10 + at - since, server=server)
            lab.metadata(at, [("orders", topic_id)], server=server, brokers=brokers)


def clu003_near_miss__two_ids(lab):
    """Two clusters with their own ClusterIds in one capture: each has an epoch 1."""
    two_clusters(lab, ids=(CLUSTER, OTHER))


def clu003_near_miss__listeners(lab):
    """Internal and external listeners of one cluster."""
    for brokers in ({B1: 1, B2: 2}, {A1: 1, A2: 2}):
        for at in range(0, 60, 5):
            for one in brokers:
                lab.metadata(at, [("orders", ID_1)], server=one, brokers=brokers)
    shows(lab, 1, 3, begins(0, 1, 0), server=B3)


def clu003_near_miss__the_external_address_changes_cluster(lab):
    """The internal listener stays; broker 1 of the other cluster reports another ID at the external address."""
    for at in range(0, 120, 10):
        lab.metadata(at, [("orders", ID_1)], brokers={B1: 1, B2: 2})
        before = at < 50
        cluster, topic_id = (CLUSTER, ID_1) if before else (OTHER, ID_2)
        lab.metadata(at + 1, [("orders", topic_id)], server=A1, brokers={A1: 1}, cluster_id=cluster)


def clu003_cannot_know(lab):
    """The second log was seen for a moment."""
    two_clusters(lab, alive=8)
