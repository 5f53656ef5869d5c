"""What cannot be judged is told in time that is linear in the failures, however many endpoints there are."""

from types import SimpleNamespace

from wirecheck.judge.checks.wire_checks import not_judged
from wirecheck.judge.claims.claim import Sighting
from wirecheck.judge.ledger.failures import Failure, Failures
from wirecheck.judge.topology.clusters import Group

SEEN = Sighting(1, "10.0.0.1:1>10.0.0.2:9092", "Fetch", 12, 1, "", 1, 1)


class Counted(Failures):
    looked_at = 0

    def __iter__(self):
        for one in super().__iter__():
            self.looked_at += 1
            yield one


def test_each_failure_is_looked_at_once_and_told_by_the_first_group_of_its_cluster():
    failures = Counted()
    groups = [Group(f"cluster-{n // 2}", endpoints=[f"10.0.0.{n}:9092"]) for n in range(200)]
    for n in range(2000):
        cluster = f"cluster-{n % 101}"  # the last of them is of no group
        failures.stand(Failure("TID001", ("name", f"{n:04}"), cluster, "ValueError", SEEN))
    context = SimpleNamespace(failures=failures, groups=lambda _: groups, watermark_ns=1)
    evidence_rows = [evidence for group in groups for evidence in not_judged(("server",), group, context)]
    assert failures.looked_at == 2000
    assert sum(evidence.count for evidence in evidence_rows) == 2000
    assert len(evidence_rows) == 100
    assert evidence_rows[0].count == len(range(0, 2000, 101)) + len(range(100, 2000, 101))
