"""What checks declare to read is what they read: no more, no less, and nothing else is filed."""

import pytest

from tests.judge.lab import B1, ID_1, ID_2, Lab
from tests.judge.recorded_reads import undeclared
from tests.judge.test_checks import CASES, RECORDED, read, recording
from wirecheck.judge.checks import catalogue
from wirecheck.judge.checks.catalogue import OF_TOPIC, SEVERAL, WHATEVER
from wirecheck.judge.checks.evaluate import codes_among, tables_among
from wirecheck.judge.checks.filed import TOPIC_SPACES, words, words_about
from wirecheck.judge.claims.claim import ZERO
from wirecheck.judge.claims.kinds import STATED
from wirecheck.judge.results.judged_tables import JUDGED

BUILT = [*catalogue.CHECKS]
BESIDE_CHECKS = {
    "who belongs together": {"server:registered"},
    "what is judged with what": {"id:creation", "name:stated"},
    "which hosts are unauthenticated": {"link:asked", "server:no_cluster_id"},
    "whose requests a proxy sends on": {"host:received", "host:sent_on"},
    "what a connection adds to sums": {
        "connection:connection_requests", "connection:connection_ranges", "connection:session_begun", "connection:gap",
        "connection:malformed", "connection:stray", "connection:request_unseen",
    },
}  # fmt: skip
"""What is filed for others than checks and tables."""


@pytest.mark.parametrize("code", BUILT)
def test_a_check_reads_all_that_it_declares(code):
    """In its own cases, one after the other until it has; of a name's history whatever they need of it."""
    unread = {*catalogue.CHECKS[code].reads} - {*OF_TOPIC}
    own = [case for of, case in CASES if of == code and case.startswith(("fires", "near_miss"))]
    for case in sorted(own, key=lambda case: (code, case) not in RECORDED):
        if unread:
            unread -= (read(code, case).recording or recorded_again(code, case)).by_check
    assert unread == set()


def recorded_again(code, case):
    lab = Lab()
    CASES[code, case](lab)
    lab.judge()
    return recording(lab.judged, code)


def test_what_is_filed_is_read():
    declared = [check.reads for check in catalogue.CHECKS.values()]
    declared += [catalogue.declared(words) for table in JUDGED for words in table.reads.values()]
    declared = [frozenset(word for word in one if not word.endswith(f":{WHATEVER}")) for one in declared]
    filed = {f"{space}:{kind}" for kind, value in STATED.items() for space, *_ in value.subjects}
    assert filed - frozenset().union(*declared) == {word for words in BESIDE_CHECKS.values() for word in words}


def test_what_a_check_reads_beyond_its_words_is_seen():
    lab = Lab()
    lab.metadata(0, [("orders", ID_1)])
    lab.judge()
    assert undeclared(lab.judged) == set()
    function = catalogue.CHECKS["TID008"].function

    def curious(subject, group, context):
        context.claims("deletion", group, *subject)
        context.ledger.claims("connection", "connection", B1)
        yield from function(subject, group, context)

    object.__setattr__(catalogue.CHECKS["TID008"], "function", curious)
    try:
        found = {(name, other[0], kind) for name, _, other, kind in undeclared(lab.judged)}
    finally:
        object.__setattr__(catalogue.CHECKS["TID008"], "function", function)
    assert found == {("TID008", "id", "deletion"), ("TID008", "connection", "connection")}


def test_a_check_is_asked_where_something_that_it_needs_or_else_reads_is_filed():
    for code, check in catalogue.CHECKS.items():
        for space in check.spaces:
            near = TOPIC_SPACES if space in TOPIC_SPACES else {space}
            needed = {word for word in check.needs if word == SEVERAL or word.partition(":")[0] in near}
            mine = needed or {word for word in check.reads if word.startswith(f"{space}:")}
            assert needed - {SEVERAL} <= check.reads
            assert (code in codes_among(space, frozenset())) == (not mine or f"{space}:{WHATEVER}" in mine)
            for word in mine:
                assert code in codes_among(space, frozenset({word}))
    assert "TID010" not in codes_among("name", frozenset({"name:serves", "name:binding"}))
    assert "TID010" in codes_among("name", frozenset({"name:serves", "name:deletion"}))


def test_a_table_is_asked_where_something_that_it_needs_is_filed():
    asked = {name for name, _ in tables_among("name", frozenset({"name:binding"}))}
    assert asked == {"topics", "coverage", "topic_statements"}
    assert "recreations" in {name for name, _ in tables_among("name", frozenset({"name:binding", SEVERAL}))}
    assert "harms" in {name for name, _ in tables_among("id", words("id", frozenset({"unanswered_refused"})))}
    for table in JUDGED:
        for space, read_there in table.reads.items():
            every = words(space, frozenset(STATED)) | {SEVERAL}
            asked = [{name for name, _ in tables_among(space, filed)} for filed in (frozenset(), every)]
            assert [table.name in names for names in asked] == [not catalogue.needed(read_there), True]


def test_a_topic_with_one_id_asks_few_checks():
    assert len(codes_among("id", frozenset({"id:use", "id:binding"}))) <= 8
    assert codes_among("name", frozenset({"name:binding", "id:binding"})) == ["TID013"]


@pytest.mark.parametrize(
    ("stated", "is_several"),
    [
        ([("orders", ID_1)], False),
        ([("orders", ID_1), ("orders", ID_2)], True),
        ([("orders", ID_1), ("payments", ID_1)], True),
        ([("orders", ID_1), ("orders", ZERO)], True),
        ([("orders", ID_1), ("payments", ID_2)], False),
    ],
)
def test_a_topic_is_several_where_more_than_one_id_or_name_is_stated(stated, is_several):
    lab = Lab()
    for one in stated:
        lab.metadata(0, [one])
    lab.judge()
    for subject in (("name", "orders"), ("id", ID_1)):
        kinds = frozenset(claim.kind for claim in lab.judged.ledger.claims_of(*subject).values())
        assert (SEVERAL in words_about(subject, kinds, lab.judged.ledger, {})) == is_several


def test_words_that_say_nothing_are_refused():
    assert catalogue.needed("topic id:use! id:binding") == {"id:use"}
    assert catalogue.declared("id:use! id:binding") == {"id:use", "id:binding"}
    assert catalogue.declared("") == frozenset()
    assert catalogue.declared("topic link:*") == {*OF_TOPIC, "link:*"}
    for word in ("orders", "id:absence", "nowhere:use"):
        with pytest.raises(ValueError, match="nothing of that kind"):
            catalogue.declared(word)
