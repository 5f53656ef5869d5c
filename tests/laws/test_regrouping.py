"""Law of cells: exchanges are decoded and judged in any groups and any order, and the rows are the same.

The query spreads cells over tasks, and halves one whose exchange raises. Neither may change what is reported.
"""

from random import Random

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.depth import DEEP
from tests.judge.lab import Lab, exchanged, ns, open_rows
from tests.judge.test_checks import CASES
from tests.laws.test_judge import absurd
from wirecheck.judge.revisions.judge import Judge
from wirecheck.streaming.steps.decode_step import stated_by
from wirecheck.streaming.steps.settings import Settings

SETTINGS = Settings()
REFUSED, WAITING = ("WIR008", "fires"), ("WIR007", "near_miss__behind_a_request_that_may_wait")
CHOSEN = sorted(CASES) if DEEP else sorted({*sorted(CASES)[::29], REFUSED, WAITING})
"""In short runs one of 29 cases, one with connections that are refused, one where a request waits for another."""


def rows(pieces, until):
    """Those of one judge that gets each piece's claims in this order, all before it judges."""
    judge = Judge("lab", settings=SETTINGS.judge)
    for piece in pieces:
        judge.absorb(stated_by(piece, SETTINGS).claims)
    judge.progress("agent", ns(until), ended=True)
    return {table: {**found} for table, found in open_rows(judge.rows()).items()}


def regrouped(exchanges, dice):
    """Some pieces in any order, each with any of the units in any order."""
    units = exchanges.units()
    places = np.array_split(dice.sample(range(len(units)), len(units)), dice.randint(2, 6))
    none = np.array([], np.int64)
    pieces = exchanges.divided([np.concatenate([none, *(units[int(n)] for n in piece)]) for piece in places])
    dice.shuffle(pieces)
    return pieces


def with_refused_connections(lab):
    """And with some that a server resets before anything is sent: no exchange speaks of them."""
    for _ in range(3):
        lab.talk(closed_by="server-rst", over=True, close_ns=ns(3))
    return lab


@settings(max_examples=100 if DEEP else 20)
@given(seed=st.integers(0, 1 << 32))
@example(seed=141)  # a host that is granted something in one piece, and is odd in another
def test_any_grouping_and_order_of_absurd_exchanges_gives_the_same_rows(seed):
    lab = with_refused_connections(absurd(seed))
    whole, _ = exchanged(*lab.talks)
    assert rows(regrouped(whole, Random(seed)), lab.until) == rows([whole], lab.until)


@pytest.mark.parametrize(("code", "case"), CHOSEN, ids=lambda part: part)
def test_any_grouping_and_order_of_a_case_gives_the_same_rows(code, case):
    lab = Lab()
    CASES[code, case](lab)
    for dialect in {talk.dialect for talk in lab.talks}:
        whole, _ = exchanged(*[talk for talk in lab.talks if talk.dialect == dialect])
        assert rows(regrouped(whole, Random(case)), lab.until) == rows([whole], lab.until)
