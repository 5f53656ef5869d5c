"""A part's ledger: what is read elsewhere is asked for once, told while somebody reads it, and let go after that."""

from tests.judge.made import seen
from wirecheck.judge.claims.claim import Claim
from wirecheck.judge.parts.part_ledger import PartLedger
from wirecheck.judge.parts.part_message import News, Wanted

NAMES = [("name", "orders"), ("name", "events")]
ID = ("id", "x")
DELETED = Wanted(ID, "deletion")


def read_by(ledger, *names):
    for name in names:
        ledger.reader = name
        ledger.claims("deletion", *ID)
    ledger.reader = ()


def told():
    """A part that is home to names, and was told of an id that two of them read."""
    ledger = PartLedger(lambda _: None, {}, lambda subject: subject[0] == "name")
    read_by(ledger, *NAMES)
    assert ledger.asks == {DELETED}
    ledger.asks.clear()
    claim = Claim("deletion", ("orders", "x", "delete-topics", "10.0.0.1:9092", None), seen(1))
    ledger.receive(3, News(ID, [claim], []))
    return ledger


def test_what_is_told_is_read_and_whoever_read_it_is_judged_again():
    ledger = told()
    assert len(ledger.claims("deletion", *ID)) == 1
    assert ledger.touched == {*NAMES}


def test_what_one_still_reads_stays():
    ledger = told()
    ledger.let_go(lambda reader: reader == NAMES[0])
    assert (ledger.unasks, len(ledger.claims("deletion", *ID))) == (set(), 1)


def test_what_nobody_reads_any_more_is_forgotten_and_not_asked_for():
    ledger = told()
    ledger.let_go(lambda _: False)
    assert ledger.unasks == {DELETED}
    assert ledger.claims("deletion", *ID) == []
    ledger.touched.clear()
    ledger.receive(3, News(ID, [Claim("deletion", ("orders", "x", "delete-topics", "s", None), seen(2))], []))
    assert (ledger.claims("deletion", *ID), ledger.touched) == ([], set())


def test_whoever_comes_again_asks_again():
    ledger = told()
    ledger.let_go(lambda _: False)
    read_by(ledger, NAMES[1])
    assert (ledger.asks, ledger.unasks) == ({DELETED}, set())
