"""Law of counts over hours: what is found of them is what was found of slots of ten seconds."""

import pytest

from tests.depth import some
from tests.judge.lab import Lab, ns, open_rows
from tests.judge.test_checks import CASES
from wirecheck.judge.ledger.ageing import fold
from wirecheck.judge.revisions.judge import Judge

MINUTES_30_NS, HOURS_4_NS = 1_800_000_000_000, 14_400_000_000_000
FIRING = sorted(code for code, kind in CASES if kind == "fires")


@pytest.mark.parametrize("code", sorted({"TID010", *some(FIRING, each=12)}))
def test_a_fault_that_is_looked_at_hours_later_is_found_as_after_minutes(code):
    lab = Lab()
    CASES[code, "fires"](lab)
    until_ns, claims, found = ns(max(lab.until, 500)), lab.claims(), []
    for later_ns in (MINUTES_30_NS, HOURS_4_NS):
        judge = Judge("lab")
        judge.absorb(part.copy() for part in claims)
        fold(judge.ledger, 0, until_ns + later_ns, lambda _, ask, *given: ask(*given))
        judge.progress("agent", until_ns, ended=False)
        found.append(open_rows(judge.rows())["findings"])
    assert found[0] == found[1]
