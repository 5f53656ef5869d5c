"""Cases of TID020, in bytes: one that fires, healthy operations that look like it, and one where nobody can know."""

from tests.decode.log.batches import remove_topic, topic
from tests.judge.agreement_kinds import KINDS
from tests.judge.cases_control import id_bytes, log, node_beats, registers
from tests.judge.lab import B1, B2, B3, ID_1, ID_2

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


def tid020_near_miss__a_proxy_renames_topics(lab):
    """One address gives each of two tenants its own topic of that name."""
    KINDS["metadata"].states(lab, TIMES, ID_1, B1)
    KINDS["metadata"].states(lab, [at + 5 for at in TIMES], ID_2, B1)


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


def tid020_near_miss__two_processes_of_one_node(lab):
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
