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
    grp010_near_miss__a_tool_sets_its_offset,
    listed,
    process,
    recreated,
)
from tests.judge.lab import ID_1, ID_2, Lab
from tests.judge.results.test_harm_rows import produces
from wirecheck.decode.connection.exchanges import NO_RESPONSE_DUE
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
    for client_id, later, error in (("on", (50, 80), 0), ("rejected", (50, 80), 3), ("silent", (), 0)):
        produces(lab, range(1, 30, 5), "songs", client_id=client_id)
        produces(lab, later, "songs", error, client_id=client_id)
    produces(lab, (50, 80), "songs", client_id="new")
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
    goes_on = replace(one, does="writes", state="goes on")
    assert goes_on.what == "goes on writing"
    assert replace(goes_on, writes_by="name").what == "goes on writing by name"


def shares(lab, steps, topic_id=ID_2, *, client_id="reader", group="s", host="10.0.0.7", **facts):
    """A member of a share group: when it acquires which offset; None where it is answered without a record."""
    talk = lab.talk(client_id=client_id, host=host, **facts)
    for number, (at, offset) in enumerate(steps):
        asked = {"groupId": group, "memberId": client_id, "shareSessionEpoch": number, "topics": []}
        got = [] if offset is None else [{"firstOffset": offset, "lastOffset": offset, "deliveryCount": 1}]
        answer = [{"topicId": topic_id, "partitions": [{"partitionIndex": 0, "acquiredRecords": got}]}]
        talk.ask(at, "ShareFetch", 1, asked, {"errorCode": 0, "responses": answer})
        lab.until = max(lab.until, at + 1)


def share_group(lab, first, **facts):
    """It reads the former topic, and the new one from an offset on."""
    recreated(lab)
    shares(lab, [(at, at) for at in range(1, 34)], ID_1)
    shares(lab, [(50 + n, first + n) for n in range(9)], **facts)


def test_a_share_group_that_begins_behind_the_first_record_never_reads_what_is_before():
    """share.auto.offset.reset is latest by default, and counts for each topic that is created again."""
    lab = Lab()
    share_group(lab, 34)
    (row,) = rows(lab)
    lost = {"partition": 0, "offset": 34, "never_read_from": 0, "never_read_to": 33, "never_read": 34} | NOT_AGAIN
    assert (row["state"], row["never_read"], row["partitions"]) == ("records never read", 34, [lost])
    assert Recreation.of(row).what == "goes on with partition 0 from offset 34; never read: 34 records (0 to 33)"


def test_a_share_group_that_begins_at_the_first_record_or_whose_other_member_does_lost_nothing():
    lab = Lab()
    share_group(lab, 0)
    (row,) = rows(lab)
    assert (row["state"], row["never_read"]) == ("first record", 0)
    lab = Lab()
    share_group(lab, 5)
    shares(lab, [(49, 0)], client_id="mate", host="10.0.0.8")
    (row,) = rows(lab)
    assert (row["state"], row["never_read"], row["partitions"][0]["offset"]) == ("first record", 0, 0)


def test_a_share_group_whose_log_may_have_lost_records_by_itself_is_not_known():
    """It begins long after the topic was created again: what is before may have been deleted by retention."""
    lab = Lab()
    recreated(lab)
    shares(lab, [(at, at) for at in range(1, 34)], ID_1)
    shares(lab, [(400 + n, 34 + n) for n in range(9)])
    assert states(lab) == {("reads", "reader"): "not known"}


@pytest.mark.parametrize("api", ["AlterShareGroupOffsets", None])
def test_where_a_share_group_begins_is_not_known_after_a_tool_or_without_a_record(api):
    lab = Lab()
    if api is None:
        recreated(lab)
        shares(lab, [(at, at) for at in range(1, 34)], ID_1)
        shares(lab, [(50 + n, None) for n in range(9)])
    else:
        share_group(lab, 34)
        rows_of = [{"partitionIndex": 0, "startOffset": 34}]
        asked = {"groupId": "s", "topics": [{"topicName": "songs", "partitions": rows_of}]}
        lab.talk(client_id="tool").ask(45, api, 0, asked, {"errorCode": 0, "responses": []})
    assert states(lab) == {("reads", "reader"): "not known"}


def test_where_a_share_group_begins_is_not_known_if_bytes_are_missing():
    lab = Lab()
    share_group(lab, 34, unseen_response_bytes=100)
    assert states(lab) == {("reads", "reader"): "not known"}


def writes(lab, times, topic_id, error=0, *, transactional_id=None, client_id="writer"):
    """By ID, with acks=all."""
    talk = lab.talk(client_id=client_id)
    for at in times:
        records = {"topicData": [{"topicId": topic_id, "partitionData": [{"index": 0, "records": None}]}]}
        asked = {"transactionalId": transactional_id, "acks": -1, "timeoutMs": 1, **records}
        row = {"index": 0, "errorCode": error, "baseOffset": 1, "logAppendTimeMs": -1}
        talk.ask(at, "Produce", 13, asked, {"responses": [{"topicId": topic_id, "partitionResponses": [row]}]})
        lab.until = max(lab.until, at)


