"""What each client of a recreated topic has done since: where it went on, what it never read, and who is not known."""

from dataclasses import replace

import pytest

from tests.judge.cases_progress import (
    commits,
    ends_rejected,
    fetches,
    fetches_offset,
    follows,
    grp010_fires__by_name,
    listed,
    process,
    recreated,
)
from tests.judge.lab import ID_1, ID_2, Lab
from tests.judge.results.test_harm_rows import produces
from wirecheck.document import of_row
from wirecheck.story.seen import RecreatedPartition, Recreation


def rows(lab):
    return sorted(lab.judge()["recreations"].values(), key=lambda row: (row["does"], row["client_id"]))


def states(lab):
    return {(row["does"], row["client_id"]): row["state"] for row in rows(lab)}


def test_a_reader_that_keeps_its_offset_is_listed_with_what_it_never_read():
    lab = Lab()
    grp010_fires__by_name(lab)
    (row,) = rows(lab)
    assert (row["topic"], row["former_id"], row["topic_id"]) == ("songs", ID_1, ID_2)
    assert (row["does"], row["client_id"], row["address"], row["state"]) == (
        *("reads", "reader", "10.0.0.7"),
        "records never read",
    )
    lost = {"partition": 0, "offset": 33, "never_read_from": 0, "never_read_to": 32, "never_read": 33} | NOT_AGAIN
    assert (row["never_read"], row["partitions"]) == (33, [lost])


NOT_AGAIN = {"read_again_from": None, "read_again_to": None, "read_again": 0}


def set_back(lab, to, *, until=60):
    """A reader that goes on at 33 in the new topic, and commits; then a tool sets its group to an offset."""
    recreated(lab)
    process(lab, 1, 1, until=100)
    fetches(lab, follows(1, 34))
    fetches(lab, [(45 + n, 33 + n, 60 + n) for n in range(15)], ID_2)
    commits(lab, [46, 55], [34, 43])
    fetches_offset(lab, until + 15, to)
    fetches(lab, [(until + 16 + n / 2, to + n, 90) for n in range(50)], ID_2)
    (row,) = rows(lab)
    return row


@pytest.mark.parametrize(("to", "again"), [(38, range(38, 43)), (0, range(33, 43)), (43, range(0))])
def test_what_a_group_reads_again_is_what_it_had_committed(to, again):
    """Not what it had never read, nor what was fetched and not committed, as at each rebalance (43)."""
    row = set_back(Lab(), to)
    found = row["partitions"][0]
    expected = (again.start, again.stop - 1, len(again)) if again else (None, None, 0)
    assert (found["read_again_from"], found["read_again_to"], found["read_again"]) == expected
    assert ("; read again: " in Recreation.of(row).what) == bool(again)


def test_a_reader_that_begins_at_the_first_record_lost_nothing():
    lab = Lab()
    recreated(lab)
    fetches(lab, follows(1, 34))
    fetches(lab, [(50 + n, n, 60 + n) for n in range(20)], ID_2)
    (row,) = rows(lab)
    assert (row["state"], row["never_read"], row["partitions"][0]["offset"]) == ("first record", 0, 0)


def test_who_reads_nothing_and_who_goes_on_to_be_rejected():
    lab = Lab()
    ends_rejected(lab)
    talk = lab.talk(client_id="asks", host="10.0.0.5")
    fetches(lab, follows(1, 34), client_id="asks", talk=talk)
    fetches(lab, [(36 + 2 * n, 33, 0, 100) for n in range(42)], talk=talk)
    found = {row["client_id"]: row for row in rows(lab)}
    assert {name: row["state"] for name, row in found.items()} == {"reader": "nothing since", "asks": "rejected since"}
    assert [row["errors"] for row in found.values()] == [["UNKNOWN_TOPIC_ID"], ["UNKNOWN_TOPIC_OR_PARTITION"]]


def test_writers_go_on_are_rejected_or_are_silent():
    lab = Lab()
    recreated(lab)
    for client_id, later, error in (("on", (50, 60), 0), ("rejected", (50, 60), 3), ("silent", (), 0)):
        produces(lab, range(1, 30, 5), "songs", client_id=client_id)
        produces(lab, later, "songs", error, client_id=client_id)
    produces(lab, (50, 60), "songs", client_id="new")
    assert states(lab) == {
        ("writes", "on"): "goes on",
        ("writes", "rejected"): "rejected since",
        ("writes", "silent"): "nothing since",
    }


def test_where_a_reader_went_on_is_not_known_if_bytes_are_missing():
    lab = Lab()
    recreated(lab)
    fetches(lab, follows(1, 34))
    talk = lab.talk(client_id="reader", host="10.0.0.7", unseen_request_bytes=100)
    fetches(lab, [(50 + n, 33 + n, 60 + n) for n in range(20)], ID_2, talk=talk)
    (row,) = rows(lab)
    assert (row["state"], row["partitions"]) == ("not known", [])


def test_there_is_no_row_without_a_deletion_nor_of_a_new_reader():
    lab = Lab()
    listed(lab, 0, ID_1)
    listed(lab, 40, ID_2)
    fetches(lab, follows(1, 34))
    assert rows(lab) == []
    lab = Lab()
    recreated(lab)
    fetches(lab, [(50 + n, n, 60 + n) for n in range(20)], ID_2)
    assert rows(lab) == []


def test_the_words_of_a_row():
    lab = Lab()
    grp010_fires__by_name(lab)
    (row,) = rows(lab)
    one = Recreation.of(row)
    assert one.client == "reader (10.0.0.7)"
    assert one.what == "goes on with partition 0 from offset 33; never read: 33 records (0 to 32)"
    lost = of_row(RecreatedPartition, row["partitions"][0])
    several = replace(one, never_read=66, partitions=tuple(replace(lost, partition=n) for n in range(4)))
    assert several.what == (
        "goes on with partition 0 from offset 33, 1 from offset 33 and 2 from offset 33, and 1 more;"
        " never read: 66 records of 4 partitions"
    )
    assert replace(one, state="rejected since", errors=("A", "B")).what == "has been rejected since (A and B)"
    assert replace(one, does="writes", state="goes on").what == "goes on writing"
