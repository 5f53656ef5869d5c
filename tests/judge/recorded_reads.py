"""What checks and tables really read: every check, over every subject of a ledger, and what it asked for.

Knows: through which doors a check reaches the ledger. Does not know what may be read.
Rule: what is read for a check before it is asked (who belongs together, which hosts are unauthenticated, how a subject
is sorted) is not its own; what is remembered between checks is forgotten, so that each has to ask for itself.
"""

from contextlib import contextmanager

from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks import catalogue, evaluate
from wirecheck.judge.checks.catalogue import WHATEVER
from wirecheck.judge.checks.filed import words_about
from wirecheck.judge.claims.kinds import SPACES
from wirecheck.judge.results.judged_tables import JUDGED

TOPICS = {"name", "id"}


class Recorder:
    """A ledger that notes what it is asked for."""

    def __init__(self, ledger):
        self.ledger, self.asked, self.listens = ledger, set(), True

    def note(self, subject, kind):
        if self.listens:
            self.asked.add((tuple(subject), kind))

    @contextmanager
    def deaf(self):
        before, self.listens = self.listens, False
        try:
            yield
        finally:
            self.listens = before

    def claims(self, kind, *subject):
        self.note(subject, kind)
        return self.ledger.claims(kind, *subject)

    def claims_of(self, *subject):
        self.note(subject, WHATEVER)
        return self.ledger.claims_of(*subject)

    def subjects(self, space):
        return self.ledger.subjects(space)


class Recording(CheckContext):
    """A context that notes what checks ask it for, and not what it asks the ledger for in order to answer."""

    def __init__(self, judge):
        recorder = judge.unauthenticated_hosts.ledger = Recorder(judge.ledger)
        super().__init__(recorder, judge.clusters, judge.settings, judge.watermark_ns, judge.unauthenticated_hosts)
        self.failures, self.agents = judge.failures, judge.agents

    def claims(self, kind, group, *subject):
        self.ledger.note(subject, kind)
        with self.ledger.deaf():
            return super().claims(kind, group, *subject)

    def groups(self, subject):
        if subject != self.subject:  # its own groups are what a check is asked about
            self.ledger.note(subject, WHATEVER)
        with self.ledger.deaf():
            return super().groups(subject)

    def generations(self, group):
        with self.ledger.deaf():  # like who belongs together
            return super().generations(group)

    def filed_for(self, subject):
        if subject != self.subject:
            self.ledger.note(subject, WHATEVER)
        return super().filed_for(subject)

    def omitted(self, group, *subject):
        with self.ledger.deaf():  # it is known with the claims
            return super().omitted(group, *subject)

    def believed(self, subject, *kinds):
        for kind in kinds:
            self.ledger.note(subject, kind)
        with self.ledger.deaf():
            return super().believed(subject, *kinds)

    def filed_in(self, subject):
        with self.ledger.deaf():
            return super().filed_in(subject)

    def log(self, group, generation):
        with self.ledger.deaf():
            return super().log(group, generation)

    def senders(self, group):
        with self.ledger.deaf():
            return super().senders(group)


def recorded(judge, codes=None):
    """Check or table, its subject, and what it read there and elsewhere; of some checks alone, if they are given."""
    context = Recording(judge)
    for space in SPACES:
        for subject in sorted(judge.ledger.subjects(space)):
            context.subject = subject
            for name, declared, ask in readers(subject, context):
                if codes is not None and name not in codes:
                    continue
                context.topics.clear()
                context.topic_logs.clear()
                context.writers = context.of_logs = None
                context.indexes.clear()
                context.unauthenticated_hosts.links.clear()
                context.ledger.asked = set()
                ask()
                yield name, subject, declared, context.ledger.asked


def readers(subject, context):
    groups = context.filed_in(subject).groups
    for code in evaluate.codes_of(subject[0]):
        check = catalogue.CHECKS[code]
        yield code, check.reads, lambda check=check: [*evaluate.findings(check, subject, groups, context)]
    makers = dict(evaluate.ROWS[subject[0]])
    for table in JUDGED:
        if table.name in makers:
            make = makers[table.name]
            yield table.name, catalogue.declared(table.reads[subject[0]]), lambda make=make: [*make(subject, context)]


def outspoken(judge):
    """Checks that say something of a subject under which nothing is filed that they read there."""
    context = Recording(judge)
    for space in SPACES:
        for subject in sorted(judge.ledger.subjects(space)):
            context.subject = subject
            groups = context.filed_in(subject).groups
            kinds = frozenset(claim.kind for claim in judge.ledger.claims_of(*subject).values())
            filed = words_about(subject, kinds, judge.ledger, {})
            for code in set(evaluate.codes_of(space)).difference(evaluate.codes_among(space, filed)):
                if [*evaluate.findings(catalogue.CHECKS[code], subject, groups, context)]:
                    yield code, subject


def undeclared(judge, reads=None):
    """What a check or table reads and does not declare, or of subjects that are not its own; `reads`: what was recorded
    of this judge.
    """
    return {
        (name, subject, other, kind)
        for name, subject, declared, asked in (recorded(judge) if reads is None else reads)
        for other, kind in asked
        if declared.isdisjoint({f"{other[0]}:{kind}", f"{other[0]}:{WHATEVER}"})
        or not is_reachable(subject, other, judge.ledger)
    }


def is_reachable(subject, other, ledger):
    """Of its own space a check reads its own subject; of topics, the names and ids that claims join with it."""
    if other == subject or not any(True for _ in ledger.claims_of(*other)):
        return True
    if {subject[0], other[0]} <= TOPICS:
        return other in joined(subject, ledger)
    return other[0] != subject[0]


def joined(subject, ledger):
    """Names and ids that claims are about together with a subject, and with those."""
    found, fringe = {subject}, [subject]
    while fringe:
        for claim in list(ledger.claims_of(*fringe.pop()).values()):
            near = {other for other in claim.subjects() if other[0] in TOPICS} - found
            found |= near
            fringe += near
    return found