def unasked(lab, times, topic_id, *, name=None):
    """With acks=0, by ID or by name."""
    of = {"topicId": topic_id} if name is None else {"name": name}
    talk = lab.talk(client_id="writer")
    for at in times:
        asked = {"acks": 0, "timeoutMs": 1, "topicData": [{**of, "partitionData": [{"index": 0, "records": None}]}]}
        talk.ask(at, "Produce", 13 if name is None else 9, asked, outcome=NO_RESPONSE_DUE)
        lab.until = max(lab.until, at)


def test_a_writer_with_acks_0_by_the_former_id_writes_in_vain():
    """Its application gets no error: franz-go goes on so."""
    lab = Lab()
    recreated(lab)
    unasked(lab, range(1, 90, 4), ID_1)
    (row,) = rows(lab)
    assert (row["state"], row["errors"]) == ("rejected since", [])


@pytest.mark.parametrize(("topic_id", "name", "by"), [(ID_2, None, "ID"), (ID_1, "songs", "name")])
def test_a_writer_with_acks_0_goes_on(topic_id, name, by):
    lab = Lab()
    recreated(lab)
    unasked(lab, range(1, 30, 4), ID_1, name=name)
    unasked(lab, range(45, 90, 4), topic_id, name=name)
    (row,) = rows(lab)
    assert (row["state"], row["writes_by"]) == ("goes on", by)


def ends(lab, times, *, committed=True, transactional_id="t", client_id="writer"):
    talk = lab.talk(client_id=client_id)
    for at in times:
        asked = {"transactionalId": transactional_id, "producerId": 1, "producerEpoch": 0, "committed": committed}
        talk.ask(at, "EndTxn", 4, asked, {"errorCode": 0})
        lab.until = max(lab.until, at)


def transactional(lab, last, done, *, committed=True, **who):
    """A producer that writes to the former topic in a transaction until some second, and ends it at another one."""
    recreated(lab)
    writes(lab, (10, 20, last), ID_1, transactional_id="t", **who)
    ends(lab, (11, 21), **who)
    ends(lab, done, committed=committed, **who)
    writes(lab, (50, 60), ID_2, transactional_id="t", **who)
    return next(row for row in rows(lab) if row["does"] == "writes")


@pytest.mark.parametrize(
    ("last", "done", "committed", "found"),
    [
        (33, (52,), True, "committed"),
        (33, (45,), False, "aborted"),
        (33, (34, 52), True, None),
        (33, (), True, None),
        (33.2, (33.1, 52), True, "committed"),
        (33.2, (33.1, 33.3, 52), True, None),
    ],
    ids=["committed", "aborted", "over before", "still open", "one just before", "another just before"],
)
def test_a_transaction_across_the_recreation(last, done, committed, found):
    row = transactional(Lab(), last, done, committed=committed)
    assert (row["state"], row["writes_by"], row["transaction"]) == ("goes on", "ID", found)
    words = f"; {found} a transaction that it began in the former topic" if found else ""
    assert Recreation.of(row).what == f"goes on writing by its new ID{words}"


def test_how_a_transaction_ended_is_not_known_if_bytes_are_missing():
    lab = Lab()
    lab.talk(client_id="writer", unseen_request_bytes=300).ask(44, "Metadata", 12, {"topics": []}, {"topics": []})
    assert transactional(lab, 33, (52,))["transaction"] is None


def test_a_writer_is_not_known_if_bytes_are_missing_or_too_little_time_has_passed():
    """One that pauses, or has ended before, has written nothing since: that is no fault of it."""
    lab = Lab()
    recreated(lab)
    produces(lab, range(1, 30, 5), "songs", client_id="paused")
    assert states(lab) == {("writes", "paused"): "not known"}
    lab.until = 100
    assert states(lab) == {("writes", "paused"): "nothing since"}
    (row,) = rows(lab)
    assert not Recreation.of(row).is_lost
    lab.talk(client_id="paused", unseen_request_bytes=300).ask(60, "Metadata", 12, {"topics": []}, {"topics": []})
    assert states(lab) == {("writes", "paused"): "not known"}
    (row,) = rows(lab)
    assert Recreation.of(row).what == "whether it goes on is not known"


def test_a_writer_by_name_goes_on_by_name():
    lab = Lab()
    recreated(lab)
    produces(lab, (*range(1, 30, 5), 50, 60), "songs")
    (row,) = rows(lab)
    assert (row["state"], row["writes_by"], row["transaction"]) == ("goes on", "name", None)


def test_an_idempotent_producer_that_gets_a_new_epoch_goes_on():
    """It asks for another producer ID after its writes were rejected."""
    lab = Lab()
    recreated(lab)
    writes(lab, range(1, 33), ID_1)
    writes(lab, (36, 37), ID_1, 100)
    asked = {"transactionalId": None, "transactionTimeoutMs": 1, "producerId": 7, "producerEpoch": 0}
    lab.talk(client_id="writer").ask(41, "InitProducerId", 4, asked, {"producerId": 7, "producerEpoch": 1})
    writes(lab, range(42, 60), ID_2)
    assert states(lab) == {("writes", "writer"): "goes on"}


def test_a_reader_whose_group_was_set_begins_at_another_offset():
    """A tool, or MirrorMaker's checkpoints, committed it in the new topic while the group had no members."""
    lab = Lab()
    grp010_near_miss__a_tool_sets_its_offset(lab)
    (row,) = [row for row in rows(lab) if row["client_id"] == "reader"]
    assert (row["state"], row["never_read"]) == ("another offset", 0)
    assert Recreation.of(row).what == "goes on with partition 0 from offset 73"
