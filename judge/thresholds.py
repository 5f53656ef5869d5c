"""Grace periods and thresholds of the judge.

Rule: a number that an operator may want to change is here, with its reason. Checks have none of their own.
"""

from dataclasses import dataclass, replace

SECOND_NS = 1_000_000_000
CLOCKS_APART_S = 60
"""Clocks that are further apart are found out, by certificates that are not valid and tickets that have expired."""


@dataclass(frozen=True)
class Settings:
    broker_grace_s: int = 30
    """Brokers agree on a topic within seconds of a change; three times as long as the slowest seen on real clusters."""
    client_grace_s: int = 300
    """Clients refresh their metadata at least this often (metadata.max.age)."""
    roll_window_s: int = 3600
    """A rolling upgrade may take this long before mixed versions are reported."""
    canary_brokers: int = 0
    """So many brokers may run another release than the others for as long as they like."""
    refusal_s: int = 1
    """A broker that refuses a version closes within milliseconds of the request; later closes have other causes."""
    unanswered_s: int = 60
    """A response this long after the time its request allows does not come any more; before that, the end of the
    connection or of the capture may merely have cut it off."""
    agent_silent_s: int = 60
    """An agent that is this much later than the others no longer delays results."""
    horizon_s: int = 86_400
    """Claims older than this are counted as late and not judged. Older claims leave the ledger by the rules of
    `ageing.py`.
    """
    ageing_s: int = 3600
    """How often, by capture time, the ledger is searched for claims that have expired. That costs a pass over all of
    it.
    """
    most_topics: int = 120_000
    """Topic names, and topic ids, kept by the rules of `subject_eviction.py`: a cluster has some 100,000 partitions."""
    most_clients: int = 50_000
    """Clients, each a client id at an address; large clusters have 10,000."""
    most_unanswered: int = 4_096
    """Topic names, topic IDs and clients, each, that were never answered without an error: any host can invent them."""
    most_ids_of_host: int = 4_096
    """Client IDs at one address, where one process can use any number; a host of containers has some hundred."""
    most_connections: int = 200_000
    """Connections that have not settled; large clusters have 20,000 open ones."""
    most_claims: int = 100_000
    """Claims of one kind about one subject: partitions of the largest topics times their followers, and more."""
    most_findings: int = 10_000
    """Open findings of one check. More than this are of no use to a reader."""
    session_timeout_s: int = 9
    """A broker that sends nothing for this long loses its registration (broker.session.timeout.ms of a KRaft
    controller). Two processes that use one node ID at the same time for longer are not a restart.
    """
    pause_s: int = 10
    """A server that answers nothing for so long, and then what waited, was paused. Shorter than a slot of time is not
    seen; longer than the session timeout of a broker."""
    agreement_rows: int = 1
    """Whether the rows of `wirecheck agreement` are made: a tenth of the time of a capture with thousands of topics."""
    detail_rows: int = 1
    """Whether rows are made that no verdict has: states and descriptions of topics, coverage by connection."""
    paused_clients: int = 2
    """So many connections must have waited: on one alone, an answer may be late for its own reasons."""
    open_transaction_s: int = 120
    """A reader that waits so long for a transaction is reported: twice as long as a producer asks for
    (transaction.timeout.ms, 60 s)."""
    hanging_transaction_s: int = 960
    """Brokers grant a producer no longer time-out than 15 minutes (transaction.max.timeout.ms), and end what is older
    within seconds: longer, a transaction hangs."""
    stuck_answers: int = 10
    """At least so many error answers without a success make a client stuck."""
    stuck_s: int = 30
    """... over at least this long."""
    stalled_requests: int = 5
    """A client is stalled by at least so many requests that are not granted, over `stuck_s`, or over `unavailable_s` if
    a restart may explain them; by fewer over twice that time.
    """
    failing_s: int = 10
    """So many, over at least this long, and no success since: a client that fails, too young to be called stalled."""
    unavailable_s: int = 40
    """A partition without a leader, or a topic that does not exist, is reported if clients ask for it for so long: the
    restart of a broker with the only replica took up to 38 s in captures.
    """
    stuck_fast_answers: int = 1_000
    """A client that retries without a pause is stuck sooner: so many error answers on one connection ..."""
    stuck_fast_s: int = 10
    """... over at least this long, longer than brokers and clients take to learn of a topic that was recreated ..."""
    stuck_pause_s: int = 5
    """... the last of them so recently: a client as fast as that which asks no more has recovered, or ended."""

    partly_one_in: int = 10
    """A client is hurt, too, if one in so many of its answers is an error all the time; a few retries are routine."""
    never_answers: int = 5
    """A client that was never granted anything of a topic is hurt by this many error answers ..."""
    never_s: int = 60
    """... over at least this long: some poll once in a while."""
    patience_s: int = 29
    """A client that gets no response for so long is hurt: Kafka's clients give up after 30 s (request.timeout.ms), a
    little less between packets."""
    write_waits_s: int = 5
    """A broker answers a write within milliseconds once the replicas in sync have it; one that fell behind leaves the
    ISR after replica.lag.time.max.ms (30 s)."""
    write_lost_s: int = 18
    """A write that its client gives up sooner, and then has granted on another connection, was lost with the first, as
    a NAT or a firewall forgets one. A replica holds writes up for 20 s at least."""
    cut_off_s: int = 60
    """A client that a broker's address refuses for so long is cut off from it; a restart takes less."""
    write_timeout_s: int = 5
    """A write that lets its broker take less than this says more about its client than about replicas."""
    never_served: int = 10
    """A client of which a server closes so many requests ..."""
    never_served_on: int = 3
    """... on so many connections ..."""
    never_served_s: int = 5
    """... over at least this long is not served: a broker that stops or starts closes a few."""
    only_greeted_s: int = 10
    """... or of which it closes fewer, each after it answered ApiVersions, over at least this long: longer than a
    client waits between two attempts."""
    fell_silent_s: int = 30
    """A client that did something all the time and does nothing for so long, though it is connected, has stopped:
    longer than clients retry (reconnect.backoff.max.ms)."""
    wrote_before: int = 10
    """So many writes, over so many seconds, make a producer of a client; a script that writes once is none."""
    storm_per_s: int = 100
    """So many rejected requests a second on one connection are asked without a pause: Kafka's clients wait 100 ms
    (retry.backoff.ms) before they ask again."""
    storm_seldom_per_s: int = 200
    """So many requests a second, granted or not, of what a client needs once in some seconds: twice as many as a
    heartbeat.interval.ms of 10 ms."""
    storm_times: int = 5
    """What brings work, such as a write, is asked for without a pause if it is rejected so many times as often as it
    was granted before."""
    principals: int = 1
    """Whether findings name the principal and the address of the client that changed a topic; 0: the client ID alone.
    """

    clocks_s: int = 0
    """By how much the clocks of what is compared may differ."""

    def with_clocks_apart(self) -> "Settings":
        """Those for what was captured by clocks of which nothing shows how far they differ."""
        by_s = CLOCKS_APART_S
        return replace(
            self,
            broker_grace_s=self.broker_grace_s + by_s,
            client_grace_s=self.client_grace_s + by_s,
            session_timeout_s=self.session_timeout_s + by_s,
            fell_silent_s=self.fell_silent_s + by_s,
            clocks_s=self.clocks_s + by_s,
        )

    @property
    def broker_grace_ns(self) -> int:
        return self.broker_grace_s * SECOND_NS

    @property
    def client_grace_ns(self) -> int:
        return self.client_grace_s * SECOND_NS
